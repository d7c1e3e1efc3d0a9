package lane

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/workload"
)

// opening returns the line before the starter, which must be the same in all turns: a nonce, or nothing.
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

// changeMode makes a complete mode change of a running lane.
func (b *booth) changeMode(to api.ModeState, cold bool, err error) {
	b.t.Helper()
	b.setMode(to)
	call := b.driver.called(b.t)
	assert.Equal(b.t, to, call.to)
	call.answer(cold, err)
	b.waitPhase(api.PhaseRunning)
}

// A mode change stops the workload, switches, and starts again at the same concurrency. Its progress is in the
// snapshot. Meanwhile nothing else begins, and settings change for the start at the end.
func TestModeChangeRestartsTheWorkload(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(4)
		pass(5 * time.Second)
		f.holdTurns(b, 4)
		before := b.totals()
		was := b.lane.State()

		state := b.setMode(roundRobin)
		assert.Equal(t, api.PhaseSwitching, state.Phase)
		require.NotNil(t, state.ModeChange)
		call := b.driver.called(t)
		assert.Equal(t, [2]api.ModeState{kv, roundRobin}, [2]api.ModeState{call.from, call.to})
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
			errorOf(b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin})),
			errorOf(b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeKV})),
			errorOf(b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin, Confirm: true})),
			errorOf(b.lane.Start(t.Context(), ann, api.StartRequest{})),
		} {
			require.ErrorIs(t, err, api.ErrConflict)
		}
		three := api.SettingsPatch{MaxConcurrency: new(3), Slider: &api.Slider{Min: 1, Max: 3, Increment: 1}}
		_, err := b.catalog.PatchSettings(t.Context(), ann, three)
		refuses(t, err, "max_concurrency")

		b.patch(api.WorkloadPatch{Level: new(api.AtConversations(5)), MaxTokens: new(17)}) // for the start at the end
		f.endTurns()
		f.requests = nil
		call.answer(false, nil)
		b.waitSettled(5)
		state = b.lane.State()
		assert.Equal(t, roundRobin, b.mode())
		assert.Nil(t, state.ModeChange)
		assert.Equal(t, was.Step.ID+1, state.Step.ID)
		pass(5 * time.Second)
		assert.Positive(t, b.totals().OK)
		assert.Zero(t, b.totals().Cancelled, "totals begin anew")
		assert.Equal(t, []api.ModeState{roundRobin}, b.modeChanges())
		b.stop()
		b.expectEvents("start ann: 4 conversations, KV-aware", "mode_change ann: KV-aware to Round-robin, caches kept",
			"start ann: 5 conversations, Round-robin", "stop ann: stopped")
		for _, r := range f.requests {
			assert.Equal(t, 17, r.maxTokens)
		}
		steps := b.store.lastSteps()
		assert.NotNil(t, steps[0].Ended)
		assert.Equal(t, api.ModeRoundRobin, steps[1].Mode)
		for _, turn := range b.store.allTurns() {
			assert.Equal(t, steps[turn.Step-1].Mode, turn.Mode)
			assert.NotEqual(t, api.TurnError, turn.Status)
		}
	})
}

// A change by hand keeps the caches: the nonce stays, whether or not the driver has emptied them.
func TestChangeByHandKeepsTheNonce(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(3)
		b.waitSettled(3)
		b.changeMode(roundRobin, false, nil)
		assert.Empty(t, opening(t, f.turns()))
		assert.Equal(t, api.CachesKept, b.snapshot().State.Step.Caches)
		b.changeMode(kv, true, nil)
		assert.Empty(t, opening(t, f.turns()))
		assert.Equal(t, api.CachesCold, b.snapshot().State.Step.Caches, "the driver emptied the caches")
		b.patch(api.WorkloadPatch{MaxTokens: new(32)})
		assert.Empty(t, b.snapshot().State.Step.Caches, "the step began with other settings")
	})
}

// warmScript is a driver that changes modes in place.
type warmScript struct{ *script }

func (d warmScript) Abilities() workload.Abilities {
	return workload.Abilities{SwitchWarm: d.Switch, InPlace: workload.Always, SameWorkers: workload.Always}
}

