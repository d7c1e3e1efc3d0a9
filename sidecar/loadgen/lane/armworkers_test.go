package lane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

// redirectedFake is a client at one of several arms.
type redirectedFake struct {
	*fake
	arm string
}

func (f *redirectedFake) Endpoint() string { return f.Root() }

func (f *redirectedFake) InUse() string { return f.arm }

// The workers of an arm are those that its turns name. Arms that share one share all. Names of another kind change
// nothing.
func TestWorkersOfAnArm(t *testing.T) {
	all := api.Cluster{
		Available: true, InflightOfWorkers: true, Inflight: new(30.),
		Queued: new(25.), QueuedRouter: new(1.), QueuedEngines: new(24.),
	}
	for _, w := range []struct {
		id                string
		inflight, waiting float64
	}{{"a1", 5, 2}, {"a2", 7, 4}, {"b1", 0, 8}, {"b2", 18, 10}} {
		all.Workers = append(all.Workers,
			api.Worker{ID: w.id, Name: w.id, Inflight: new(w.inflight), Waiting: new(w.waiting)})
	}
	all.Skew, all.InflightMax = new(2.4), new(18.)
	all.Engines = &api.EngineTotals{Energy: &api.EnergyTotals{Joules: 7}}
	client := &redirectedFake{fake: newFake()}
	now := time.Now()
	l := &Lane{meter: stats.NewMeter(now), record: stats.NewRecorder(now, api.SLO{}), opts: Options{
		Client: client, Cluster: func() api.Cluster { return all },
		SharesMetrics: func(arm string) bool { return arm != "own pages" },
	}}
	for _, turn := range [][2]string{
		{"a", "a1"},
		{"a", "a2"},
		{"again a", "a2"},
		{"b", "b2"},
		{"b", ""},
		{"other names", "10.0.0.1"},
		{"own pages", "a1"},
	} {
		l.armWorkers.add(turn[0], turn[1])
	}
	for arm, want := range map[string]struct {
		workers                int
		inflight, skew, queued float64
	}{
		"a": {2, 12, 7. / 6, 7}, "again a": {2, 12, 7. / 6, 7}, "b": {1, 18, 1, 11},
		"other names": {4, 30, 2.4, 25}, "own pages": {4, 30, 2.4, 25}, "no turn yet": {4, 30, 2.4, 25},
	} {
		client.arm = arm
		c := l.Cluster()
		require.Len(t, c.Workers, want.workers, arm)
		require.InDelta(t, want.inflight, *c.Inflight, 1e-9, arm)
		require.InDelta(t, want.skew, *c.Skew, 1e-9, arm)
		require.InDelta(t, want.queued, *c.Queued, 1e-9, arm)
		require.Equal(t, want.workers == 4, c.Engines.Energy != nil, "%s: the energy is that of all workers", arm)
	}
	require.Len(t, all.Workers, 4, "the reading is not changed")
}

// Events of the end are stored once the lane has settled, so that a summary has them.
func TestSettleStoresEvents(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(2)
		pass(20 * time.Second)
		b.stop()
		b.lane.Settle(t.Context())
		events := b.store.eventLines()
		require.Contains(t, events[len(events)-1], string(api.EventStop), "the latest event")
	})
}
