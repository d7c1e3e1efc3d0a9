package sweep

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// Few warm openings are tolerated.
func TestWarmReason(t *testing.T) {
	assert.Empty(t, warmReason(nil, "nonce"))
	assert.Empty(t, warmReason(&api.SweepFirstTurns{Openings: 40, Warm: 2}, "nonce"))
	assert.Contains(t, warmReason(&api.SweepFirstTurns{Openings: 40, Warm: 3, Cached: 1664}, "nonce"),
		"on 3 of 40 openings found up to 1664 cached tokens")
}

func TestDoubtsOfAnArm(t *testing.T) {
	two := func(change func(*api.Cluster)) api.Cluster {
		c := api.Cluster{Available: true, Workers: make([]api.Worker, 2)}
		change(&c)
		return c
	}
	none := func(*api.Cluster) {}
	const one = "all turns went to one worker of 2"
	for name, row := range map[string]struct {
		mode   api.Mode
		served map[string]int
		change func(*api.Cluster)
		want   []string
	}{
		"one worker":            {api.ModeUnknown, map[string]int{"a": 20}, none, []string{one}},
		"one worker, few turns": {api.ModeUnknown, map[string]int{"a": 19}, none, nil},
		"both workers":          {api.ModeUnknown, map[string]int{"a": 19, "b": 1}, none, nil},
		"workers are not known": {api.ModeUnknown, map[string]int{}, none, nil},
		"one worker of one": {api.ModeKV, map[string]int{"a": 90}, func(c *api.Cluster) {
			c.Workers = c.Workers[:1]
		}, nil},
		"the cluster is not known": {api.ModeKV, map[string]int{"a": 90}, func(c *api.Cluster) { *c = api.Cluster{} }, nil},
		"no events": {api.ModeKV, nil, func(c *api.Cluster) {
			c.KV.PredictedRatio, c.KV.HitRatio = new(0.), new(.4)
		}, []string{"the router predicted a hit rate of 0 while the caches had hits: it receives no KV events"}},
		"no hits": {api.ModeKV, nil, func(c *api.Cluster) { c.KV.PredictedRatio, c.KV.HitRatio = new(0.), new(.01) }, nil},
		"no KV router": {api.ModeKV, nil, func(c *api.Cluster) { c.RoutesByKV = new(false) }, []string{
			"by its metrics the router does not choose workers by their caches",
		}},
		"no KV router claimed": {api.ModeRoundRobin, nil, func(c *api.Cluster) { c.RoutesByKV = new(false) }, nil},
	} {
		assert.Equal(t, row.want, doubts(row.mode, row.served, two(row.change)), name)
	}
}

// A span names an arm whose streams come in bursts. A few late reads do not count, and failed turns do not either.
func TestBurstsAreNamed(t *testing.T) {
	of := func(buffered, smooth, failed int) *proof.Recording {
		var all []workload.Outcome
		for range buffered {
			all = append(all, workload.Outcome{Status: api.TurnOK, InBursts: true})
		}
		for range smooth {
			all = append(all, workload.Outcome{Status: api.TurnOK})
		}
		for range failed {
			all = append(all, workload.Outcome{Status: api.TurnError, InBursts: true})
		}
		return &proof.Recording{Turns: all}
	}
	late, quick := lagOf(600, 400), lagOf(900, 100)
	for _, lag := range []*stats.Lag{nil, quick} {
		assert.Contains(t, burstWarning(of(40, 60, 5), lag), "answers came in bursts, so the server or a proxy holds its")
		assert.Contains(t, burstWarning(of(40, 60, 5), lag), ": 40 of 100")
	}
	assert.Contains(t, burstWarning(of(40, 60, 5), late), "the load generator itself was late")
	assert.Contains(t, burstWarning(of(100, 0, 0), late), "the server or a proxy holds", "more than the lag explains")
	for _, few := range []*proof.Recording{of(2, 2, 0), of(4, 96, 0), of(0, 10, 30), {}} {
		assert.Empty(t, burstWarning(few, late))
	}
}

// lagOf returns the lag of a load generator that was late for many of its samples.
func lagOf(punctual, late int) *stats.Lag {
	var l stats.Lag
	for range punctual {
		l.Timer.Add(time.Millisecond)
	}
	for range late {
		l.Timer.Add(30 * time.Millisecond)
	}
	return &l
}

// A worker that the cluster lists without an id cannot be matched with the turns, and does not count.
func TestTurnsByWorker(t *testing.T) {
	c := api.Cluster{Workers: []api.Worker{{ID: "a"}, {ID: "b"}, {Name: "pod"}}}
	assert.Equal(t, map[string]int{"a": 3, "b": 0}, turnsByWorker(map[string]int{"a": 3}, c))
	assert.Equal(t, map[string]int{"x": 3}, turnsByWorker(map[string]int{"x": 3}, c), "the answers have other names")
}
