//go:build verify

package decisions

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/loadgen/proof"
)

// plan is that of a trial; primary is the place of the metric that decides.
func plan(arms, primary int, known *decide.Boundaries) decide.Plan {
	p := decide.Plan{Arms: arms, Alpha: .05, Margin: .05, MaxSeconds: hour, Known: known}
	p.Metrics = append(p.Metrics, metrics[primary])
	for i, m := range metrics {
		if i != primary {
			p.Metrics = append(p.Metrics, m)
		}
	}
	return p
}

// run runs a trial to its end.
func run(p decide.Plan, w world, primary, trial int) (d decide.Decision, seconds float64) {
	s := newSpans(w, p.Arms, trial)
	var blocks []decide.Block
	for d = decide.Decide(p, nil); !d.Verdict.Over(); d = decide.Decide(p, blocks) {
		blocks = append(blocks, s.block(uint64(trial), d.Left, len(blocks), primary))
	}
	for _, b := range blocks {
		seconds += b.Seconds
	}
	return d, seconds
}

// block runs a block: in turns, or on two lanes where these differ.
func (s *spans) block(seed uint64, left []int, number, primary int) (b decide.Block) {
	var all []samples
	add := func(arm int, at float64, r proof.Recording) {
		all = append(all, counted(r))
		b.Spans = append(b.Spans, decide.Span{Arm: arm, At: at})
	}
	runs := decide.Order(seed, left, number)
	if s.lane > 0 {
		for turn := range 2 { // the outer arm of ABBA begins on the first lane
			first, second := runs[turn].Arm, runs[1-turn].Arm
			add(first, -.5, s.record(first, 0, length, 1))
			add(second, .5, s.record(second, 1, length, 1))
			s.passed(first, 1)
			b.Seconds += change + warmUp + length
		}
	} else {
		for _, r := range runs {
			add(r.Arm, r.At, s.record(r.Arm, 0, length*float64(r.Length), r.Length))
			s.passed(r.Arm, r.Length)
			b.Seconds += change + warmUp + length*float64(r.Length)
		}
	}
	var ttft, tpot []decide.Sample
	for i := range all {
		ttft, tpot = append(ttft, all[i].ttft), append(tpot, all[i].tpot)
	}
	for i := range all {
		v := all[i].values(decide.Largest(ttft...), decide.Largest(tpot...))
		ordered := []float64{v[primary]}
		for j := range v {
			if j != primary {
				ordered = append(ordered, v[j])
			}
		}
		b.Spans[i].Values, b.Spans[i].Failed, b.Spans[i].Ended = ordered, all[i].failed, all[i].ended
	}
	return b
}

// before runs a trial of the method before, on spans of the same world.
func before(t *testing.T, w world, primary proof.Metric, trial int) proof.State {
	t.Helper()
	mode := api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}
	p := proof.DefaultPlan(mode, mode, 60)
	p.Primary, p.Seed, p.Together = primary, uint64(trial), w.lane > 0
	machine, err := proof.New(p)
	require.NoError(t, err)
	s := newSpans(w, 2, trial)
	for {
		next, ok := machine.Next()
		if !ok {
			return machine.State()
		}
		at := []proof.Span{next}
		if beside, ok := machine.Beside(); ok {
			at = append(at, beside)
		}
		for lane, span := range at {
			arm := 0
			if span.Arm == proof.ArmB {
				arm = 1
			}
			counts := max(span.Seconds, max(proof.Latencies, span.Latencies)*25)
			r := s.record(arm, lane, math.Ceil(counts)+20, 1)
			r.Until -= 20
			for !(r.Until-r.CountedFrom >= span.Least(latency(r))) && r.Until < float64(len(r.Tokens))-1 {
				r.Until++
			}
			elapsed := change + r.Until
			if span.WarmUp == 0 && span.Arm == proof.ArmPilot {
				elapsed -= warmUp
			}
			result := proof.Result{Number: span.Number, Elapsed: elapsed / float64(len(at)), Recording: r}
			if failed := failedShare(r); failed > .05 {
				result.Spoiled = "too many turns failed"
			}
			require.NoError(t, machine.Add(result))
			s.passed(arm, 1)
		}
	}
}

func latency(r proof.Recording) float64 {
	c := decide.Sample{}
	for i := range r.Turns {
		if t := &r.Turns[i]; !t.Failed && r.CountedFrom <= t.Ended && t.Ended < r.Until {
			c.OK = append(c.OK, t.Ended-t.Sent)
		}
	}
	v, _ := c.Quantile(.5, 0)
	return v
}

func failedShare(r proof.Recording) float64 {
	c := counted(r)
	return float64(c.failed) / float64(c.ended)
}
