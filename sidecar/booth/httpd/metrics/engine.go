package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/sim"
)

// engine implements the metrics of an inference engine.
type engine interface {
	firstToken(workerTiming)
	step(gap float64, tokens int) // gap between two chunks of a request in seconds; tokens of the later chunk
	finished(workerTiming)        // called for successful requests
	collect(sink, sim.WorkerStats, sim.WorkerCounters)
}

// engines maps names to constructors for the engine of a deployment.
var engines = map[string]func(sim.Profile) engine{"trtllm": newTRTLLM, "vllm": newVLLM, "sglang": newSGLang}

// ReportsCachedTokens reports whether an engine returns the number of cached prompt tokens of each request. SGLang
// with its defaults (without --enable-cache-report) does not, and neither does Dynamo's mock of it, so that usage and
// the frontend's metrics lack that number.
func ReportsCachedTokens(engine string) bool { return engine != "sglang" }

// trtllm implements TensorRT-LLM, which counts a request's times at its end.
type trtllm struct {
	labels                           prometheus.Labels
	counted                          set
	queue, first, perToken, endToEnd prometheus.Histogram
	success                          *prometheus.CounterVec
}

func newTRTLLM(p sim.Profile) engine {
	e := &trtllm{labels: prometheus.Labels{"model_name": p.Model, "engine_type": "trtllm"}}
	s := &e.counted
	e.queue = s.histogram(e.labels, "trtllm_request_queue_time_seconds",
		"Time that requests waited before they were scheduled, in seconds", engineRequestBounds)
	e.first = s.histogram(e.labels, "trtllm_time_to_first_token_seconds",
		"Time to first token in seconds", engineFirstTokenBounds)
	e.perToken = s.histogram(e.labels, "trtllm_time_per_output_token_seconds",
		"Mean time per output token of a request after its first, in seconds", engineTokenBounds)
	e.endToEnd = s.histogram(e.labels, "trtllm_e2e_request_latency_seconds",
		"Latency of requests in seconds", engineRequestBounds)
	e.success = s.counters(e.labels, "trtllm_request_success_total",
		"Requests that were processed successfully", "finished_reason")
	return e
}

func (e *trtllm) firstToken(workerTiming) {}
func (e *trtllm) step(float64, int)       {}

func (e *trtllm) finished(l workerTiming) {
	e.queue.Observe(l.queued.Seconds())
	e.first.Observe(l.firstToken.Seconds())
	e.endToEnd.Observe(l.total.Seconds())
	if l.outputTokens > 1 {
		e.perToken.Observe(l.perOutputToken().Seconds())
	}
	e.success.WithLabelValues(string(l.reason)).Inc()
}

func (e *trtllm) collect(out sink, s sim.WorkerStats, n sim.WorkerCounters) {
	out.all(e.counted)
	if n.PromptTokens > 0 {
		out.gauge(e.labels, "trtllm_kv_cache_hit_rate", "Share of the prompt tokens found in the KV cache (0 to 1)",
			share(n.CachedTokens, n.PromptTokens))
	}
	out.gauge(e.labels, "trtllm_kv_cache_utilization",
		"Share of the KV cache's blocks in use (0 to 1)", s.CacheUse())
	out.gauge(e.labels, "trtllm_num_requests_running", "Requests in the batch", float64(s.Running))
	out.gauge(e.labels, "trtllm_num_requests_waiting", "Requests in the queue", float64(s.Waiting))
	if n.Steps == 0 {
		return
	}
	perStep := 1 + share(n.AcceptedTokens, n.Steps)
	out.gauge(e.labels, "trtllm_avg_decoded_tokens_per_iter",
		"Mean tokens that a sequence got from an iteration", perStep)
	if n.DraftedTokens == 0 {
		return
	}
	out.counter(e.labels, "trtllm_spec_decode_num_draft_tokens_total", "Tokens drafted", n.DraftedTokens)
	out.counter(e.labels, "trtllm_spec_decode_num_accepted_tokens_total",
		"Drafted tokens that were accepted", n.AcceptedTokens)
	out.gauge(e.labels, "trtllm_spec_decode_acceptance_length",
		"Mean tokens of a verified step, its own one included", perStep)
}

