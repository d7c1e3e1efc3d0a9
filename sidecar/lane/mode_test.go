package lane

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cluster"
)

// opens are the first lines that the turns of conversations had in front since
// the given request: a nonce, or a starter's heading.
func opens(s *server, since int) map[string]bool {
	lines := map[string]bool{}
	for _, r := range s.requests()[since:] {
		line, _, _ := strings.Cut(r.first, "\n")
		if strings.HasPrefix(line, "# ") {
			line = ""
		}
		lines[line] = true
	}
	return lines
}

// only is the one key of a set.
func only(t *testing.T, set map[string]bool) string {
	t.Helper()
	require.Len(t, set, 1)
	for v := range set {
		return v
	}
	return ""
}

// turns waits for more turns, and says how many requests there were before.
func (b *booth) turns(s *server) (since int) {
	b.t.Helper()
	since = len(s.requests())
	b.eventually("more turns", func() bool { return len(s.requests()) > since+10 })
	return since
}

// switched makes a whole mode change, and says how many requests there were
// before the new mode.
func (b *booth) switched(s *server, to api.ModeState, cold bool, err error) (since int) {
	b.t.Helper()
	b.setMode(to)
	call := b.driver.called(b.t)
	assert.Equal(b.t, to, call.to)
	b.eventually("a quiet server", func() bool { return s.busy() == 0 })
	since = len(s.requests())
	call.answer(cold, err)
	b.phase(api.PhaseRunning)
	return since
}

// A mode change stops, switches and starts again at the same concurrency; its
// progress is in the snapshot, and meanwhile nothing else is begun.
func TestModeChange(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	b.start(4)
	b.eventually("whole turns", func() bool { return b.totals().OK > 20 })
	b.held(s, 4)
	before := b.totals()
	was := b.lane.State()

	state := b.setMode(roundRobin)
	assert.Equal(t, api.PhaseSwitching, state.Phase)
	require.NotNil(t, state.ModeChange)
	call := b.driver.called(t)
	assert.Equal(t, kv, call.from)
	assert.Equal(t, roundRobin, call.to)
	snapshot := b.snapshot()
	assert.Equal(t, kv.Mode, snapshot.State.Mode, "not yet")
	assert.False(t, snapshot.State.Running)
	assert.Equal(t, "switching", snapshot.State.ModeChange.Phase)
	assert.False(t, snapshot.State.ModeChange.Failed)
	assert.Equal(t, before.OK, snapshot.Totals.OK)
	assert.EqualValues(t, 4, snapshot.Totals.Cancelled, "turns in flight are cancelled")
	assert.Zero(t, snapshot.Totals.Errors)
	checkQuiet(t, snapshot)
	call.report("starting", "2 of 3 workers are ready")
	snapshot = b.snapshot()
	assert.Equal(t, "starting", snapshot.State.ModeChange.Phase)
	assert.Equal(t, "2 of 3 workers are ready", snapshot.State.ModeChange.Message)

	for _, err := range []error{
		second(b.hub.SetMode(t.Context(), api.DefaultLane, ann, api.ModeRequest{Mode: api.ModeRoundRobin})),
		second(b.hub.SetMode(t.Context(), api.DefaultLane, ann, api.ModeRequest{Mode: api.ModeKV})),
		second(b.hub.SetMode(t.Context(), api.DefaultLane, ann, api.ModeRequest{Mode: api.ModeRoundRobin, Confirm: true})),
		second(b.hub.Start(t.Context(), api.DefaultLane, ann, api.StartRequest{})),
	} {
		require.ErrorIs(t, err, api.ErrConflict)
	}
	_, err := b.hub.PatchSettings(t.Context(), ann, api.SettingsPatch{MaxConcurrency: new(3), Slider: &api.Slider{Min: 1, Max: 3, Increment: 1}})
	refuses(t, err, "max_concurrency")

	s.flows()
	call.answer(false, nil)
	b.agrees(4)
	state = b.lane.State()
	assert.Equal(t, roundRobin, api.ModeState{Mode: state.Mode, Speculation: state.Speculation})
	assert.Nil(t, state.ModeChange)
	assert.Equal(t, was.Step.ID+1, state.Step.ID)
	b.eventually("turns in the new mode", func() bool { return b.totals().OK > 5 })
	assert.Zero(t, b.totals().Cancelled, "totals begin anew")
	b.eventually("the news of the mode", func() bool { return len(b.told()) == 1 })
	assert.Equal(t, []api.ModeState{roundRobin}, b.told())
	b.stop()
	b.events("start ann: 4 conversations, kv", "mode_change ann: kv to round_robin", "start ann: 4 conversations, round_robin", "stop ann: stopped")
	steps := b.store.lastSteps()
	assert.NotNil(t, steps[0].Ended)
	assert.Equal(t, api.ModeRoundRobin, steps[1].Mode)
	for _, turn := range b.store.allTurns() {
		assert.Equal(t, steps[turn.Step-1].Mode, turn.Mode)
		assert.NotEqual(t, api.TurnError, turn.Status)
	}
}

