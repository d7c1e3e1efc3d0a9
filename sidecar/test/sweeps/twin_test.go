//go:build verify

package sweeps

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inTwo runs a test in virtual time on a booth with two lanes.
func inTwo(t *testing.T, test func(t *testing.T, b *booth)) { in(t, test, withTwin) }

// bothCount reports whether both spans of a pair count.
func bothCount(s api.Sweep) bool {
	return s.Progress.Beside != nil && s.Progress.Beside.Phase == api.SpanCounting
}

// atOnce requires that two spans are a pair: at the same time, on the two lanes, in different modes.
func atOnce(t *testing.T, first, second api.SweepSpan) {
	t.Helper()
	require.Empty(t, first.Spoiled+second.Spoiled)
	assert.Equal(t, []any{first.Seed, first.Level, first.Attempt},
		[]any{second.Seed, second.Level, second.Attempt})
	assert.NotEqual(t, first.Mode, second.Mode)
	assert.Equal(t, []string{api.DefaultLane, api.TwinLane}, []string{first.Lane, second.Lane})
	assert.True(t, first.CountedFrom.Before(second.Until) && second.CountedFrom.Before(first.Until), "in the same time")
}

// asBefore waits until the lanes are free, and requires that both run again in their earlier modes.
func (b *booth) asBefore() {
	b.t.Helper()
	lanes := []api.State{b.free(), b.process.twin.State()}
	assert.Equal(b.t, []api.Mode{api.ModeKV, api.ModeRoundRobin}, []api.Mode{lanes[0].Mode, lanes[1].Mode})
	assert.Equal(b.t, []bool{true, true}, []bool{lanes[0].Running, lanes[1].Running})
	assert.Equal(b.t, lanes[0].Concurrency.Target, lanes[1].Concurrency.Target)
}

// A trial on two lanes runs both arms of a pair at the same time, and each mode on both lanes in turn.
func TestTrialRunsTogetherOnTwoLanes(t *testing.T) {
	inTwo(t, func(t *testing.T, b *booth) {
		b.start()
		r := trial()
		r.Primary, r.Smallest = new("tpot_p95"), new(.001)
		asked := time.Now()
		s := b.begun(r)
		require.True(t, *s.Request.Together, "the default with two lanes")
		s = b.until(s.ID, "a pair counts", limit, bothCount)
		assert.ElementsMatch(t, []string{api.DefaultLane, api.TwinLane},
			[]string{s.Progress.Span.Lane, s.Progress.Beside.Lane})
		require.NotNil(t, b.process.lane.State().Sweep)
		require.NotNil(t, b.process.twin.State().Sweep)
		b.kill() // in the middle of a pair
		b.begin()
		synctest.Wait()
		s = b.done(s.ID)
		require.NotNil(t, s.Trial)
		require.GreaterOrEqual(t, s.Trial.Blocks, 2)
		require.Len(t, s.Spans, 4*s.Trial.Blocks)
		onMain := map[api.Mode]bool{}
		for i := 0; i < len(s.Spans); i += 2 {
			first, second := s.Spans[i], s.Spans[i+1]
			atOnce(t, first, second)
			assert.Equal(t, []int{i, i + 1}, []int{first.Number, second.Number}, "no span is repeated")
			onMain[first.Mode.Mode] = true
		}
		assert.Len(t, onMain, 2, "each mode runs on both lanes")
		assert.LessOrEqual(t, s.Progress.SecondsUsed, s.Ended.Sub(asked).Seconds(), "no time is counted twice")
		assert.Contains(t, strings.Join(s.Words, " "), "Both arms ran at the same time on two targets")
		b.asBefore()
	})
}

// In a trial in turns, the other lane is idle. With one lane, a trial together is refused.
func TestTrialInTurnsWithTwin(t *testing.T) {
	inTwo(t, func(t *testing.T, b *booth) {
		r := trial()
		r.Together = new(false)
		s := b.begun(r)
		b.counts(s.ID, 0)
		assert.False(t, b.process.twin.State().Running)
		s = b.done(s.ID)
		for _, span := range s.Spans {
			assert.Empty(t, span.Lane)
		}
	})
}