// vllm implements vLLM, which counts times as soon as they are known.
type vllm struct {
	labels                                                prometheus.Labels
	counted                                               set
	queue, prefill, first, interToken, perToken, endToEnd prometheus.Histogram
	success                                               *prometheus.CounterVec
	blockTokens                                           int
}

func newVLLM(p sim.Profile) engine {
	e := &vllm{labels: prometheus.Labels{"model_name": p.Model, "engine": "0"}, blockTokens: p.KV.BlockTokens}
	s := &e.counted
	e.queue = s.histogram(e.labels, "vllm:request_queue_time_seconds",
		"Histogram of time spent in WAITING phase for request.", engineRequestBounds)
	e.prefill = s.histogram(e.labels, "vllm:request_prefill_time_seconds",
		"Histogram of time spent in PREFILL phase for request.", engineRequestBounds)
	e.first = s.histogram(e.labels, "vllm:time_to_first_token_seconds",
		"Histogram of time to first token in seconds.", engineFirstTokenBounds)
	e.interToken = s.histogram(e.labels, "vllm:inter_token_latency_seconds",
		"Histogram of inter-token latency in seconds.", engineTokenBounds)
	e.perToken = s.histogram(e.labels, "vllm:request_time_per_output_token_seconds",
		"Histogram of time_per_output_token_seconds per request.", engineTokenBounds)
	e.success = s.counters(e.labels, "vllm:request_success_total",
		"Count of successfully processed requests.", "finished_reason")
	e.endToEnd = s.histogram(e.labels, "vllm:e2e_request_latency_seconds",
		"Histogram of e2e request latency in seconds.", engineRequestBounds)
	return e
}

func (e *vllm) firstToken(l workerTiming) { e.first.Observe(l.firstToken.Seconds()) }

// step counts each iteration of a sequence once, regardless of its number of tokens.
func (e *vllm) step(gap float64, _ int) { e.interToken.Observe(gap) }

func (e *vllm) finished(l workerTiming) {
	e.queue.Observe(l.queued.Seconds())
	e.prefill.Observe(max(0, l.firstToken-l.queued).Seconds())
	e.success.WithLabelValues(string(l.reason)).Inc()
	if l.outputTokens > 1 {
		e.perToken.Observe(l.perOutputToken().Seconds())
	}
	e.endToEnd.Observe(l.total.Seconds())
}

func (e *vllm) collect(out sink, s sim.WorkerStats, n sim.WorkerCounters) {
	out.all(e.counted)
	cache := prometheus.Labels{
		"engine": "0", "block_size": strconv.Itoa(e.blockTokens), "num_gpu_blocks": strconv.Itoa(s.TotalBlocks),
		"enable_prefix_caching": "True",
	}
	out.gauge(cache, "vllm:cache_config_info", "Information of the LLMEngine CacheConfig", 1)
	out.counter(e.labels, "vllm:prompt_tokens_total", "Number of prefill tokens processed.", n.PromptTokens)
	out.counter(e.labels, "vllm:generation_tokens_total", "Number of generation tokens processed.", n.OutputTokens)
	out.counter(e.labels, "vllm:prefix_cache_queries_total", "Prefix cache queries, in tokens.", n.PromptTokens)
	out.counter(e.labels, "vllm:prefix_cache_hits_total", "Prefix cache hits, in tokens.", n.CachedTokens)
	out.gauge(e.labels, "vllm:kv_cache_usage_perc",
		"KV-cache usage as a fraction of available cache blocks.", s.CacheUse())
	out.gauge(e.labels, "vllm:num_requests_running",
		"Number of requests currently running on GPU.", float64(s.Running))
	out.gauge(e.labels, "vllm:num_requests_waiting",
		"Number of requests waiting to be processed.", float64(s.Waiting))
	out.counter(e.labels, "vllm:num_preemptions_total", "Cumulative number of request preemptions.", n.Preemptions)
	if n.DraftedTokens == 0 {
		return
	}
	out.counter(e.labels, "vllm:spec_decode_num_drafts_total", "Number of drafts.", n.Steps)
	out.counter(e.labels, "vllm:spec_decode_num_draft_tokens_total", "Number of draft tokens.", n.DraftedTokens)
	out.counter(e.labels, "vllm:spec_decode_num_accepted_tokens_total",
		"Number of accepted draft tokens.", n.AcceptedTokens)
}

