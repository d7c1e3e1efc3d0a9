package proof

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// overloaded ends the spans of some arms early, from one to another number of the trial's spans.
func overloaded(from, to int, arms ...Arm) func(Span, *Result) {
	return func(s Span, r *Result) {
		for _, arm := range arms {
			r.Overloaded = r.Overloaded || s.Arm == arm && from <= s.Number && s.Number < to
		}
	}
}

// states maps each arm to how far it keeps up.
func states(t *Trial) map[api.TrialArm]string {
	all := map[api.TrialArm]string{}
	for _, o := range t.Shown.Overload {
		all[o.Arm] = o.State
	}
	return all
}

// Blocks in which the queue of an arm grows without end, each with other arrivals, end a trial once chance does not
// explain them. It names the arms that do not keep up, and those that do.
func TestOverloadEndsTrial(t *testing.T) {
	for name, test := range map[string]struct {
		spans  int
		change []func(Span, *Result)
		want   map[api.TrialArm]string
	}{
		"B": {
			4,
			[]func(Span, *Result){overloaded(0, many, ArmB)},
			map[api.TrialArm]string{"a": KeepsUp, "b": DoesNotKeepUp},
		},
		"both": {
			4,
			[]func(Span, *Result){overloaded(0, many, ArmA, ArmB)},
			map[api.TrialArm]string{"a": DoesNotKeepUp, "b": DoesNotKeepUp},
		},
		"first B, then A": {
			6,
			[]func(Span, *Result){overloaded(0, 2, ArmB), overloaded(2, many, ArmA)},
			map[api.TrialArm]string{"a": DoesNotKeepUp, "b": Open},
		},
	} {
		t.Run(name, func(t *testing.T) {
			trial := newTrial(t, func(p *Plan) { p.Level = api.AtRate(4) })
			spans := drive(t, trial, 1, many, test.change...)
			assert.Len(t, spans, test.spans, "a block ends once both arms have run")
			assert.Equal(t, spans[0].Seed, spans[1].Seed)
			assert.NotEqual(t, spans[1].Seed, spans[2].Seed)
			assert.Equal(t, string(Overloaded), trial.State().Verdict)
			assert.Equal(t, test.want, states(trial))
		})
	}
}

// A single block in which a queue grows is left out, and its time counts. No arm is better before more blocks show that
// all keep up, and never one that was left out more often than another.
func TestOverloadInOneBlock(t *testing.T) {
	for arm, want := range map[Arm]Verdict{ArmA: BBetter, ArmB: TimeOver} {
		trial := newTrial(t, func(p *Plan) { p.Level = api.AtRate(4) })
		spans := drive(t, trial, .5, many, overloaded(0, 2, arm))
		s := trial.State()
		assert.Equal(t, string(want), s.Verdict, arm)
		assert.Equal(t, spans[2].Number, s.Spans[0].Number, "spans keep their numbers")
		require.Len(t, s.Overload, 2)
		for _, o := range s.Overload {
			assert.Equal(t, string(o.Arm) == string(arm), o.Blocks == 1)
		}
		if arm == ArmB {
			assert.Equal(t, string(Running), s.Primary.Outcome)
		}
	}
}

// In a switchback the queue of an arm would be that of the next slot, so that its block ends at once.
func TestOverloadOfSlot(t *testing.T) {
	trial := newTrial(t, func(p *Plan) { p.Level, p.Switchback = api.AtRate(4), true })
	spans := drive(t, trial, 1, many, overloaded(0, many, ArmB))
	assert.Equal(t, string(Overloaded), trial.State().Verdict)
	assert.Equal(t, DoesNotKeepUp, states(trial)["b"])
	assert.Equal(t, ArmB, spans[len(spans)-1].Arm)
}

// An arm is called better only once the growth of each arm's queue is certainly below that of a load at its limit.
func TestGrowthWithholdsVerdict(t *testing.T) {
	for _, test := range []struct {
		growth float64 // in standard deviations
		want   Verdict
	}{{0, BBetter}, {.3, BBetter}, {.8, TimeOver}, {1.6, Overloaded}} {
		trial := newTrial(t, func(p *Plan) { p.Level = api.AtRate(4) })
		drive(t, trial, .5, many, func(s Span, r *Result) {
			if r.Growth = 10 * test.growth; s.Number%4 < 2 {
				r.Growth += 10
			} else {
				r.Growth -= 10
			}
		})
		assert.Equal(t, test.want, Verdict(trial.State().Verdict), test.growth)
	}
}

// The first ten conversations of a span at a rate must have ended. None starts in its middle, and later spans count no
// sooner than earlier ones. Each arm runs once in a block, with the same arrivals.
func TestSpansAtRate(t *testing.T) {
	trial := newTrial(t, func(p *Plan) { p.Level = api.AtRate(4) })
	spans := drive(t, trial, 1, 6, func(s Span, r *Result) { r.Before = 50 - float64(s.Number) })
	for i, s := range spans {
		assert.Equal(t, OpenWarmUp, s.WarmUp)
		assert.Zero(t, s.Midway)
		assert.Equal(t, i > 0, s.From == 50)
		pair := spans[i/2*2 : i/2*2+2]
		assert.NotEqual(t, pair[0].Arm, pair[1].Arm)
		assert.Equal(t, pair[0].Seed, pair[1].Seed)
		assert.Equal(t, []float64{60, 0}, []float64{s.Seconds, s.RunIn})
	}
	assert.Equal(t, []Arm{spans[1].Arm, spans[3].Arm}, []Arm{spans[2].Arm, spans[4].Arm})
}

// A search by rate finds a rate between those it began with. Rates that the target does not keep up with miss the SLOs,
// and add nothing to the scatter of the others.
func TestCapacityByRate(t *testing.T) {
	c := newCapacity(t, func(p *CapacityPlan) {
		p.Levels, p.Resolution = []api.Level{api.AtRate(2), api.AtRate(4), api.AtRate(8)}, .25
	})
	search(t, c, func(s Span) Result {
		tenfold := s
		tenfold.Level = api.AtConversations(int(10 * s.Level.Value))
		r := served(tenfold, grows(47, 20), grows(47, 20))
		r.Overloaded = s.Level.Value > 6
		return r
	}, many)
	m := c.State().Modes[0]
	require.NotNil(t, m.Level)
	assert.Equal(t, api.Rate, m.Level.Kind)
	assert.InDelta(t, 4.7, m.Level.Value, .25)
	require.NotNil(t, m.Interval)
	for _, l := range m.Tested {
		assert.Equal(t, l.Level.Value > 6, l.Overloaded > 0, l.Level)
		require.NotNil(t, l.GoodPerSecond)
	}
}
