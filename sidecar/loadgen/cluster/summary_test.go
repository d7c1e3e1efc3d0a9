package cluster

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// The clusters of recorded pages, and of engines without Dynamo, equal those in testdata in every number.
//
//   - Only generate counts among a worker's endpoints.
//   - The mocks report no queue time, and SGLang's no token_usage. SGLang reports no cached tokens to the frontend, so
//     the hit ratio is unknown, while the router still predicts one.
//   - Under round-robin the router predicts nothing and looks for no best worker.
//   - Without Dynamo the engine's own figures are used: hit rates over the window, requests that run or wait.
//     SGLang's zero without speculation is no acceptance rate. vLLM's labels have the size of its cache.
//   - An engine's metrics belong to the worker on the same page or in the same pod. Those of a page with several
//     workers belong to none.
//   - Requests wait at a router and at its engines. The count of a Dynamo frontend has those at the engines.
//   - Newer gauges of the frontend are used only where the deprecated ones are missing.
func TestClustersOfPages(t *testing.T) {
	begun, idle := plainSGLang("10", "100", "1", "10", "0", "0"), plainSGLang("90", "200", "4", "20", "0", "0")
	stages := "dynamo_frontend_active_requests{model=\"m\"} 9\ndynamo_frontend_stage_requests{stage=\"preprocess\"} 1\n" +
		"dynamo_frontend_stage_requests{stage=\"route\"} 2\n" +
		"dynamo_frontend_stage_requests{stage=\"dispatch\"} 3\n"
	deprecated := "dynamo_frontend_inflight_requests 8\ndynamo_frontend_queued_requests 5\n"
	for name, c := range map[string]api.Cluster{
		"gauges-newer": watched(t, api.SpeculationOff, scene{"frontend:8000": stages}),
		"gauges-both":  watched(t, api.SpeculationOff, scene{"frontend:8000": stages + deprecated}),
		"engine-pages": watched(t, api.SpeculationOff, scene{
			"one:8081": workerPage("a", 4, "trtllm_num_requests_waiting 3", "trtllm_kv_cache_utilization 0.5"),
			"two:8081": workerPage("b", 5, "trtllm_num_requests_waiting 6",
				`dynamo_component_gpu_cache_usage_percent{worker_id="b"} 0.25`),
		}),
		"engine-shared-page": watched(t, api.SpeculationOff, scene{
			"both:8081": workerPage("a", 4) + workerPage("b", 5, "vllm:num_requests_waiting 6"),
		}),
		"pods-labels-renamed": clusterOfPods(t, "exported_pod", model.LabelSet{"pod": "dcgm-1", "instance": "n1:9400"}),
		"pods-labels-kept":    clusterOfPods(t, "pod", model.LabelSet{"instance": "n1:9400"}),

		"kv":          clusterOfFixtures(t, "frontend-kv.prom", "worker-trtllm.prom"),
		"round-robin": clusterOfFixtures(t, "frontend-round-robin.prom", "worker-vllm.prom"),
		"sglang":      clusterOfFixtures(t, "frontend-sglang.prom", "worker-sglang.prom"),
		"vllm-alone": watched(t, api.SpeculationOff, plainVLLM("10", "100", "1", "10"),
			plainVLLM("90", "200", "4", "20")),
		"sglang-alone":      watched(t, api.SpeculationNotRecorded, begun, plainSGLang("90", "200", "4", "20", "2.4", "0.7")),
		"sglang-alone-idle": watched(t, api.SpeculationNotRecorded, idle, idle),
		"smg-alone": watched(t, api.SpeculationOff, scene{"smg:29000": atRest(routerPage(t, "smg"))},
			scene{"smg:29000": routerPage(t, "smg")}),
		"vllm-behind-envoy": watched(t, api.SpeculationOff, scene{
			"envoy:9901": strings.Replace(routerPage(t, "envoy"), "rq_pending_active{envoy_cluster_name=\"llm\"} 0",
				"rq_pending_active{envoy_cluster_name=\"llm\"} 3", 1),
			"127.0.0.1:19401": "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 5\n" +
				"vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 2\n",
			"127.0.0.1:19402": "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 4\n" +
				"vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 6\n",
		}),
		"frontend-alone": watched(t, api.SpeculationOff, scene{"frontend:8000": fixture(t, "frontend-kv.prom")}),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.MarshalIndent(c, "", "  ")
			require.NoError(t, err)
			golden(t, "clusters/"+name+".json", string(got)+"\n")
		})
	}
}

// routerPage returns the scrape of a router.
func routerPage(t *testing.T, id string) string {
	t.Helper()
	page, err := os.ReadFile("router/testdata/" + id + ".prom")
	require.NoError(t, err)
	return string(page)
}

