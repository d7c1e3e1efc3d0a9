package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// frontend holds the metrics of one process of the frontend, including its router.
type frontend struct {
	profile       sim.Profile
	id            uint64
	base          Snapshot // the cluster's counters at the start of the process
	reportsCached bool     // the engines report cached tokens
	latest        map[sim.WorkerID]*latest

	counted   set // metrics of every mode
	countedKV set // metrics of kv only

	started, requests, canceled, rejected                  *prometheus.CounterVec
	output                                                 prometheus.Counter
	inflight, active, queued, disconnected                 prometheus.Gauge
	preprocess, route, dispatch, sent                      prometheus.Gauge
	firstToken, interToken, duration                       prometheus.Histogram
	input, cached, outputTokens, roundTrip, roundTripStage prometheus.Histogram

	routerStarted, routerRequests, admitted                                prometheus.Counter
	routerFirstToken, routerInterToken, routerInput, routerOutput, hitRate prometheus.Histogram
}

// latest holds the latest values of a worker, in seconds; 0 before the first.
type latest struct {
	firstToken, interToken float64
	inputTokens            int
}

func newFrontend(p sim.Profile, id uint64, reportsCached bool, base Snapshot) *frontend {
	f := &frontend{
		profile: p, id: id, base: base, reportsCached: reportsCached, latest: map[sim.WorkerID]*latest{},
	}
	f.countRequests()
	f.countTimes()
	f.countRouter()
	return f
}

func (f *frontend) copyLatest() map[sim.WorkerID]latest {
	all := make(map[sim.WorkerID]latest, len(f.latest))
	for id, l := range f.latest {
		all[id] = *l
	}
	return all
}

func (f *frontend) model() prometheus.Labels { return prometheus.Labels{"model": f.profile.Model} }

// component returns the labels of a process's metrics about itself.
func component(id uint64) prometheus.Labels {
	return prometheus.Labels{"dynamo_namespace": "dynamo", "dynamo_component": "backend", "worker_id": hexadecimal(id)}
}

const chat = "chat_completions"

func (f *frontend) countRequests() {
	s, model, endpoint := &f.counted, f.model(), with(f.model(), "endpoint", chat)
	stage := func(name, phase string) prometheus.Gauge {
		return s.gauge(prometheus.Labels{"stage": name, "phase": phase}, "dynamo_frontend_stage_requests",
			"Number of requests currently in the given pipeline stage")
	}
	f.started = s.counters(endpoint, "dynamo_frontend_requests_started_total",
		"Total number of LLM requests accepted by the frontend handler", "request_type")
	f.requests = s.counters(endpoint, "dynamo_frontend_requests_total",
		"Total number of LLM requests processed", "error_type", "request_type", "status")
	f.canceled = s.counters(endpoint, "dynamo_frontend_model_cancellation_total",
		"Total number of request cancellations", "request_type")
	f.rejected = s.counters(endpoint, "dynamo_frontend_model_rejection_total",
		"Total number of requests rejected for lack of capacity")
	f.inflight = s.gauge(model, "dynamo_frontend_inflight_requests", "Number of inflight requests")
	f.active = s.gauge(model, "dynamo_frontend_active_requests",
		"Number of requests currently being handled by the frontend, from HTTP handler entry to response completion")
	f.queued = s.gauge(model, "dynamo_frontend_queued_requests", "Number of requests in HTTP processing queue")
	f.disconnected = s.gauge(nil, "dynamo_frontend_disconnected_clients", "Number of disconnected clients")
	f.preprocess = stage("preprocess", "")
	f.route = stage("route", "aggregated")
	f.dispatch = stage("dispatch", "aggregated")
	f.sent = s.gauge(nil, "dynamo_request_plane_inflight_requests", "Currently in-flight requests at AddressedPushRouter")
	f.output = s.counter(model, "dynamo_frontend_output_tokens_total",
		"Total number of output tokens generated (updates in real-time)")
}

func (f *frontend) countTimes() {
	s, model := &f.counted, f.model()
	f.firstToken = s.histogram(model, "dynamo_frontend_time_to_first_token_seconds",
		"Time to first token in seconds", firstTokenBounds)
	f.interToken = s.histogram(model, "dynamo_frontend_inter_token_latency_seconds",
		"Inter-token latency in seconds", interTokenBounds)
	f.duration = s.histogram(model, "dynamo_frontend_request_duration_seconds",
		"Duration of LLM requests", requestBounds)
	f.input = s.histogram(model, "dynamo_frontend_input_sequence_tokens",
		"Input sequence length in tokens", inputTokenBounds)
	f.outputTokens = s.histogram(model, "dynamo_frontend_output_sequence_tokens",
		"Output sequence length in tokens", outputTokenBounds)
	f.cached = s.histogram(model, "dynamo_frontend_cached_tokens",
		"Number of cached tokens (prefix cache hits) per request", inputTokenBounds)
	f.roundTripStage = s.histogram(prometheus.Labels{"stage": "transport_roundtrip"},
		"dynamo_frontend_stage_duration_seconds", "Pipeline stage duration (seconds)", stageBounds)
	f.roundTrip = s.histogram(nil, "dynamo_request_plane_roundtrip_ttft_seconds",
		"Time from send_request() to first response item (seconds)", roundTripBounds)
}

