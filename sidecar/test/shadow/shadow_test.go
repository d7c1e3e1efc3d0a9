//go:build verify

package shadow

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/virtual"
)

// seen is the shadow of a run at its end.
type seen struct {
	shadow api.Shadow
	hit    map[string]float64 // of the whole run, by policy; "measured" is that of the cluster
	late   map[string]float64 // of its second half
}

// off returns the difference between the predicted and the measured hit rate of a policy, in points.
func (s seen) off(policy string, measured seen) float64 {
	return 100 * math.Abs(s.hit[policy]-measured.hit["measured"])
}

// run runs conversations with a cluster, and returns the shadow at the end.
func run(t *testing.T, o virtual.Options, concurrency int, long time.Duration) (s seen) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := virtual.NewGenerator(t, virtual.Folder(t))
		cluster := g.Cluster(o)
		l := g.Lane(cluster, workload.Settings{
			Level: api.AtConversations(concurrency), Turns: api.Range{Min: 3, Max: 5}, Openings: 10, MaxTokens: 1024,
			OutputTokens: api.Distribution{Mean: 400, CV: .15}, StartRate: 10,
		}, func(o *lane.Options) { o.Cluster, o.Shadow = cluster.State, true })
		g.Run()
		synctest.Wait()
		_, err := l.Start(t.Context(), "ann", api.StartRequest{})
		require.NoError(t, err)
		wait.Advance(long / 2)
		half := count(t, l)
		wait.Advance(long / 2)
		synctest.Wait()
		whole := count(t, l)
		s = seen{shadow: l.Shadow(), hit: whole.since(counts{}), late: whole.since(half)}
		g.End()
	})
	return s
}

// counts are the tokens of prompts, and of the prefill, measured or predicted, by policy.
type counts struct{ prompt, prefill map[string]float64 }

// count reads the metrics.
func count(t *testing.T, l *lane.Lane) counts {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(l.ShadowCollector()))
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	families, err := registry.Gather()
	require.NoError(t, err)
	c := counts{map[string]float64{}, map[string]float64{}}
	for _, f := range families {
		switch f.GetName() {
		case "loadgen_shadow_prompt_tokens_total":
			c.prompt[""] = f.Metric[0].Counter.GetValue()
		case "loadgen_shadow_measured_prompt_tokens_total":
			c.prompt["measured"] = f.Metric[0].Counter.GetValue()
		case "loadgen_shadow_prefill_tokens_total":
			for _, m := range f.Metric {
				c.prefill[m.Label[1].GetValue()] = m.Counter.GetValue()
			}
		}
	}
	require.NotEmpty(t, c.prefill)
	return c
}

// since returns the hit rates since an earlier count.
func (c counts) since(before counts) map[string]float64 {
	hit := map[string]float64{}
	for policy, prefill := range c.prefill {
		of := ""
		if policy == "measured" {
			of = policy
		}
		hit[policy] = 1 - (prefill-before.prefill[policy])/(c.prompt[of]-before.prompt[of])
	}
	return hit
}

// The hit rate of the current policy is within a point of the measured one, that of the other policy within two
// points of the one measured with it on the same draws, and the predicted choice is the router's in 95 % of the clear
// turns: with and without reuse of answers, and with caches that are too small.
func TestShadowPredictsLane(t *testing.T) {
	for name, o := range map[string]virtual.Options{
		"answers forgotten":           {Forget: true},
		"answers found, small caches": {Blocks: 3000},
	} {
		t.Run(name, func(t *testing.T) {
			o.Seed, o.TokenIDs = 1, true
			o.Mode = api.ModeKV
			kv := run(t, o, 40, 5*time.Minute)
			o.Mode = api.ModeRoundRobin
			rr := run(t, o, 40, 5*time.Minute)
			for _, s := range []seen{kv, rr} {
				assert.Equal(t, api.ShadowTokenIDs, s.shadow.Source)
				assert.Empty(t, s.shadow.Withheld)
				assert.Zero(t, s.shadow.Lost)
				assert.Less(t, math.Abs(*s.shadow.CacheError), .01)
				assert.Equal(t, !o.Forget, *s.shadow.AnswersReused)
			}
			assert.Less(t, kv.off("kv", kv), 1.)
			assert.Less(t, rr.off("round_robin", rr), 1.)
			assert.Less(t, kv.off("round_robin", rr), 2.)
			assert.Less(t, rr.off("kv", kv), 2.)
			c := kv.shadow.Choices
			require.NotNil(t, c)
			assert.Greater(t, float64(c.ClearAgreed)/float64(c.Clear), .95)
			figure.Report(t, "%s: hit rate of kv %.2f %%, shadow of round-robin %.2f points off; %d of %d choices agree",
				name, 100*kv.hit["measured"], kv.off("round_robin", rr), c.ClearAgreed, c.Clear)
			figure.Headline(t, "%s: kv %.2f points off", name, kv.off("kv", kv))
			assert.Nil(t, rr.shadow.Choices, "round-robin makes no choices by cost")
		})
	}
}

// Without token IDs, blocks of text are nearly as accurate.
func TestShadowPredictsFromText(t *testing.T) {
	o := virtual.Options{Seed: 1, Mode: api.ModeKV, Blocks: 3000}
	text := run(t, o, 40, 5*time.Minute)
	o.TokenIDs = true
	ids := run(t, o, 40, 5*time.Minute)
	assert.Equal(t, api.ShadowText, text.shadow.Source)
	assert.Contains(t, text.shadow.Message, "bytes of text")
	assert.Empty(t, text.shadow.Withheld)
	assert.Less(t, math.Abs(*text.shadow.CacheError), .015)
	// Only the second half: the account of text begins later, when the length of a token is known.
	for _, p := range ids.shadow.Policies {
		assert.InDelta(t, ids.late[p.Policy], text.late[p.Policy], .03, p.Policy)
	}
}
