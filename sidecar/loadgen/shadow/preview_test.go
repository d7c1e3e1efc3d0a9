package shadow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/arrival"
	"kvbooth/sidecar/sim/traffic"
)

// preview previews five minutes of groups with a shared prefix, at random times, on eight workers.
func preview(t *testing.T, s api.TrafficShape, workerBlocks int) (p api.TrafficPreview, hits map[string]float64) {
	t.Helper()
	source, err := traffic.NewShape(s, 1, 0)
	require.NoError(t, err)
	const length = 5 * time.Minute
	p.BlockTokens = 16
	schedule := arrival.Schedule{Gaps: api.ArrivalsPoisson, Seed: 1}
	require.NoError(t, Preview(t.Context(), &p, 8, workerBlocks, func() Planned {
		return traffic.NewPlan(traffic.PlanOptions{
			Source: source, Load: arrival.NewOpen(0, 0, arrival.Ramp{To: 20}, schedule),
			BlockTokens: 16, Until: length, FirstToken: AssumedService.FirstToken, PerToken: AssumedService.PerToken,
		})
	}))
	hits = map[string]float64{}
	for _, policy := range p.Caches.Policies {
		hits[policy.Policy] = *policy.Figures.HitRatio
	}
	return p, hits
}

// TestPreviewOfGroups shows what routers could have of groups with a shared prefix, whose working set is twice as large
// as all caches, as large, and half as large.
func TestPreviewOfGroups(t *testing.T) {
	const workingSet = 600 * 62 // full blocks of 1,000 tokens
	groups := api.TrafficShape{
		Preset: api.ShapePrefix, Groups: 600, PrefixTokens: 1000, SuffixTokens: 100, AnswerTokens: 100,
	}
	before := 0.
	for _, size := range []float64{.5, 1, 2} {
		p, hits := preview(t, groups, int(size*workingSet/8))
		t.Logf("caches of %.1f × the working set: unlimited %.1f %%, one LRU cache %.1f %%; %v", size, 100**p.HitRatio,
			100**p.Caches.HitRatio, hits)
		assert.Equal(t, workingSet, p.ReusedBlocks)
		assert.Greater(t, *p.Caches.HitRatio, before)
		before = *p.Caches.HitRatio
		assert.Greater(t, hits["kv"], hits["round_robin"])
		assert.Greater(t, hits["best_placement"], hits["least_loaded"])
		assert.GreaterOrEqual(t, hits["best"]+.005, hits["best_placement"])
		assert.InDelta(t, *p.Caches.HitRatio, hits["best"], .02)
	}
}

// TestPreviewCounts checks distributions and arrivals of a preview.
func TestPreviewCounts(t *testing.T) {
	p, _ := preview(t, api.TrafficShape{Preset: api.ShapePrefix, Turns: 2, PrefixTokens: 200}, 10_000)
	assert.Equal(t, 300., p.Seconds)
	assert.Len(t, p.Bins, previewBins)
	sum := 0
	for _, n := range p.Bins[1:] {
		assert.InDelta(t, 2*100, n, 100)
	}
	for _, n := range p.Bins {
		sum += n
	}
	assert.Equal(t, p.Requests, sum)
	assert.Equal(t, 2, p.Turns.P50)
	assert.Equal(t, 256, p.Output.P95)
	assert.Equal(t, api.TokenBin{UpTo: 256, N: p.Requests}, p.Output.Bins[8])
	assert.Equal(t, 200+128, p.Input.P50)
	assert.Equal(t, 200+2*128+256, p.Input.Max)
}

// TestBestPlacementKeepsLoadsEven checks that requests leave the worker that holds their prompts once it is too busy.
func TestBestPlacementKeepsLoadsEven(t *testing.T) {
	o := DefaultOptions(16)
	o.Workers, o.Capacity, o.Policies = SyntheticWorkers(4), 10_000, []Policy{{Name: "p", Kind: BestPlacement}}
	s, err := New(o)
	require.NoError(t, err)
	prompt := []uint64{1, 2, 3, 4}
	begin := func() int {
		f := s.Begin(s.now, Request{Blocks: prompt, PromptTokens: 65})
		s.First(s.now+1, f)
		for i, slot := range s.worlds[len(s.worlds)-1].slots {
			if f.parts[len(f.parts)-1].slot == slot {
				return i
			}
		}
		return -1
	}
	free := sim.MostInflight(0, 4)
	counts := [4]int{}
	for range free {
		counts[begin()]++
	}
	assert.Equal(t, [4]int{free}, counts, "the worker that holds the prompt")
	for range 36 {
		counts[begin()]++
	}
	for _, n := range counts {
		assert.InDelta(t, 10, n, 3)
	}
	assert.Equal(t, 13, sim.MostInflight(39, 4))
}
