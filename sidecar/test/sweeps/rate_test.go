package sweeps

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/test/virtual"
)

// poisson lets conversations come at random where the load is a rate.
func poisson(b *booth) {
	b.workload.Arrivals, b.workload.Burstiness, b.workload.MaxInflight = api.ArrivalsPoisson, 1, 300
}

// oneWorker serves with one worker, which sustains a few conversations a second.
func oneWorker(b *booth) {
	b.cluster = b.made(virtual.Options{Mode: api.ModeKV, Seed: 1, Restart: 5 * time.Second, Workers: 1})
}

// sent returns when the turns of a span were to be sent, in seconds since its load began, in ascending order: all of
// them, and those that open a conversation.
func (b *booth) sent(span *api.SweepSpan) (all, openings []float64) {
	b.t.Helper()
	err := b.process.Store.TurnsFrom(b.t.Context(), api.DefaultLane, span.Step, func(t *api.Turn) error {
		if at := t.Started.Sub(span.Started).Seconds(); t.Step == span.Step {
			all = append(all, at)
			if t.Number == 1 {
				openings = append(openings, at)
			}
		}
		return nil
	})
	require.NoError(b.t, err)
	slices.Sort(all)
	slices.Sort(openings)
	return all, openings
}

// All spans of a block have the same arrivals at the same offsets. A turn counts where it was to be sent in the counted
// time, and each such turn is waited for.
func TestTrialAtRate(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		q := trial()
		q.Levels, q.MaxSeconds = []api.Level{api.AtRate(4)}, new(420.)
		s := b.done(b.begun(q).ID)
		assert.Equal(t, "poisson", s.Workload.Arrivals)
		assert.Contains(t, strings.Join(s.Words, " "), "at 4 conversations/s, on 3 blocks")
		assert.Equal(t, api.AtConversations(8), b.free().Concurrency.Target, "the lane is restored")
		first := map[uint64][]float64{} // the arrivals of each block
		for i := range s.Spans {
			span := &s.Spans[i]
			all, arrivals := b.sent(span)
			within := 0
			for _, at := range all {
				if span.CountedFrom.Sub(span.Started).Seconds() <= at && at < span.Until.Sub(span.Started).Seconds() {
					within++
				}
			}
			assert.Equal(t, within, span.Turns+span.Failed)
			assert.Zero(t, span.Failed)
			if known := first[span.Seed]; known == nil {
				first[span.Seed] = arrivals
			} else {
				n := min(len(known), len(arrivals))
				assert.InDeltaSlice(t, known[:n], arrivals[:n], .002)
			}
		}
		assert.Len(t, first, 3)
	}, poisson)
}

// A rate that no arm keeps up with, so that arrivals are dropped, is named after two blocks, whose spans end early.
func TestTrialBeyondCapacity(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		q := trial()
		q.Levels, q.MaxSeconds = []api.Level{api.AtRate(20)}, new(1800.)
		s := b.done(b.begun(q).ID)
		assert.Equal(t, "overloaded", s.Trial.Verdict, s.Words)
		assert.Equal(t, "Round-robin and KV-aware do not keep up with 20 conversations/s.", s.Words[0])
		assert.Len(t, s.Spans, 4)
		for _, span := range s.Spans {
			assert.Regexp(t, `^\d+ arrivals were dropped \(max_inflight\)$`, span.Overloaded)
			assert.Empty(t, span.Spoiled)
		}
	}, poisson, oneWorker, func(b *booth) { b.workload.MaxInflight = 100 })
}

// A sweep measures rates, and names those that a mode does not keep up with.
func TestSweepOfRates(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		q := levels()
		q.Levels = []api.Level{api.AtRate(1), api.AtRate(20)}
		q.Modes = []api.ModeState{{Mode: api.ModeRoundRobin}, {Mode: api.ModeKV}}
		s := b.done(b.begun(q).ID)
		require.Len(t, s.Spans, 8)
		for _, span := range s.Spans {
			assert.Equal(t, span.Level.Value > 1, span.Overloaded != "", span.Level)
		}
		assert.Contains(t, strings.Join(s.Words, " "), "does not keep up with 20/s, where latencies are not compared.")
		for _, row := range s.Rows {
			assert.Equal(t, row.Level.Value > 1, slices.Contains(row.AtLeast, "ttft_p95"))
		}
	}, poisson, oneWorker)
}

// In a switchback at a rate, the arrivals begin anew with each slot: both slots of a pair have the same.
func TestSwitchbackAtRate(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		q := trial()
		q.Levels, q.MaxSeconds, q.Seconds = []api.Level{api.AtRate(4)}, new(500.), new(60.)
		q.Caches = new(api.TrialCachesWarm)
		s := b.done(b.begun(q).ID)
		require.GreaterOrEqual(t, len(s.Spans), 6)
		for i := 0; i+1 < len(s.Spans); i += 2 {
			_, first := b.sent(&s.Spans[i])
			_, second := b.sent(&s.Spans[i+1])
			n := min(len(first), len(second)) - 1
			require.Greater(t, n, 100)
			assert.InDeltaSlice(t, first[:n], second[:n], .01)
		}
	}, poisson)
}

// A search by rate ends with the highest rate within the SLOs, and with the turns that met them in a second.
func TestCapacityByRate(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		q := api.SweepRequest{
			Kind: api.SweepCapacity, By: new(api.CapacityByRate),
			Levels:     []api.Level{api.AtRate(1), api.AtRate(3), api.AtRate(6)},
			Resolution: new(1.), Seconds: new(20.), MaxSeconds: new(1200.), Modes: []api.ModeState{{Mode: api.ModeKV}},
		}
		s := b.done(b.begun(q).ID)
		m := s.Capacity.Modes[0]
		require.NotNil(t, m.Level)
		assert.Greater(t, m.Level.Value, 1.)
		assert.Less(t, m.Level.Value, 6.)
		assert.NotNil(t, m.Tested[1].GoodInterval)
		assert.Regexp(t, `^KV-aware sustains [\d.]+/s within the SLOs \(.*/s to .*/s\)\.`, s.Words[0])
	}, poisson, oneWorker)
}

// A prefix that an earlier conversation of the span has sent is no warm cache, also where a shape has it.
func TestSharedPrefixesOfAShapeAreNotWarm(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		q := api.SweepRequest{
			Kind: api.SweepCapacity, By: new(api.CapacityByRate), Levels: []api.Level{api.AtRate(1.2), api.AtRate(2)},
			Resolution: new(.5), Seconds: new(60.), MaxSeconds: new(400.), Modes: []api.ModeState{{Mode: api.ModeKV}},
		}
		s := b.done(b.begun(q).ID)
		require.NotEmpty(t, s.Spans)
		for i := range s.Spans {
			assert.Empty(t, s.Spans[i].Spoiled)
		}
	}, poisson, oneWorker, func(b *booth) {
		b.workload.TrafficShape = api.TrafficShape{
			Preset: api.ShapePrefix, Groups: 20, PrefixTokens: 6000, SuffixTokens: 100, AnswerTokens: 100,
		}
	})
}
