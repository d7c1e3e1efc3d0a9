package lane

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

var eagle = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationEagle3}

// modeReporter is a driver whose cluster reports its mode and its decisions.
type modeReporter struct {
	*script

	mu        sync.Mutex
	mode      api.ModeState
	decisions []api.RoutingDecision
	err       error
}

func (d *modeReporter) set(mode api.ModeState, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mode, d.err = mode, err
}

func (d *modeReporter) Abilities() workload.Abilities {
	return workload.Abilities{Current: d.current, Decisions: d.latest}
}

func (d *modeReporter) current(context.Context) (api.ModeState, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mode, d.err
}

func (d *modeReporter) latest(_ context.Context, limit int) ([]api.RoutingDecision, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.decisions[:min(limit, len(d.decisions))], d.err
}

// withModeReporter gives a booth the driver d, in kv.
func withModeReporter(d *modeReporter) func(*options) {
	return func(o *options) {
		d.script, d.mode = o.Driver.(*script), kv
		d.offers = append(d.offers, eagle)
		o.Driver = d
	}
}

// A run that starts after the mode was detected is in one step from the beginning, also where the cluster answers late.
func TestDetectedModeSplitsNoStart(t *testing.T) {
	d := &modeReporter{}
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		pass(2 * time.Second)
		d.set(eagle, errors.New("starting"))
		go func() {
			wait.Advance(time.Second)
			d.set(eagle, nil)
		}()
		b.lane.DetectMode(t.Context())
		b.start(3)
		first := b.lane.State().Step
		pass(30 * time.Second)
		state := b.lane.State()
		assert.Equal(t, eagle, state.InMode())
		assert.Equal(t, first.ID, state.Step.ID)
		assert.Positive(t, state.Step.Counted)

		d.set(kv, errors.New("restarting"))
		began := time.Now()
		b.lane.DetectMode(t.Context())
		assert.Equal(t, detectWithin, time.Since(began))
	}, withModeReporter(d))
}

// A lane adopts the mode of a cluster that another client has switched, in a new step, and shows it everywhere.
func TestClusterIsFollowed(t *testing.T) {
	d := &modeReporter{}
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(3)
		pass(70 * time.Second)
		before := b.lane.State()
		require.Contains(t, b.rows(), level{3, api.ModeKV})

		d.set(eagle, nil)
		pass(followEvery)
		state := b.lane.State()
		assert.Equal(t, eagle, b.mode())
		assert.Equal(t, api.PhaseRunning, state.Phase)
		assert.Equal(t, before.Step.ID+1, state.Step.ID)
		assert.NotNil(t, state.Step.Settled, "as many are in progress as before")
		assert.True(t, state.Settling)
		assert.Equal(t, []api.ModeState{eagle}, b.modeChanges())
		b.shows(api.SpeculationEagle3)

		d.set(api.ModeState{}, errors.New("restarting"))
		pass(10 * time.Second)
		assert.Equal(t, eagle, b.mode(), "an unknown mode changes nothing")
		assert.Equal(t, state.Step.ID, b.lane.State().Step.ID)
		b.stop()
		b.expectEvents("start ann: 3 conversations, KV-aware",
			"mode_change cluster: KV-aware to KV-aware with EAGLE-3: the cluster is in that mode", "stop ann: stopped")
		for _, turn := range b.store.allTurns() {
			want := api.SpeculationOff
			if turn.Step > before.Step.ID {
				want = api.SpeculationEagle3
			}
			assert.Equal(t, want, turn.Speculation)
		}
	}, withModeReporter(d))
}

// shows expects a speculation in the snapshot, the status, the differences from this target's rows without speculation,
// and the metrics.
func (b *booth) shows(want api.Speculation) {
	b.t.Helper()
	snapshot, status := b.snapshot(), b.view.Status().Lanes[0]
	assert.Equal(b.t, want, snapshot.State.Speculation)
	assert.Equal(b.t, want, snapshot.Target.Deployment.Speculation)
	assert.Equal(b.t, want, status.State.Speculation)
	assert.Equal(b.t, want, status.Target.Deployment.Speculation)
	different := api.Difference{Field: "speculation", Live: string(want), Baseline: string(api.SpeculationOff)}
	assert.Equal(b.t, want != api.SpeculationOff, slices.Contains(snapshot.Baseline.Differences, different))
	assert.Contains(b.t, b.scraped(), info(api.ModeKV, want))
}

// If a failed change has left the cluster in another mode, the lane adopts that mode and removes the failure.
func TestFailedChangeIsFollowed(t *testing.T) {
	d := &modeReporter{}
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		b.setMode(roundRobin)
		call := d.called(t)
		d.set(roundRobin, nil)
		pass(5 * time.Second)
		assert.Equal(t, kv, b.mode(), "not before the driver is done")
		call.answer(false, errDriver)
		b.waitPhase(api.PhaseRunning)
		require.True(t, b.lane.State().ModeChange.Failed)
		pass(followEvery)
		assert.Equal(t, roundRobin, b.mode())
		assert.Nil(t, b.lane.State().ModeChange)
	}, withModeReporter(d))
}

// A stopped lane adopts the cluster's mode, too. A draining one begins no step.
func TestFollowedWhileNotRunning(t *testing.T) {
	d := &modeReporter{}
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		d.set(eagle, nil)
		pass(followEvery)
		assert.Equal(t, eagle, b.mode())
		assert.Zero(t, b.lane.State().Step.ID)

		f.set(func(f *fake) { f.words = 200 })
		b.start(2)
		pass(time.Second)
		b.drain()
		d.set(kv, nil)
		pass(followEvery)
		assert.Equal(t, kv, b.mode())
		state := b.lane.State()
		assert.Equal(t, api.PhaseDraining, state.Phase)
		assert.EqualValues(t, 1, state.Step.ID)
		pass(time.Minute)
		assert.Equal(t, api.PhaseStopped, b.lane.State().Phase)
	}, withModeReporter(d))
}

// A mode that the cluster reported before a change of the lane is ignored.
func TestLateReportIsNotFollowed(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.lane.adopt(roundRobin, eagle, api.ModeFromDriver, "")
		assert.Equal(t, kv, b.mode(), "the lane has left the mode of that moment")
		b.setMode(roundRobin)
		call := b.driver.called(t)
		b.lane.adopt(kv, eagle, api.ModeFromDriver, "")
		assert.Equal(t, kv, b.mode(), "a change is in progress")
		call.answer(true, nil)
		b.waitPhase(api.PhaseStopped)
		assert.Equal(t, roundRobin, b.mode())
		assert.Equal(t, []api.ModeState{roundRobin}, b.modeChanges())
	})
}

// Decisions and errors are passed on from the driver.
func TestDecisionsComeFromTheDriver(t *testing.T) {
	d := &modeReporter{decisions: []api.RoutingDecision{{RequestID: "main-2"}, {RequestID: "main-1"}}}
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		list, err := b.lane.Decisions(t.Context(), 1)
		require.NoError(t, err)
		assert.Equal(t, api.DecisionList{Decisions: d.decisions[:1], Source: "script"}, list)
		d.set(kv, api.ErrUnavailable)
		_, err = b.lane.Decisions(t.Context(), 1)
		require.ErrorIs(t, err, api.ErrUnavailable)
	}, withModeReporter(d))
}
