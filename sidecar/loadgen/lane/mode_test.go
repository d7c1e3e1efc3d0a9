package lane

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
)

// opening is what stands in front of the starters in every one of some turns: a
// nonce, or nothing.
func opening(t *testing.T, turns []request) string {
	t.Helper()
	lines := map[string]bool{}
	for _, r := range turns {
		line, _, _ := strings.Cut(r.first, "\n")
		if strings.HasPrefix(line, "# ") {
			line = ""
		}
		lines[line] = true
	}
	assert.Len(t, lines, 1)
	for line := range lines {
		return line
	}
	return ""
}

// switched makes a whole mode change of a lane that runs.
func (b *booth) switched(to api.ModeState, cold bool, err error) {
	b.t.Helper()
	b.setMode(to)
	call := b.driver.called(b.t)
	assert.Equal(b.t, to, call.to)
	call.answer(cold, err)
	b.phase(api.PhaseRunning)
}

// A mode change stops, switches and starts again at the same concurrency; its
// progress is in the snapshot, and meanwhile nothing else is begun.
func TestModeChange(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(4)
		b.eventually("whole turns", func() bool { return b.totals().OK > 20 })
		f.held(b, 4)
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
			second(b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin})),
			second(b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeKV})),
			second(b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin, Confirm: true})),
			second(b.lane.Start(t.Context(), ann, api.StartRequest{})),
		} {
			require.ErrorIs(t, err, api.ErrConflict)
		}
		_, err := b.catalogue.PatchSettings(t.Context(), ann, api.SettingsPatch{MaxConcurrency: new(3), Slider: &api.Slider{Min: 1, Max: 3, Increment: 1}})
		_ = refuses(t, err, "max_concurrency")

		f.flows()
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
		b.events("start ann: 4 conversations, KV-aware", "mode_change ann: KV-aware to Round-robin", "start ann: 4 conversations, Round-robin", "stop ann: stopped")
		steps := b.store.lastSteps()
		assert.NotNil(t, steps[0].Ended)
		assert.Equal(t, api.ModeRoundRobin, steps[1].Mode)
		for _, turn := range b.store.allTurns() {
			assert.Equal(t, steps[turn.Step-1].Mode, turn.Mode)
			assert.NotEqual(t, api.TurnError, turn.Status)
		}
	})
}

// Where the caches were not emptied a new nonce makes the prefixes cold; it
// changes with the mode alone.
func TestNonce(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(3)
		b.agrees(3)
		assert.Empty(t, opening(t, f.turns()), "no nonce before the first change")

		b.switched(roundRobin, false, nil)
		first := opening(t, f.turns())
		assert.Regexp(t, `^\[[0-9a-f]{16}\]$`, first)
		b.start(6)
		b.agrees(6)
		b.patch(api.WorkloadPatch{MaxTokens: new(32)})
		assert.Equal(t, first, opening(t, f.turns()), "not with concurrency or settings")
		b.stop()
		b.start(2)
		b.agrees(2)
		assert.Equal(t, first, opening(t, f.turns()), "not with a start")

		b.switched(kv, true, nil)
		assert.Equal(t, first, opening(t, f.turns()), "the driver emptied the caches")

		b.switched(roundRobin, false, nil)
		last := opening(t, f.turns())
		assert.NotEqual(t, first, last)
		assert.NotEmpty(t, last)
	})
}

// A change that fails leaves the old mode, running as before; the snapshot says
// why until the next one succeeds.
func TestModeChangeFails(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(4)
		b.agrees(4)
		b.switched(roundRobin, false, errDriver)
		b.agrees(4)
		assert.Empty(t, opening(t, f.turns()), "no change, no nonce")
		state := b.lane.State()
		assert.Equal(t, kv, api.ModeState{Mode: state.Mode, Speculation: state.Speculation})
		require.NotNil(t, state.ModeChange)
		assert.True(t, state.ModeChange.Failed)
		assert.Equal(t, "failed", state.ModeChange.Phase)
		assert.Equal(t, "still in KV-aware: "+errDriver.Error(), state.ModeChange.Message)
		assert.Empty(t, b.told())

		b.switched(roundRobin, false, nil)
		assert.Nil(t, b.lane.State().ModeChange)
		assert.Equal(t, api.ModeRoundRobin, b.lane.State().Mode)
		b.events("start ann: 4 conversations, KV-aware", "mode_change ann: KV-aware to Round-robin: abandoned", "start ann: 4 conversations, KV-aware",
			"mode_change ann: KV-aware to Round-robin", "start ann: 4 conversations, Round-robin")
	})
}

// A change can be given up; without one there is nothing to give up.
func TestCancelMode(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		_, err := b.lane.CancelMode(t.Context(), "bob")
		require.ErrorIs(t, err, api.ErrConflict)
		b.start(2)
		b.agrees(2)
		b.setMode(roundRobin)
		b.driver.called(t)
		_, err = b.lane.CancelMode(t.Context(), "bob")
		require.NoError(t, err)
		b.phase(api.PhaseRunning)
		b.agrees(2)
		state := b.lane.State()
		assert.Equal(t, api.ModeKV, state.Mode)
		assert.Equal(t, "still in KV-aware: the change was cancelled", state.ModeChange.Message)
		b.events("start ann: 2 conversations, KV-aware", "mode_change bob: cancelled the change to Round-robin",
			"mode_change ann: KV-aware to Round-robin: abandoned", "start ann: 2 conversations, KV-aware")
		_, err = b.lane.CancelMode(t.Context(), "bob")
		require.ErrorIs(t, err, api.ErrConflict)
	})
}

