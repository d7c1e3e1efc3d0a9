package sweep

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// Cached tokens of the span's own turns, or of the text before every opening, are no sign of warm caches.
func TestColdness(t *testing.T) {
	first := func(opening int64, sent, token float64, prompt, cached int) firstTurn {
		return firstTurn{opening, sent, token, prompt, cached, true}
	}
	for name, row := range map[string]struct {
		turns  []firstTurn
		tokens int // 0: as recorded
		want   *api.SweepFirstTurns
	}{
		"nothing":                         {},
		"no answer reports cached tokens": {turns: []firstTurn{{opening: 1, token: 2}}},
		"cold, and shared by a later conversation": {
			turns: []firstTurn{first(1, 0, 1, 3900, 0), first(1, 3, 4, 3900, 3840)}, want: &api.SweepFirstTurns{Openings: 1},
		},
		"sent together, the second was computed first": {
			turns: []firstTurn{first(1, 0, 2, 3900, 3840), first(1, .1, 1, 3900, 0)}, want: &api.SweepFirstTurns{Openings: 1},
		},
		"one of those that were sent together was cut short": {
			turns: []firstTurn{first(1, 0, 2, 3900, 3840), {opening: 1, sent: .1, token: math.Inf(1)}},
		},
		"a system prompt in front of every opening": {
			turns: []firstTurn{first(1, 0, 1, 5900, 2048), first(2, 0, 1, 5800, 2048)}, want: &api.SweepFirstTurns{Openings: 2},
		},
		"half of an opening": {
			turns: []firstTurn{first(1, 0, 1, 3900, 1664), first(2, 0, 1, 3900, 0)},
			want:  &api.SweepFirstTurns{Openings: 2, Warm: 1, Cached: 1664},
		},
		"a short opening in one block": {
			turns: []firstTurn{first(1, 0, 1, 250, 64)}, tokens: 200, want: &api.SweepFirstTurns{Openings: 1},
		},
		"a short opening": {
			turns: []firstTurn{first(1, 0, 1, 450, 400)}, tokens: 400,
			want: &api.SweepFirstTurns{Openings: 1, Warm: 1, Cached: 400},
		},
		"a question of a set, behind a system prompt": {turns: []firstTurn{first(1, 0, 1, 1000, 896)}},
		"a tokenizer that counts fewer": {
			turns: []firstTurn{first(1, 0, 1, 3000, 64)}, want: &api.SweepFirstTurns{Openings: 1},
		},
	} {
		tokens := row.tokens
		if tokens == 0 {
			tokens = leastOpening
		}
		assert.Equal(t, row.want, coldness(row.turns, tokens), name)
	}
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

// A worker that the cluster lists without an id cannot be matched with the turns, and does not count.
// A span names an arm whose streams come in bursts. A few late reads do not count, and failed turns do not either.
func TestBurstsAreNamed(t *testing.T) {
	turns := func(buffered, smooth, failed int) (all []proof.Turn) {
		for range buffered {
			all = append(all, proof.Turn{Ended: 1, Buffered: true})
		}
		for range smooth {
			all = append(all, proof.Turn{Ended: 1})
		}
		for range failed {
			all = append(all, proof.Turn{Ended: 1, Failed: true, Buffered: true})
		}
		return all
	}
	assert.Contains(t, burstWarning(turns(40, 60, 5)), "answers came in bursts, so the server or a proxy holds its")
	assert.Contains(t, burstWarning(turns(40, 60, 5)), ": 40 of 100")
	for _, few := range [][]proof.Turn{turns(2, 2, 0), turns(4, 96, 0), turns(0, 10, 30), nil} {
		assert.Empty(t, burstWarning(few))
	}
}

func TestTurnsByWorker(t *testing.T) {
	c := api.Cluster{Workers: []api.Worker{{ID: "a"}, {ID: "b"}, {Name: "pod"}}}
	assert.Equal(t, map[string]int{"a": 3, "b": 0}, turnsByWorker(map[string]int{"a": 3}, c))
	assert.Equal(t, map[string]int{"x": 3}, turnsByWorker(map[string]int{"x": 3}, c), "the answers have other names")
}