// A change in place begins a new step of the same run: no turn is cancelled, and those in flight belong to no step.
func TestModeChangeInPlace(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(3)
		b.waitSettled(3)
		pass(70 * time.Second)
		was := b.snapshot()
		b.setMode(roundRobin)
		call := b.driver.called(t)
		during := b.snapshot().State
		assert.Equal(t, api.PhaseRunning, during.Phase)
		require.NotNil(t, during.ModeChange)
		assert.Equal(t, roundRobin, during.ModeChange.To)
		for _, err := range []error{
			errorOf(b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin})),
			errorOf(b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeKV})),
		} {
			require.ErrorIs(t, err, api.ErrConflict)
		}
		call.answer(false, nil)
		synctest.Wait()
		now := b.snapshot()
		assert.Equal(t, roundRobin, now.State.InMode())
		assert.Nil(t, now.State.ModeChange)
		assert.Equal(t, was.State.Step.ID+1, now.State.Step.ID)
		assert.Equal(t, was.State.Started, now.State.Started, "the same run")
		assert.NotNil(t, now.State.Step.Settled)
		assert.Equal(t, api.CachesKept, now.State.Step.Caches)
		assert.True(t, now.State.Settling)
		assert.InDelta(t, 60, now.Baseline.SettlingFor, 1)
		pass(62 * time.Second)
		now = b.snapshot()
		assert.False(t, now.State.Settling)
		assert.Zero(t, now.Totals.Cancelled)
		assert.Zero(t, now.Totals.Errors)

		b.setMode(kv)
		b.driver.called(t).answer(false, errDriver)
		synctest.Wait()
		now = b.snapshot()
		assert.Equal(t, roundRobin, now.State.InMode())
		assert.True(t, now.State.Running)
		assert.True(t, now.State.ModeChange.Failed)
		b.setMode(kv)
		b.driver.called(t)
		b.noError(b.lane.CancelMode(t.Context(), ann))
		wait.Eventually(t, "the cancellation", func() (any, bool) {
			s := b.lane.State()
			return s, s.ModeChange.Failed
		})
		b.setMode(kv)
		call = b.driver.called(t)
		b.stop()
		call.answer(false, nil)
		synctest.Wait()
		assert.Equal(t, kv, b.mode(), "a stop does not hold up the change")
		assert.Equal(t, api.PhaseStopped, b.lane.State().Phase)
	}, func(o *options) { o.Driver = warmScript{o.Driver.(*script)} })
}

// A failed change leaves the old mode running as before. The snapshot has the reason until the next change succeeds,
// and the log has it at a level of its own.
func TestFailedModeChangeIsRolledBack(t *testing.T) {
	var log bytes.Buffer
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(4)
		b.waitSettled(4)
		b.changeMode(roundRobin, false, errDriver)
		b.waitSettled(4)
		assert.Equal(t, kv, b.mode())
		change := b.lane.State().ModeChange
		require.NotNil(t, change)
		assert.True(t, change.Failed)
		assert.Equal(t, "failed", change.Phase)
		assert.Equal(t, "still in KV-aware: "+errDriver.Error(), change.Message)
		assert.Empty(t, b.modeChanges())

		lost := workload.NotSwitchedBack(errDriver, "KV-aware", errDriver)
		b.changeMode(roundRobin, false, lost)
		assert.Equal(t, unknown, b.mode(), "which mode the cluster was left in")
		assert.Empty(t, b.lane.State().ModeFrom)
		assert.Equal(t, lost.Error(), b.lane.State().ModeChange.Message)
		assert.Equal(t, []api.ModeState{unknown}, b.modeChanges())

		b.changeMode(roundRobin, false, nil)
		assert.Nil(t, b.lane.State().ModeChange)
		assert.Equal(t, roundRobin, b.mode())
		b.expectEvents("start ann: 4 conversations, KV-aware", "mode_change ann: KV-aware to Round-robin: abandoned",
			"start ann: 4 conversations, KV-aware", "mode_change ann: KV-aware to Round-robin: abandoned; mode unknown",
			"start ann: 4 conversations, Mode unknown", "mode_change ann: Mode unknown to Round-robin, caches kept",
			"start ann: 4 conversations, Round-robin")
		assert.Contains(t, log.String(), `level=WARN msg="KV-aware to Round-robin: abandoned" lane=main event=mode_change `+
			`by=ann error="the cluster did not come up"`)
		assert.Contains(t, log.String(), `level=ERROR msg="KV-aware to Round-robin: abandoned; mode unknown"`)
	}, func(o *options) { o.log = slog.NewTextHandler(&log, nil) })
}

