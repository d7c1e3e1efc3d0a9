package sweep

import (
	"encoding/json"
	"fmt"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// machine says which span is next, and takes in what became of it. Its JSON is all of
// its state.
type machine interface {
	// Next is the span to run; false once there are no more.
	Next() (proof.Span, bool)
	Add(r proof.Result) error
	// Spoiled says why the span that was added last does not count: as its result says, or since the
	// machine cannot use it.
	Spoiled() string
}

// pairing is a machine whose spans may run in pairs, at the same time.
type pairing interface {
	// Beside is the span that runs at the same time as that of Next; false where none does.
	Beside() (proof.Span, bool)
}

var (
	_ pairing = (*proof.Trial)(nil)
	_ pairing = (*proof.Sweep)(nil)
	_ machine = (*proof.Trial)(nil)
	_ machine = (*proof.Sweep)(nil)
	_ machine = (*proof.Capacity)(nil)
)

// newMachine makes the machine of a request with every field set.
func newMachine(r api.SweepRequest) (machine, error) {
	switch r.Kind {
	case api.SweepTrial:
		return proof.New(proof.Plan{
			A: r.Modes[0], B: r.Modes[1], Concurrency: r.Levels[0], Primary: proof.Metric(*r.Primary),
			Smallest: *r.Smallest, Seconds: *r.Seconds, MaxTime: *r.MaxSeconds, SLO: *r.SLO, Seed: *r.Seed,
			Together: *r.Together,
		})
	case api.SweepLevels:
		return proof.NewSweep(proof.SweepPlan{
			Levels: r.Levels, Modes: r.Modes, Repeats: *r.Repeats, Order: *r.Order, WarmUp: *r.WarmUp, Seconds: *r.Seconds, Seed: *r.Seed,
			Together: *r.Together,
		})
	case api.SweepCapacity:
		return proof.NewCapacity(proof.CapacityPlan{
			Modes: r.Modes, Levels: r.Levels, Resolution: *r.Resolution, Seconds: *r.Seconds, MaxTime: *r.MaxSeconds, SLO: *r.SLO, Seed: *r.Seed,
		})
	}
	return nil, api.Refuse("kind", r.Kind, fmt.Sprint(api.SweepKinds))
}

// readMachine reads one back.
func readMachine(k api.SweepKind, data json.RawMessage) (machine, error) {
	switch k {
	case api.SweepTrial:
		m := &proof.Trial{}
		return m, json.Unmarshal(data, m)
	case api.SweepLevels:
		m := &proof.Sweep{}
		return m, json.Unmarshal(data, m)
	case api.SweepCapacity:
		m := &proof.Capacity{}
		return m, json.Unmarshal(data, m)
	}
	return nil, fmt.Errorf("a sweep of an unknown kind, %q", k)
}

// writeState writes the state of a machine into a sweep.
func writeState(m machine, s *api.Sweep) {
	p := &s.Progress
	switch m := m.(type) {
	case *proof.Trial:
		state := m.State()
		s.Trial = &api.TrialState{
			Verdict: string(state.Verdict), Pairs: state.Pairs, Looks: []api.TrialLook{}, Boundaries: m.Plan.Boundaries(), Others: []api.TrialDifference{},
		}
		for i, l := range m.Looks() {
			s.Trial.Looks = append(s.Trial.Looks, api.TrialLook{Pairs: i + 1, Difference: l.Difference, Interval: l.Interval})
		}
		if state.Primary != nil {
			s.Trial.Primary = new(difference(*state.Primary))
		}
		for _, d := range state.Others {
			s.Trial.Others = append(s.Trial.Others, difference(d))
		}
		p.SecondsLeft, p.Beyond = nil, false
		if l := state.Left; l != nil {
			p.SecondsLeft, p.Beyond, s.Trial.Assumed = &l.Seconds, l.Beyond, &l.Difference
		}
	case *proof.Sweep:
		p.Of, p.SecondsLeft = new(m.Of()), new(m.SecondsLeft())
	case *proof.Capacity:
		s.Capacity, p.SecondsLeft = new(m.State()), nil
		if left, ok := m.SecondsLeft(); ok {
			p.SecondsLeft = &left
		}
	}
}

func difference(d proof.Difference) api.TrialDifference {
	return api.TrialDifference{
		Metric: string(d.Metric), A: d.A, B: d.B, Difference: d.Difference, Interval: d.Interval,
		Outcome: string(d.Outcome), Basis: string(d.Basis),
	}
}