// sglang implements SGLang, which counts times as soon as they are known and reports the hit rate of its latest
// prefill. Metrics that Dynamo's mock of it lacks have SGLang's own names, buckets and moments of counting.
type sglang struct {
	labels, ranks                      prometheus.Labels // ranks for gauges, labels for the others
	counted                            set
	requests, generated                prometheus.Counter
	queue, first, interToken, endToEnd prometheus.Histogram
	blockTokens                        int
	prefilled                          bool // hitRate is valid
	hitRate                            float64
}

func newSGLang(p sim.Profile) engine {
	e := &sglang{
		labels: prometheus.Labels{"model_name": p.Model, "engine_type": "sglang"}, blockTokens: p.KV.BlockTokens,
	}
	e.ranks = with(e.labels, "tp_rank", "0", "pp_rank", "0", "moe_ep_rank", "0")
	s := &e.counted
	e.requests = s.counter(e.labels, "sglang:num_requests_total", "Number of requests processed.")
	e.generated = s.counter(e.labels, "sglang:generation_tokens_total", "Number of generation tokens processed.")
	e.queue = s.histogram(e.ranks, "sglang:queue_time_seconds",
		"Histogram of queueing time in seconds.", sglangQueueBounds)
	e.first = s.histogram(e.labels, "sglang:time_to_first_token_seconds",
		"Histogram of time to first token in seconds.", sglangFirstTokenBounds)
	e.interToken = s.histogram(e.labels, "sglang:inter_token_latency_seconds",
		"Histogram of inter-token latency in seconds.", sglangTokenBounds)
	e.endToEnd = s.histogram(e.labels, "sglang:e2e_request_latency_seconds",
		"Histogram of End-to-end request latency in seconds", sglangRequestBounds)
	return e
}

func (e *sglang) firstToken(l workerTiming) {
	e.queue.Observe(l.queued.Seconds())
	e.first.Observe(l.firstToken.Seconds())
	e.prefilled, e.hitRate = true, share(int64(l.cachedTokens), int64(l.promptTokens))
}

// step counts each token, with its share of the gap between the chunks.
func (e *sglang) step(gap float64, tokens int) {
	for range tokens {
		e.interToken.Observe(gap / float64(tokens))
	}
}

func (e *sglang) finished(l workerTiming) {
	e.requests.Inc()
	e.generated.Add(float64(l.outputTokens))
	e.endToEnd.Observe(l.total.Seconds())
}

func (e *sglang) collect(out sink, s sim.WorkerStats, n sim.WorkerCounters) {
	out.all(e.counted)
	out.counter(e.labels, "sglang:prompt_tokens_total", "Number of prefill tokens processed.", n.PromptTokens)
	out.counter(with(e.labels, "cache_source", "device"), "sglang:cached_tokens_total",
		"Number of cached prompt tokens.", n.CachedTokens)
	out.gauge(e.ranks, "sglang:num_running_reqs", "The number of running requests.", float64(s.Running))
	out.gauge(e.ranks, "sglang:num_queue_reqs", "The number of queued requests.", float64(s.Waiting))
	out.gauge(e.ranks, "sglang:token_usage", "The token usage.", s.CacheUse())
	used, most := float64(s.ActiveBlocks*e.blockTokens), float64(s.TotalBlocks*e.blockTokens)
	out.gauge(e.ranks, "sglang:num_used_tokens", "The number of used tokens.", used)
	out.gauge(e.ranks, "sglang:max_total_num_tokens", "Maximum total number of tokens in the KV cache pool.", most)
	if e.prefilled {
		out.gauge(e.ranks, "sglang:cache_hit_rate", "Cache hit rate.", e.hitRate)
	}
	if n.DraftedTokens == 0 {
		return
	}
	out.gauge(e.ranks, "sglang:spec_accept_length",
		"The average acceptance length of speculative decoding.", 1+share(n.AcceptedTokens, n.Steps))
	out.gauge(e.ranks, "sglang:spec_accept_rate",
		"The average acceptance rate of speculative decoding.", share(n.AcceptedTokens, n.DraftedTokens))
}

// share returns part over whole, or 0 if the whole is 0.
func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
