package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/sim"
)

// engine is what an inference engine counts and how it names it.
type engine interface {
	firstToken(life)
	step(gap float64) // seconds between two chunks of a request
	finished(life)    // with success
	collect(sink, sim.WorkerStats, sim.WorkerCounters)
}

// engines make an engine that serves a model.
var engines = map[string]func(model string) engine{"trtllm": newTRTLLM, "vllm": newVLLM}

// trtllm is TensorRT-LLM, which counts a request's times at its end.
type trtllm struct {
	labels                           prometheus.Labels
	counted                          set
	queue, first, perToken, endToEnd prometheus.Histogram
	success                          *prometheus.CounterVec
}

func newTRTLLM(model string) engine {
	e := &trtllm{labels: prometheus.Labels{"model_name": model, "engine_type": "trtllm"}}
	s := &e.counted
	e.queue = s.histogram(e.labels, "trtllm_request_queue_time_seconds",
		"Time that requests waited before they were scheduled, in seconds", engineRequestBounds)
	e.first = s.histogram(e.labels, "trtllm_time_to_first_token_seconds", "Time to first token in seconds", engineFirstTokenBounds)
	e.perToken = s.histogram(e.labels, "trtllm_time_per_output_token_seconds",
		"Mean time per output token of a request after its first, in seconds", engineTokenBounds)
	e.endToEnd = s.histogram(e.labels, "trtllm_e2e_request_latency_seconds", "Latency of requests in seconds", engineRequestBounds)
	e.success = s.counters(e.labels, "trtllm_request_success_total", "Requests that were processed successfully", "finished_reason")
	return e
}

func (e *trtllm) firstToken(life) {}
func (e *trtllm) step(float64)    {}

func (e *trtllm) finished(l life) {
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
	out.gauge(e.labels, "trtllm_kv_cache_hit_rate", "Share of the prompt tokens found in the KV cache (0 to 1)",
		share(n.CachedTokens, n.PromptTokens))
	out.gauge(e.labels, "trtllm_kv_cache_utilization", "Share of the KV cache's blocks in use (0 to 1)", s.CacheUse())
	out.gauge(e.labels, "trtllm_num_requests_running", "Requests in the batch", float64(s.Running))
	out.gauge(e.labels, "trtllm_num_requests_waiting", "Requests in the queue", float64(s.Waiting))
	if n.Steps == 0 {
		return
	}
	perStep := 1 + share(n.AcceptedTokens, n.Steps)
	out.gauge(e.labels, "trtllm_avg_decoded_tokens_per_iter", "Mean tokens that a sequence got from an iteration", perStep)
	if n.DraftedTokens == 0 {
		return
	}
	out.counter(e.labels, "trtllm_spec_decode_num_draft_tokens_total", "Tokens drafted", n.DraftedTokens)
	out.counter(e.labels, "trtllm_spec_decode_num_accepted_tokens_total", "Drafted tokens that were accepted", n.AcceptedTokens)
	out.gauge(e.labels, "trtllm_spec_decode_acceptance_length", "Mean tokens of a verified step, its own one included", perStep)
}

// vllm is vLLM, which counts times as they are known.
type vllm struct {
	labels                             prometheus.Labels
	counted                            set
	queue, first, interToken, endToEnd prometheus.Histogram
}

func newVLLM(model string) engine {
	e := &vllm{labels: prometheus.Labels{"model_name": model, "engine": "0"}}
	s := &e.counted
	e.queue = s.histogram(e.labels, "vllm:request_queue_time_seconds",
		"Histogram of time spent in WAITING phase for request.", engineRequestBounds)
	e.first = s.histogram(e.labels, "vllm:time_to_first_token_seconds",
		"Histogram of time to first token in seconds.", engineFirstTokenBounds)
	e.interToken = s.histogram(e.labels, "vllm:inter_token_latency_seconds",
		"Histogram of inter-token latency in seconds.", engineTokenBounds)
	e.endToEnd = s.histogram(e.labels, "vllm:e2e_request_latency_seconds",
		"Histogram of e2e request latency in seconds.", engineRequestBounds)
	return e
}

func (e *vllm) firstToken(l life) { e.first.Observe(l.firstToken.Seconds()) }

// step counts each iteration of a sequence once, however many tokens it gave.
func (e *vllm) step(gap float64) { e.interToken.Observe(gap) }

func (e *vllm) finished(l life) {
	e.queue.Observe(l.queued.Seconds())
	e.endToEnd.Observe(l.total.Seconds())
}

func (e *vllm) collect(out sink, s sim.WorkerStats, n sim.WorkerCounters) {
	out.all(e.counted)
	out.counter(e.labels, "vllm:prefix_cache_queries_total", "Prefix cache queries, in tokens.", n.PromptTokens)
	out.counter(e.labels, "vllm:prefix_cache_hits_total", "Prefix cache hits, in tokens.", n.CachedTokens)
	out.gauge(e.labels, "vllm:kv_cache_usage_perc", "KV-cache usage as a fraction of available cache blocks.", s.CacheUse())
	out.gauge(e.labels, "vllm:num_requests_running", "Number of requests currently running on GPU.", float64(s.Running))
	out.gauge(e.labels, "vllm:num_requests_waiting", "Number of requests waiting to be processed.", float64(s.Waiting))
	out.counter(e.labels, "vllm:num_preemptions_total", "Cumulative number of request preemptions.", n.Preemptions)
	if n.DraftedTokens == 0 {
		return
	}
	out.counter(e.labels, "vllm:spec_decode_num_drafts_total", "Number of drafts.", n.Steps)
	out.counter(e.labels, "vllm:spec_decode_num_draft_tokens_total", "Number of draft tokens.", n.DraftedTokens)
	out.counter(e.labels, "vllm:spec_decode_num_accepted_tokens_total", "Number of accepted draft tokens.", n.AcceptedTokens)
}

// share is a part of a whole, 0 of nothing.
func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
