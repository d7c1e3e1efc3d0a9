package cluster

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

func TestFixtureUnderKV(t *testing.T) {
	c := ofFixtures(t, "frontend-kv.prom", "worker-trtllm.prom")
	near(t, 2, c.Queued, "queued")
	near(t, 60, c.Inflight, "inflight")
	near(t, 64, c.BatchLimit, "batch limit")
	near(t, 202688.0/577118, c.KV.HitRatio, "hit ratio")
	require.Equal(t, "frontend", c.KV.Source)
	near(t, 89.48405485336156/123, c.KV.PredictedRatio, "predicted")
	near(t, 441504.0/589236, c.KV.AchievableRatio, "achievable")
	require.Equal(t, "meta-llama/Llama-3.1-70B-Instruct", c.Model)
	require.Equal(t, "trtllm", c.Engine)
	near(t, 1, c.Speculation.TokensPerStep, "tokens per step")
	require.Nil(t, c.Speculation.AcceptanceRatio)
	w := c.Workers[0]
	require.Equal(t, trtllmWorker, w.ID)
	require.Equal(t, "worker:8081", w.Name)
	near(t, 16, w.Inflight, "the second endpoint's zero is not added")
	near(t, 38, w.Routed, "the second endpoint's request is not added")
	near(t, 1, w.Waiting, "waiting")
	near(t, 0.12734958179692418, w.CacheUse, "cache use")
	require.Nil(t, w.QueueSeconds, "the mock reports no queue time")
	require.Empty(t, w.GPUs)
}

func TestFixtureUnderRoundRobin(t *testing.T) {
	c := ofFixtures(t, "frontend-round-robin.prom", "worker-vllm.prom")
	near(t, 0, c.Queued, "queued")
	require.Equal(t, "vllm", c.Engine)
	require.NotNil(t, c.KV.HitRatio)
	require.Nil(t, c.KV.PredictedRatio, "the router predicts nothing")
	require.Nil(t, c.KV.AchievableRatio, "the router looks for no best worker")
	require.Equal(t, vllmWorker, c.Workers[0].ID)
	near(t, 20, c.Workers[0].Inflight, "inflight")
	near(t, 0.19246335102077525, c.Workers[0].CacheUse, "cache use")
}

// SGLang's mock tells the frontend of no cached tokens: its sum of zero over nothing
// is no hit ratio, while the router goes on predicting one.
func TestFixtureOfSGLang(t *testing.T) {
	c := ofFixtures(t, "frontend-sglang.prom", "worker-sglang.prom")
	require.Equal(t, "sglang", c.Engine)
	require.Nil(t, c.KV.HitRatio, "nobody told of cached tokens")
	require.Empty(t, c.KV.Source)
	near(t, 23.55/36, c.KV.PredictedRatio, "predicted")
	near(t, 60288.0/91150, c.KV.AchievableRatio, "achievable")
	w := c.Workers[0]
	require.Equal(t, sglangWorker, w.ID)
	near(t, 4, w.Inflight, "inflight")
	near(t, 0, w.Waiting, "waiting")
	near(t, 12, w.Routed, "routed")
	near(t, 0.9890453834115805, w.HitRatio, "the engine's own figure")
	require.Nil(t, w.CacheUse, "the mock tells no token_usage")
	require.Equal(t, []string{"queue_seconds", "cache_use"}, w.NotReported)
}

// SGLang itself, with the names of its own documentation that its mock lacks.
func TestPlainSGLang(t *testing.T) {
	const gauges = `sglang:num_running_reqs{model_name="m",tp_rank="0"} 5
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 2
sglang:token_usage{model_name="m",tp_rank="0"} 0.28
sglang:cache_hit_rate{model_name="m",tp_rank="0"} 0.9
`
	page := func(cached, prompt, waited, requests, length, rate string) scene {
		return scene{"frontend:8000": gauges +
			"sglang:cached_tokens_total{cache_source=\"device\"} " + cached + "\nsglang:prompt_tokens_total " + prompt +
			"\nsglang:queue_time_seconds_sum " + waited + "\nsglang:queue_time_seconds_count " + requests +
			"\nsglang:spec_accept_length " + length + "\nsglang:spec_accept_rate " + rate + "\n"}
	}
	c := watched(t, api.SpeculationNotRecorded, page("10", "100", "1", "10", "0", "0"), page("90", "200", "4", "20", "2.4", "0.7"))
	require.Equal(t, "sglang", c.Engine)
	require.Equal(t, "m", c.Model)
	near(t, 7, c.Inflight, "running and waiting")
	near(t, 0.8, c.KV.HitRatio, "cached over prompt tokens, over the window")
	require.Equal(t, "engine", c.KV.Source)
	near(t, 2.4, c.Speculation.TokensPerStep, "of the latest batch")
	near(t, 0.7, c.Speculation.AcceptanceRatio, "of the latest batch")
	w := c.Workers[0]
	near(t, 0.28, w.CacheUse, "token usage")
	near(t, 0.3, w.QueueSeconds, "mean queue time")
	near(t, 0.9, w.HitRatio, "of the latest prefill")
	require.Equal(t, []string{"routed"}, w.NotReported, "which Dynamo would count")

	c = watched(t, api.SpeculationNotRecorded, page("90", "200", "4", "20", "0", "0"), page("90", "200", "4", "20", "0", "0"))
	require.Nil(t, c.KV.HitRatio, "nothing was asked")
	require.Nil(t, c.Workers[0].QueueSeconds, "nothing was scheduled")
	require.Equal(t, []string{"routed"}, c.Workers[0].NotReported, "but both are reported")
	require.Equal(t, api.SpeculativeUse{}, c.Speculation, "zero without speculation is no rate of acceptance")
}

