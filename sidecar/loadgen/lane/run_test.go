package lane

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// The operator moves the slider while it runs: 1, 180, 60, 180, stop. It is one
// run from its start to its stop.
func TestConcurrencyWhileRunning(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		started := b.start(1).Started
		for i, step := range []struct {
			by string
			n  int
		}{{ann, 1}, {"bob", 180}, {"cleo", 60}, {"bob", 180}} {
			_, err := b.lane.Start(t.Context(), step.by, api.StartRequest{Concurrency: &step.n})
			require.NoError(t, err)
			b.agrees(step.n)
			pass(3 * time.Second)
			state := b.lane.State()
			assert.True(t, state.Running)
			assert.Equal(t, int64(i+1), state.Step.ID)
			assert.Positive(t, state.Step.Counted)
			assert.Equal(t, started, state.Started, "no restart")
		}
		_, err := b.lane.Stop(t.Context(), "eve", api.StopRequest{})
		require.NoError(t, err)
		state := b.lane.State()
		assert.Equal(t, api.PhaseStopped, state.Phase)
		assert.False(t, state.Running || state.Settling)
		assert.Equal(t, api.Concurrency{Target: 180}, state.Concurrency)

		b.events("start ann: 1 conversations, KV-aware", "step bob: step 2: 180 conversations, KV-aware", "step cleo: step 3: 60 conversations, KV-aware",
			"step bob: step 4: 180 conversations, KV-aware", "stop eve: stopped")
		checkSteps(t, b.store.lastSteps(), 1, 180, 60, 180)
		checkTurns(t, b, f)
	}, func(o *options) { o.Settings.ThinkTime = 300 * time.Millisecond })
}

// checkSteps holds the stored steps against the concurrencies: each has settled
// and ended, and the next one began at that moment.
func checkSteps(t *testing.T, steps []api.StepRecord, concurrencies ...int) {
	t.Helper()
	require.Len(t, steps, len(concurrencies))
	for i, s := range steps {
		assert.Equal(t, concurrencies[i], s.Concurrency)
		assert.Equal(t, int64(i+1), s.ID)
		assert.Equal(t, kv, api.ModeState{Mode: s.Mode, Speculation: s.Speculation})
		assert.Equal(t, api.DefaultLane, s.Lane)
		require.NotNil(t, s.Settled, "step %d", s.ID)
		require.NotNil(t, s.Ended, "step %d", s.ID)
		assert.False(t, s.Settled.Before(s.Started) || s.Ended.Before(*s.Settled))
		if i > 0 {
			assert.Equal(t, s.Started, *steps[i-1].Ended)
		}
	}
}

// checkTurns holds the stored turns and conversations of one run against what
// was sent, and against the totals.
func checkTurns(t *testing.T, b *booth, f *fake) {
	t.Helper()
	runs, sent := map[string]bool{}, map[string]int{}
	for _, r := range f.requests {
		runs[r.run()] = true
		sent[r.id]++
	}
	assert.Len(t, runs, 1, "no restart: all ids are of one run")
	var got api.Totals
	for _, turn := range b.store.allTurns() {
		assert.Equal(t, 1, sent[turn.RequestID], "how often turn %s was sent", turn.RequestID)
		got.OutputTokens += int64(*turn.OutputTokens)
		switch turn.Status {
		case api.TurnOK:
			got.OK++
			assert.Equal(t, []int{1000, 400, 6}, []int{*turn.PromptTokens, *turn.CachedTokens, *turn.OutputTokens})
			assert.Equal(t, []string{"usage", "16549284283275536882", "An answer."}, []string{turn.TokenSource, turn.Worker, turn.AssistantMessage})
		case api.TurnCancelled:
			got.Cancelled++
		default:
			t.Errorf("turn %s: %s %s", turn.RequestID, turn.ErrorClass, turn.ErrorMessage)
		}
	}
	totals := b.totals()
	assert.Equal(t, []int64{got.OK, got.Cancelled, 0, got.OutputTokens}, []int64{totals.OK, totals.Cancelled, totals.Errors, totals.OutputTokens})
	checkConversations(t, b.store.allConversations(), totals)
}

