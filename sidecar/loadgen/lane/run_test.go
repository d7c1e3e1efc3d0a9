package lane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The slider moves from 1 to 180, 60 and 180 while the workload runs. That is one run from start to stop.
func TestConcurrencyChangesWhileRunning(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		started := b.start(1).Started
		for i, step := range []struct {
			actor string
			n     int
		}{{ann, 1}, {"bob", 180}, {"cleo", 60}, {"bob", 180}} {
			_, err := b.lane.Start(t.Context(), step.actor, api.StartRequest{Level: new(api.AtConversations(step.n))})
			require.NoError(t, err)
			b.waitSettled(step.n)
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
		assert.Equal(t, api.Concurrency{Target: api.AtConversations(180)}, state.Concurrency)

		b.expectEvents("start ann: 1 conversation, KV-aware", "step bob: step 2: 180 conversations, KV-aware",
			"step cleo: step 3: 60 conversations, KV-aware", "step bob: step 4: 180 conversations, KV-aware",
			"stop eve: stopped")
		checkSteps(t, b.store.lastSteps(), 1, 180, 60, 180)
		checkTurns(t, b, f)
	}, func(o *options) { o.Settings.ThinkTime = 300 * time.Millisecond })
}

// checkSteps compares stored steps with concurrencies. Each step has settled and ended, and the next one began at
// that moment.
func checkSteps(t *testing.T, steps []api.StepRecord, concurrencies ...int) {
	t.Helper()
	require.Len(t, steps, len(concurrencies))
	for i, s := range steps {
		assert.Equal(t, concurrencies[i], s.Level.Conversations())
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

// checkTurns compares the stored turns and conversations of one run with what was sent and with the totals.
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
			assert.Equal(t, "usage", turn.TokenSource)
			assert.Equal(t, "16549284283275536882", turn.Worker)
			assert.Equal(t, "An answer.", turn.AssistantMessage)
		case api.TurnCancelled:
			got.Cancelled++
		default:
			t.Errorf("turn %s: %s %s", turn.RequestID, turn.ErrorClass, turn.ErrorMessage)
		}
	}
	totals := b.totals()
	assert.Equal(t, []int64{got.OK, got.Cancelled, 0, got.OutputTokens},
		[]int64{totals.OK, totals.Cancelled, totals.Errors, totals.OutputTokens})

	numbers, how := map[int64]bool{}, map[api.ConversationStatus]int{}
	all := b.store.allConversations()
	for _, c := range all {
		assert.False(t, numbers[c.Number], "conversation %d began twice", c.Number)
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

// A cancelled turn is neither a success nor an error. A stopped lane has no live figures, and its totals begin anew
// with the next start.
func TestStopCancels(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(4)
		pass(5 * time.Second)
		f.holdTurns(b, 4)
		live := b.snapshot()
		assert.Positive(t, live.Window.Metrics.TTFT.N)
		assert.Positive(t, live.Window.OutputTokensPerSecond)
		assert.InDelta(t, .4, *live.KV.HitRatio, 1e-9)
		assert.Equal(t, "usage", live.KV.Source)
		assert.Positive(t, live.Baseline.N)
		assert.True(t, live.State.Settling && live.Baseline.Settling)
		assert.InDelta(t, 60, live.Baseline.SettlingFor, 20)
		before := b.totals()
		require.Greater(t, before.OK, int64(20))

		state := b.stop()
		assert.Equal(t, api.PhaseStopped, state.Phase)
		assert.Equal(t, api.Concurrency{Target: api.AtConversations(4)}, state.Concurrency)
		after := b.totals()
		assert.Equal(t, []int64{before.OK, 4, 0}, []int64{after.OK, after.Cancelled, after.Errors})
		assert.Empty(t, after.ErrorsByClass)
		for _, turn := range b.store.allTurns()[before.OK:] {
			assert.Equal(t, api.TurnCancelled, turn.Status)
			assert.Empty(t, turn.ErrorClass)
			assert.False(t, turn.Counted)
		}
		checkQuiet(t, b.snapshot())

		f.endTurns()
		b.start(2)
		pass(time.Second)
		assert.Positive(t, b.totals().OK)
		assert.Less(t, b.totals().OK, before.OK)
		assert.Zero(t, b.totals().Cancelled)
	})
}