// Both sources must give the same cluster, number by number.
func TestPrometheusAgreesWithThePagesThemselves(t *testing.T) {
	direct := ofFixtures(t, "frontend-kv.prom", "worker-trtllm.prom")
	frontend, worker := fixture(t, "frontend-kv.prom"), fixture(t, "worker-trtllm.prom")

	h := history{}
	var through api.Cluster
	for _, pages := range [][2]string{{atRest(frontend), atRest(worker)}, {frontend, worker}} {
		samples := query(t, "", scraped{{labels("dynamo", "frontend:8000"), pages[0]}, {labels("dynamo", "worker:8081"), pages[1]}})
		samples = h.add(start, samples)
		through = summarise(t.Context(), samples, api.SpeculationOff)
	}
	require.Equal(t, direct, through)
}

func query(t *testing.T, namespace string, targets scraped) []Sample {
	t.Helper()
	server := httptest.NewServer(targets)
	defer server.Close()
	source, err := NewPrometheus(server.URL, namespace, server.Client())
	require.NoError(t, err)
	samples, err := source.Fetch(t.Context())
	require.NoError(t, err)
	return samples
}

func TestNewerGaugesReplaceTheDeprecatedOnes(t *testing.T) {
	page := "dynamo_frontend_active_requests{model=\"m\"} 9\n" +
		"dynamo_frontend_stage_requests{stage=\"preprocess\"} 1\n" +
		"dynamo_frontend_stage_requests{stage=\"route\"} 2\n" +
		"dynamo_frontend_stage_requests{stage=\"dispatch\"} 3\n"
	c := watched(t, api.SpeculationOff, scene{"frontend:8000": page})
	near(t, 6, c.Queued, "queued")
	near(t, 9, c.Inflight, "inflight")

	c = watched(t, api.SpeculationOff, scene{"frontend:8000": page +
		"dynamo_frontend_inflight_requests 8\ndynamo_frontend_queued_requests 5\n"})
	near(t, 5, c.Queued, "both are there, the old one counts")
	near(t, 8, c.Inflight, "both are there, the old one counts")
}

func TestHitRatioThatIsNone(t *testing.T) {
	page := func(cached, input string) scene {
		return scene{"frontend:8000": "dynamo_frontend_cached_tokens_sum " + cached + "\ndynamo_frontend_cached_tokens_count " + cached +
			"\ndynamo_frontend_input_sequence_tokens_sum " + input + "\n"}
	}
	rows := map[string]scene{
		"nothing was asked":                          page("10", "20"),
		"ends of requests that began before: over 1": page("400", "120"),
		"not a number":                               page("NaN", "120"),
	}
	for name, second := range rows {
		c := watched(t, api.SpeculationOff, page("10", "20"), second)
		require.Nil(t, c.KV.HitRatio, name)
		require.Empty(t, c.KV.Source, name)
	}
}

// While a client pins its turns the router may go on counting their tokens, and
// chooses nothing.
func TestAchievableOfARouterThatDoesNotChoose(t *testing.T) {
	page := func(input string) scene {
		return scene{"frontend:8000": "dynamo_component_router_kv_best_eligible_cached_prefix_tokens_total 70\n" +
			"dynamo_component_router_input_sequence_tokens_sum " + input + "\n"}
	}
	c := watched(t, api.SpeculationOff, page("100"), page("900"))
	require.Nil(t, c.KV.AchievableRatio)
}

func TestSpreadAndSkew(t *testing.T) {
	rows := []struct {
		name              string
		inflight          []int
		sum, spread, skew float64
		hasSkew           bool
	}{
		{"uneven", []int{30, 20, 10}, 60, 20, 1.5, true},
		{"even", []int{7, 7, 7}, 21, 0, 1, true},
		{"a single worker", []int{4}, 4, 0, 1, true},
		{"idle: a mean of zero has no multiple", []int{0, 0}, 0, 0, 0, false},
	}
	for _, row := range rows {
		s := scene{}
		for i, n := range row.inflight {
			id := string(rune('a' + i))
			s["worker-"+id+":8081"] = workerPage(id, n)
		}
		c := watched(t, api.SpeculationOff, s)
		near(t, float64(slices.Min(row.inflight)), c.InflightMin, row.name)
		near(t, float64(slices.Max(row.inflight)), c.InflightMax, row.name)
		near(t, row.sum, c.Inflight, row.name+": without a frontend the workers' sum")
		near(t, row.spread, c.Spread, row.name)
		require.Equal(t, row.hasSkew, c.Skew != nil, row.name)
		if row.hasSkew {
			near(t, row.skew, c.Skew, row.name)
		}
	}
}

