//go:build dynamo

package dynamo

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
)

// longShadow is an environment variable with which the shadow's test runs for a quarter of an hour, with three and
// with five workers, and prints its figures.
const longShadow = "KVBOOTH_LONG_SHADOW"

// With a real Dynamo, the shadow's hit rate of the current policy is within one point of the measured one, that of
// the other policy within two points of the one measured with it on the same draws, and the predicted choice is the
// router's in 95 % of the clear turns.
func TestShadowPredictsRouter(t *testing.T) {
	if os.Getenv(longShadow) == "" {
		// With cold caches, it depends on chance how many of the first turns find an opening that another worker has.
		// With 500 turns, that alone made a difference of 0.99 points.
		shadows(t, 3, 1000)
		return
	}
	for _, workers := range []int{3, 5} {
		t.Run(string(rune('0'+workers))+" workers", func(t *testing.T) { shadows(t, workers, 4000) })
	}
}

// shadows runs round-robin and then kv for a number of turns each.
func shadows(t *testing.T, workers int, turns int64) {
	d := Start(t, 18000, func(o *local.Options) { o.Workers = workers })
	b := startAgainst(t, d, "--target-url="+d.URL(), "--mode-driver=pinned")
	b.start(t)
	b.waitOK(t, 250, 10*time.Minute)
	// The mock workers do not reuse blocks of answers. The account infers this from turns, with a delay on a busy
	// machine, and resets its sums when it changes the inferred value.
	wait.Within(t, 3*time.Minute, "the account finds that answers are forgotten", func() (any, bool) {
		s, err := b.client.Shadow(t.Context(), api.DefaultLane)
		return err, err == nil && s.AnswersReused != nil && !*s.AnswersReused
	})
	b.stop(t)
	seen := map[api.Mode]shadowSeen{}
	for _, mode := range []api.Mode{api.ModeRoundRobin, api.ModeKV} { // both begin with cold prefixes after a change
		b.setMode(t, mode)
		b.start(t)
		b.waitOK(t, turns, 10*time.Minute)
		seen[mode] = b.shadow(t)
		b.stop(t)
		seen[mode].log(t, mode)
	}
	kv, rr := seen[api.ModeKV], seen[api.ModeRoundRobin]
	for mode, s := range seen {
		assert.Equal(t, api.ShadowTokenIDs, s.Source, "%s: %s", mode, s.Message)
		assert.Equal(t, []int{workers, 32}, []int{s.Workers, s.BlockTokens}, mode)
		assert.Zero(t, s.Lost, mode)
		assert.Empty(t, s.Withheld, mode)
		assert.InDelta(t, 0, *s.CacheError, .01, "the cache account of "+string(mode))
	}
	assert.InDelta(t, kv.hit["measured"], kv.hit["kv"], .01, "kv under kv")
	assert.InDelta(t, rr.hit["measured"], rr.hit["round_robin"], .01, "round-robin under round-robin")
	assert.InDelta(t, rr.hit["measured"], kv.hit["round_robin"], .02, "round-robin under kv")
	assert.InDelta(t, kv.hit["measured"], rr.hit["kv"], .02, "kv under round-robin")
	c := kv.Choices
	switch {
	case c == nil || c.Turns == 0:
		t.Error("no choices under kv")
	case c.Clear < 40: // on a busy machine, requests in flight can influence nearly every choice
		t.Logf("only %d of %d turns were clear, too few to judge", c.Clear, c.Turns)
	case float64(c.ClearAgreed) < .95*float64(c.Clear):
		t.Errorf("choices under kv: %+v", c)
	}
	assert.Equal(t, api.DecisionsInferred, kv.decisions.Source)
	require.NotEmpty(t, kv.decisions.Decisions)
	assert.Len(t, kv.decisions.Decisions[0].Candidates, workers)
}

// shadowSeen has the shadow's figures at a time. Hit rates are since the caches were cold, by policy; "measured" is
// that of the cluster.
type shadowSeen struct {
	api.Shadow
	decisions api.DecisionList
	hit       map[string]float64
}

func (b *booth) shadow(t *testing.T) (s shadowSeen) {
	t.Helper()
	var err error
	s.Shadow, err = b.client.Shadow(t.Context(), api.DefaultLane)
	require.NoError(t, err)
	s.decisions, err = b.client.Decisions(t.Context(), api.DefaultLane, 50)
	require.NoError(t, err)
	read := families(t, b.base)
	sum := func(name string) float64 {
		require.Contains(t, read, name)
		return read[name].Metric[0].GetCounter().GetValue()
	}
	s.hit = map[string]float64{}
	all, measured := sum("loadgen_shadow_prompt_tokens_total"), sum("loadgen_shadow_measured_prompt_tokens_total")
	for _, m := range read["loadgen_shadow_prefill_tokens_total"].GetMetric() {
		for _, label := range m.Label {
			if policy := label.GetValue(); label.GetName() == "policy" {
				of := all
				if policy == "measured" {
					of = measured
				}
				s.hit[policy] = 1 - m.GetCounter().GetValue()/of
			}
		}
	}
	return s
}

func (s shadowSeen) log(t *testing.T, mode api.Mode) {
	t.Helper()
	t.Logf("%s: %d turns of the last minute; cache account off by %.2f points", mode, s.Requests, 100**s.CacheError)
	for _, p := range append([]api.ShadowPolicy{{Policy: "measured", Figures: s.Measured}}, s.Policies...) {
		spread := math.NaN()
		if p.Figures.InflightSpread != nil {
			spread = *p.Figures.InflightSpread
		}
		t.Logf("  %-20s %5.2f %%, spread %.1f", p.Policy, 100*s.hit[p.Policy], spread)
	}
	if c := s.Choices; c != nil {
		t.Logf("  choices: of %d turns %d agreed, %d ties; %d clear (%.0f %%), of these %d agreed (%.1f %%)",
			c.Turns, c.Agreed, c.Ties, c.Clear,
			100*float64(c.Clear)/float64(c.Turns), c.ClearAgreed, 100*float64(c.ClearAgreed)/float64(c.Clear))
	}
	for _, d := range s.Diagnoses {
		t.Logf("  %s: %s", d.Rule, d.Text)
	}
}
