package lane

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
)

var unknown = api.ModeState{Mode: api.ModeUnknown, Speculation: api.SpeculationOff}

// settableCluster returns the state of a cluster, which a test changes, and the option that gives a
// lane this cluster.
func settableCluster() (*atomic.Pointer[api.Cluster], func(*options)) {
	state := &atomic.Pointer[api.Cluster]{}
	state.Store(&api.Cluster{})
	return state, func(o *options) { o.Cluster = func() api.Cluster { return *state.Load() } }
}

// withManualDriver gives a lane the manual driver and an unknown mode.
func withManualDriver(o *options) {
	o.Driver, o.Mode = cluster.NewManual([]api.ModeState{kv, roundRobin}), unknown
}

// declare declares the mode in force as an operator does.
func (b *booth) declare(m api.Mode) error {
	b.t.Helper()
	_, err := b.lane.SetMode(b.t.Context(), ann, api.ModeRequest{Mode: m, InForce: true})
	return err
}

// An unknown mode is unknown in all that is shown and stored, and nothing measured under it is called better or worse.
func TestUnknownModeWithholdsComparison(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		pass(70 * time.Second)
		live := b.snapshot()
		assert.Equal(t, api.ModeUnknown, live.State.Mode)
		assert.Empty(t, live.State.ModeFrom)
		require.False(t, live.State.Settling)
		assert.Equal(t, "the routing mode of this server is unknown", live.Baseline.Withheld)
		assert.Contains(t, b.scraped(), info(api.ModeUnknown, api.SpeculationOff))
		b.stop()
		b.expectEvents("start ann: 2 conversations, Mode unknown", "stop ann: stopped")
		assert.Contains(t, b.rows(), level{2, api.ModeUnknown})
		for _, turn := range b.store.allTurns() {
			assert.Equal(t, api.ModeUnknown, turn.Mode)
		}
	}, withManualDriver)
}

// A declaration of the operator begins a new step and does not change the cluster. The mode may be declared unknown.
func TestOperatorDeclaresTheMode(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(2)
		pass(10 * time.Second)
		step := b.lane.State().Step.ID
		require.NoError(t, b.declare(api.ModeUnknown))
		assert.Equal(t, api.ModeFromOperator, b.lane.State().ModeFrom)
		assert.Equal(t, step, b.lane.State().Step.ID, "nothing has changed")

		require.NoError(t, b.declare(api.ModeRoundRobin))
		state := b.lane.State()
		assert.Equal(t, roundRobin, b.mode())
		assert.Equal(t, api.ModeFromOperator, state.ModeFrom)
		assert.Equal(t, step+1, state.Step.ID)
		assert.Equal(t, api.PhaseRunning, state.Phase)
		assert.Nil(t, state.ModeChange)
		require.NoError(t, b.declare(api.ModeRoundRobin), "again")
		assert.Equal(t, step+1, b.lane.State().Step.ID)
		assert.Equal(t, []api.ModeState{roundRobin}, b.modeChanges())
		assert.Empty(t, opening(t, f.turns()), "the caches stay as they are")
		b.expectEvents("start ann: 2 conversations, Mode unknown",
			"mode_change ann: Mode unknown: reported by the operator",
			"mode_change ann: Mode unknown to Round-robin: reported by the operator")
	}, withManualDriver)
}

// A declaration is refused if it contradicts the metrics, while a change is in progress, and with a driver that
// determines the mode.
func TestDeclarationIsRefused(t *testing.T) {
	clusterState, withCluster := settableCluster()
	t.Run("by hand", func(t *testing.T) {
		virtual(t, func(t *testing.T, b *booth, _ *fake) {
			refuses(t, b.declare(api.ModeLeastLoaded), "mode") // not on offer
			clusterState.Store(&api.Cluster{Available: true, RoutesByKV: new(false)})
			allowed := refuses(t, b.declare(api.ModeKV), "mode")
			assert.Contains(t, allowed, "the router's metrics show no KV-aware routing")
			require.NoError(t, b.declare(api.ModeRoundRobin))
			_, err := b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeKV, InForce: true, Confirm: true})
			refuses(t, err, "in_force")
			b.setMode(kv)
			require.ErrorIs(t, b.declare(api.ModeKV), api.ErrConflict)
		}, withManualDriver, withCluster)
	})
	t.Run("driver", func(t *testing.T) {
		virtual(t, func(t *testing.T, b *booth, _ *fake) {
			assert.Equal(t, api.ModeFromDriver, b.lane.State().ModeFrom)
			allowed := refuses(t, b.declare(api.ModeRoundRobin), "in_force")
			assert.Equal(t, "leave it out: the driver script knows only what it switched to; the request then switches", allowed)
			list, err := b.lane.Decisions(t.Context(), 50)
			require.NoError(t, err)
			assert.EqualValues(t, []api.RoutingDecision{}, list.Decisions)
			assert.Contains(t, list.Message, "this target does not report its decisions")
		})
	})
}

// A router whose metrics show that it predicts hits routes by KV caches. Otherwise its mode is unknown, not
// round-robin. The declaration of an operator takes precedence.
func TestModeFromTheMetricsOfTheRouter(t *testing.T) {
	clusterState, withCluster := settableCluster()
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		routes := func(byKV *bool, want api.ModeState, why string) {
			t.Helper()
			clusterState.Store(&api.Cluster{Available: true, RoutesByKV: byKV})
			pass(2 * time.Second)
			assert.Equal(t, want, b.mode(), why)
		}
		b.start(2)
		routes(new(false), unknown, "")
		step := b.lane.State().Step.ID
		routes(new(true), kv, "")
		assert.Equal(t, step, b.lane.State().Step.ID, "the mode was in force before it was detected")
		assert.Equal(t, api.ModeKV, b.store.lastSteps()[0].Mode)
		assert.Equal(t, api.ModeFromMetrics, b.lane.State().ModeFrom)
		routes(nil, kv, "there were no requests")
		routes(new(false), unknown, "")
		assert.Empty(t, b.lane.State().ModeFrom)
		require.NoError(t, b.declare(api.ModeRoundRobin))
		routes(new(true), roundRobin, "declared by the operator")
		b.expectEvents("start ann: 2 conversations, Mode unknown",
			"mode_change cluster: Mode unknown to KV-aware: according to the router's own metrics",
			"mode_change cluster: KV-aware to Mode unknown: the router's metrics show no KV-aware routing",
			"mode_change ann: Mode unknown to Round-robin: reported by the operator")
	}, withManualDriver, withCluster)
}

// The metrics of a router do not change an arm, which is a way of serving of the user's own: neither one that was
// declared, nor the unknown one into a mode that is no arm.
func TestMetricsOfTheRouterChangeNoArm(t *testing.T) {
	clusterState, withCluster := settableCluster()
	arm := api.ModeState{Arm: "sticky", Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff}
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		clusterState.Store(&api.Cluster{Available: true, RoutesByKV: new(true)})
		pass(2 * time.Second)
		assert.Equal(t, unknown, b.mode())
		b.noError(b.lane.SetMode(t.Context(), ann, api.ModeRequest{Arm: arm.Arm, InForce: true}))
		pass(2 * time.Second)
		assert.Equal(t, arm, b.mode())
		assert.Equal(t, []api.ModeState{arm}, b.modeChanges())
		b.expectEvents("mode_change ann: Mode unknown to sticky: reported by the operator")
	}, withManualDriver, withCluster, func(o *options) { o.Driver = cluster.NewManual([]api.ModeState{arm}) })
}