// Two readings: the engine's speculation counters before and after.
func TestSpeculation(t *testing.T) {
	const trtllm = "trtllm_spec_decode_num_draft_tokens_total{model_name=\"m\"} D\n" +
		"trtllm_spec_decode_num_accepted_tokens_total{model_name=\"m\"} A\n"
	const vllm = "vllm:spec_decode_num_drafts_total N\n" +
		"vllm:spec_decode_num_draft_tokens_total D\n" +
		"vllm:spec_decode_num_accepted_tokens_total A\n"
	fill := func(page, drafts, drafted, accepted string) string {
		return strings.NewReplacer(" N\n", " "+drafts+"\n", " D\n", " "+drafted+"\n", " A\n", " "+accepted+"\n").Replace(page)
	}
	const none = -1.0
	rows := []struct {
		name               string
		configured         api.Speculation
		before, after      string
		acceptance, tokens float64
	}{
		{
			"TensorRT-LLM: the gauge tells tokens per step", api.SpeculationEagle3,
			fill(trtllm, "", "100", "50"), fill(trtllm, "", "500", "350") + "trtllm_spec_decode_acceptance_length 2.4\n", 0.75, 2.4,
		},
		{
			"TensorRT-LLM: the other gauge serves, too", api.SpeculationEagle3,
			fill(trtllm, "", "100", "50"), fill(trtllm, "", "500", "350") + "trtllm_avg_decoded_tokens_per_iter 2.1\n", 0.75, 2.1,
		},
		{
			"TensorRT-LLM: a gauge before its first iteration says nothing", api.SpeculationEagle3,
			fill(trtllm, "", "100", "50"), fill(trtllm, "", "500", "350") + "trtllm_spec_decode_acceptance_length 0\n", 0.75, none,
		},
		{
			"vLLM: 1 + accepted tokens per draft", api.SpeculationDraft,
			fill(vllm, "10", "30", "20"), fill(vllm, "110", "330", "170"), 0.5, 2.5,
		},
		{
			"counters that move although configured off are believed", api.SpeculationOff,
			fill(vllm, "10", "30", "20"), fill(vllm, "110", "330", "170"), 0.5, 2.5,
		},
		{"off, no counters", api.SpeculationOff, "", "", none, 1},
		{
			"off, counters stand still; the gauge is a left-over", api.SpeculationOff,
			fill(trtllm, "", "100", "50"), fill(trtllm, "", "100", "50") + "trtllm_spec_decode_acceptance_length 2.4\n", none, 1,
		},
		{
			"on, nothing drafted in the last minute", api.SpeculationEagle3,
			fill(vllm, "10", "30", "20"), fill(vllm, "10", "30", "20"), none, none,
		},
		{"not known whether on, and no counters", api.SpeculationNotRecorded, "", "", none, none},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			use := watched(t, row.configured,
				scene{"w:1": workerPage("a", 1, row.before)}, scene{"w:1": workerPage("a", 1, row.after)}).Speculation
			for got, want := range map[*float64]float64{use.AcceptanceRatio: row.acceptance, use.TokensPerStep: row.tokens} {
				if want == none {
					require.Nil(t, got)
				} else {
					near(t, want, got, row.name)
				}
			}
		})
	}
}

// vLLM without Dynamo: its workers' own figures, and a word on the rest.
func TestPlainVLLM(t *testing.T) {
	page := func(hits, queries, waited, requests string) string {
		return "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 5\n" +
			"vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 2\n" +
			"vllm:prefix_cache_hits_total " + hits + "\nvllm:prefix_cache_queries_total " + queries +
			"\nvllm:request_queue_time_seconds_sum " + waited + "\nvllm:request_queue_time_seconds_count " + requests + "\n"
	}
	c := watched(t, api.SpeculationOff,
		scene{"frontend:8000": page("10", "100", "1", "10")}, scene{"frontend:8000": page("90", "200", "4", "20")})

	require.True(t, c.Available)
	require.Contains(t, c.Problem, "no Dynamo frontend")
	require.Equal(t, "vllm", c.Engine)
	require.Equal(t, "m", c.Model)
	require.Nil(t, c.Queued)
	near(t, 7, c.Inflight, "running and waiting")
	near(t, 0.8, c.KV.HitRatio, "tokens found over tokens looked up")
	require.Equal(t, "engine", c.KV.Source)
	require.Len(t, c.Workers, 1)
	require.Empty(t, c.Workers[0].ID)
	require.Equal(t, "frontend:8000", c.Workers[0].Name)
	near(t, 0.3, c.Workers[0].QueueSeconds, "mean queue time")
}
