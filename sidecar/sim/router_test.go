package sim

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// routing returns a cluster whose time does not advance, so that all requests stay in progress.
func routing(t *testing.T, change ...func(*Options)) *Cluster {
	t.Helper()
	return start(t, steady(), change...)
}

// TestCostByFormula computes the cost of Dynamo's router by hand: 320 tokens are ten blocks. Worker 0 holds six of
// them and has 100 tokens of another request to prefill.
func TestCostByFormula(t *testing.T) {
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
		Worker: c.workers[0].id, OverlapBlocks: 6, Requests: 1, PrefillTokens: 100 + 320 - 6*32, DecodeBlocks: 3 + 10,
		Cost: 2*(100+320-6*32)/32.0 + 13,
	}, near)
	far := r.decision.Candidates[1]
	assert.Equal(t, 2*320/32.0+10, far.Cost)
	assert.Zero(t, r.decision.Chosen, "27.25 against 30")
	assert.InDelta(t, .6, r.decision.PredictedHit(), 1e-9)

	again, _ := send(t, c, 500, prompt...)
	assert.Equal(t, 13, again.decision.Candidates[0].DecodeBlocks, "blocks that two requests share count once")
	assert.Equal(t, 100+2*(320-6*32), again.decision.Candidates[0].PrefillTokens)
}