// A stop during a change holds: the change ends as it will, and nothing starts.
func TestStopDuringModeChange(t *testing.T) {
	t.Parallel()
	for name, drain := range map[string]bool{"at once": false, "draining": true} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, b *booth, _ *fake) {
				b.start(2)
				b.agrees(2)
				b.setMode(roundRobin)
				call := b.driver.called(t)
				state, err := b.lane.Stop(t.Context(), "eve", api.StopRequest{Drain: drain})
				require.NoError(t, err)
				assert.Equal(t, api.PhaseSwitching, state.Phase)
				_, err = b.lane.Stop(t.Context(), "eve", api.StopRequest{})
				require.NoError(t, err)
				call.answer(false, nil)
				b.phase(api.PhaseStopped)
				assert.Equal(t, api.ModeRoundRobin, b.lane.State().Mode)
				text := map[bool]string{false: "stopped", true: "draining"}[drain]
				b.events("start ann: 2 conversations, KV-aware", "stop eve: "+text, "mode_change ann: KV-aware to Round-robin")
				assert.Zero(t, b.lane.State().Concurrency.Actual)
			})
		})
	}
}

// A lane that is stopped or draining changes its mode and does not start.
func TestModeChangeWhileStopped(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.setMode(roundRobin)
		b.driver.called(t).answer(true, nil)
		b.phase(api.PhaseStopped)
		assert.Equal(t, api.ModeRoundRobin, b.lane.State().Mode)

		b.start(2)
		f.held(b, 2)
		b.drain()
		b.setMode(kv)
		b.driver.called(t).answer(true, nil)
		b.phase(api.PhaseStopped)
		assert.Equal(t, api.ModeKV, b.lane.State().Mode)
		assert.EqualValues(t, 2, b.totals().Cancelled)
		b.events("mode_change ann: KV-aware to Round-robin", "start ann: 2 conversations, Round-robin", "stop ann: draining", "mode_change ann: Round-robin to KV-aware")
	})
}

// What is in force is no change, and what the driver does not offer is refused.
func TestModesOffered(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		b.agrees(2)
		step := b.lane.State().Step.ID
		for _, req := range []api.ModeRequest{{Mode: api.ModeKV}, {Mode: api.ModeKV, Speculation: api.SpeculationOff}} {
			state, err := b.lane.SetMode(t.Context(), ann, req)
			require.NoError(t, err)
			assert.Equal(t, api.PhaseRunning, state.Phase)
			assert.Equal(t, step, state.Step.ID)
		}
		for _, req := range []api.ModeRequest{
			{Mode: api.ModeLeastLoaded}, {Mode: api.ModeKV, Speculation: api.SpeculationEagle3}, {Mode: "random"}, {},
		} {
			state, err := b.lane.SetMode(t.Context(), ann, req)
			e := refuses(t, err, "mode")
			assert.Contains(t, e.Allowed, "round_robin")
			assert.Equal(t, api.PhaseRunning, state.Phase)
		}
		_, err := b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin, Confirm: true})
		require.ErrorIs(t, err, api.ErrConflict, "nothing waits")
		assert.Equal(t, []api.ModeState{kv, roundRobin}, b.snapshot().State.Modes)
		assert.Equal(t, "script", b.snapshot().State.Driver)
	})
}

// Settings changed during a change are those of the start after it.
func TestPatchDuringModeChange(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(2)
		b.agrees(2)
		b.setMode(roundRobin)
		call := b.driver.called(t)
		b.patch(api.WorkloadPatch{Concurrency: new(5), MaxTokens: new(17)})
		call.answer(false, nil)
		b.agrees(5)
		for _, r := range f.turns() {
			assert.Equal(t, 17, r.maxTokens)
		}
	})
}

// The manual driver waits for the operator's word, which comes as the same
// request with confirm.
func TestConfirm(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(2)
		b.agrees(2)
		confirm := api.ModeRequest{Mode: api.ModeRoundRobin, Confirm: true}
		_, err := b.lane.SetMode(t.Context(), ann, confirm)
		require.ErrorIs(t, err, api.ErrConflict, "before it was asked for")

		b.setMode(roundRobin)
		b.eventually("the instructions", func() bool {
			c := b.snapshot().State.ModeChange
			return c != nil && c.Phase == "waiting_for_operator"
		})
		assert.Contains(t, b.snapshot().State.ModeChange.Message, "DYN_ROUTER_MODE=round-robin")
		_, err = b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeKV, Confirm: true})
		require.ErrorIs(t, err, api.ErrConflict, "another mode than the one that waits")
		_, err = b.lane.SetMode(t.Context(), ann, confirm)
		require.NoError(t, err)
		b.agrees(2)
		assert.Equal(t, api.ModeRoundRobin, b.lane.State().Mode)
		assert.Empty(t, opening(t, f.turns()), "the workers were restarted: no nonce")
	}, func(o *options) { o.Driver = cluster.NewManual([]api.ModeState{kv, roundRobin}) })
}

// The end of the process ends a change that waits.
func TestEndDuringModeChange(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		b.agrees(2)
		b.setMode(roundRobin)
		b.driver.called(t)
		b.end()
		assert.Equal(t, api.ModeKV, b.lane.State().Mode)
		assert.Empty(t, b.told())
		assert.Equal(t, []string{"start ann: 2 conversations, KV-aware"}, b.store.told())
	})
}
