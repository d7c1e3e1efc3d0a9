// Package router describes the routers that may stand in front of the engines: how each is recognized, where it names
// the worker of a turn, which fields of a request it drops, and the names of its metrics.
//
// Routers with [Router.Measured] were run, and testdata has a scrape of each. The facts on the others come from their
// documentation and source.
package router

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
)

// Router describes one router program.
type Router struct {
	ID       string // value of target.router
	Name     string // display name
	Measured bool   // the facts come from a run

	// Prefixes are the beginnings of metric names that only this router's page has.
	Prefixes []string
	// Header is a response header that only this router sets; "" if there is none.
	Header string
	// Path is a path that answers with status 200 and a body that contains Body; "" if there is none.
	Path, Body string

	// Worker describes where the worker of a turn is found, for messages.
	Worker string
	// WorkerHeaders name the worker in a response, the most precise first.
	WorkerHeaders []string
	// Sessions are the headers that identify a session for this router, in the notation of target.session.
	Sessions []string
	// RoutesByRequestID is true if X-Request-Id selects the worker, so that each turn goes to another one.
	RoutesByRequestID bool
	// Drops lists the fields of a request's body that do not reach the engine.
	Drops []string

	Metrics Metrics
}

// Metrics names a router's metrics. An empty field means that the router has no such metric.
type Metrics struct {
	Page     string // place of the metrics, if not the target's /metrics
	Label    string // label that names the worker
	Requests string // count of requests by worker
	Running  string // requests in progress by worker
	Waiting  string // requests that wait at each worker, which the router polls
	Queued   string // requests that wait at the router
	Errors   string // the router's own count of failures
	Latency  string // the router's own latency
	// UntilHeaders is true if Latency ends at the response's headers, before the first token.
	UntilHeaders bool
	// Decisions count how the router chose the worker of each request.
	Decisions []Decision
	// Match is a histogram over requests of the share of the prompt, 0 to 1, that the chosen worker is expected to have.
	Match string
}

// Decision names a counter of a router's choices.
type Decision struct {
	Metric  string
	Outcome string // label with the outcome
}

// policyLabel is the label of a [Decision] whose outcomes are the router's policies.
const policyLabel = "policy"

// CountsPolicies reports whether the outcomes of a counter of decisions are the router's policies.
func CountsPolicies(metric string) bool {
	return slices.ContainsFunc(All, func(r Router) bool {
		return slices.Contains(r.Metrics.Decisions, Decision{metric, policyLabel})
	})
}

// Dynamo is the id of Dynamo's router, whose stream names the worker.
const Dynamo = "dynamo"

// envoy is the id of Envoy, which may stand in front of any other router.
const envoy = "envoy"

// liteLLMPrefix is the prefix that LiteLLM adds to the names of an engine's response headers.
const liteLLMPrefix = "Llm_provider-"

// ownPort is the Page of the three routers that share a code base.
const ownPort = "its own port (--prometheus-port, by default 29000)"