func TestOverlapCountsPrefixOnly(t *testing.T) {
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

// TestRouterAccountFollowsRequest checks that the prefill is removed at the first token and the rest at the end, and
// that tokens of the answer do not count.
func TestRouterAccountFollowsRequest(t *testing.T) {
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

func TestRouterStatsCountLostOverlap(t *testing.T) {
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
	assert.Equal(t, 1, r.decision.Chosen, "with overlap weight 0, the load alone decides")
	assert.Equal(t, 6, r.decision.OverlapBlocksLost())
	want := RouterStats{
		Requests: 3, BestCachedTokens: 320, SelectedCachedTokens: 128, NonMaxOverlapSelections: 1, OverlapBlocksLost: 6,
	}
	assert.Equal(t, want, c.RouterStats())
}

// shares returns how often each worker is chosen for new prompts under constant load.
func shares(t *testing.T, n int, c *Cluster) []float64 {
	t.Helper()
	count := make([]float64, len(c.workers))
	for i := range n {
		r, j := send(t, c, 1, text{uint64(i), 320})
		c.Cancel(j) // restores the load
		count[r.decision.Worker().index] += 1 / float64(n)
	}
	return count
}

func TestTiesAreBrokenAtRandom(t *testing.T) {
	for _, mode := range []api.Mode{api.ModeKV, api.ModeLeastLoaded} {
		for _, share := range shares(t, 3000, routing(t, func(o *Options) { o.Mode = mode })) {
			assert.InDelta(t, 1.0/3, share, .05, mode)
		}
	}
}

// TestTemperatureWeighsCosts checks Dynamo's softmax: with costs of 20, 20 and 30 blocks and T = 0.5, the third worker
// has a weight of exp(−1/.5), the others of 1.
func TestTemperatureWeighsCosts(t *testing.T) {
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

func TestRoundRobinTakesTurns(t *testing.T) {
	c := routing(t, func(o *Options) { o.Mode = api.ModeRoundRobin })
	for i := range 7 {
		r, _ := send(t, c, 1, text{1, 320})
		assert.Equal(t, i%3, r.decision.Chosen)
	}
}

func TestLeastLoadedCountsRequests(t *testing.T) {
	c := routing(t, func(o *Options) { o.Mode = api.ModeLeastLoaded })
	for i := range 9 {
		send(t, c, 1, text{uint64(i), 32 + 3000*(i%2)})
	}
	for _, w := range c.Workers() {
		assert.Equal(t, 3, w.Inflight)
	}
}

func TestDecisionsKeepLastThousand(t *testing.T) {
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

// switched returns a cluster of two workers with changed router switches. A request of 320 tokens, ten blocks, is in
// progress on worker 0, which holds the first four of them.
func switched(t *testing.T, change func(*RouterSwitches)) *Cluster {
	t.Helper()
	c := routing(t, func(o *Options) {
		o.Profile.Workers = 2
		change(&o.Router)
	})
	q := textRequest(32, []text{{1, 320}}, text{2, 100})
	c.router.stored(0, c.router.path(q.Blocks)[:4])
	q.Instance = c.workers[0].id
	sendRequest(t, c, q)
	return c
}

// costs returns the workers' costs for another request with the same 320 tokens.
func costs(t *testing.T, c *Cluster) []float64 {
	t.Helper()
	r, _ := send(t, c, 100, text{1, 320})
	return []float64{r.decision.Candidates[0].Cost, r.decision.Candidates[1].Cost}
}

// TestRouterSwitchesChangeCosts checks each switch of Dynamo's router by its formula. Worker 0 has six blocks to
// prefill for the request in progress, and six for the next one.
func TestRouterSwitchesChangeCosts(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*RouterSwitches)
		want   []float64
	}{
		"default": {func(*RouterSwitches) {}, []float64{12 + 10, 10 + 10}},
		"requests weigh seven blocks": {
			func(s *RouterSwitches) { s.DecodeActiveRequestWeight = 7 }, []float64{12 + 10 + 7, 10 + 10},
		},
		"no reuse: shared blocks count": {func(s *RouterSwitches) { s.AssumeKVReuse = false }, []float64{12 + 20, 10 + 10}},
		"no active blocks":              {func(s *RouterSwitches) { s.TrackActiveBlocks = false }, []float64{12, 10}},
		"no prefill":                    {func(s *RouterSwitches) { s.TrackPrefillTokens = false }, []float64{10, 10}},
		"half the credit": {
			func(s *RouterSwitches) { s.OverlapScoreCredit = .5 }, []float64{12 + 2 + 10, 10 + 10},
		},
		"credit decays by 1/(1+2·6/10)": {
			func(s *RouterSwitches) { s.OverlapScoreCreditDecay = 2 }, []float64{12 + 4*(1-1/2.2) + 10, 10 + 10},
		},
		"no prefill, no credit": {
			func(s *RouterSwitches) { s.TrackPrefillTokens, s.OverlapScoreCredit = false, 0 }, []float64{10, 10},
		},
		"answers without tokens yet": {func(s *RouterSwitches) { s.TrackOutputBlocks = true }, []float64{12 + 10, 10 + 10}},
		"no reuse, no active blocks": {
			func(s *RouterSwitches) { s.AssumeKVReuse, s.TrackActiveBlocks = false, false }, []float64{12, 10},
		},
	} {
		assert.InDeltaSlice(t, row.want, costs(t, switched(t, row.change)), 1e-9, name)
	}
}

// TestOutputBlocksCountAsAnswersGrow checks that an answer counts a block once it reaches into it, until its request
// ends, with any other switches.
func TestOutputBlocksCountAsAnswersGrow(t *testing.T) {
	for _, change := range []func(*RouterSwitches){
		func(*RouterSwitches) {}, func(s *RouterSwitches) { s.AssumeKVReuse = false },
		func(s *RouterSwitches) { s.TrackActiveBlocks = false },
	} {
		c := routing(t, func(o *Options) {
			o.Profile.Workers, o.Router.TrackOutputBlocks = 1, true
			change(&o.Router)
		})
		prompt := 0
		if c.router.TrackActiveBlocks {
			prompt = 10
		}
		r, _ := send(t, c, 100, text{1, 330})
		for r.end == nil {
			tokens := sum(r.n)
			want := prompt + (330+tokens+31)/32 - 11
			assert.Equal(t, want, c.Workers()[0].ActiveDecodeBlocks, "after %d tokens", tokens)
			at, _ := c.Next()
			c.Advance(at)
		}
		assert.Zero(t, c.Workers()[0].ActiveDecodeBlocks)
	}
}

func TestAccountIsEmptyAfterTrafficWithAnySwitches(t *testing.T) {
	for bits := range 1 << 4 {
		c := start(t, H200(), func(o *Options) {
			o.Profile.KV.Blocks = 600 // causes preemptions
			o.Router = RouterSwitches{
				TrackOutputBlocks: bits&1 != 0, AssumeKVReuse: bits&2 != 0,
				TrackActiveBlocks: bits&4 != 0, TrackPrefillTokens: bits&8 != 0, OverlapScoreCredit: 1,
			}
		})
		for i := range 60 {
			_, j := send(t, c, 400, text{uint64(i % 3), 1000}, text{uint64(i), 200})
			c.Advance(c.Now() + 50*time.Millisecond)
			if i%7 == 0 {
				c.Cancel(j)
			}
		}
		drain(c)
		assertIdle(t, c)
	}
}
