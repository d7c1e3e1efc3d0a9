package lane

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

var eagle = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationEagle3}

// teller is a driver whose cluster tells its mode and its decisions.
type teller struct {
	*script

	mu        sync.Mutex
	mode      api.ModeState
	decisions []api.RoutingDecision
	err       error
}

func (d *teller) is(mode api.ModeState, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mode, d.err = mode, err
}

func (d *teller) Current(context.Context) (api.ModeState, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mode, d.err
}

func (d *teller) Decisions(_ context.Context, limit int) ([]api.RoutingDecision, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.decisions[:min(limit, len(d.decisions))], d.err
}

// telling makes a booth's driver a teller, in kv.
func telling(d *teller) func(*options) {
	return func(o *options) {
		d.script, d.mode = o.Driver.(*script), kv
		d.offers = append(d.offers, eagle)
		o.Driver = d
	}
}

// mode is that of the lane.
func (b *booth) mode() api.ModeState {
	s := b.lane.State()
	return api.ModeState{Mode: s.Mode, Speculation: s.Speculation}
}

// A cluster that was switched by somebody else is followed: in a new step, from
// which on everything says what serves.
func TestClusterIsFollowed(t *testing.T) {
	d := &teller{}
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(3)
		pass(70 * time.Second)
		before := b.lane.State()
		require.Contains(t, b.rows(), level{3, api.ModeKV})

		d.is(eagle, nil)
		pass(followEvery)
		state := b.lane.State()
		assert.Equal(t, eagle, b.mode())
		assert.Equal(t, api.PhaseRunning, state.Phase)
		assert.Equal(t, before.Step.ID+1, state.Step.ID)
		assert.NotNil(t, state.Step.Settled, "as many are in progress as before")
		assert.True(t, state.Settling)
		assert.Equal(t, []api.ModeState{eagle}, b.told())
		b.saysOf(api.SpeculationEagle3)

		d.is(api.ModeState{}, errors.New("restarting"))
		pass(10 * time.Second)
		assert.Equal(t, eagle, b.mode(), "what is not known changes nothing")
		assert.Equal(t, state.Step.ID, b.lane.State().Step.ID)
		b.stop()
		b.events("start ann: 3 conversations, KV-aware", "mode_change cluster: KV-aware to KV-aware with EAGLE-3: the cluster is in that mode", "stop ann: stopped")
		for _, turn := range b.store.allTurns() {
			want := api.SpeculationOff
			if turn.Step > before.Step.ID {
				want = api.SpeculationEagle3
			}
			assert.Equal(t, want, turn.Speculation)
		}
	}, telling(d))
}

// saysOf holds everything that tells the speculation against what it is.
func (b *booth) saysOf(want api.Speculation) {
	t := b.t.(*testing.T)
	t.Helper()
	snapshot := b.snapshot()
	assert.Equal(t, want, snapshot.State.Speculation)
	assert.Equal(t, want, snapshot.Target.Deployment.Speculation)
	status := b.view.Status().Lanes[0]
	assert.Equal(t, want, status.State.Speculation)
	assert.Equal(t, want, status.Target.Deployment.Speculation)
	different := api.Difference{Field: "speculation", Live: string(want), Baseline: string(api.SpeculationOff)}
	if want == api.SpeculationOff {
		assert.NotContains(t, snapshot.Baseline.Differences, different)
	} else {
		assert.Contains(t, snapshot.Baseline.Differences, different, "this target was measured without")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(b.lane.Collector())
	assert.Contains(t, scrape(t, registry), "loadgen_info mode=kv,model=test-model,speculation="+string(want)+",target=http://gpu.example:8000,version=1.2.3")
}

// A change of mode that the operator makes carries its speculation everywhere,
// and is not disturbed by what the cluster tells meanwhile.
func TestSpeculationIsSwitched(t *testing.T) {
	d := &teller{}
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		pass(70 * time.Second)
		b.setMode(eagle)
		call := d.called(t)
		d.is(eagle, nil)
		pass(5 * time.Second)
		assert.Equal(t, kv, b.mode(), "not before the driver is done")
		b.saysOf(api.SpeculationOff)
		call.answer(true, nil)
		b.phase(api.PhaseRunning)
		pass(5 * time.Second)
		b.saysOf(api.SpeculationEagle3)
		assert.Equal(t, []api.ModeState{eagle}, b.told(), "told once")
		b.events("start ann: 2 conversations, KV-aware", "mode_change ann: KV-aware to KV-aware with EAGLE-3", "start ann: 2 conversations, KV-aware")
	}, telling(d))
}