// All lists the routers in the order of recognition. The order matters: answers of an earlier router may show the mark
// of a later one, and an Envoy may stand in front of each.
var All = []Router{
	{
		ID: "smg", Name: "Shepherd model gateway (SMG)", Measured: true,
		Prefixes:      []string{"smg_admission_", "smg_worker_requests_total"},
		Header:        "X-Smg-Routed-Worker-Id",
		Worker:        "response header x-smg-routed-worker-id",
		WorkerHeaders: []string{"X-Smg-Routed-Worker-Id"},
		Sessions:      []string{"header:X-SMG-Routing-Key"},
		Metrics: Metrics{
			Page: ownPort, Label: "worker", Requests: "smg_worker_requests_total", Running: "smg_worker_requests_active",
			Waiting: "smg_engine_waiting_requests", Errors: "smg_router_request_errors_total",
			Latency: "smg_router_request_duration_seconds", UntilHeaders: true,
			Decisions: []Decision{
				{"smg_worker_selection_total", policyLabel}, {"smg_cache_aware_policy_branch_total", "branch"},
			},
			Match: "smg_cache_aware_match_ratio",
		},
	},
	{
		ID: "litellm", Name: "LiteLLM", Measured: true,
		Prefixes:      []string{"litellm_"},
		Header:        "X-Litellm-Model-Id",
		Worker:        "response header x-litellm-model-id",
		WorkerHeaders: []string{"X-Litellm-Model-Id"},
		Sessions:      []string{"header:x-litellm-session-id"},
		Drops:         []string{"user", "metadata", "priority"},
		Metrics: Metrics{
			Page: "/metrics/ with the key", Label: "model_id", Requests: "litellm_deployment_total_requests_total",
			Errors: "litellm_deployment_failure_responses_total", Latency: "litellm_llm_api_time_to_first_token_metric",
		},
	},
	{
		ID: "aibrix", Name: "AIBrix",
		Prefixes: []string{"gateway_request_total", "gateway_in_flight_requests"},
		Header:   "Target-Pod",
		Worker:   "response header target-pod", WorkerHeaders: []string{"Target-Pod", "Target-Pod-Ip"},
		Sessions: []string{"returned:x-session-id", "header:x-aibrix-session-key"},
		Metrics:  Metrics{Requests: "gateway_request_total", Running: "gateway_in_flight_requests"},
	},
	{
		ID: "llm-d", Name: "llm-d inference scheduler",
		Prefixes: []string{"inference_objective_", "inference_pool_"},
		Header:   "X-Session-Token",
		Worker:   "response header x-session-token, where session affinity is on",
		WorkerHeaders: []string{
			"X-Session-Token",
		},
		Sessions: []string{"returned:x-session-token"},
		Metrics: Metrics{
			Running: "inference_objective_running_requests", Queued: "inference_pool_average_queue_size",
		},
	},
	{
		ID: "vllm-router", Name: "vllm-router", Measured: true,
		Prefixes: []string{"vllm_router_"},
		Path:     "/list_workers", Body: `"urls"`,
		Worker: "not known, unless the engine sends a header of its own",
		Sessions: []string{
			"header:X-Session-ID", "header:X-User-ID", "header:X-Tenant-ID", "header:X-Correlation-ID",
		},
		RoutesByRequestID: true,
		Metrics: Metrics{
			Page: ownPort, Label: "worker", Requests: "vllm_router_processed_requests_total",
			Running: "vllm_router_running_requests", Errors: "vllm_router_request_errors_total",
			Latency: "vllm_router_generate_duration_seconds", UntilHeaders: true,
			Decisions: []Decision{
				{"vllm_router_policy_decisions_total", policyLabel},
				{"vllm_router_prefix_routing_decisions_total", "outcome"},
				{"vllm_router_kv_placement_lookups_total", "result"},
			},
		},
	},
	{
		ID: "sglang-router", Name: "sglang-router", Measured: true,
		Prefixes: []string{"smg_"},                      // after SMG, whose metrics begin like this too
		Path:     "/workers", Body: `"connection_mode"`, // after the other two that have this path
		Worker: "not known, unless the engine sends a header of its own",
		Sessions: []string{
			"header:X-SMG-Routing-Key",
		},
		Drops: []string{
			"nvext", "user", "session_id", "cache_salt", "priority", "kv_transfer_params", "return_token_ids",
			"unknown fields",
		},
		Metrics: Metrics{
			Page: ownPort, Label: "worker", Requests: "smg_worker_cb_outcomes_total", Running: "smg_worker_requests_active",
			Errors:  "smg_router_request_errors_total",
			Latency: "smg_router_request_duration_seconds", UntilHeaders: true,
			Decisions: []Decision{{"smg_worker_selection_total", policyLabel}},
		},
	},
	{
		ID: Dynamo, Name: "NVIDIA Dynamo", Measured: true,
		Prefixes: []string{"dynamo_frontend_"},
		Worker:   "nvext.worker_id of the stream",
		Sessions: []string{"header:X-Dynamo-Session-ID", "header:X-Session-ID", "header:X-Claude-Code-Session-ID"},
		Metrics: Metrics{
			Label: "worker_id", Requests: "dynamo_component_requests_total", Running: "dynamo_component_inflight_requests",
			Queued: "dynamo_frontend_queued_requests",
		},
	},
	{
		ID: "production-stack", Name: "vLLM production stack",
		Worker:  "not known: it is only in the router's log",
		Metrics: Metrics{Label: "server", Running: "vllm:num_requests_running", Latency: "vllm:request_latency_seconds"},
	},
	{
		ID: "ray-serve", Name: "Ray Serve LLM",
		Worker: "not known", Sessions: []string{"header:x-session-id"},
	},
	{
		ID: envoy, Name: "Envoy", Measured: true,
		Prefixes: []string{"envoy_cluster_"},
		Header:   "X-Envoy-Upstream-Service-Time",
		Worker: "not known, unless response_headers_to_add sends %UPSTREAM_REMOTE_ADDRESS% or the engine a header of its " +
			"own",
		Metrics: Metrics{
			Page: "the admin port, /stats/prometheus", Label: "envoy_endpoint_address",
			Requests: "envoy_cluster_endpoint_rq_total", Running: "envoy_cluster_endpoint_rq_active",
			Queued: "envoy_cluster_upstream_rq_pending_active", Errors: "envoy_cluster_endpoint_rq_error",
			Latency: "envoy_cluster_upstream_rq_time",
		},
	},
}