func TestModeChangeIsCancelled(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		_, err := b.lane.CancelMode(t.Context(), "bob")
		require.ErrorIs(t, err, api.ErrConflict, "no change is in progress")
		b.start(2)
		b.waitSettled(2)
		b.setMode(roundRobin)
		b.driver.called(t)
		b.noError(b.lane.CancelMode(t.Context(), "bob"))
		b.waitPhase(api.PhaseRunning)
		b.waitSettled(2)
		state := b.lane.State()
		assert.Equal(t, api.ModeKV, state.Mode)
		assert.Equal(t, "still in KV-aware: the change was cancelled", state.ModeChange.Message)
		b.expectEvents("start ann: 2 conversations, KV-aware", "mode_change bob: cancelled the change to Round-robin",
			"mode_change ann: KV-aware to Round-robin: abandoned", "start ann: 2 conversations, KV-aware")
	})
}

// A mode change continues after a stop, and the workload does not start at its end.
func TestStopDuringModeChange(t *testing.T) {
	for text, drain := range map[string]bool{"stopped": false, "draining": true} {
		t.Run(text, func(t *testing.T) {
			virtual(t, func(t *testing.T, b *booth, _ *fake) {
				b.start(2)
				b.waitSettled(2)
				b.setMode(roundRobin)
				call := b.driver.called(t)
				state := b.noError(b.lane.Stop(t.Context(), "eve", api.StopRequest{Drain: drain}))
				assert.Equal(t, api.PhaseSwitching, state.Phase)
				b.stop()
				call.answer(false, nil)
				b.waitPhase(api.PhaseStopped)
				assert.Equal(t, roundRobin, b.mode())
				b.expectEvents("start ann: 2 conversations, KV-aware", "stop eve: "+text,
					"mode_change ann: KV-aware to Round-robin, caches kept")
				assert.Zero(t, b.lane.State().Concurrency.Actual)
			})
		})
	}
}

// A stopped or draining lane changes its mode and does not start.
func TestModeChangeWhileNotRunning(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.setMode(roundRobin)
		b.driver.called(t).answer(true, nil)
		b.waitPhase(api.PhaseStopped)
		assert.Equal(t, roundRobin, b.mode())

		b.start(2)
		f.holdTurns(b, 2)
		b.drain()
		b.setMode(kv)
		b.driver.called(t).answer(true, nil)
		b.waitPhase(api.PhaseStopped)
		assert.Equal(t, kv, b.mode())
		assert.EqualValues(t, 2, b.totals().Cancelled)
		b.expectEvents("mode_change ann: KV-aware to Round-robin, cold caches", "start ann: 2 conversations, Round-robin",
			"stop ann: draining", "mode_change ann: Round-robin to KV-aware, cold caches")
	})
}

// A request for the mode in force changes nothing. A mode that the driver does not offer is refused, and every mode is
// unavailable while the driver has reported none.
func TestOnlyOfferedModesAreAccepted(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		b.waitSettled(2)
		step := b.lane.State().Step.ID
		for _, req := range []api.ModeRequest{{Mode: api.ModeKV}, {Mode: api.ModeKV, Speculation: api.SpeculationOff}} {
			state := b.noError(b.lane.SetMode(t.Context(), ann, req))
			assert.Equal(t, api.PhaseRunning, state.Phase)
			assert.Equal(t, step, state.Step.ID)
		}
		for _, req := range []api.ModeRequest{
			{Mode: api.ModeLeastLoaded}, {Mode: api.ModeKV, Speculation: api.SpeculationEagle3}, {Mode: "random"}, {},
		} {
			state, err := b.lane.SetMode(t.Context(), ann, req)
			assert.Contains(t, refuses(t, err, "mode"), "round_robin")
			assert.Equal(t, api.PhaseRunning, state.Phase)
		}
		assert.EqualValues(t, []api.ModeState{kv, roundRobin}, b.snapshot().State.Modes)
		assert.Equal(t, "script", b.snapshot().State.Driver)
		b.driver.offers = nil
		_, err := b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin})
		require.ErrorIs(t, err, api.ErrUnavailable)
		assert.NotNil(t, b.lane.State().Modes)
	})
}

