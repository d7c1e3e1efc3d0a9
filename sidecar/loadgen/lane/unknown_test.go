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

// clusterThatTells gives a lane a cluster whose state a test changes.
func clusterThatTells() (*atomic.Pointer[api.Cluster], func(*options)) {
	told := &atomic.Pointer[api.Cluster]{}
	told.Store(&api.Cluster{})
	return told, func(o *options) { o.Cluster = func() api.Cluster { return *told.Load() } }
}

// byHand is a lane in an unknown mode, with the manual driver.
func byHand(o *options) {
	o.Driver, o.Mode = cluster.NewManual([]api.ModeState{kv, roundRobin}), unknown
}

// says declares the mode in force as an operator does.
func (b *booth) says(m api.Mode) error {
	b.t.Helper()
	_, err := b.lane.SetMode(b.t.Context(), ann, api.ModeRequest{Mode: m, InForce: true})
	return err
}

// An unknown mode is unknown in all that is shown and stored, and nothing measured under it is called better or worse.
func TestUnknownMode(t *testing.T) {
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
		b.events("start ann: 2 conversations, Mode unknown", "stop ann: stopped")
		assert.Contains(t, b.rows(), level{2, api.ModeUnknown})
		for _, turn := range b.store.allTurns() {
			assert.Equal(t, api.ModeUnknown, turn.Mode)
		}
	}, byHand)
}

// The operator declares the mode in force, in a new step and without a change of the cluster. To declare it as unknown
// is a declaration too.
func TestOperatorDeclaresTheMode(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(2)
		pass(10 * time.Second)
		step := b.lane.State().Step.ID
		require.NoError(t, b.says(api.ModeUnknown))
		assert.Equal(t, api.ModeFromOperator, b.lane.State().ModeFrom)
		assert.Equal(t, step, b.lane.State().Step.ID, "nothing has changed")

		require.NoError(t, b.says(api.ModeRoundRobin))
		state := b.lane.State()
		assert.Equal(t, roundRobin, b.mode())
		assert.Equal(t, api.ModeFromOperator, state.ModeFrom)
		assert.Equal(t, step+1, state.Step.ID)
		assert.Equal(t, api.PhaseRunning, state.Phase)
		assert.Nil(t, state.ModeChange)
		require.NoError(t, b.says(api.ModeRoundRobin), "again")
		assert.Equal(t, step+1, b.lane.State().Step.ID)
		assert.Equal(t, []api.ModeState{roundRobin}, b.told())
		assert.Empty(t, opening(t, f.turns()), "the caches stay as they are")
		b.events("start ann: 2 conversations, Mode unknown",
			"mode_change ann: Mode unknown: reported by the operator",
			"mode_change ann: Mode unknown to Round-robin: reported by the operator")
	}, byHand)
}

// A declaration is refused where it cannot be true, while a change is in progress, and with a driver that knows the
// mode.
func TestDeclarationIsRefused(t *testing.T) {
	told, telling := clusterThatTells()
	t.Run("by hand", func(t *testing.T) {
		virtual(t, func(t *testing.T, b *booth, _ *fake) {
			refuses(t, b.says(api.ModeLeastLoaded), "mode") // not on offer
			told.Store(&api.Cluster{Available: true, RoutesByKV: new(false)})
			allowed := refuses(t, b.says(api.ModeKV), "mode")
			assert.Contains(t, allowed, "the router's metrics show no KV-aware routing")
			require.NoError(t, b.says(api.ModeRoundRobin))
			_, err := b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeKV, InForce: true, Confirm: true})
			refuses(t, err, "in_force")
			b.setMode(kv)
			require.ErrorIs(t, b.says(api.ModeKV), api.ErrConflict)
		}, byHand, telling)
	})
	t.Run("driver", func(t *testing.T) {
		virtual(t, func(t *testing.T, b *booth, _ *fake) {
			assert.Equal(t, api.ModeFromDriver, b.lane.State().ModeFrom)
			assert.Contains(t, refuses(t, b.says(api.ModeRoundRobin), "in_force"), "the driver script detects the mode")
			list, err := b.lane.Decisions(t.Context(), 50)
			require.NoError(t, err)
			assert.Equal(t, []api.RoutingDecision{}, list.Decisions)
			assert.Contains(t, list.Message, "this target does not report its decisions")
		})
	})
}

// A router whose metrics show that it predicts hits routes by KV caches. Without that its mode is unknown, rather than
// round-robin. The declaration of an operator stands.
func TestModeFromTheMetricsOfTheRouter(t *testing.T) {
	told, telling := clusterThatTells()
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		routes := func(byKV *bool, want api.ModeState, why string) {
			t.Helper()
			told.Store(&api.Cluster{Available: true, RoutesByKV: byKV})
			pass(2 * time.Second)
			assert.Equal(t, want, b.mode(), why)
		}
		b.start(2)
		routes(new(false), unknown, "")
		routes(new(true), kv, "")
		assert.Equal(t, api.ModeFromMetrics, b.lane.State().ModeFrom)
		routes(nil, kv, "there were no requests")
		routes(new(false), unknown, "")
		assert.Empty(t, b.lane.State().ModeFrom)
		require.NoError(t, b.says(api.ModeRoundRobin))
		routes(new(true), roundRobin, "declared by the operator")
		b.events("start ann: 2 conversations, Mode unknown",
			"mode_change cluster: Mode unknown to KV-aware: according to the router's own metrics",
			"mode_change cluster: KV-aware to Mode unknown: the router's metrics show no KV-aware routing",
			"mode_change ann: Mode unknown to Round-robin: reported by the operator")
	}, byHand, telling)
}
