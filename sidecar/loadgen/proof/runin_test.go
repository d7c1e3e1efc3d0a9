package proof

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// hits are turns of four places in rounds of 10 s, whose hit rate is a function of the time.
func hits(until float64, rate func(at float64) float64) (all []workload.Outcome) {
	for at := 0.; at < until; at += 10 {
		for place := range 4 {
			all = append(all, workload.Outcome{
				Status: api.TurnOK, Sent: seconds(at), Latency: 9, PromptTokens: 1000, HasCached: true,
				CachedTokens: int(1000*rate(at)) + 10*(place+int(at)/10*7%5), // scatters
			})
		}
	}
	return all
}

func TestHitRateRises(t *testing.T) {
	warming := func(at float64) float64 { return .9 - .6*math.Exp(-at/60) }
	turns := hits(1000, warming)
	at := 10.
	for ; HitRateRises(turns, at, 10); at += 10 {
		require.Less(t, at, 600.)
	}
	assert.Greater(t, warming(at-20), .85, "it waits until the latest half of the time is nearly flat")
	steady := hits(1000, func(float64) float64 { return .5 })
	assert.True(t, HitRateRises(steady, 49, 10), "before five rounds are over")
	assert.False(t, HitRateRises(steady, 60, 10))
	assert.False(t, HitRateRises(hits(1000, func(float64) float64 { return 0 }), 60, 10))
	slow := hits(1000, func(at float64) float64 { return at / 4000 })
	assert.True(t, HitRateRises(slow, 800, 10), "a slow rise is found late")
	for i := range turns {
		turns[i].HasCached = false
	}
	assert.False(t, HitRateRises(turns, 20, 10), "the server reports no cached tokens")
}

// The longest run-in of the first block holds for the whole trial, and a span counts for at least twice of it.
func TestFirstBlockFixesRunIn(t *testing.T) {
	trial := newTrial(t, func(p *Plan) { p.Primary, p.Smallest, p.MaxTime = Throughput, .001, 20_000 })
	measured := []float64{20, 50, 0, 400}
	spans := drive(t, trial, 1, 9, scattered, func(s Span, r *Result) {
		if s.Number < len(measured) {
			r.RunIn = measured[s.Number]
		}
	})
	for i, want := range []struct{ settle, seconds float64 }{{0, 60}, {20, 120}, {50, 100}, {50, 100}, {50, 200}} {
		assert.Equal(t, want.settle, spans[i].Settle, "span %d", i)
		assert.InDelta(t, want.seconds, spans[i].Seconds, 1e-9, "span %d", i)
		assert.Equal(t, i < 3, spans[i].Settles, "span %d", i)
	}
	middle := spans[1]
	middle.Settled(50)
	assert.InDelta(t, 200, middle.Seconds, 1e-9)

	within := trial.Plan
	within.Before, within.WarmUp = 100, trial.LongestRunIn(100, 10)
	assert.InDelta(t, .8*within.MaxTime, within.least(), 1e-6)
	within.Seconds, within.WarmUp = 1200, trial.LongestRunIn(100, 400)
	assert.InDelta(t, .8*within.MaxTime, within.least(), 1e-6)
	assert.Zero(t, trial.LongestRunIn(1e6, 10))
}

// An effect that is smaller at the beginning of what counts is named at the end of the trial, and an even one is not.
func TestAfterEffect(t *testing.T) {
	for _, switchback := range []bool{false, true} {
		for early, want := range map[float64]bool{.6: true, .5: false} {
			trial := newTrial(t, func(p *Plan) { p.Smallest, p.Switchback, p.MaxTime = .001, switchback, 7200 })
			drive(t, trial, .5, 1000, func(s Span, r *Result) {
				r.Until = r.CountedFrom + s.Seconds
				for i := range r.Turns {
					turn := &r.Turns[i]
					if turn.FirstToken() < r.CountedFrom+s.Seconds/3 && s.Arm == ArmB {
						turn.TTFT *= early / .5
					}
				}
			})
			require.True(t, Verdict(trial.State().Verdict).Over())
			e := trial.State().AfterEffect
			require.Equal(t, want, e != nil, "switchback %t, %g", switchback, early)
			if want {
				assert.InDelta(t, early-1, e.First, .06)
				assert.InDelta(t, .5-1, e.Rest, .06)
				assert.Positive(t, e.Interval[0])
			}
		}
	}
}

// A trial is answered sooner where arms differ more, and nothing is said of one that its time is too short for.
func TestAnswer(t *testing.T) {
	answer := func(times, maxTime float64) float64 {
		p := defaultPlan(roundRobin, kv, 4)
		trial := newTrial(t, nil)
		drive(t, trial, times, 6)
		require.NotNil(t, trial.Shown.Primary)
		p.MaxTime = maxTime
		return p.Answer(trial, 600)
	}
	assert.InDelta(t, 1200, answer(.5, 36_000), 1e-9, "the first look")
	assert.Greater(t, answer(.97, 36_000), 1200.)
	assert.Zero(t, answer(.5, 1100), "two blocks do not fit")
}
