//go:build !race

package sweeps

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/test/virtual"
)

// withTwin gives a booth a second lane, on a cluster of its own.
func withTwin(b *booth) {
	b.second = b.made(virtual.Options{Mode: api.ModeRoundRobin, Seed: 2, Restart: 5 * time.Second})
}

// A trial on two lanes runs both arms of a pair in the same minutes, and each mode on either
// lane in turn.
func TestTrialTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBooth(t, short(), withTwin)
		defer b.end()
		synctest.Wait()
		b.start()
		asked := time.Now()
		r := trial()
		r.MaxSeconds = new(400.)
		s := b.begun(r)
		require.True(t, *s.Request.Together, "the default where there are two lanes")

		s = b.until(s.ID, "two spans under way", limit, func(s api.Sweep) bool {
			return s.Progress.Beside != nil && s.Progress.Beside.Phase == api.SpanCounting
		})
		assert.ElementsMatch(t, []string{api.DefaultLane, api.TwinLane}, []string{s.Progress.Span.Lane, s.Progress.Beside.Lane})
		b.until(s.ID, "a pair", limit, func(s api.Sweep) bool { return len(s.Spans) == 2 })
		for what, l := range map[string]interface{ State() api.State }{"main": b.process.lane, "twin": b.process.twin} {
			require.NotNil(t, l.State().Sweep, what)
		}
		b.kill() // in the middle of a pair
		b.begin()
		synctest.Wait()
		s = b.until(s.ID, "the end", limit, ended)
		require.Equal(t, api.SweepDone, s.State, s.Reason)
		require.NotNil(t, s.Trial)
		require.GreaterOrEqual(t, len(s.Spans), 4)
		require.Zero(t, len(s.Spans)%2)
		lanes := map[string]int{}
		for i := 0; i < len(s.Spans); i += 2 {
			first, second := s.Spans[i], s.Spans[i+1]
			require.Empty(t, first.Spoiled+second.Spoiled)
			assert.Equal(t, []int{i + 1, i + 2}, []int{first.Number, second.Number}, "no pilot, and nothing twice")
			assert.Equal(t, first.Seed, second.Seed)
			assert.NotEqual(t, first.Mode, second.Mode)
			assert.Equal(t, []string{api.DefaultLane, api.TwinLane}, []string{first.Lane, second.Lane})
			assert.True(t, first.CountedFrom.Before(second.Until) && second.CountedFrom.Before(first.Until), "in the same time")
			lanes[string(first.Mode.Mode)+" on main"]++
		}
		assert.Len(t, lanes, 2, "each mode is on either lane")
		assert.LessOrEqual(t, s.Progress.SecondsUsed, s.Ended.Sub(asked).Seconds(), "time is not counted twice")
		assert.Contains(t, strings.Join(s.Words, " "), "Both modes ran at the same time on two targets")

		state := b.free()
		assert.Equal(t, []api.Mode{api.ModeKV, api.ModeRoundRobin}, []api.Mode{state.Mode, b.process.twin.State().Mode}, "as before")
		assert.Equal(t, []bool{true, true}, []bool{state.Running, b.process.twin.State().Running})
		assert.Equal(t, state.Concurrency.Target, b.process.twin.State().Concurrency.Target)
	})
}

// In turns, the other lane stands still, and with one lane nothing runs together.
func TestTrialInTurnsBesideATwin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBooth(t, short(), withTwin)
		defer b.end()
		synctest.Wait()
		r := trial()
		r.Together = new(false)
		s := b.begun(r)
		b.until(s.ID, "it counts", limit, func(s api.Sweep) bool { return s.Progress.Span != nil && s.Progress.Span.Phase == api.SpanCounting })
		assert.False(t, b.process.twin.State().Running)
		s = b.until(s.ID, "the end", limit, ended)
		require.Equal(t, api.SweepDone, s.State, s.Reason)
		for _, span := range s.Spans {
			assert.Empty(t, span.Lane)
		}
	})
}

func TestTogetherTakesTwoLanes(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		r := trial()
		r.Together = new(true)
		var refused *api.FieldError
		require.ErrorAs(t, second(b.process.desk.StartSweep(t.Context(), "ann", api.DefaultLane, r)), &refused)
		assert.Equal(t, "together", refused.Field)
	})
}