// Where the caches were not emptied a new nonce makes the prefixes cold; it
// changes with the mode alone.
func TestNonce(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	b.start(3)
	assert.Empty(t, only(t, opens(s, b.turns(s))), "no nonce before the first change")

	first := only(t, opens(s, b.afterSwitch(s, roundRobin, false)))
	assert.Regexp(t, `^\[[0-9a-f]{16}\]$`, first)
	b.start(6)
	b.agrees(6)
	b.patch(api.WorkloadPatch{MaxTokens: new(32)})
	assert.Equal(t, first, only(t, opens(s, b.turns(s))), "not with concurrency or settings")
	b.stop()
	b.eventually("a quiet server", func() bool { return s.busy() == 0 })
	b.start(2)
	assert.Equal(t, first, only(t, opens(s, b.turns(s))), "not with a start")

	assert.Equal(t, first, only(t, opens(s, b.afterSwitch(s, kv, true))), "the driver emptied the caches")

	third := only(t, opens(s, b.afterSwitch(s, roundRobin, false)))
	assert.NotEqual(t, first, third)
	assert.NotEmpty(t, third)
}

// afterSwitch is switched, with turns in the new mode.
func (b *booth) afterSwitch(s *server, to api.ModeState, cold bool) (since int) {
	b.t.Helper()
	since = b.switched(s, to, cold, nil)
	b.turns(s)
	return since
}

// A change that fails leaves the old mode, running as before; the snapshot says
// why until the next one succeeds.
func TestModeChangeFails(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	b.start(4)
	b.turns(s)
	since := b.switched(s, roundRobin, false, errDriver)
	b.agrees(4)
	b.turns(s)
	assert.Empty(t, only(t, opens(s, since)), "no change, no nonce")
	state := b.lane.State()
	assert.Equal(t, kv, api.ModeState{Mode: state.Mode, Speculation: state.Speculation})
	require.NotNil(t, state.ModeChange)
	assert.True(t, state.ModeChange.Failed)
	assert.Equal(t, "failed", state.ModeChange.Phase)
	assert.Equal(t, "still in kv: "+errDriver.Error(), state.ModeChange.Message)
	assert.Empty(t, b.told())

	b.switched(s, roundRobin, false, nil)
	assert.Nil(t, b.lane.State().ModeChange)
	assert.Equal(t, api.ModeRoundRobin, b.lane.State().Mode)
	b.events("start ann: 4 conversations, kv", "mode_change ann: kv to round_robin: given up", "start ann: 4 conversations, kv",
		"mode_change ann: kv to round_robin", "start ann: 4 conversations, round_robin")
}

// A change can be given up; without one there is nothing to give up.
func TestCancelMode(t *testing.T) {
	t.Parallel()
	b, _ := serve(t)
	_, err := b.hub.CancelMode(t.Context(), api.DefaultLane, "bob")
	require.ErrorIs(t, err, api.ErrConflict)
	b.start(2)
	b.agrees(2)
	b.setMode(roundRobin)
	b.driver.called(t)
	_, err = b.hub.CancelMode(t.Context(), api.DefaultLane, "bob")
	require.NoError(t, err)
	b.phase(api.PhaseRunning)
	b.agrees(2)
	state := b.lane.State()
	assert.Equal(t, api.ModeKV, state.Mode)
	assert.Equal(t, "still in kv: the change was cancelled", state.ModeChange.Message)
	b.events("start ann: 2 conversations, kv", "mode_change bob: cancelled the change to round_robin",
		"mode_change ann: kv to round_robin: given up", "start ann: 2 conversations, kv")
	_, err = b.hub.CancelMode(t.Context(), api.DefaultLane, "bob")
	require.ErrorIs(t, err, api.ErrConflict)
}

// A stop during a change holds: the change ends as it will, and nothing starts.
func TestStopDuringModeChange(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]bool{"at once": false, "draining": true} {
		t.Run(name, func(t *testing.T) {
			b, s := serve(t)
			b.start(2)
			b.turns(s)
			b.setMode(roundRobin)
			call := b.driver.called(t)
			state, err := b.hub.Stop(t.Context(), api.DefaultLane, "eve", api.StopRequest{Drain: drain})
			require.NoError(t, err)
			assert.Equal(t, api.PhaseSwitching, state.Phase)
			_, err = b.hub.Stop(t.Context(), api.DefaultLane, "eve", api.StopRequest{})
			require.NoError(t, err)
			call.answer(false, nil)
			b.phase(api.PhaseStopped)
			assert.Equal(t, api.ModeRoundRobin, b.lane.State().Mode)
			text := map[bool]string{false: "stopped", true: "draining"}[drain]
			b.events("start ann: 2 conversations, kv", "stop eve: "+text, "mode_change ann: kv to round_robin")
			assert.Zero(t, b.lane.State().Concurrency.Actual)
		})
	}
}