// countRouter makes the router's own metrics. Some are never counted and stay at zero, as on a real frontend without
// disaggregated serving and without a shared cache, where lost overlaps are counted for prefill workers only.
func (f *frontend) countRouter() {
	s := &f.counted
	router := with(component(f.id), "router_id", decimal(f.id))
	prefill := with(router, "worker_type", "prefill")
	f.routerStarted = s.counter(router, "dynamo_component_router_requests_started_total",
		"Total number of requests admitted by the router scheduler")
	f.routerRequests = s.counter(router, "dynamo_component_router_requests_total",
		"Total number of requests processed by the router")
	f.routerFirstToken = s.histogram(router, "dynamo_component_router_time_to_first_token_seconds",
		"Time to first token observed at the router", firstTokenBounds)
	f.routerInterToken = s.histogram(router, "dynamo_component_router_inter_token_latency_seconds",
		"Average inter-token latency observed at the router", routerMeanITLBounds)
	f.routerInput = s.histogram(with(router, "model", f.profile.Model, "phase", "aggregated"),
		"dynamo_component_router_input_sequence_tokens",
		"Input sequence length in tokens observed at the router", inputTokenBounds)
	f.routerOutput = s.histogram(router, "dynamo_component_router_output_sequence_tokens",
		"Output sequence length in tokens observed at the router", outputTokenBounds)
	f.hitRate = s.histogram(router, "dynamo_component_router_kv_hit_rate",
		"Predicted KV cache hit rate at routing time (0.0-1.0)", rateBounds)
	s.histogram(router, "dynamo_component_router_kv_transfer_estimated_latency_seconds",
		"Upper-bound estimation of KV cache transfer latency in disaggregated serving "+
			"(prefill_complete to first_token)", transferBounds)
	s.histogram(router, "dynamo_component_router_shared_cache_hit_rate",
		"Fraction of request blocks found in the shared KV cache (0.0-1.0)", rateBounds)
	s.histogram(router, "dynamo_component_router_shared_cache_beyond_blocks",
		"Shared cache blocks beyond device overlap for the selected worker", beyondBlocksBounds)
	s.counter(prefill, "dynamo_component_router_non_max_overlap_selections_total",
		"Total admitted prefill scheduler selections with less KV cache overlap than another eligible worker")
	s.histogram(prefill, "dynamo_component_router_overlap_blocks_lost",
		"Difference in effective KV cache overlap between the highest-overlap eligible prefill worker "+
			"and selected worker", blocksLostBounds)
	s.counter(prometheus.Labels{"router_id": decimal(f.id)}, "dynamo_router_shared_cache_errors_total",
		"Total shared cache failures")
	f.admitted = f.countedKV.counter(with(f.model(), "policy_class", "default", "worker_type", "decode"),
		"dynamo_frontend_router_admission_received_total",
		"Total attempts received by router admission; includes retries and excludes advisory probes")
}

// collect writes the frontend's page.
func (f *frontend) collect(out sink, s Snapshot, latest map[sim.WorkerID]latest) {
	kv := s.State.Mode == api.ModeKV
	out.all(f.counted)
	if kv {
		out.all(f.countedKV)
		f.collectQueue(out)
		f.collectOverlap(out, s.Router)
		f.collectEvents(out, s.Workers)
	}
	f.collectModel(out, s.Workers)
	for _, w := range s.Workers {
		if w.Ready {
			f.collectWorker(out, w, latest[w.ID], kv)
		}
	}
	collectUptime(out, f.id, s.Now-s.State.ReadyAt)
}

func collectUptime(out sink, id uint64, uptime time.Duration) {
	out.gauge(prometheus.Labels{"worker_id": hexadecimal(id)}, "dynamo_component_uptime_seconds",
		"Total uptime of the DistributedRuntime in seconds", uptime.Seconds())
}

func (f *frontend) collectModel(out sink, workers []sim.WorkerStats) {
	ready := 0.
	for _, w := range workers {
		if w.Ready {
			ready = 1
		}
	}
	p := f.profile
	for _, g := range []struct {
		name, help string
		value      float64
	}{
		{
			"ready",
			"Whether the frontend can route at least one inference request for the model (1 = ready, 0 = not ready)", ready,
		},
		{"total_kv_blocks", "Total KV cache blocks available for a worker serving the model", float64(p.KV.Blocks)},
		{
			"kv_cache_block_size",
			"KV cache block size in tokens for a worker serving the model", float64(p.KV.BlockTokens),
		},
		{"max_num_seqs", "Maximum number of sequences for a worker serving the model", float64(p.MaxSequences)},
		{
			"max_num_batched_tokens",
			"Maximum number of batched tokens for a worker serving the model", float64(p.MaxBatchedTokens),
		},
		{"context_length", "Maximum context length in tokens for a worker serving the model", float64(p.KV.Tokens())},
		{"migration_limit", "Maximum number of request migrations allowed for the model", 0},
	} {
		out.gauge(f.model(), "dynamo_frontend_model_"+g.name, g.help, g.value)
	}
}