// checkConversations wants each number once, and each conversation ended in the
// ways that a change of concurrency and a stop bring about.
func checkConversations(t *testing.T, all []api.Conversation, totals api.Totals) {
	t.Helper()
	numbers, how := map[int64]bool{}, map[api.ConversationStatus]int{}
	for _, c := range all {
		assert.False(t, numbers[c.Number], "conversation %d was begun twice", c.Number)
		numbers[c.Number] = true
		how[c.Status]++
		assert.NotNil(t, c.Ended)
		if c.Status == api.ConversationCompleted {
			assert.Equal(t, c.TurnsPlanned, c.TurnsDone)
		}
	}
	assert.Equal(t, totals.Conversations, int64(len(all)))
	assert.Positive(t, how[api.ConversationRetired], "180 became 60")
	assert.Positive(t, how[api.ConversationCancelled])
	assert.Zero(t, how[api.ConversationActive]+how[api.ConversationError])
}

// A stop cancels what is in flight, which is neither a success nor an error; a
// stopped lane shows no live figures, and its totals begin anew at its start.
func TestStopCancels(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(4)
		b.eventually("whole turns", func() bool { return b.totals().OK > 20 })
		f.held(b, 4)
		live := b.snapshot()
		assert.Positive(t, live.Window.Metrics.TTFT.N)
		assert.Positive(t, live.Window.OutputTokensPerSecond)
		assert.InDelta(t, .4, *live.KV.HitRatio, 1e-9)
		assert.Equal(t, "usage", live.KV.Source)
		assert.Positive(t, live.Baseline.N)
		assert.True(t, live.State.Settling && live.Baseline.Settling)
		assert.InDelta(t, 60, live.Baseline.SettlingFor, 20)
		before := b.totals()

		state := b.stop()
		assert.Equal(t, api.PhaseStopped, state.Phase)
		assert.Equal(t, api.Concurrency{Target: 4}, state.Concurrency)
		after := b.totals()
		assert.Equal(t, before.OK, after.OK)
		assert.Zero(t, after.Errors)
		assert.EqualValues(t, 4, after.Cancelled)
		assert.Empty(t, after.ErrorsByClass)
		for _, turn := range b.store.allTurns()[before.OK:] {
			assert.Equal(t, api.TurnCancelled, turn.Status)
			assert.Empty(t, turn.ErrorClass)
			assert.False(t, turn.Counted)
		}
		checkQuiet(t, b.snapshot())

		f.flows()
		b.start(2)
		b.eventually("a new turn", func() bool { return b.totals().OK > 0 })
		assert.Less(t, b.totals().OK, before.OK)
		assert.Zero(t, b.totals().Cancelled)
		b.stop()
		assert.Greater(t, len(b.store.allConversations()), int(before.Conversations)+4, "the second run has conversations of its own")
	})
}

// Where the answers tell no cached tokens, there is no hit rate and not one of 0 %:
// the snapshot says who keeps silent, once a turn has ended.
func TestHitRateThatNobodyTells(t *testing.T) {
	told, telling := clusterThatTells()
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		f.silentCache = true
		b.start(4)
		assert.Empty(t, b.snapshot().KV.NotReported, "no turn has ended yet")
		b.eventually("whole turns", func() bool { return b.totals().OK > 20 })
		live := b.snapshot()
		assert.Nil(t, live.KV.HitRatio)
		assert.Nil(t, live.Baseline.LiveKV)
		for want, c := range map[string]api.Cluster{
			"the engine does not report cached tokens":                                            {Available: true},
			"the answers do not report cached tokens, and the cluster's metrics are unavailable":  {},
			"the answers do not report cached tokens, and Prometheus does not scrape the workers": {Available: true, Unread: api.Unread{Workers: "Prometheus does not scrape the workers"}},
		} {
			told.Store(&c)
			assert.Equal(t, want, b.snapshot().KV.NotReported)
		}
		b.stop()
		assert.Empty(t, b.snapshot().KV.NotReported, "nothing is expected of a lane that does not run")
	}, telling)
}

