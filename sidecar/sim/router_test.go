package sim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// routing routes and keeps what was routed in progress: nothing ever arrives,
// because time stands still.
func routing(t *testing.T, change ...func(*Options)) *Cluster {
	t.Helper()
	return start(t, steady(), change...)
}

// The cost of Dynamo's router, by hand: 320 tokens are ten blocks, of which worker
// 0 holds six and has 100 tokens of another request to prefill.
func TestCost(t *testing.T) {
	c := routing(t, func(o *Options) { o.OverlapWeight = 2 })
	prompt := []text{{1, 320}}
	blocks := c.router.path(textRequest(32, prompt, text{2, 1}).Blocks)
	c.router.stored(0, blocks[:6])
	other := textRequest(32, []text{{9, 100}}, text{2, 1})
	other.Instance = c.workers[0].id
	busy, _ := sendRequest(t, c, other)
	assert.Equal(t, 3, busy.decision.Worker().DecodeBlocks, "full blocks count")

	r, _ := send(t, c, 500, prompt...)
	near := r.decision.Candidates[0]
	assert.Equal(t, Candidate{
		Worker: c.workers[0].id, OverlapBlocks: 6, Requests: 1,
		PrefillTokens: 100 + 320 - 6*32,
		DecodeBlocks:  3 + 10,
		Cost:          2*(100+320-6*32)/32.0 + 13,
	}, near)
	far := r.decision.Candidates[1]
	assert.Equal(t, 2*320/32.0+10, far.Cost)
	assert.Zero(t, r.decision.Chosen, "27.25 against 30")
	assert.InDelta(t, .6, r.decision.PredictedHit(), 1e-9)

	again, _ := send(t, c, 500, prompt...)
	assert.Equal(t, 13, again.decision.Candidates[0].DecodeBlocks, "a block that two requests share counts once")
	assert.Equal(t, 100+2*(320-6*32), again.decision.Candidates[0].PrefillTokens)
}

// A cached prefix counts from its beginning only.
func TestOverlapIsAPrefix(t *testing.T) {
	c := routing(t)
	blocks := c.router.path(textRequest(32, []text{{1, 320}}, text{2, 1}).Blocks)
	c.router.stored(0, blocks[1:])
	c.router.stored(1, blocks)
	c.router.stored(2, blocks)
	c.router.removed(2, blocks[4:5])
	r, _ := send(t, c, 1, text{1, 320})
	var overlaps []int
	for _, candidate := range r.decision.Candidates {
		overlaps = append(overlaps, candidate.OverlapBlocks)
	}
	assert.Equal(t, []int{0, 10, 4}, overlaps)
	assert.Equal(t, 1, r.decision.Chosen)
}

// The account is the router's own: prefill goes at the first token, the rest at
// the end, and tokens of the answer never count.
func TestBookkeeping(t *testing.T) {
	c := routing(t, func(o *Options) { o.Profile.Workers = 1 })
	r, _ := send(t, c, 100, text{1, 320})
	account := func() [3]int {
		w := c.Workers()[0]
		return [3]int{w.Inflight, w.ActivePrefillTokens, w.ActiveDecodeBlocks}
	}
	assert.Equal(t, [3]int{1, 320, 10}, account())
	for r.first == nil {
		assert.Equal(t, [3]int{1, 320, 10}, account())
		at, _ := c.Next()
		c.Advance(at)
	}
	for r.end == nil {
		assert.Equal(t, [3]int{1, 0, 10}, account())
		at, _ := c.Next()
		c.Advance(at)
	}
	assert.Equal(t, [3]int{}, account())
}

// What kv could have had, and what it took.
func TestRouterStats(t *testing.T) {
	c := routing(t, func(o *Options) { o.OverlapWeight = 0 })
	prompt := []text{{1, 320}}
	blocks := c.router.path(textRequest(32, prompt, text{2, 1}).Blocks)
	c.router.stored(0, blocks)
	c.router.stored(1, blocks[:4])
	first := textRequest(32, []text{{9, 640}}, text{2, 1})
	first.Instance = c.workers[0].id
	sendRequest(t, c, first)
	first.Instance = c.workers[2].id
	sendRequest(t, c, first)
	r, _ := send(t, c, 1, prompt...)
	assert.Equal(t, 1, r.decision.Chosen, "by load alone")
	assert.Equal(t, 6, r.decision.OverlapBlocksLost())
	assert.Equal(t, RouterStats{Requests: 3, BestCachedTokens: 320, SelectedCachedTokens: 128, NonMaxOverlapSelections: 1, OverlapBlocksLost: 6}, c.RouterStats())
}

// shares is how often each worker is chosen for new prompts while nothing ends.
func shares(t *testing.T, n int, c *Cluster) []float64 {
	t.Helper()
	count := make([]float64, len(c.workers))
	for i := range n {
		r, j := send(t, c, 1, text{uint64(i), 320})
		c.Cancel(j) // so that the next one finds the same load
		count[r.decision.Worker().index] += 1 / float64(n)
	}
	return count
}

// Of equal costs any may win.
func TestTies(t *testing.T) {
	for _, mode := range []api.Mode{api.ModeKV, api.ModeLeastLoaded} {
		for _, share := range shares(t, 3000, routing(t, func(o *Options) { o.Mode = mode })) {
			assert.InDelta(t, 1.0/3, share, .05, mode)
		}
	}
}

// Dynamo's softmax: with costs of 20, 20 and 30 blocks and T = .5, the third has a
// weight of exp(−1/.5) against 1 each.
func TestTemperature(t *testing.T) {
	c := routing(t, func(o *Options) { o.Temperature = .5 })
	q := textRequest(32, []text{{1 << 40, 160}}, text{2, 1})
	q.Instance = c.workers[2].id
	sendRequest(t, c, q)
	got := shares(t, 5000, c)
	third := math.Exp(-2) / (2 + math.Exp(-2))
	assert.InDelta(t, third, got[2], .02)
	assert.InDelta(t, (1-third)/2, got[0], .03)

	even := shares(t, 3000, routing(t, func(o *Options) { o.Temperature = .5 }))
	assert.InDelta(t, 1.0/3, even[1], .05, "equal costs")
}

func TestRoundRobin(t *testing.T) {
	c := routing(t, func(o *Options) { o.Mode = api.ModeRoundRobin })
	for i := range 7 {
		r, _ := send(t, c, 1, text{1, 320})
		assert.Equal(t, i%3, r.decision.Chosen)
	}
}

// By the number of requests, whatever their size.
func TestLeastLoaded(t *testing.T) {
	c := routing(t, func(o *Options) { o.Mode = api.ModeLeastLoaded })
	for i := range 9 {
		send(t, c, 1, text{uint64(i), 32 + 3000*(i%2)})
	}
	for _, w := range c.Workers() {
		assert.Equal(t, 3, w.Inflight)
	}
}

// The last thousand decisions are kept, in order.
func TestDecisions(t *testing.T) {
	c := routing(t)
	for i := range keptDecisions + 10 {
		q := textRequest(32, []text{{uint64(i), 40}}, text{2, 1})
		_, j := sendRequest(t, c, q)
		if i == 9 {
			assert.Len(t, c.Decisions(), 10)
		}
		c.Cancel(j)
		c.Advance(c.Now() + 1)
	}
	kept := c.Decisions()
	require.Len(t, kept, keptDecisions)
	for i, d := range kept {
		assert.EqualValues(t, i+10, d.At)
	}
}
