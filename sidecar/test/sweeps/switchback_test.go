package sweeps

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// warm is a trial whose arms change within one run.
func warm() api.SweepRequest {
	q := trial()
	q.Caches, q.Seconds, q.MaxSeconds = nil, new(40.), new(1200.)
	return q
}

// Where the arms can change in place, a trial is one run: no turn is cancelled, each arm counts the turns that were
// sent to it, and the lane is restored at the end.
func TestSwitchback(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		began := time.Now() // the cluster's, too
		b.start()
		s := b.done(b.begun(warm()).ID)
		assert.Equal(t, api.TrialCachesWarm, *s.Request.Caches)
		require.GreaterOrEqual(t, len(s.Spans), 2*s.Trial.FirstLook)
		for i, span := range s.Spans {
			assert.Equal(t, []any{i, 1, "warm"}, []any{span.Number, span.Attempt, span.Cold})
			assert.Equal(t, map[string]api.Mode{"a": "round_robin", "b": "kv"}[span.Arm], span.Mode.Mode)
			assert.InDelta(t, 10, span.Until.Sub(span.CountedFrom).Seconds(), 1e-6)
			sent := 0
			for _, turn := range b.cluster.Turns() {
				if at := began.Add(turn.Sent); inside(at, span) {
					sent++
				}
			}
			assert.Equal(t, sent, span.Turns, "span %d", i)
			assert.Zero(t, span.Failed)
		}
		assert.Equal(t, api.ModeKV, b.free().Mode)
		assert.Contains(t, strings.Join(s.Words, " "), "warm, switched")
		for _, format := range []api.ReportFormat{api.ReportMarkdown, api.ReportHTML, api.ReportJSON} {
			require.NoError(t, b.process.desk.WriteSweepReport(t.Context(), io.Discard, s.ID, format))
		}
	})
}

// A load at the trial's level goes on during the trial and after it, in the mode that it had, and no turn is cancelled.
func TestSwitchbackOnLoadInProgress(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		_, err := b.process.lane.Start(t.Context(), "ann", api.StartRequest{Level: new(api.AtConversations(40))})
		require.NoError(t, err)
		wait.Advance(time.Minute)
		began := b.process.lane.State().Started
		q := warm()
		q.MaxSeconds = new(400.)
		s := b.begun(q)
		wait.Advance(time.Minute)
		headline := func() *api.Headline { return b.process.View.Snapshot().Lanes[0].Baseline.Headline }
		assert.Equal(t, "Trial of KV-aware against round-robin: 0 of 3 blocks before the first look", headline().Text)
		b.until(s.ID, "the first pair", limit, func(s api.Sweep) bool { return s.Trial.Blocks == 1 })
		wait.Advance(time.Second)
		assert.Regexp(t, `^Not certain yet: first token \S+ % (sooner|later) under KV-aware so far$`, headline().Text)
		assert.Contains(t, headline().Detail, "1 of 3 blocks before the first look")
		s = b.done(s.ID)
		assert.InDelta(t, 80, s.Trial.BlockSeconds, 2, "no block has a warm-up")
		require.NotNil(t, s.Headline)
		state := b.free()
		assert.Equal(t, []any{began, api.PhaseRunning, api.ModeKV}, []any{state.Started, state.Phase, state.Mode})
		assert.Zero(t, b.process.View.Snapshot().Lanes[0].Totals.Cancelled)
		if s.Headline.Certain {
			assert.Equal(t, s.Headline.Text, headline().Text, "the result stays while the setting does")
		}
	})
}

// After a kill in a pair, that pair is measured anew.
func TestSwitchbackResumes(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(warm())
		b.until(s.ID, "the third slot", limit, func(s api.Sweep) bool { return len(s.Spans) >= 3 })
		b.kill()
		b.begin()
		s = b.done(s.ID)
		counted := 0
		for _, span := range s.Spans {
			if span.Spoiled == "" {
				assert.Equal(t, counted, span.Number)
				counted++
			}
		}
		assert.GreaterOrEqual(t, counted, 2*s.Trial.Blocks)
		assert.NotZero(t, s.Progress.Spoiled, "the slot before the kill has lost its pair")
	})
}

// A slot whose arm does not serve ends its pair, which does not count. The trial pauses where the arm cannot be reached
// for its next slot, and names the reason.
func TestSwitchbackPauses(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(warm())
		b.until(s.ID, "the first slot", limit, func(s api.Sweep) bool { return len(s.Spans) == 1 })
		b.cluster.Break(&chat.Error{Class: api.ErrorConnect, Message: "connection refused"})
		s = b.until(s.ID, "the pause", limit, ended)
		require.Equal(t, api.SweepPaused, s.State)
		assert.Equal(t, api.CauseMode, s.Cause)
		assert.Regexp(t, "^the change to (KV-aware|Round-robin) failed: connection refused", s.Reason)
		require.Len(t, s.Spans, 2)
		assert.Equal(t, "the other slot of its pair does not count", s.Spans[0].Spoiled)
		assert.Contains(t, s.Spans[1].Spoiled, "does not serve")
		assert.Zero(t, s.Trial.Blocks)
	})
}
