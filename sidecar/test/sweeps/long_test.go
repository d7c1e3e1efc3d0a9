//go:build verify

package sweeps

import (
	"fmt"
	"slices"
	"testing"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A trial ends with a verdict and restores the lane. The events report both.
func TestTrialEndsWithVerdict(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		b.start()
		s := b.begun(trial())
		assert.Equal(t, "ttft_mean", *s.Request.Primary)
		s = b.done(s.ID)
		require.NotNil(t, s.Trial.Primary)
		assert.NotEqual(t, "running", s.Trial.Verdict)
		require.Len(t, s.Trial.Looks, s.Trial.Blocks-1)
		assert.Equal(t, s.Trial.Primary.Interval, s.Trial.Looks[s.Trial.Blocks-2].Interval)
		assert.Contains(t, s.Words[0], fmt.Sprintf("on %d blocks: mean TTFT", s.Trial.Blocks))
		require.Len(t, s.Rows, 2)
		require.Len(t, s.Spans, 3*s.Trial.Blocks)
		for _, span := range s.Spans {
			assert.Empty(t, span.Spoiled)
			assert.Equal(t, "emptied", span.Cold)
			assert.GreaterOrEqual(t, span.Until.Sub(span.CountedFrom).Seconds(), 10.*float64(1+span.Number%3%2),
				"two in a row as one")
			assert.Equal(t, s.Spans[span.Number/3*3].Seed, span.Seed, "one seed per block")
			assert.InDelta(t, 40, *span.Actual, 4)
		}
		assert.NotEqual(t, s.Spans[0].Seed, s.Spans[3].Seed)
		state := b.free()
		assert.Equal(t, api.ModeKV, state.Mode)
		assert.Equal(t, api.AtConversations(8), state.Concurrency.Target)
		assert.True(t, state.Running)
		events, err := b.process.Store.Events(t.Context(), "", 100)
		require.NoError(t, err)
		var lines []string
		for _, e := range events {
			if e.Kind == api.EventSweep {
				lines = append(lines, e.By+": "+e.Text)
			}
		}
		require.Len(t, lines, 3)
		assert.Contains(t, lines[2], "ann: began the trial of KV-aware against Round-robin at 40 conversations")
		assert.Contains(t, lines[1], "load generator: finished the trial")
		assert.Equal(t, "load generator: the lane is restored: KV-aware, 8 conversations, running", lines[0])
	})
}

// Operators steer the lane of a paused sweep. After a resume, the interrupted span is measured again.
func TestResumeRepeatsInterruptedSpan(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(levels())
		b.counts(s.ID, 1)
		desk := b.process.desk
		s, err := desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepPaused})
		require.NoError(t, err)
		assert.Equal(t, api.SweepPaused, s.State)
		assert.Equal(t, "by bob", s.Reason)
		assert.Equal(t, api.CauseOperator, s.Cause)
		b.free()
		_, err = b.process.lane.Start(t.Context(), "bob", api.StartRequest{Level: new(api.AtConversations(3))})
		require.NoError(t, err)
		s, err = desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepRunning})
		require.NoError(t, err)
		require.Len(t, s.Spans, 1)
		s = b.done(s.ID)
		assert.Equal(t, 1, s.Spans[1].Number)
		state := b.free()
		assert.Equal(t, api.AtConversations(3), state.Concurrency.Target, "the concurrency at the time of the resume")
		assert.True(t, state.Running)
	})
}

// If the target fails twice, the span is spoiled, and the sweep pauses for its operator.
func TestFailingTargetPausesSweep(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(levels())
		b.counts(s.ID, 1)
		b.cluster.Break(&chat.Error{Class: api.ErrorConnect, Message: "connection refused"})
		s = b.until(s.ID, "the pause", limit, ended)
		require.Equal(t, api.SweepPaused, s.State)
		assert.Contains(t, s.Reason, "connection refused")
		assert.Equal(t, api.CauseMode, s.Cause, "its caches could not be emptied either")
		require.Len(t, s.Spans, 2)
		assert.Contains(t, s.Spans[1].Spoiled, "turns failed, the latest with connect: connection refused")
		assert.Equal(t, 1, s.Progress.Spans)
		assert.Equal(t, 1, s.Progress.Spoiled)
		b.cluster.Break(nil)
		b.free()
		s, err := b.process.desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepRunning})
		require.NoError(t, err)
		s = b.done(s.ID)
		assert.Equal(t, 2, s.Spans[2].Attempt, "the spoiled span is repeated")
		assert.Equal(t, 12, s.Progress.Spans)
	})
}

// A capacity search returns what each mode sustains, with and without a kill.
func TestCapacitySearchSurvivesKill(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(api.SweepRequest{
			Kind:       api.SweepCapacity,
			Levels:     api.LevelsOf(4, 16, 28),
			Modes:      append([]api.ModeState{{Mode: api.ModeRoundRobin}}, kv...),
			Seconds:    new(10.),
			MaxSeconds: new(1200.),
			Resolution: new(4.),
			SLO:        &api.SLO{TTFT: .5, TPOT: .06},
		})
		s = b.until(s.ID, "some spans", limit, func(s api.Sweep) bool { return len(s.Spans) == 4 })
		b.kill()
		b.begin()
		s = b.done(s.ID)
		require.Len(t, s.Capacity.Modes, 2)
		for _, m := range s.Capacity.Modes {
			require.NotNil(t, m.Level)
			figure.Report(t, "%s sustains %v conversations (%v to %v)", m.Mode.Mode, *m.Level, m.Interval[0], m.Interval[1])
			for _, tested := range m.Tested {
				row := s.Rows[slices.IndexFunc(s.Rows,
					func(r api.BaselineRow) bool { return r.Level == tested.Level && r.Mode == m.Mode.Mode })]
				if tested.Verdict == "meets" {
					assert.LessOrEqual(t, *row.TTFT.P95, .5)
				}
			}
		}
		b.free()
	})
}
