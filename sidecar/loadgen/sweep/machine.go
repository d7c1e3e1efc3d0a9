package sweep

import (
	"encoding/json"
	"fmt"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// machine returns the spans to run, and takes in their results. Its JSON is its whole state.
type machine interface {
	// Next returns the span to run; false once there are no more.
	Next() (proof.Span, bool)
	// Beside returns the span that runs at the same time as that of Next; false where none does.
	Beside() (proof.Span, bool)
	// Add takes in the result of that span. It returns why the span does not count: the reason in its result, or that of
	// the machine.
	Add(r proof.Result) (spoiled string)
	Left() proof.Left
}

// legacyTrial is a trial by the method of earlier versions. It is shown, but not continued.
type legacyTrial struct{ json.RawMessage }

func (legacyTrial) Next() (proof.Span, bool)   { return proof.Span{}, false }
func (legacyTrial) Beside() (proof.Span, bool) { return proof.Span{}, false }
func (legacyTrial) Add(proof.Result) string    { return "" }
func (legacyTrial) Left() proof.Left           { return proof.Left{} }

// newMachine makes the machine of a complete request. The lock is held.
func (d *Desk) newMachine(r api.SweepRequest) (machine, error) {
	switch r.Kind {
	case api.SweepTrial:
		if err := d.checkLike(r); err != nil {
			return nil, err
		}
		before := d.history(r)
		p := planOf(r)
		p.KeepsLanes = d.keepsLanes(r) && r.Modes[0] != r.Modes[1]
		p.Priors = before.priors()
		if err := before.fits(p); err != nil {
			return nil, err
		}
		p.Before, p.Latency = d.leastBefore(r)
		t, err := proof.New(p)
		if err == nil {
			before.outlook(p, &t.Shown)
		}
		return t, err
	case api.SweepLevels:
		return &proof.Sweep{Plan: proof.SweepPlan{
			Levels: r.Levels, Modes: r.Modes, Repeats: *r.Repeats, Order: *r.Order, WarmUp: *r.WarmUp,
			Seconds: *r.Seconds, Seed: *r.Seed, Together: *r.Together,
		}}, r.CheckSpans() // the defaults may have too many
	case api.SweepCapacity:
		return proof.NewCapacity(proof.CapacityPlan{
			Modes: r.Modes, Levels: r.Levels, Resolution: *r.Resolution, Seconds: *r.Seconds, MaxTime: *r.MaxSeconds,
			SLO: *r.SLO, Seed: *r.Seed,
		})
	}
	return nil, api.Refuse("kind", r.Kind, fmt.Sprint(api.SweepKinds))
}

func planOf(r api.SweepRequest) proof.Plan {
	p := proof.Plan{
		A: r.Modes[0], B: r.Modes[1], More: r.Modes[2:], Level: r.Levels[0], Primary: proof.Metric(*r.Primary),
		Smallest: *r.Smallest, Seconds: *r.Seconds, MaxTime: *r.MaxSeconds, SLO: *r.SLO, Seed: *r.Seed, Together: *r.Together,
		Switchback: r.Warm(), WarmUp: *r.WarmUp,
	}
	if r.Question != nil && len(p.More) > 0 {
		p.Question = *r.Question
	}
	return p
}

func readMachine(s *api.Sweep, data json.RawMessage) (machine, error) {
	var m machine
	switch k := s.Request.Kind; {
	case k == api.SweepTrial && (s.Trial == nil || s.Trial.Method != api.TrialOnBlocks):
		return legacyTrial{data}, nil
	case k == api.SweepTrial:
		m = &proof.Trial{}
	case k == api.SweepLevels:
		m = &proof.Sweep{}
	case k == api.SweepCapacity:
		m = &proof.Capacity{}
	default:
		return nil, fmt.Errorf("a sweep of an unknown kind, %q", k)
	}
	return m, json.Unmarshal(data, m)
}

func writeState(m machine, s *api.Sweep) {
	left, p := m.Left(), &s.Progress
	p.SecondsLeft = left.Seconds
	p.SecondsLeast = left.Least
	p.SecondsMost = left.Most
	p.Beyond = left.Beyond
	switch m := m.(type) {
	case *proof.Trial:
		s.Trial = new(m.State())
	case *proof.Sweep:
		p.Of = new(m.Of())
	case *proof.Capacity:
		s.Capacity = new(m.State())
	}
}
