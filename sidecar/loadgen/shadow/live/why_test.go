package live

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/shadow"
)

// The router's own counters and the settings say why prompts went to workers without their beginning.
func TestReasonsOfMisplacedPrompts(t *testing.T) {
	selected := func(policy string, n float64) api.RouterDecision {
		return api.RouterDecision{Metric: "smg_worker_selection_total", Outcome: policy, Requests: n}
	}
	lookups := func(result string, n float64) api.RouterDecision {
		return api.RouterDecision{Metric: "vllm_router_kv_placement_lookups_total", Outcome: result, Requests: n}
	}
	prefix := func(outcome string, n float64) api.RouterDecision {
		return api.RouterDecision{Metric: "vllm_router_prefix_routing_decisions_total", Outcome: outcome, Requests: n}
	}
	branch := func(name string, n float64) api.RouterDecision {
		return api.RouterDecision{Metric: "smg_cache_aware_policy_branch_total", Outcome: name, Requests: n}
	}
	mostly := shadow.Causes{Requests: 9, PromptTokens: 1000, Found: 400, Elsewhere: 500, Spilled: 100}
	spilled := shadow.Causes{Requests: 9, PromptTokens: 1000, Found: 400, Elsewhere: 100, Spilled: 500}
	hotOne := &api.ShadowWork{Hot: []api.HotPrefix{{Name: "You are", Share: .6, Worker: "w-2", WorkerShare: .9}}}
	for _, c := range []struct {
		name      string
		causes    shadow.Causes
		decisions []api.RouterDecision
		router    string
		sends     bool
		predicted *float64
		match     *float64
		work      *api.ShadowWork

		kind   api.HitCauseKind
		reason api.HitReason
		text   string
	}{
		{
			name: "blind", causes: mostly, decisions: []api.RouterDecision{selected("round_robin", 90), selected("manual", 1)},
			kind: api.CauseElsewhere, reason: api.ReasonBlind, text: "the router's policy is round_robin",
		},
		{
			name: "no session", causes: mostly, decisions: []api.RouterDecision{selected("consistent_hashing", 90)},
			router: "smg", kind: api.CauseElsewhere, reason: api.ReasonNoSession,
		},
		{
			name: "sessions sent", causes: mostly, decisions: []api.RouterDecision{selected("consistent_hashing", 90)},
			router: "smg", sends: true, kind: api.CauseElsewhere,
		},
		{
			name: "index without blocks", causes: spilled,
			decisions: []api.RouterDecision{lookups("miss", 98), lookups("hit", 2)},
			kind:      api.CauseElsewhere, reason: api.ReasonEmptyIndex, text: "miss 98.0 %, hit 2.0 %",
		},
		{
			name: "no index", causes: mostly, decisions: []api.RouterDecision{lookups("index_unavailable", 50)},
			kind: api.CauseElsewhere, reason: api.ReasonEmptyIndex,
		},
		{
			name: "Dynamo expects nothing", causes: mostly, predicted: new(.01), kind: api.CauseElsewhere,
			reason: api.ReasonEmptyIndex, text: "expected to find 1.0 % on the workers",
		},
		{
			name: "no token ids", causes: mostly, decisions: []api.RouterDecision{
				prefix("prefix_hit", 80), prefix("missing_tokens", 20),
			}, kind: api.CauseElsewhere, reason: api.ReasonNoTokens,
		},
		{
			name: "spilled by the router's count", causes: mostly, decisions: []api.RouterDecision{
				branch("tree_match", 65), branch("spill", 35),
			}, kind: api.CauseSpilled,
		},
		{
			name: "spilled", causes: spilled, decisions: []api.RouterDecision{branch("tree_match", 45), branch("spill", 55)},
			match: new(.77), kind: api.CauseSpilled,
			text: "tree_match 45.0 %, spill 55.0 %; the router knew 77.0 % of a prompt on average",
		},
		{
			name: "spilled from a hot prefix", causes: spilled, work: hotOne, kind: api.CauseSpilled,
			reason: api.ReasonHotPrefix,
			text:   "60.0 % of the turns begin with “You are …”, and 90.0 % of these went to worker w-2",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			on(t, func(s *rig) {
				s.router = c.router
				s.opts.SendsSession = func() bool { return c.sends }
				cluster := api.Cluster{
					Decisions: c.decisions, KV: api.KV{PredictedRatio: c.predicted}, RouterMatch: c.match,
				}
				all := causes(&shadow.Figures{Lately: c.causes}, s.routing(cluster, nil, c.work))
				require.Len(t, all, 2)
				assert.Equal(t, c.kind, all[1].Kind)
				assert.Equal(t, 600, all[1].Tokens)
				assert.Equal(t, c.reason, all[1].Reason)
				assert.Contains(t, all[1].Text, c.text)
				assert.True(t, strings.HasPrefix(all[1].Text, "60.0 % had been computed"))
				assert.NotEmpty(t, all[1].Remedy)
			})
		})
	}
}

// The work of a minute is counted in tokens that workers had to compute. A beginning that conversations share is named
// by its words, also where longer beginnings differ.
func TestWorkNamesHotPrefix(t *testing.T) {
	on(t, func(s *rig) {
		turn := func(conversation string, own int, worker string, cached int) {
			ids := append(prompt(1, 100), prompt(own, 900)...)
			messages := words("user", "You are a  careful clerk who answers letters.")
			f := s.Follow(Sent{Conversation: conversation, Concurrency: 10, Messages: messages})
			f.Routed(ids)
			pass(10 * time.Millisecond)
			f.FirstToken(worker)
			f.end(Result{OK: true, Worker: s.number(worker), PromptTokens: 1000, OutputTokens: 5, CachedTokens: cached})
			pass(10 * time.Millisecond)
		}
		pass(2 * time.Second)
		assert.Nil(t, s.shadow().Work)
		turn("a", 2, "11", 0)
		for i := range 60 {
			turn("b", 3+i%2, "11", 100)
			if i%3 == 0 {
				turn("c", 5, "22", 900)
			}
		}
		w := s.shadow().Work
		require.NotNil(t, w)
		assert.Equal(t, api.List[api.HotPrefix]{{
			Name: "You are a careful clerk who", Share: 80. / 81, Worker: "pod-0", WorkerShare: 60. / 80,
		}}, w.Hot)
		assert.Equal(t, 1000+60*900, w.Workers[0].UncachedTokens)
		assert.Equal(t, 20*100, w.Workers[1].UncachedTokens)
		assert.InDelta(t, 2*55000./57000, w.Skew, 1e-9)
		assert.Contains(t, w.Text, "worker pod-0 computed 96.5 % of the prompt tokens that were not cached")
		assert.Contains(t, w.Text, "“You are a careful clerk who …”")
	})
}