// collectQueue writes the state of the router's queue, which is always empty.
func (f *frontend) collectQueue(out sink) {
	labels := with(f.model(), "policy_class", "default", "worker_type", "decode")
	for _, reason := range []string{"due_time_passed", "predicted_miss"} {
		out.counter(with(labels, "reason", reason), "dynamo_frontend_router_admission_rejected_total",
			"Total router admission rejections by deadline reason", 0)
	}
	for _, reason := range []string{"cached_token_limit", "raw_isl_token_limit", "request_limit"} {
		out.counter(with(labels, "reason", reason), "dynamo_frontend_router_queue_backpressure_total",
			"Total number of router scheduler queue backpressure rejections", 0)
	}
	out.gauge(labels, "dynamo_frontend_router_queue_pending_requests",
		"Number of requests pending in the router scheduler queue", 0)
	out.gauge(labels, "dynamo_frontend_router_queue_pending_isl_tokens",
		"Sum of isl_tokens for requests pending in the router scheduler queue", 0)
	out.gauge(labels, "dynamo_frontend_router_queue_pending_cached_tokens",
		"Estimated cached tokens for requests pending in the router scheduler queue", 0)
}

func (f *frontend) collectOverlap(out sink, r sim.RouterStats) {
	labels := with(component(f.id), "router_id", decimal(f.id), "model", f.profile.Model, "phase", "aggregated")
	base := f.base.Router
	out.counter(labels, "dynamo_component_router_kv_best_eligible_cached_prefix_tokens_total",
		"Raw cached prefix tokens on the best eligible worker at selection time", r.BestCachedTokens-base.BestCachedTokens)
	out.counter(labels, "dynamo_component_router_kv_selected_cached_prefix_tokens_total",
		"Raw cached prefix tokens on the selected worker and DP rank", r.SelectedCachedTokens-base.SelectedCachedTokens)
	reused := r.WorkerReusedTokens - base.WorkerReusedTokens
	if !f.reportsCached {
		reused = 0
	}
	out.counter(labels, "dynamo_component_router_kv_worker_reused_tokens_total",
		"Worker-reported reused tokens per routing attempt", reused)
}

// outcomes are the outcomes of a cache event in Dynamo's index. The simulation has only the first.
var outcomes = []string{
	"ok", "allocation_failed", "block_not_found", "capacity_exhausted", "indexer_invariant_violation",
	"invalid_block", "ownership_degree_overflow", "parent_block_not_found", "unsupported_residency_domain",
}

func (f *frontend) collectEvents(out sink, workers []sim.WorkerStats) {
	applied := map[string]int64{"stored": 0, "removed": 0, "cleared": 0}
	add := func(all []sim.WorkerStats, sign int64) {
		for _, w := range all {
			applied["stored"] += sign * w.StoredEvents
			applied["removed"] += sign * w.RemovedEvents
			applied["cleared"] += sign * w.ClearedEvents
		}
	}
	add(workers, 1)
	add(f.base.Workers, -1)
	labels := component(f.id)
	for event, n := range applied {
		for _, outcome := range outcomes {
			out.counter(with(labels, "event_type", event, "status", outcome), "dynamo_component_kv_cache_events_applied",
				"Total number of KV cache events applied to index", n)
			n = 0 // the simulation has no other outcome
		}
	}
	out.counter(with(labels, "warning_kind", "duplicate_store"), "dynamo_component_kv_cache_event_warnings",
		"Total number of suspicious KV cache events seen by the router indexer", 0)
}

// collectWorker writes the frontend's metrics of a worker.
func (f *frontend) collectWorker(out sink, w sim.WorkerStats, l latest, kv bool) {
	id, rank := decimal(uint64(w.ID)), "none"
	if kv {
		rank = "0"
	}
	labels := prometheus.Labels{"worker_id": id, "dp_rank": rank, "worker_type": "decode"}
	if l.firstToken > 0 {
		out.gauge(labels, "dynamo_frontend_worker_last_time_to_first_token_seconds",
			"Last observed time to first token per worker (seconds)", l.firstToken)
		out.gauge(labels, "dynamo_frontend_worker_last_input_sequence_tokens",
			"Last observed input sequence tokens per worker", float64(l.inputTokens))
	}
	if l.interToken > 0 {
		out.gauge(labels, "dynamo_frontend_worker_last_inter_token_latency_seconds",
			"Last observed inter-token latency per worker (seconds)", l.interToken)
	}
	if !kv {
		return
	}
	out.gauge(labels, "dynamo_frontend_worker_active_decode_blocks",
		"Active KV cache decode blocks per worker", float64(w.ActiveDecodeBlocks))
	out.gauge(labels, "dynamo_frontend_worker_active_prefill_tokens",
		"Active prefill tokens queued per worker", float64(w.ActivePrefillTokens))
	out.gauge(with(component(f.id), "router_worker_id", id, "dp_rank", rank, "worker_type", "decode"),
		"dynamo_component_router_worker_registered",
		"Whether the router currently has this worker/dp_rank registered (1 = registered)", 1)
}