// A lane that is stopped or draining changes its mode and does not start.
func TestModeChangeWhileStopped(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	b.setMode(roundRobin)
	b.driver.called(t).answer(true, nil)
	b.phase(api.PhaseStopped)
	assert.Equal(t, api.ModeRoundRobin, b.lane.State().Mode)

	b.start(2)
	b.held(s, 2)
	b.drain()
	b.setMode(kv)
	b.driver.called(t).answer(true, nil)
	b.phase(api.PhaseStopped)
	assert.Equal(t, api.ModeKV, b.lane.State().Mode)
	assert.EqualValues(t, 2, b.totals().Cancelled)
	b.events("mode_change ann: kv to round_robin", "start ann: 2 conversations, round_robin", "stop ann: draining", "mode_change ann: round_robin to kv")
}

// What is in force is no change, and what the driver does not offer is refused.
func TestModesOffered(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	b.start(2)
	b.turns(s)
	step := b.lane.State().Step.ID
	for _, req := range []api.ModeRequest{{Mode: api.ModeKV}, {Mode: api.ModeKV, Speculation: api.SpeculationOff}} {
		state, err := b.hub.SetMode(t.Context(), api.DefaultLane, ann, req)
		require.NoError(t, err)
		assert.Equal(t, api.PhaseRunning, state.Phase)
		assert.Equal(t, step, state.Step.ID)
	}
	for _, req := range []api.ModeRequest{
		{Mode: api.ModeLeastLoaded}, {Mode: api.ModeKV, Speculation: api.SpeculationEagle3}, {Mode: "random"}, {},
	} {
		state, err := b.hub.SetMode(t.Context(), api.DefaultLane, ann, req)
		e := refuses(t, err, "mode")
		assert.Contains(t, e.Allowed, "round_robin")
		assert.Equal(t, api.PhaseRunning, state.Phase)
	}
	_, err := b.hub.SetMode(t.Context(), api.DefaultLane, ann, api.ModeRequest{Mode: api.ModeRoundRobin, Confirm: true})
	require.ErrorIs(t, err, api.ErrConflict, "nothing waits")
	assert.Equal(t, []api.ModeState{kv, roundRobin}, b.snapshot().State.Modes)
	assert.Equal(t, "script", b.snapshot().State.Driver)
}

// Settings changed during a change are those of the start after it.
func TestPatchDuringModeChange(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	b.start(2)
	b.turns(s)
	b.setMode(roundRobin)
	call := b.driver.called(t)
	b.patch(api.WorkloadPatch{Concurrency: new(5), MaxTokens: new(17)})
	b.eventually("a quiet server", func() bool { return s.busy() == 0 })
	since := len(s.requests())
	call.answer(false, nil)
	b.agrees(5)
	b.turns(s)
	for _, r := range s.requests()[since:] {
		assert.Equal(t, 17, r.maxTokens)
	}
}

// The manual driver waits for the operator's word, which comes as the same
// request with confirm.
func TestConfirm(t *testing.T) {
	t.Parallel()
	manual := cluster.NewManual([]api.ModeState{kv, roundRobin})
	b, s := serve(t, func(o *options) { o.Driver = manual })
	b.start(2)
	b.turns(s)
	confirm := api.ModeRequest{Mode: api.ModeRoundRobin, Confirm: true}
	_, err := b.hub.SetMode(t.Context(), api.DefaultLane, ann, confirm)
	require.ErrorIs(t, err, api.ErrConflict, "before it was asked for")

	b.setMode(roundRobin)
	b.eventually("the instructions", func() bool {
		c := b.snapshot().State.ModeChange
		return c != nil && c.Phase == "waiting_for_operator"
	})
	assert.Contains(t, b.snapshot().State.ModeChange.Message, "DYN_ROUTER_MODE=round-robin")
	_, err = b.hub.SetMode(t.Context(), api.DefaultLane, ann, api.ModeRequest{Mode: api.ModeKV, Confirm: true})
	require.ErrorIs(t, err, api.ErrConflict, "another mode than the one that waits")
	_, err = b.hub.SetMode(t.Context(), api.DefaultLane, ann, confirm)
	require.NoError(t, err)
	b.agrees(2)
	assert.Equal(t, api.ModeRoundRobin, b.lane.State().Mode)
	b.turns(s)
	assert.Empty(t, only(t, opens(s, 0)), "the workers were restarted: no nonce")
}

// The end of the process ends a change that waits.
func TestEndDuringModeChange(t *testing.T) {
	t.Parallel()
	b, s := serve(t)
	b.start(2)
	b.turns(s)
	b.setMode(roundRobin)
	b.driver.called(t)
	b.end()
	assert.Equal(t, api.ModeKV, b.lane.State().Mode)
	assert.Empty(t, b.told())
	assert.Equal(t, []string{"start ann: 2 conversations, kv"}, b.store.told())
}
