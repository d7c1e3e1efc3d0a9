package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/sim"
)

// worker holds the metrics of one process of a worker: Dynamo's work handler and its engine.
type worker struct {
	model string
	out   time.Duration // time of a token in the frontend
	id    uint64
	base  sim.WorkerCounters // the cluster's counters at the start of the process

	counted  set
	duration prometheus.Histogram
	canceled prometheus.Counter
	engine   engine
}

func newWorker(p sim.Profile, kind string, id sim.WorkerID, base sim.WorkerCounters) *worker {
	w := &worker{
		model: p.Model, id: uint64(id), base: base, engine: engines[kind](p),
		out: time.Duration(p.Frontend.Out * float64(time.Millisecond)),
	}
	w.duration = w.counted.histogram(w.endpoint(), "dynamo_component_request_duration_seconds",
		"Time spent processing requests by work handler", workHandlerBounds)
	w.canceled = w.counted.counter(w.endpoint(), "dynamo_component_cancellation_total",
		"Total number of requests cancelled by work handler")
	return w
}

func (w *worker) endpoint() prometheus.Labels {
	return with(component(w.id), "dynamo_endpoint", "generate")
}

// workerTiming is a request from its worker's point of view: from its arrival there until its tokens leave the worker.
type workerTiming struct {
	queued, firstToken, total time.Duration
	outputTokens              int
	promptTokens              int
	cachedTokens              int // cached tokens of the prompt
	reason                    sim.FinishReason
}

func (w *worker) timing(r *sim.Report) workerTiming {
	since := func(at time.Duration) time.Duration { return max(0, at-r.Arrived-w.out) }
	return workerTiming{
		queued: max(0, r.Started-r.Arrived), firstToken: since(r.FirstToken), total: since(r.Ended),
		outputTokens: r.OutputTokens, promptTokens: r.PromptTokens, cachedTokens: r.CachedTokens,
		reason: r.Reason,
	}
}

func (l workerTiming) perOutputToken() time.Duration {
	return (l.total - l.firstToken) / time.Duration(max(1, l.outputTokens-1))
}

func (w *worker) finished(r *sim.Report) {
	l := w.timing(r)
	w.duration.Observe(l.total.Seconds())
	switch {
	case r.Err == nil:
		w.engine.finished(l)
	case errors.Is(r.Err, sim.ErrCanceled):
		w.canceled.Inc()
	}
}

// counts returns the worker's counters since its process started.
func (w *worker) counts(s sim.WorkerStats) sim.WorkerCounters {
	b := w.base
	return sim.WorkerCounters{
		Arrived: s.Arrived - b.Arrived, Preemptions: s.Preemptions - b.Preemptions,
		PromptTokens: s.PromptTokens - b.PromptTokens, CachedTokens: s.CachedTokens - b.CachedTokens,
		OutputTokens: s.OutputTokens - b.OutputTokens,
		Steps:        s.Steps - b.Steps, DraftedTokens: s.DraftedTokens - b.DraftedTokens,
		AcceptedTokens: s.AcceptedTokens - b.AcceptedTokens,
	}
}

// collect writes the worker's page.
func (w *worker) collect(out sink, s sim.WorkerStats, now time.Duration) {
	n, endpoint, present := w.counts(s), w.endpoint(), float64(s.Running+s.Waiting)
	out.all(w.counted)
	out.counter(endpoint, "dynamo_component_requests_total",
		"Total number of requests processed by work handler", n.Arrived)
	out.gauge(endpoint, "dynamo_component_inflight_requests",
		"Number of requests currently being processed by work handler", present)
	out.gauge(nil, "dynamo_engine_request",
		"Current number of requests being handled by the engine (--engine-request-limit)", present)
	out.gauge(nil, "dynamo_request_queue",
		"Current number of requests queued in Dynamo not yet in the engine (--dynamo-request-queue-limit)", 0)
	out.counter(nil, "dynamo_rejection_request_total",
		"Requests rejected because the worker is at capacity (engine in-flight limit and Dynamo queue both full)", 0)
	out.counter(component(w.id), "dynamo_component_kv_publisher_engines_dropped_events_total",
		"Total number of raw events dropped by engines before reaching publisher (detected via event_id gaps)", 0)
	cache := with(endpoint, "model", w.model)
	out.gauge(cache, "dynamo_component_total_blocks",
		"Total number of KV cache blocks of the worker", float64(s.TotalBlocks))
	out.gauge(cache, "dynamo_component_gpu_cache_usage_percent",
		"KV cache usage of the worker (0.0-1.0)", s.CacheUse())
	collectUptime(out, w.id, now-s.ReadyAt)
	w.engine.collect(out, s, n)
}