// Writes reports whether a metric is one of [Metrics] of the router that have its load.
func (r *Router) Writes(metric string) bool {
	m := &r.Metrics
	return metric != "" && slices.Contains([]string{m.Requests, m.Running, m.Waiting, m.Queued}, metric)
}

// IDs lists the values of target.router.
func IDs() (ids []string) {
	for i := range All {
		ids = append(ids, All[i].ID)
	}
	return ids
}

// ByID returns the router with an id, or nil.
func ByID(id string) *Router {
	if i := slices.IndexFunc(All, func(r Router) bool { return r.ID == id }); i >= 0 {
		return &All[i]
	}
	return nil
}

// Evidence is the input of [Recognize]: the answer to a probe, and a way to request further paths.
type Evidence struct {
	Header   http.Header
	Instance bool // the stream had Dynamo's instance id
	// Get requests a path of the server. The status is 0 without an answer.
	Get func(path string) (status int, body []byte)
}

// Recognize returns the first router of [All] that the evidence shows, or nil.
func Recognize(e Evidence) *Router {
	for i := range All {
		if All[i].shows(e) {
			return &All[i]
		}
	}
	return nil
}

// Settings are the settings of a target that concern its router, as the configuration writes them.
type Settings struct{ Router, WorkerHeader, Session, RequestID string }

// Remark is a setting that the server contradicts, and what to do.
type Remark struct{ Text, Remedy string }

// String returns the remark as a sentence.
func (r Remark) String() string { return r.Text + "; " + r.Remedy + "." }

// Identify returns the router that the settings name, or else the one that the evidence shows, or nil. The remarks are
// on settings that the evidence contradicts.
func (s Settings) Identify(e Evidence) (found *Router, remarks []Remark) {
	named, recognized := ByID(s.Router), Recognize(e)
	if named != nil && recognized != nil {
		remarks = Contradiction(named.ID, "the answers", recognized.ID)
	}
	shown := func(header string) bool { return e.Header.Get(header) != "" }
	if h := s.WorkerHeader; h != "" && !slices.ContainsFunc(engineHeaders(h), shown) {
		remarks = append(remarks, Remark{
			"target.worker_header is " + h + ", and the server's answer has no such header",
			"correct the name, or let the engines or the router send it",
		})
	}
	if h, returned := strings.CutPrefix(s.Session, "returned:"); returned && !shown(h) {
		remarks = append(remarks, Remark{
			"target.session is " + s.Session + ", and the server's answer has no such header",
			"correct the name, or turn on the router's session affinity",
		})
	}
	found = cmp.Or(named, recognized)
	if found != nil && found.RoutesByRequestID && s.RequestID == "on" {
		remarks = append(remarks, Remark{
			"target.request_id is on, and " + found.Name + " takes X-Request-Id, which differs for each turn, as a sticky key",
			"leave target.request_id at auto, which omits it",
		})
	}
	return found, remarks
}

// Contradiction returns the remark on target.router where a source shows another router. An Envoy may stand in front of
// any router, so no other router contradicts it.
func Contradiction(named, source, shown string) []Remark {
	if shown == "" || shown == named || shown == envoy || named == envoy {
		return nil
	}
	return []Remark{{
		fmt.Sprintf("target.router is %s, and %s are those of %s", named, source, shown),
		"correct target.router, or leave it empty",
	}}
}

func (r *Router) shows(e Evidence) bool {
	if r.Header != "" && e.Header.Get(r.Header) != "" || r.ID == Dynamo && e.Instance {
		return true
	}
	if r.Path == "" {
		return false
	}
	status, body := e.Get(r.Path)
	return status == http.StatusOK && bytes.Contains(body, []byte(r.Body))
}

// ByMetric returns the first router of [All] that has one of the names of metrics, or nil.
func ByMetric(names iter.Seq[string]) *Router {
	best := len(All)
	for name := range names {
		for i := range best {
			if slices.ContainsFunc(All[i].Prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
				best = i
				break
			}
		}
	}
	if best == len(All) {
		return nil
	}
	return &All[best]
}

// WorkerHeaders lists the response headers that name the worker, by precedence: that of target.worker_header, if it is
// set, and those of the routers.
func WorkerHeaders(setting string) (all []string) {
	if setting != "" {
		all = engineHeaders(setting)
	}
	for i := range All {
		all = append(all, All[i].WorkerHeaders...)
	}
	return all
}

// engineHeaders returns the names that an engine's response header can have behind a router.
func engineHeaders(header string) []string { return []string{header, liteLLMPrefix + header} }