// checkQuiet expects no live figure in the snapshot of a lane that does not run.
func checkQuiet(t *testing.T, s api.LaneSnapshot) {
	t.Helper()
	assert.Equal(t, api.Window{Errors: map[api.ErrorClass]int{}}, s.Window)
	assert.Empty(t, s.TTFTByTurn)
	assert.Nil(t, s.KV.HitRatio)
	assert.Zero(t, s.Baseline.N)
	assert.Zero(t, s.Baseline.Live)
	assert.Nil(t, s.Baseline.LiveRPS)
	assert.False(t, s.State.Settling || s.Baseline.Settling, "a lane that does not run does not settle")
}

// Without cached tokens in the answers, the hit rate is unknown, not 0 %. Once a turn has ended, the snapshot has the
// reason.
func TestHitRateIsUnknownWithoutCachedTokens(t *testing.T) {
	clusterState, withCluster := settableCluster()
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		f.noCachedTokens = true
		b.start(4)
		assert.Empty(t, b.snapshot().KV.NotReported, "no turn has ended yet")
		pass(5 * time.Second)
		live := b.snapshot()
		assert.Nil(t, live.KV.HitRatio)
		assert.Nil(t, live.Baseline.LiveKV)
		const answers, unread = "the answers do not report cached tokens, and ", "Prometheus does not scrape the workers"
		for want, c := range map[string]api.Cluster{
			"the engine does not report cached tokens":        {Available: true},
			answers + "the cluster's metrics are unavailable": {},
			answers + unread: {Available: true, Unread: api.Unread{Workers: unread}},
		} {
			clusterState.Store(&c)
			assert.Equal(t, want, b.snapshot().KV.NotReported)
		}
		b.stop()
		assert.Empty(t, b.snapshot().KV.NotReported, "nothing is expected of a lane that does not run")
	}, withCluster)
}

// Where all answers report 0 cached tokens and the engine's counters rise, the hit rate is unknown in all documents,
// for the turns before the contradiction was seen too, until an answer reports some.
func TestZerosThatTheEngineContradictsAreUnknown(t *testing.T) {
	clusterState, withCluster := settableCluster()
	counters := func(hits, all float64) {
		clusterState.Store(&api.Cluster{Available: true, KV: api.KV{
			HitRatio: new(.75), Source: "engine", Counted: map[string][2]float64{"engine": {hits, all}},
		}})
	}
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		f.cached = 0
		counters(900, 1000)
		b.start(4)
		pass(5 * time.Second)
		assert.Equal(t, 0., *b.snapshot().KV.HitRatio, "the hits were before the run")
		assert.False(t, b.lane.CachedDoubted())
		counters(900+7500, 1000+10_000)
		pass(5 * time.Second)
		live := b.snapshot()
		const reason = "The answers report 0 cached tokens, but the counters of the engine show 75.0 % hits"
		assert.Nil(t, live.KV.HitRatio)
		assert.True(t, b.lane.CachedDoubted())
		assert.Contains(t, live.KV.NotReported, reason)
		assert.Contains(t, strings.Join(live.Target.Notices, "\n"), reason)
		assert.Empty(t, live.Target.CachedSource)
		assert.Equal(t, live.Totals.OK, live.Totals.CachedUnknown)
		assert.Nil(t, b.lane.record.Report(time.Now()).HitRatio)
		points := b.lane.History().Points
		assert.Nil(t, points[len(points)-1].KVHitRatio)
		f.set(func(f *fake) { f.cached = 400 })
		pass(5 * time.Second)
		assert.Equal(t, .4, *b.snapshot().KV.HitRatio)
	}, withCluster)
}

