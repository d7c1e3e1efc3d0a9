package sweeps

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// limit is how long, in virtual time, something may take that has no length of its own.
const limit = 2 * time.Hour

// in runs a test in virtual time on a booth of its own.
func in(t *testing.T, test func(t *testing.T, b *booth)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBooth(t, short())
		defer b.end()
		synctest.Wait() // the desk runs
		test(t, b)
	})
}

// start lets the workload run, in the mode and at the concurrency in force.
func (b *booth) start() {
	b.t.Helper()
	_, err := b.process.lane.Start(b.t.Context(), "ann", api.StartRequest{})
	require.NoError(b.t, err)
}

// free waits until the lane is nobody's.
func (b *booth) free() api.State {
	b.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		if s := b.process.lane.State(); s.Sweep == nil {
			return s
		}
		require.True(b.t, time.Now().Before(deadline), "the lane was not given back")
	}
}

func trial() api.SweepRequest {
	return api.SweepRequest{Kind: api.SweepTrial, Levels: []int{40}, Seconds: new(10.), MaxSeconds: new(240.)}
}

func levels() api.SweepRequest {
	return api.SweepRequest{Kind: api.SweepLevels, Levels: []int{20, 40}, Repeats: new(2), WarmUp: new(5.), Seconds: new(15.), Snapshots: new(3)}
}

// A sweep that has the lane is the only one that steers it.
func TestTheLaneIsTaken(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		b.start()
		s := b.begun(trial())
		ctx, l := t.Context(), b.process.lane
		for what, do := range map[string]func() error{
			"start":  func() error { _, err := l.Start(ctx, "bob", api.StartRequest{Concurrency: new(9)}); return err },
			"patch":  func() error { _, err := l.Patch(ctx, "bob", api.WorkloadPatch{Concurrency: new(9)}); return err },
			"mode":   func() error { _, err := l.SetMode(ctx, "bob", api.ModeRequest{Mode: api.ModeRoundRobin}); return err },
			"cancel": func() error { _, err := l.CancelMode(ctx, "bob"); return err },
			"sweep":  func() error { _, err := b.process.desk.StartSweep(ctx, "bob", api.DefaultLane, trial()); return err },
		} {
			require.ErrorIs(t, do(), api.ErrConflict, what)
		}
		assert.Equal(t, s.ID, l.State().Sweep.ID)

		_, err := l.Stop(ctx, "bob", api.StopRequest{})
		require.NoError(t, err)
		s = b.until(s.ID, "the pause", limit, ended)
		assert.Equal(t, api.SweepPaused, s.State)
		assert.Equal(t, "by bob, who stopped the workload", s.Reason)
		assert.Equal(t, api.CauseOperator, s.Cause)
		state := b.free()
		assert.False(t, state.Running, "stopped is stopped")
		assert.Equal(t, api.ModeKV, state.Mode)
	})
}

func TestCancel(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		desk := b.process.desk
		s := b.begun(trial())
		require.ErrorIs(t, second(desk.DeleteSweep(t.Context(), "bob", s.ID)), api.ErrConflict)
		s, err := desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepCancelled})
		require.NoError(t, err)
		assert.Equal(t, api.SweepCancelled, s.State)
		assert.NotNil(t, s.Ended)
		b.free()
		for _, state := range []api.SweepState{api.SweepRunning, api.SweepPaused} {
			require.ErrorIs(t, second(desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: state})), api.ErrConflict)
		}
		require.ErrorAs(t, second(desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepDone})), new(*api.FieldError))
		require.ErrorIs(t, second(desk.SweepBaseline(t.Context(), "bob", s.ID, api.SweepBaselineRequest{Name: "x"})), api.ErrConflict)
		list, err := desk.DeleteSweep(t.Context(), "bob", s.ID)
		require.NoError(t, err)
		assert.Empty(t, list.Sweeps)
		require.ErrorIs(t, second(desk.Sweep(t.Context(), s.ID)), api.ErrNotFound)
	})
}

