package cluster

import (
	"maps"
	"slices"
	"strings"

	"kvbooth/sidecar/loadgen/chat/plausible"
)

// metric lists the names of one metric, the preferred name first.
type metric []string

// engine returns the names of a metric of the engines. TensorRT-LLM writes the
// prefix trtllm_, Dynamo's mock of it trtllm:, and vLLM vllm:. SGLang's names differ
// and are given in full.
func engine(suffix string, sglang ...string) metric {
	return append(metric{"trtllm_" + suffix, "trtllm:" + suffix, "vllm:" + suffix}, sglang...)
}

// Metrics on the frontend's port.
var (
	// queued_requests and inflight_requests are deprecated upstream; their
	// replacements follow them.
	queued     = metric{"dynamo_frontend_queued_requests", "dynamo_frontend_stage_requests"}
	inflight   = metric{"dynamo_frontend_inflight_requests", "dynamo_frontend_active_requests"}
	batchLimit = metric{"dynamo_frontend_model_max_num_seqs"}

	// One series for each worker that serves the model.
	workerBlocks = metric{"dynamo_frontend_model_total_kv_blocks"}
	blockTokens  = metric{"dynamo_frontend_model_kv_cache_block_size"}

	cachedTokens = metric{"dynamo_frontend_cached_tokens_sum"}
	// cachedCount counts the requests whose engine reported cached tokens.
	cachedCount = metric{"dynamo_frontend_cached_tokens_count"}
	inputTokens = metric{"dynamo_frontend_input_sequence_tokens_sum"}

	predictedSum   = metric{"dynamo_component_router_kv_hit_rate_sum"}
	predictedCount = metric{"dynamo_component_router_kv_hit_rate_count"}
	startedCount   = metric{"dynamo_component_router_requests_started_total"}
	bestTokens     = metric{"dynamo_component_router_kv_best_eligible_cached_prefix_tokens_total"}
	routedTokens   = metric{"dynamo_component_router_input_sequence_tokens_sum"}

	// Read only for the worker ids in its labels.
	frontendWorkers = metric{"dynamo_frontend_worker_last_input_sequence_tokens"}
)

// Metrics on the workers' ports.
var (
	workerInflight = metric{"dynamo_component_inflight_requests"}
	workerRequests = metric{"dynamo_component_requests_total"}
	cacheUse       = slices.Concat(
		metric{"dynamo_component_gpu_cache_usage_percent", "trtllm_kv_cache_utilization"}, // both 0 to 1
		engine("kv_cache_usage_perc"), metric{"vllm:gpu_cache_usage_perc", "sglang:token_usage"})

	// vLLM writes the sizes of its cache into the labels of this gauge.
	cacheConfig = metric{"vllm:cache_config_info"}

	running    = engine("num_requests_running", "sglang:num_running_reqs")
	waiting    = engine("num_requests_waiting", "sglang:num_queue_reqs")
	queueSum   = engine("request_queue_time_seconds_sum", "sglang:queue_time_seconds_sum")
	queueCount = engine("request_queue_time_seconds_count", "sglang:queue_time_seconds_count")

	// Times of requests from their arrival at the engine, and of their prefill. vLLM counts the first at the first token,
	// the others at the end of a request.
	firstSum     = engine("time_to_first_token_seconds_sum", "sglang:time_to_first_token_seconds_sum")
	firstCount   = engine("time_to_first_token_seconds_count", "sglang:time_to_first_token_seconds_count")
	prefillSum   = metric{"vllm:request_prefill_time_seconds_sum"}
	prefillCount = metric{"vllm:request_prefill_time_seconds_count"}

	// Counts of tokens. vLLM up to 0.9 has gpu_ in the names.
	prefixHits = metric{
		"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total",
		"sglang:cached_tokens_total",
	}
	prefixQueries = metric{
		"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total", "sglang:prompt_tokens_total",
	}

	// An engine's own gauge of its hit rate: TensorRT-LLM's over all requests, SGLang's of the latest prefill,
	// vLLM V0's of the latest requests, and −1 where it has no prefix cache.
	engineHitRate = metric{
		"trtllm_kv_cache_hit_rate", "trtllm:kv_cache_hit_rate", "sglang:cache_hit_rate", "vllm:gpu_prefix_cache_hit_rate",
	}

	// Start times of the process behind a page, and of its counters.
	processStart   = metric{"process_start_time_seconds"}
	countersCreate = metric{"vllm:prompt_tokens_created", "sglang:prompt_tokens_created"}

	drafts           = metric{"vllm:spec_decode_num_drafts_total"}
	draftedTokens    = engine("spec_decode_num_draft_tokens_total")
	acceptedTokens   = engine("spec_decode_num_accepted_tokens_total")
	acceptanceLength = metric{
		"trtllm_spec_decode_acceptance_length", "trtllm:spec_decode_acceptance_length",
		"trtllm_avg_decoded_tokens_per_iter", "trtllm:avg_decoded_tokens_per_iter",
		"sglang:spec_accept_length",
	}
	acceptanceRate = metric{"sglang:spec_accept_rate"} // accepted / drafted tokens of the latest batch
)