// Where a failed change has left the cluster in another mode than before, that
// one is shown, and the failure, which says otherwise, no longer.
func TestFailedChangeIsFollowed(t *testing.T) {
	d := &teller{}
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		b.setMode(roundRobin)
		d.is(roundRobin, nil)
		d.called(t).answer(false, errDriver)
		b.phase(api.PhaseRunning)
		require.True(t, b.lane.State().ModeChange.Failed)
		pass(followEvery)
		assert.Equal(t, roundRobin, b.mode())
		assert.Nil(t, b.lane.State().ModeChange)
		b.events("start ann: 2 conversations, KV-aware", "mode_change ann: KV-aware to Round-robin: abandoned", "start ann: 2 conversations, KV-aware",
			"mode_change cluster: KV-aware to Round-robin: the cluster is in that mode")
	}, telling(d))
}

// A lane that is stopped follows, too, and one that drains begins no step.
func TestFollowedWhileNotRunning(t *testing.T) {
	d := &teller{}
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		d.is(eagle, nil)
		pass(followEvery)
		assert.Equal(t, eagle, b.mode())
		assert.Zero(t, b.lane.State().Step.ID)

		f.set(func(f *fake) { f.words = 200 })
		b.start(2)
		pass(time.Second)
		b.drain()
		d.is(kv, nil)
		pass(followEvery)
		assert.Equal(t, kv, b.mode())
		state := b.lane.State()
		assert.Equal(t, api.PhaseDraining, state.Phase)
		assert.EqualValues(t, 1, state.Step.ID)
		pass(time.Minute)
		assert.Equal(t, api.PhaseStopped, b.lane.State().Phase)
	}, telling(d))
}

// An answer that was asked for before a change of the lane's own is out of date.
func TestLateAnswerIsNotFollowed(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.lane.adopt(roundRobin, eagle, api.ModeFromDriver, "")
		assert.Equal(t, kv, b.mode(), "the lane is not in the mode any more that it was in then")
		b.setMode(roundRobin)
		call := b.driver.called(t)
		b.lane.adopt(kv, eagle, api.ModeFromDriver, "")
		assert.Equal(t, kv, b.mode(), "a change is in progress")
		call.answer(true, nil)
		b.phase(api.PhaseStopped)
		assert.Equal(t, roundRobin, b.mode())
		assert.Equal(t, []api.ModeState{roundRobin}, b.told())
	})
}

// Decisions are the driver's, and where it tells none the answer says so.
func TestDecisions(t *testing.T) {
	d := &teller{decisions: []api.RoutingDecision{{RequestID: "main-2"}, {RequestID: "main-1"}}}
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		list, err := b.lane.Decisions(t.Context(), 1)
		require.NoError(t, err)
		assert.Equal(t, api.DecisionList{Decisions: d.decisions[:1], Source: "script"}, list)
		d.is(kv, api.ErrUnavailable)
		_, err = b.lane.Decisions(t.Context(), 1)
		require.ErrorIs(t, err, api.ErrUnavailable)
	}, telling(d))
}

// A driver that tells no decisions, and has not heard of its modes yet, says so;
// the modes it refuses for now, not for good.
func TestDriverThatTellsNothing(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		list, err := b.lane.Decisions(t.Context(), 50)
		require.NoError(t, err)
		assert.Equal(t, []api.RoutingDecision{}, list.Decisions)
		assert.Empty(t, list.Source)
		assert.Contains(t, list.Message, "this target does not report its decisions")
		b.driver.offers = nil
		_, err = b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeRoundRobin})
		require.ErrorIs(t, err, api.ErrUnavailable)
		assert.NotNil(t, b.lane.State().Modes)
	})
}