// A sweep on two lanes runs the two modes of a level at the same time, and each equally often on both lanes. After a
// kill, it continues with the next unfinished pair. A spoiled span spoils its pair, and both are repeated.
func TestSweepRunsTogetherOnTwoLanes(t *testing.T) {
	inTwo(t, func(t *testing.T, b *booth) {
		b.start()
		r := levels()
		r.Together, r.Modes = new(true), append([]api.ModeState{{Mode: api.ModeRoundRobin}}, kv...)
		asked := time.Now()
		s := b.begun(r)
		require.Equal(t, api.OrderInterleaved, *s.Request.Order)
		require.Equal(t, 8, *s.Progress.Of)
		assert.InDelta(t, 8./2*(5+15), *s.Progress.SecondsLeft, 1e-9)
		b.until(s.ID, "the first pair counts", limit, bothCount)
		b.second.Break(&chat.Error{Class: api.ErrorConnect, Message: "connection refused"})
		s = b.until(s.ID, "it is spoiled", limit, func(s api.Sweep) bool { return len(s.Spans) == 2 })
		b.second.Break(nil)
		assert.Equal(t, "the one that ran at the same time on lane twin does not count", s.Spans[0].Spoiled)
		assert.Contains(t, s.Spans[1].Spoiled, "connection refused")
		for _, after := range []int{2, 4} {
			s = b.until(s.ID, "a pair counts", limit, func(s api.Sweep) bool { return len(s.Spans) == after && bothCount(s) })
			b.kill()
			b.begin()
			synctest.Wait()
		}
		s = b.done(s.ID)
		require.Len(t, s.Spans, 2+8)
		on := map[string]int{}
		for i := 2; i < len(s.Spans); i += 2 {
			first, second := s.Spans[i], s.Spans[i+1]
			atOnce(t, first, second)
			assert.Equal(t, []int{i - 2, i - 1}, []int{first.Number, second.Number}, "no span is repeated")
			if i > 2 {
				assert.Equal(t, 1, first.Attempt)
			} else {
				assert.Equal(t, 2, first.Attempt, "the spoiled pair is repeated")
			}
			on[fmt.Sprintf("%s at %v", first.Mode.Mode, first.Level)]++
		}
		assert.Equal(t, map[string]int{"kv at 20": 1, "kv at 40": 1, "round_robin at 20": 1, "round_robin at 40": 1}, on,
			"on main")
		require.Len(t, s.Rows, 4)
		assert.LessOrEqual(t, s.Progress.SecondsUsed, s.Ended.Sub(asked).Seconds(), "no time is counted twice")
		assert.Contains(t, s.Words,
			"Both modes ran at the same time on two targets, swapped in 2 of 4 pairs: other differences between the "+
				"targets cancel out.")
		baseline, err := b.process.desk.SweepBaseline(t.Context(), "ann", s.ID, api.SweepBaselineRequest{Name: "ours"})
		require.NoError(t, err)
		assert.Contains(t, baseline.Notes, "and the target of lane twin at the same time")

		b.asBefore()
	})
}

// A sweep on two lanes waits if there is only one lane after a restart.
func TestSweepWaitsForSecondLane(t *testing.T) {
	inTwo(t, func(t *testing.T, b *booth) {
		s := b.begun(trial())
		b.kill()
		second := b.second
		b.second = nil
		b.begin()
		synctest.Wait()
		s = b.until(s.ID, "it pauses", limit, ended)
		assert.Equal(t, api.SweepPaused, s.State)
		assert.Contains(t, s.Reason, "there is only one lane now: set twin.target.url again and resume, or cancel it")
		b.free()
		b.kill()
		b.second = second
		b.begin()
		synctest.Wait()
		_, err := b.process.desk.PatchSweep(t.Context(), "ann", s.ID, api.SweepPatch{State: api.SweepRunning})
		require.NoError(t, err)
		b.until(s.ID, "both lanes count", limit, bothCount)
	})
}

// A change of mode and a sweep of any kind end the current showcase, and no other one can begin before they end.
func TestModeChangeAndSweepEndShowcase(t *testing.T) {
	inTwo(t, func(t *testing.T, b *booth) {
		b.start()
		p, ctx := b.process, t.Context()
		show := func() (api.Twin, error) {
			return p.twins.StartShowcase(ctx, "eve", api.ShowcaseRequest{Turns: new(20)})
		}
		gives := func(why string, change func()) {
			t.Helper()
			require.NoError(t, second(show()))
			wait.Advance(time.Second)
			require.True(t, p.lane.State().Showcase && p.twin.State().Showcase)
			change()
			synctest.Wait()
			v, err := p.twins.Twin()
			require.NoError(t, err)
			assert.Equal(t, api.ShowcaseCancelled, v.Showcase.State)
			assert.Equal(t, why, v.Showcase.Message)
			assert.False(t, p.lane.State().Showcase || p.twin.State().Showcase)
			require.ErrorIs(t, second(show()), api.ErrConflict)
		}
		gives("the mode was changed", func() {
			require.NoError(t, second(p.twin.SetMode(ctx, "ann", api.ModeRequest{Mode: api.ModeKV})))
		})
		wait.Advance(10 * time.Second)
		assert.Equal(t, []api.Mode{api.ModeRoundRobin, api.ModeKV}, []api.Mode{p.lane.State().Mode, p.twin.State().Mode})
		assert.Nil(t, p.lane.State().ModeChange, "the change must not have failed")
		alone := trial()
		alone.Together = new(false)
		capacity := api.SweepRequest{Kind: api.SweepCapacity, Levels: api.LevelsOf(4, 16)}
		for _, r := range []api.SweepRequest{trial(), alone, levels(), capacity} {
			var s api.Sweep
			gives("a "+r.Kind.Noun()+" has begun", func() { s = b.begun(r) })
			require.NoError(t, second(p.desk.PatchSweep(ctx, "ann", s.ID, api.SweepPatch{State: api.SweepCancelled})))
			b.free()
			wait.Advance(10 * time.Second) // the clusters have restarted
		}
		require.NoError(t, second(show()), "a showcase is allowed again")
	})
}