// Metrics on the DCGM exporter's port.
var (
	gpuUtilization = metric{"DCGM_FI_DEV_GPU_UTIL"}          // 0 to 100
	gpuActive      = metric{"DCGM_FI_PROF_GR_ENGINE_ACTIVE"} // 0 to 1; also of MIG instances, which have no GPU_UTIL
	gpuUsed        = metric{"DCGM_FI_DEV_FB_USED"}           // MiB
	gpuFree        = metric{"DCGM_FI_DEV_FB_FREE"}           // MiB
	gpuTotal       = metric{"DCGM_FI_DEV_FB_TOTAL"}          // MiB
	gpuPower       = metric{"DCGM_FI_DEV_POWER_USAGE"}       // W

	// A counter of mJ since the driver was loaded, on GPUs from Volta on.
	gpuEnergy = metric{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"}
)

var (
	gpuMetrics = slices.Concat(gpuUtilization, gpuActive, gpuUsed, gpuFree, gpuTotal, gpuPower, gpuEnergy)

	// wanted holds every metric that this package reads, with the range of its values.
	wanted = func() map[string]plausible.Range {
		ranges := map[string]plausible.Range{}
		for r, metrics := range map[plausible.Range][]metric{
			plausible.Requests: {
				queued, inflight, batchLimit, workerInflight, running, waiting, otherRouters.running, otherRouters.waiting,
				otherRouters.queued,
			},
			plausible.Ratio:   {cacheUse, engineHitRate, acceptanceRate, gpuActive},
			plausible.PerStep: {acceptanceLength},
			plausible.Percent: {gpuUtilization},
			plausible.MiB:     {gpuUsed, gpuFree, gpuTotal},
			plausible.Watts:   {gpuPower},
			plausible.Total: {
				cachedTokens, cachedCount, inputTokens, predictedSum, predictedCount, startedCount, bestTokens, routedTokens,
				frontendWorkers, workerRequests,
				workerBlocks, blockTokens, cacheConfig,
				queueSum, queueCount, prefixHits, prefixQueries, drafts, draftedTokens, acceptedTokens,
				processStart, countersCreate, otherRouters.requests, otherRouters.decisions, gpuEnergy,
				otherRouters.matchSum, otherRouters.matchCount,
				firstSum, firstCount, prefillSum, prefillCount,
			},
		} {
			for _, name := range slices.Concat(metrics...) {
				ranges[name] = r
			}
		}
		return ranges
	}()

	// wantedNames lists the metrics that show a cluster; the start time of a process does not.
	wantedNames = slices.DeleteFunc(slices.Sorted(maps.Keys(wanted)), func(name string) bool {
		return slices.Contains(processStart, name)
	})
)

// engineOf returns the engine that a metric belongs to, "" for a metric of no engine.
func engineOf(name string) string {
	switch {
	case strings.HasPrefix(name, "trtllm"):
		return "trtllm"
	case strings.HasPrefix(name, "vllm:"):
		return "vllm"
	case strings.HasPrefix(name, "sglang:"):
		return "sglang"
	}
	return ""
}

// isFrontends reports whether a metric belongs to a Dynamo frontend or to the router inside it.
func isFrontends(name string) bool {
	return strings.HasPrefix(name, "dynamo_frontend_") || strings.HasPrefix(name, "dynamo_component_router_")
}

// isCounter reports whether a metric is a counter, or a histogram's sum or count.
func isCounter(name string) bool {
	return strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_sum") || strings.HasSuffix(name, "_count")
}