func second[T any](_ T, err error) error { return err }

// A load generator that is too late for what it measures says so, and measures once more.
func TestLateClient(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		b.kill()
		late := true
		b.lag = func(time.Time, time.Time) (time.Duration, bool) {
			defer func() { late = false }()
			return map[bool]time.Duration{true: 50 * time.Millisecond, false: time.Millisecond}[late], true
		}
		b.begin()
		synctest.Wait()
		s := b.begun(api.SweepRequest{Kind: api.SweepLevels, Levels: []int{20}, Modes: kv, Repeats: new(1), WarmUp: new(1.), Seconds: new(10.)})
		s = b.until(s.ID, "the end", limit, ended)
		require.Equal(t, api.SweepDone, s.State, s.Reason)
		require.Len(t, s.Spans, 2)
		assert.Contains(t, s.Spans[0].Spoiled, "the load generator itself was 50.0 ms late")
		assert.Empty(t, s.Spans[1].Spoiled)
		assert.Equal(t, []int{0, 0, 1, 2}, []int{s.Spans[0].Number, s.Spans[1].Number, s.Spans[0].Attempt, s.Spans[1].Attempt})
	})
}

var kv = []api.ModeState{{Mode: api.ModeKV}}

// A disk that takes nothing holds the sweep up, and loses nothing.
func TestFullDisk(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(api.SweepRequest{Kind: api.SweepLevels, Levels: []int{20}, Modes: kv, Repeats: new(2), WarmUp: new(1.), Seconds: new(10.)})
		b.full.Store(true)
		s = b.until(s.ID, "it says so", limit, func(s api.Sweep) bool { return s.Reason != "" })
		assert.Equal(t, api.SweepRunning, s.State)
		assert.Contains(t, s.Reason, "waiting for the disk: the disk is full")
		assert.Equal(t, api.CauseDisk, s.Cause)
		require.Len(t, s.Spans, 1)
		require.Error(t, second(b.process.desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepPaused})))
		b.full.Store(false)
		s = b.until(s.ID, "the end", limit, ended)
		require.Equal(t, api.SweepDone, s.State)
		require.Len(t, s.Spans, 2)
		b.free()
		b.kill()
		b.begin()
		again, err := b.process.desk.Sweep(t.Context(), s.ID)
		require.NoError(t, err)
		assert.JSONEq(t, text(t, s.Spans), text(t, again.Spans))
		b.full.Store(true)
		synctest.Wait()
		require.Error(t, second(b.process.desk.StartSweep(t.Context(), "bob", api.DefaultLane, trial())))
		assert.Nil(t, b.process.lane.State().Sweep)
	})
}

var errFull = errors.New("the disk is full")

func TestBadRequests(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		for field, r := range map[string]api.SweepRequest{
			"kind":         {Kind: "duel"},
			"levels":       {Kind: api.SweepLevels, Levels: []int{20, 201}},
			"modes":        {Kind: api.SweepTrial, Modes: []api.ModeState{{Mode: api.ModeKV, Speculation: api.SpeculationDraft}, {Mode: api.ModeKV}}},
			"span_seconds": {Kind: api.SweepTrial, Seconds: new(0.)},
			"primary":      {Kind: api.SweepTrial, Primary: new("itl")},
		} {
			_, err := b.process.desk.StartSweep(t.Context(), "ann", api.DefaultLane, r)
			var refused *api.FieldError
			require.ErrorAs(t, err, &refused, field)
			assert.Equal(t, field, refused.Field)
		}
		require.ErrorIs(t, second(b.process.desk.StartSweep(t.Context(), "ann", "twin", trial())), api.ErrNotFound)
		assert.Empty(t, b.process.desk.Sweeps(t.Context()).Sweeps)
		assert.Len(t, b.process.desk.Sweeps(t.Context()).Defaults, 3)
	})
}