func plainVLLM(hits, queries, waited, requests string) scene {
	return scene{"frontend:8000": "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 5\n" +
		"vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 2\n" +
		"vllm:prefix_cache_hits_total " + hits + "\nvllm:prefix_cache_queries_total " + queries +
		"\nvllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"27000\"} 1\n" +
		"vllm:cache_config_info{block_size=\"16\",engine=\"1\",num_gpu_blocks=\"None\"} 1" +
		"\nvllm:request_queue_time_seconds_sum " + waited + "\nvllm:request_queue_time_seconds_count " + requests + "\n"}
}

// plainSGLang has metrics from SGLang's documentation that its mock lacks.
func plainSGLang(cached, prompt, waited, requests, length, rate string) scene {
	return scene{"frontend:8000": `sglang:num_running_reqs{model_name="m",tp_rank="0"} 5
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 2
sglang:token_usage{model_name="m",tp_rank="0"} 0.28
sglang:cache_hit_rate{model_name="m",tp_rank="0"} 0.9
sglang:cached_tokens_total{cache_source="device"} ` + cached + "\nsglang:prompt_tokens_total " + prompt +
		"\nsglang:queue_time_seconds_sum " + waited + "\nsglang:queue_time_seconds_count " + requests +
		"\nsglang:spec_accept_length " + length + "\nsglang:spec_accept_rate " + rate + "\n"}
}

// Both sources give the same cluster.
func TestPrometheusAgreesWithPages(t *testing.T) {
	direct := clusterOfFixtures(t, "frontend-kv.prom", "worker-trtllm.prom")
	frontend, worker := fixture(t, "frontend-kv.prom"), fixture(t, "worker-trtllm.prom")

	h := history{}
	var through api.Cluster
	for _, pages := range [][2]string{{atRest(frontend), atRest(worker)}, {frontend, worker}} {
		samples := query(t, "", scraped{
			{labels("dynamo", "frontend:8000"), pages[0]}, {labels("dynamo", "worker:8081"), pages[1]},
		})
		samples = h.add(start, samples)
		through = summarize(t.Context(), samples, api.SpeculationOff)
	}
	require.Equal(t, direct, through)
}

func query(t *testing.T, namespace string, targets scraped) []Sample {
	t.Helper()
	server := httptest.NewServer(targets)
	defer server.Close()
	source, err := NewPrometheus(server.URL, Scope{Namespace: namespace}, server.Client())
	require.NoError(t, err)
	samples, err := source.Fetch(t.Context())
	require.NoError(t, err)
	return samples
}

// Ratios are unknown where they would be impossible, and where nothing was asked. A router that receives pinned turns
// may count their tokens, but chooses no worker.
func TestImpossibleRatiosAreLeftOut(t *testing.T) {
	page := func(cached, input string) scene {
		return scene{"frontend:8000": "dynamo_frontend_cached_tokens_sum " + cached +
			"\ndynamo_frontend_cached_tokens_count " + cached + "\ndynamo_frontend_input_sequence_tokens_sum " + input +
			"\ndynamo_component_router_kv_best_eligible_cached_prefix_tokens_total 70" +
			"\ndynamo_component_router_input_sequence_tokens_sum " + input + "\n"}
	}
	for name, second := range map[string]scene{
		"nothing was asked":                          page("10", "20"),
		"ends of requests that began before: over 1": page("400", "120"),
		"not a number":                               page("NaN", "120"),
	} {
		kv := watched(t, api.SpeculationOff, page("10", "20"), second).KV
		require.Nil(t, kv.HitRatio, name)
		require.Empty(t, kv.Source, name)
		require.Nil(t, kv.AchievableRatio, name)
	}
}

// A router counts the tokens of all requests, but those of the best worker in kv mode only.
func TestAchievableRatioNeedsOneMode(t *testing.T) {
	page := func(requests, byKV int) scene {
		return scene{"frontend:8000": fmt.Sprintf("dynamo_component_router_requests_started_total %d\n"+
			"dynamo_component_router_kv_hit_rate_sum %d\ndynamo_component_router_kv_hit_rate_count %[2]d\n"+
			"dynamo_component_router_kv_best_eligible_cached_prefix_tokens_total %d\n"+
			"dynamo_component_router_input_sequence_tokens_sum %d\n", requests, byKV, 90*byKV, 100*requests)}
	}
	require.Equal(t, new(0.9), watched(t, api.SpeculationOff, page(20, 20), page(60, 60)).KV.AchievableRatio)
	require.Nil(t, watched(t, api.SpeculationOff, page(20, 20), page(60, 40)).KV.AchievableRatio)
}

