package lane

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

// byHand is a lane of which nobody has told the mode, with the manual driver.
func byHand(o *options) {
	o.Driver, o.Mode = cluster.NewManual([]api.ModeState{kv, roundRobin}), unknown
}

// says is an operator's word for the mode in force.
func (b *booth) says(m api.Mode) error {
	b.t.Helper()
	_, err := b.lane.SetMode(b.t.Context(), ann, api.ModeRequest{Mode: m, InForce: true})
	return err
}

// A mode that nobody has told is unknown in all that is shown and kept, and nothing
// measured under it is called better or worse.
func TestModeThatNobodyTold(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(20)
		pass(70 * time.Second)
		live := b.snapshot()
		assert.Equal(t, api.ModeUnknown, live.State.Mode)
		assert.Empty(t, live.State.ModeFrom)
		require.False(t, live.State.Settling)
		assert.Equal(t, "the routing mode of this server is unknown", live.Baseline.Withheld)
		require.NotEmpty(t, live.Baseline.Columns)
		for _, c := range live.Baseline.Columns {
			assert.Nil(t, c.TTFT.P95.Improvement)
		}
		registry := prometheus.NewRegistry()
		registry.MustRegister(b.lane.Collector())
		assert.Contains(t, scrape(t, registry), "loadgen_info mode=unknown,model=test-model,speculation=off,target=http://gpu.example:8000,version=1.2.3")
		b.stop()
		b.events("start ann: 20 conversations, Mode unknown", "stop ann: stopped")
		assert.Contains(t, b.rows(), level{20, api.ModeUnknown})
		for _, turn := range b.store.allTurns() {
			assert.Equal(t, api.ModeUnknown, turn.Mode)
		}
	}, byHand)
}

// The operator's word is taken once, in a new step and without any change of the
// cluster; that the operator does not know either is a word, too.
func TestOperatorSaysTheMode(t *testing.T) {
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
		b.stop()
		b.events("start ann: 2 conversations, Mode unknown",
			"mode_change ann: Mode unknown: reported by the operator",
			"mode_change ann: Mode unknown to Round-robin: reported by the operator",
			"stop ann: stopped")
	}, byHand)
}

// The word is refused where it cannot be true, and where nobody needs it.
func TestOperatorsWordRefused(t *testing.T) {
	told, telling := clusterThatTells()
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		_ = refuses(t, b.says(api.ModeLeastLoaded), "mode") // not on offer
		told.Store(&api.Cluster{Available: true, RoutesByKV: new(false)})
		assert.Contains(t, refuses(t, b.says(api.ModeKV), "mode").Allowed, "the router's metrics show no KV-aware routing")
		require.NoError(t, b.says(api.ModeRoundRobin))
		_, err := b.lane.SetMode(t.Context(), ann, api.ModeRequest{Mode: api.ModeKV, InForce: true, Confirm: true})
		_ = refuses(t, err, "in_force")
		_ = b.setMode(kv)
		require.ErrorIs(t, b.says(api.ModeKV), api.ErrConflict, "a change waits for the operator")
	}, byHand, telling)
}

// A driver that knows the mode takes nobody's word.
func TestDriverKnowsTheMode(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		assert.Equal(t, api.ModeFromDriver, b.lane.State().ModeFrom)
		assert.Contains(t, refuses(t, b.says(api.ModeRoundRobin), "in_force").Allowed, "the driver script detects the mode")
	})
}

// A router whose own metrics show that it predicts hits routes by KV caches. That it
// does not says no more than that: the mode is unknown again, not round-robin. An
// operator's word stands.
func TestRoutersMetricsTellTheMode(t *testing.T) {
	told, telling := clusterThatTells()
	routes := func(byKV *bool) {
		told.Store(&api.Cluster{Available: true, RoutesByKV: byKV})
		pass(2 * time.Second)
	}
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		routes(new(false))
		assert.Equal(t, unknown, b.mode())
		routes(new(true))
		assert.Equal(t, kv, b.mode())
		assert.Equal(t, api.ModeFromMetrics, b.lane.State().ModeFrom)
		routes(nil)
		assert.Equal(t, kv, b.mode(), "no requests tell nothing")
		routes(new(false))
		assert.Equal(t, unknown, b.mode())
		assert.Empty(t, b.lane.State().ModeFrom)
		require.NoError(t, b.says(api.ModeRoundRobin))
		routes(new(true))
		assert.Equal(t, roundRobin, b.mode(), "the operator has said it")
		b.stop()
		b.events("start ann: 2 conversations, Mode unknown",
			"mode_change cluster: Mode unknown to KV-aware: according to the router's own metrics",
			"mode_change cluster: KV-aware to Mode unknown: the router's metrics show no KV-aware routing",
			"mode_change ann: Mode unknown to Round-robin: reported by the operator", "stop ann: stopped")
	}, byHand, telling)
}