// A request for a mode is one for the only arm that has it. If several arms have it, or none, they are named.
func TestModeNamesItsOnlyArm(t *testing.T) {
	arm := func(name string, m api.Mode) api.ModeState {
		return api.ModeState{Arm: name, Mode: m, Speculation: api.SpeculationOff}
	}
	a := arm("a", api.ModeKV)
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		for _, m := range []api.Mode{api.ModeRoundRobin, api.ModeLeastLoaded} {
			_, err := b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: m})
			assert.Equal(t, "what the driver manual offers: a, b, c c", refuses(t, err, "mode"))
		}
		b.noError(b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeKV}))
		pass(time.Second)
		b.noError(b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeKV, Confirm: true}))
		b.waitPhase(api.PhaseStopped)
		assert.Equal(t, a, b.mode())
		b.expectEvents("mode_change manual: Switch to a. Confirm when it serves. The page or PUT "+
			`/api/v1/cluster/mode?lane=main with {"arm":"a","confirm":true} confirms it.`,
			"mode_change ann: Mode unknown to a, caches kept")
	}, withManualDriver, func(o *options) {
		o.Driver = cluster.NewManual([]api.ModeState{a, arm("b", api.ModeRoundRobin), arm("c c", api.ModeRoundRobin)})
	})
}

// The manual driver waits for a confirmation, which is the same request with confirm.
func TestManualChangeWaitsForConfirmation(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(2)
		b.waitSettled(2)
		confirm := api.ModeRequest{Mode: api.ModeRoundRobin, Confirm: true}
		_, err := b.lane.SetMode(t.Context(), ann, confirm)
		require.ErrorIs(t, err, api.ErrConflict, "no change is in progress")

		b.setMode(roundRobin)
		pass(time.Second)
		change := b.snapshot().State.ModeChange
		assert.Equal(t, "waiting_for_operator", change.Phase)
		assert.Contains(t, change.Message, "DYN_ROUTER_MODE=round-robin")
		_, err = b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeKV, Confirm: true})
		require.ErrorIs(t, err, api.ErrConflict, "another mode is awaited")
		b.noError(b.lane.SetMode(t.Context(), ann, confirm))
		b.waitSettled(2)
		assert.Equal(t, roundRobin, b.mode())
		assert.Empty(t, opening(t, f.turns()), "the workers were restarted: no nonce")
	}, func(o *options) { o.Driver = cluster.NewManual([]api.ModeState{kv, roundRobin}) })
}

// The end of the process ends a change in progress.
func TestEndOfProcessEndsModeChange(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		b.waitSettled(2)
		b.setMode(roundRobin)
		b.driver.called(t)
		b.end()
		assert.Equal(t, kv, b.mode())
		assert.Empty(t, b.modeChanges())
		b.expectEvents("start ann: 2 conversations, KV-aware")
	})
}

// What goes wrong in the switch before a span is an event, a warning in the log, and stored with that span, each time.
// A lane whose mode was unknown when it was taken stays in the mode of the last span.
func TestEachSpanHasTheWarningsOfItsSwitch(t *testing.T) {
	var log bytes.Buffer
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		lease, before, err := b.lane.Take(t.Context(), func() *api.SweepSummary { return nil })
		require.NoError(t, err)
		for _, warning := range []string{"the caches are warm", "they are still warm"} {
			go func() {
				call := b.driver.called(t)
				call.report(workload.PhaseWarning, warning)
				call.answer(false, nil)
			}()
			span := SpanOn{b.lane, SpanSettings{Mode: kv, Level: api.AtConversations(1), Seed: 9}, nil}
			runs, err := lease.Begin(t.Context(), ann, []SpanOn{span}, nil)
			require.NoError(t, err)
			assert.Equal(t, []string{warning}, runs[0].Warnings)
			assert.Contains(t, log.String(), `level=WARN msg="`+warning+`" lane=main event=mode_change by=script`)
		}
		require.NoError(t, lease.Release(wait.Context(t), ann, before))
		b.waitSettled(2)
		assert.Equal(t, kv, b.mode())
		assert.Contains(t, b.store.eventLines(), "mode_change script: they are still warm")
	}, func(o *options) { o.log, o.Mode = slog.NewTextHandler(&log, nil), unknown })
}