// A Dynamo frontend has most of its counters only after its first request. It counts as a frontend before that, and the
// whole value of the new counters is growth.
func TestFrontendBeforeItsFirstRequest(t *testing.T) {
	counters := `dynamo_frontend_cached_tokens_sum{model="m"} 60` + "\n" +
		`dynamo_frontend_cached_tokens_count{model="m"} 2` + "\n" +
		`dynamo_frontend_input_sequence_tokens_sum{model="m"} 100` + "\n" +
		"dynamo_component_router_kv_hit_rate_sum 1\ndynamo_component_router_kv_hit_rate_count 2\n"
	for name, idle := range map[string]string{
		"its models":           `dynamo_frontend_model_max_num_seqs{model="m"} 32` + "\n",
		"its router's metrics": "dynamo_component_router_requests_started_total 0\n",
	} {
		before, after := scene{"frontend:8000": idle}, scene{"frontend:8000": idle + counters}
		require.Equal(t, noWorkers, watched(t, api.SpeculationOff, before).Problem, name)
		c := watched(t, api.SpeculationOff, before, after)
		near(t, .6, c.KV.HitRatio, name)
		near(t, .5, c.KV.PredictedRatio, name)
		require.Nil(t, watched(t, api.SpeculationOff, after, after).KV.HitRatio,
			"%s: growth before the first reading is unknown", name)
	}
}

func TestSpreadAndSkew(t *testing.T) {
	for _, row := range []struct {
		name        string
		inflight    []int
		sum, spread float64
		skew        *float64
	}{
		{"uneven", []int{30, 20, 10}, 60, 20, new(1.5)},
		{"even", []int{7, 7, 7}, 21, 0, new(1.)},
		{"a single worker", []int{4}, 4, 0, new(1.)},
		{"idle: a mean of zero has no multiple", []int{0, 0}, 0, 0, nil},
	} {
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
		require.Equal(t, row.skew, c.Skew, row.name)
	}
}

// Each row has two readings: the engine's speculation counters before and after.
func TestSpeculation(t *testing.T) {
	const trtllm = "trtllm_spec_decode_num_draft_tokens_total{model_name=\"m\"} D\n" +
		"trtllm_spec_decode_num_accepted_tokens_total{model_name=\"m\"} A\n"
	const vllm = "vllm:spec_decode_num_drafts_total N\nvllm:spec_decode_num_draft_tokens_total D\n" +
		"vllm:spec_decode_num_accepted_tokens_total A\n"
	fill := func(page, drafts, drafted, accepted string) string {
		return strings.NewReplacer(" N\n", " "+drafts+"\n", " D\n", " "+drafted+"\n", " A\n", " "+accepted+"\n").Replace(page)
	}
	const none = -1.0
	some, more := fill(trtllm, "", "100", "50"), fill(trtllm, "", "500", "350")
	drafted, later := fill(vllm, "10", "30", "20"), fill(vllm, "110", "330", "170")
	for _, row := range []struct {
		name               string
		configured         api.Speculation
		before, after      string
		acceptance, tokens float64
	}{
		{
			"TensorRT-LLM: the gauge reports tokens per step", api.SpeculationEagle3, some,
			more + "trtllm_spec_decode_acceptance_length 2.4\n", 0.75, 2.4,
		},
		{
			"TensorRT-LLM: the other gauge serves, too", api.SpeculationEagle3, some,
			more + "trtllm_avg_decoded_tokens_per_iter 2.1\n", 0.75, 2.1,
		},
		{
			"TensorRT-LLM: a gauge before its first iteration says nothing", api.SpeculationEagle3, some,
			more + "trtllm_spec_decode_acceptance_length 0\n", 0.75, none,
		},
		{"vLLM: 1 + accepted tokens per draft", api.SpeculationDraft, drafted, later, 0.5, 2.5},
		{"counters that move although configured off are believed", api.SpeculationOff, drafted, later, 0.5, 2.5},
		{"off, no counters", api.SpeculationOff, "", "", none, 1},
		{
			"off, counters stand still; the gauge is a left-over", api.SpeculationOff, some,
			some + "trtllm_spec_decode_acceptance_length 2.4\n", none, 1,
		},
		{"on, nothing drafted in the last minute", api.SpeculationEagle3, drafted, drafted, none, none},
		{"not known whether on, and no counters", api.SpeculationNotRecorded, "", "", none, none},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := watched(t, row.configured,
				scene{"w:1": workerPage("a", 1, row.before)}, scene{"w:1": workerPage("a", 1, row.after)})
			live, added := c.Speculation, c.Engines.Since(api.EngineTotals{})
			for _, figure := range []struct {
				want float64
				got  []*float64
			}{
				{row.acceptance, []*float64{live.AcceptanceRatio, added.AcceptanceRate}},
				{row.tokens, []*float64{live.TokensPerStep, added.TokensPerStep}},
			} {
				for _, got := range figure.got {
					if figure.want == none {
						require.Nil(t, got)
					} else {
						near(t, figure.want, got, row.name)
					}
				}
			}
		})
	}
}
