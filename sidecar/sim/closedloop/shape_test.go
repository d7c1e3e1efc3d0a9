package closedloop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/traffic"
	"kvbooth/sidecar/trace"
)

// TestShapesHaveTheirPlannedHitRate simulates shapes on one worker whose cache is large enough. Hits agree with those
// of the plan within 2 points.
func TestShapesHaveTheirPlannedHitRate(t *testing.T) {
	for name, w := range map[string]Workload{
		"prefix": {Level: api.AtRate(2), Shape: api.TrafficShape{Preset: api.ShapePrefix, Groups: 40, PrefixTokens: 1000}},
		"chat":   {Level: api.AtRate(.3), Shape: api.TrafficShape{Preset: api.ShapeChat, ContextTokens: 8000}},
		"agent": {
			Level: api.AtConversations(3), Shape: api.TrafficShape{Preset: api.ShapeAgent, ContextTokens: 30_000},
		},
	} {
		t.Run(name, func(t *testing.T) {
			const length = 8 * time.Minute
			recorded := Recorded()
			recorded.Level, recorded.Shape, recorded.Arrivals = w.Level, w.Shape, api.ArrivalsPoisson
			w = recorded
			p := sim.H200()
			p.Workers = 1
			o := sim.DefaultOptions(p)
			l, err := New(o, w)
			require.NoError(t, err)
			longest := 0
			l.OnAsk = func(_ *Turn, q sim.Request) { longest = max(longest, q.PromptTokens) }
			require.NoError(t, l.Run(length))
			prompt, cached := 0, 0
			for _, turn := range l.Turns() {
				prompt += turn.PromptTokens
				cached += turn.CachedTokens
			}
			source, err := traffic.NewShape(w.Shape, w.Seed, 0)
			require.NoError(t, err)
			c, err := trace.Describe(traffic.NewPlan(traffic.PlanOptions{
				Source: source, Load: w.load().Process(0, nil, 0), BlockTokens: p.KV.BlockTokens, Until: length,
				FirstToken: 100 * time.Millisecond, PerToken: 10 * time.Millisecond, ThinkTime: w.ThinkTime,
			}), trace.CacheSize{})
			require.NoError(t, err)
			t.Logf("%d turns: %.1f %% hits, %.1f %% planned of %d", len(l.Turns()), 100*float64(cached)/float64(prompt),
				100*c.Hits.Rate, c.Requests)
			assert.Greater(t, len(l.Turns()), 100)
			assert.InDelta(t, c.Hits.Rate, float64(cached)/float64(prompt), .02)
			assert.InEpsilon(t, c.Input.Max, longest, .35)
		})
	}
}