// A repeated request changes nothing and adds no event.
func TestRequestsAreIdempotent(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.stop()
		b.drain()
		assert.Equal(t, api.PhaseStopped, b.lane.State().Phase)
		b.start(2)
		b.waitSettled(2)
		b.start(2)
		b.noError(b.lane.Start(t.Context(), ann, api.StartRequest{})) // without a concurrency the last one stays
		assert.EqualValues(t, 1, b.patch(api.WorkloadPatch{}).Step.ID)

		f.holdTurns(b, 2)
		assert.Equal(t, api.PhaseDraining, b.drain().Phase)
		state := b.drain()
		assert.Equal(t, api.PhaseDraining, state.Phase)
		assert.True(t, state.Running, "turns are still in flight")
		_, err := b.lane.Start(t.Context(), ann, api.StartRequest{Level: new(api.AtConversations(3))})
		require.ErrorIs(t, err, api.ErrConflict)
		assert.Equal(t, api.AtConversations(2), b.lane.State().Concurrency.Target)

		b.stop()
		assert.Equal(t, api.PhaseStopped, b.stop().Phase)
		b.expectEvents("start ann: 2 conversations, KV-aware", "stop ann: draining", "stop ann: stopped")
	})
}

// Turns in flight end in a drain. They do not count, since the step ends when the drain begins.
func TestDrainFinishesTurnsInFlight(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		f.set(func(f *fake) { f.words = 100 })
		b.start(3)
		pass(time.Second)
		b.drain()
		b.waitPhase(api.PhaseStopped)
		totals := b.totals()
		assert.EqualValues(t, 3, totals.OK)
		assert.Zero(t, totals.Cancelled+totals.Errors)
		assert.EqualValues(t, 3, totals.Conversations)
		assert.Zero(t, b.lane.State().Step.Counted)
		for _, turn := range b.store.allTurns() {
			assert.False(t, turn.Counted)
			assert.True(t, turn.Ended.After(*b.store.lastSteps()[0].Ended), "the step ends when the drain begins")
		}
		f.endTurns()
		b.start(1)
		b.waitSettled(1)
	})
}

// A stop continues after its caller has returned. Until it is complete, a start is refused.
func TestStopOutlivesItsCaller(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		pass(time.Second)
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
		b.waitPhase(api.PhaseStopped)
		b.start(1)
		b.waitSettled(1)
	})
}

// No start exceeds max_concurrency, and max_concurrency cannot be set below the concurrency of a running lane. A
// refused request changes nothing.
func TestMaxConcurrencyIsEnforced(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		lower := api.SettingsPatch{MaxConcurrency: new(20), Slider: &api.Slider{Min: 1, Max: 20, Increment: 1}}
		outOfRange := func() {
			was := b.lane.State()
			state, err := b.lane.Patch(
				t.Context(),
				ann,
				api.WorkloadPatch{MaxTokens: new(0), Level: new(api.AtConversations(2))},
			)
			refuses(t, err, "max_tokens")
			assert.Equal(t, was, state, "one bad field refuses all")
			_, err = b.lane.Start(t.Context(), ann, api.StartRequest{Level: new(api.AtConversations(201))})
			assert.Contains(t, refuses(t, err, "concurrency"), "1 to 200")
			assert.Equal(t, was, b.lane.State())
		}
		outOfRange()
		b.start(21)
		b.waitSettled(21)
		outOfRange()
		settings, err := b.catalog.PatchSettings(t.Context(), ann, lower)
		assert.Contains(t, refuses(t, err, "max_concurrency"), "at least 21")
		assert.Equal(t, 200, settings.MaxConcurrency)
		assert.Equal(t, 200, b.catalog.Settings().MaxConcurrency)
		assert.Nil(t, b.store.settings)

		b.stop()
		_, err = b.catalog.PatchSettings(t.Context(), ann, lower)
		require.NoError(t, err, "a stopped lane does not prevent a lower limit")
		assert.Equal(t, 20, b.store.settings.MaxConcurrency)
		_, err = b.lane.Start(t.Context(), ann, api.StartRequest{})
		assert.Contains(t, refuses(t, err, "concurrency"), "1 to 20")
		assert.Equal(t, api.PhaseStopped, b.lane.State().Phase)
		b.start(20)
		b.waitSettled(20)
	})
}