// checkQuiet wants nothing live in the snapshot of a lane that does not run.
func checkQuiet(t *testing.T, s api.LaneSnapshot) {
	t.Helper()
	assert.Zero(t, s.Window.Seconds)
	assert.Zero(t, s.Window.Metrics)
	assert.Zero(t, s.Window.OutputTokensPerSecond)
	assert.Zero(t, s.Window.RequestsPerSecond)
	assert.Zero(t, s.Window.Awaiting)
	assert.Nil(t, s.Window.ErrorRatio)
	assert.Empty(t, s.TTFTByTurn)
	assert.Nil(t, s.KV.HitRatio)
	assert.Zero(t, s.Baseline.N)
	assert.Zero(t, s.Baseline.Live)
	assert.Nil(t, s.Baseline.LiveRPS)
	assert.False(t, s.State.Settling || s.Baseline.Settling, "what does not run does not settle")
}

// Doing the same again changes nothing and is no second event.
func TestIdempotent(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.stop()
		b.drain()
		assert.Equal(t, api.PhaseStopped, b.lane.State().Phase)
		b.start(2)
		b.agrees(2)
		again := b.start(2)
		_, err := b.lane.Start(t.Context(), ann, api.StartRequest{})
		require.NoError(t, err, "no concurrency keeps the last one")
		b.patch(api.WorkloadPatch{})
		assert.EqualValues(t, 1, again.Step.ID)
		assert.EqualValues(t, 1, b.lane.State().Step.ID)

		f.held(b, 2)
		assert.Equal(t, api.PhaseDraining, b.drain().Phase)
		state := b.drain()
		assert.Equal(t, api.PhaseDraining, state.Phase)
		assert.True(t, state.Running, "turns are still in flight")
		three := 3
		_, err = b.lane.Start(t.Context(), ann, api.StartRequest{Concurrency: &three})
		require.ErrorIs(t, err, api.ErrConflict)
		assert.Equal(t, 2, b.lane.State().Concurrency.Target)

		b.stop()
		b.stop()
		assert.Equal(t, api.PhaseStopped, b.lane.State().Phase)
		b.events("start ann: 2 conversations, KV-aware", "stop ann: draining", "stop ann: stopped")
	})
}

// A drain lets the turns in flight end, and what they measure while the lane
// empties counts for nothing.
func TestDrain(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		f.set(func(f *fake) { f.words = 100 })
		b.start(3)
		pass(time.Second)
		b.drain()
		b.phase(api.PhaseStopped)
		totals := b.totals()
		assert.EqualValues(t, 3, totals.OK)
		assert.Zero(t, totals.Cancelled+totals.Errors)
		assert.EqualValues(t, 3, totals.Conversations)
		assert.Zero(t, b.lane.State().Step.Counted)
		for _, turn := range b.store.allTurns() {
			assert.False(t, turn.Counted)
			assert.True(t, turn.Ended.After(*b.store.lastSteps()[0].Ended), "the step ends when the drain begins")
		}
		f.flows()
		b.start(1)
		b.agrees(1)
	})
}

// A stop whose caller has gone goes on, and until it is complete no start is
// taken that it would swallow.
func TestStopCutOff(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		b.eventually("whole turns", func() bool { return b.totals().OK > 2 })
		release := b.store.hold()
		defer release()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		state, err := b.lane.Stop(ctx, ann, api.StopRequest{})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, api.PhaseDraining, state.Phase)
		_, err = b.lane.Start(t.Context(), ann, api.StartRequest{})
		require.ErrorIs(t, err, api.ErrConflict)
		release()
		b.phase(api.PhaseStopped)
		b.start(1)
		b.agrees(1)
	})
}

// What is out of range is refused by field, and changes nothing, whether the
// lane runs or not.
func TestOutOfRange(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		rows := []struct {
			field string
			patch api.WorkloadPatch
		}{
			{"concurrency", api.WorkloadPatch{Concurrency: new(201)}},
			{"max_tokens", api.WorkloadPatch{MaxTokens: new(0), Concurrency: new(2)}}, // one bad field spoils all
		}
		check := func() {
			was := b.lane.State()
			for _, row := range rows {
				state, err := b.lane.Patch(t.Context(), ann, row.patch)
				_ = refuses(t, err, row.field)
				assert.Equal(t, was, state)
			}
			_, err := b.lane.Start(t.Context(), ann, api.StartRequest{Concurrency: new(1000)})
			assert.Contains(t, refuses(t, err, "concurrency").Allowed, "1 to 200")
			assert.Equal(t, was.Phase, b.lane.State().Phase)
		}
		check()
		b.start(1)
		b.agrees(1)
		check()
	})
}