// The end of the process stops the run, stores what it measured, and refuses later requests.
func TestEndOfProcessStoresResults(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(5)
		pass(110 * time.Second)
		b.end()
		b.expectEvents("start ann: 5 conversations, KV-aware")
		assert.Equal(t, api.PhaseStopped, b.lane.State().Phase)
		assert.NotNil(t, b.store.lastSteps()[0].Ended)
		assert.WithinDuration(t, time.Now(), *b.rows()[level{5, api.ModeKV}].Measured, 0)
		for _, c := range b.store.allConversations() {
			assert.NotNil(t, c.Ended, "conversation %s", c.ID)
		}
		_, err := b.lane.Start(t.Context(), ann, api.StartRequest{})
		require.ErrorIs(t, err, api.ErrUnavailable)
		_, err = b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin})
		require.ErrorIs(t, err, api.ErrUnavailable)
		b.stop()
		assert.Equal(t, api.PhaseStopped, b.patch(api.WorkloadPatch{Level: new(api.AtConversations(2))}).Phase)
	})
}

func errorOf[T any](_ T, err error) error { return err }

// Conversations of different runs and processes never share an id. Every stored turn is reported with the draw of its
// conversation, and no two conversations of one process have one draw.
func TestConversationsOfRunsDiffer(t *testing.T) {
	var mu sync.Mutex
	var ended []workload.Turn
	reported := func(o *options) {
		o.Ended = func(t *workload.Turn) {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, *t)
		}
	}
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		for range 2 {
			ended = nil
			before := len(b.store.allTurns())
			for range 2 {
				b.start(3)
				pass(5 * time.Second)
				b.stop()
			}
			byDraw, runs, turns := map[workload.Draw]string{}, map[int64]bool{}, []api.Turn{}
			for _, e := range ended {
				turns = append(turns, e.Turn)
				runs[e.Draw.Opened] = true
				assert.Equal(t, uint64(7), e.Draw.Seed)
				assert.True(t, strings.HasSuffix(e.Conversation, fmt.Sprintf("-%d", e.Draw.Number)), "%+v", e)
				if other, known := byDraw[e.Draw]; known {
					assert.Equal(t, other, e.Conversation, "one conversation for each draw")
				}
				byDraw[e.Draw] = e.Conversation
			}
			assert.NotEmpty(t, turns)
			assert.ElementsMatch(t, b.store.allTurns()[before:], turns)
			assert.Len(t, runs, 2)
			assert.Contains(t, runs, int64(0))
			b.end()
			b = newBooth(t, f, reported, func(o *options) { o.store = b.store })
		}
		var runs []string
		for _, r := range f.requests {
			runs = append(runs, r.run())
		}
		assert.Len(t, slices.Compact(runs), 4)
	}, reported)
}

// A change that cannot be stored is not made. The workload continues.
func TestBrokenStoreRefusesChanges(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		broken := errors.New("disk full")
		b.store.breaks(broken)
		was := b.catalog.Settings()
		_, err := b.catalog.PatchSettings(t.Context(), ann, api.SettingsPatch{Title: new("New")})
		require.ErrorIs(t, err, api.ErrUnavailable)
		require.ErrorIs(t, err, broken)
		assert.Equal(t, was, b.catalog.Settings())
		_, err = b.catalog.SaveBaseline(t.Context(), ann, imported("mine"))
		require.ErrorIs(t, err, api.ErrUnavailable)
		_, err = b.catalog.Baseline("mine")
		require.ErrorIs(t, err, api.ErrNotFound)
		b.start(2)
		pass(5 * time.Second)
		assert.Greater(t, b.totals().OK, int64(5))
	})
}