// Nobody may start what is beyond max_concurrency, and nobody may lower that
// below what runs.
func TestMaxConcurrency(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		lower := api.SettingsPatch{MaxConcurrency: new(20), Slider: &api.Slider{Min: 1, Max: 20, Increment: 1}}
		b.start(21)
		b.agrees(21)
		settings, err := b.catalogue.PatchSettings(t.Context(), ann, lower)
		e := refuses(t, err, "max_concurrency")
		assert.Contains(t, e.Allowed, "at least 21")
		assert.Equal(t, 200, settings.MaxConcurrency)
		assert.Equal(t, 200, b.catalogue.Settings().MaxConcurrency)
		assert.Nil(t, b.store.settings)

		b.start(20)
		_, err = b.catalogue.PatchSettings(t.Context(), ann, lower)
		require.NoError(t, err)
		assert.Equal(t, 20, b.store.settings.MaxConcurrency)
		_, err = b.lane.Start(t.Context(), ann, api.StartRequest{Concurrency: new(21)})
		assert.Contains(t, refuses(t, err, "concurrency").Allowed, "1 to 20")
		assert.Equal(t, 20, b.lane.State().Concurrency.Target)
	})
}

// A lane that is stopped is no obstacle to a lower limit; its next start is held to it.
func TestMaxConcurrencyStopped(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(5)
		b.stop()
		_, err := b.catalogue.PatchSettings(t.Context(), ann, api.SettingsPatch{MaxConcurrency: new(4), Slider: &api.Slider{Min: 1, Max: 4, Increment: 1}})
		require.NoError(t, err)
		_, err = b.lane.Start(t.Context(), ann, api.StartRequest{})
		_ = refuses(t, err, "concurrency")
		assert.Equal(t, api.PhaseStopped, b.lane.State().Phase)
		b.start(4)
		b.agrees(4)
	})
}

// The end of the process ends everything in order and loses nothing of what was
// to be stored; whoever comes late is told.
func TestEndOfProcess(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(5)
		b.agrees(5)
		b.end()
		assert.Equal(t, []string{"start ann: 5 conversations, KV-aware"}, b.store.told())
		assert.Equal(t, api.PhaseStopped, b.lane.State().Phase)
		assert.NotNil(t, b.store.lastSteps()[0].Ended)
		for _, c := range b.store.allConversations() {
			assert.NotNil(t, c.Ended, "conversation %s", c.ID)
		}
		for what, call := range map[string]func() error{
			"start": func() error {
				_, err := b.lane.Start(t.Context(), ann, api.StartRequest{})
				return err
			},
			"mode": func() error {
				_, err := b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin})
				return err
			},
		} {
			assert.ErrorIs(t, call(), api.ErrUnavailable, what)
		}
		b.stop()
		b.patch(api.WorkloadPatch{Concurrency: new(2)})
		assert.Equal(t, api.PhaseStopped, b.lane.State().Phase)
	})
}

func second[T any](_ T, err error) error { return err }

// Conversations of different runs and processes never share an id.
func TestRunIDs(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		for range 2 {
			for range 2 {
				b.start(1)
				pass(time.Second)
				b.stop()
			}
			b.end()
			b = newBooth(t, f, func(o *options) { o.store = b.store })
		}
		var runs []string
		for _, r := range f.requests {
			runs = append(runs, r.run())
		}
		assert.Len(t, slices.Compact(runs), 4)
	})
}

// What cannot be stored is not changed.
func TestBrokenStore(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		broken := errors.New("disk full")
		b.store.breaks(broken)
		was := b.catalogue.Settings()
		_, err := b.catalogue.PatchSettings(t.Context(), ann, api.SettingsPatch{Title: new("New")})
		require.ErrorIs(t, err, api.ErrUnavailable)
		require.ErrorIs(t, err, broken)
		assert.Equal(t, was, b.catalogue.Settings())
		_, err = b.catalogue.SaveBaseline(t.Context(), ann, imported("mine"))
		require.ErrorIs(t, err, api.ErrUnavailable)
		_, err = b.catalogue.Baseline("mine")
		require.ErrorIs(t, err, api.ErrNotFound)
		b.start(2)
		b.eventually("a workload that goes on", func() bool { return b.totals().OK > 5 })
	})
}
