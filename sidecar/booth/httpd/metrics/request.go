package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// Request updates the metrics for one request, in the processes that received it, even after restarts. It is a
// [sim.Observer]. Its methods may be called with the cluster's lock held and are safe for concurrent use.
type Request struct {
	metrics  *Metrics  // its lock guards the fields below
	frontend *frontend // process that received the request
	kind     string    // stream or unary

	stage  prometheus.Gauge // counts the request at its current stage; nil while it streams
	queued bool             // no first token yet

	decision   *sim.Decision // nil before routing
	worker     *worker       // process that serves the request
	latest     *latest
	chunk      time.Duration // time of the last chunk, 0 before the first
	finished   bool
	ended      bool
	took       time.Duration
	errorClass string
}

var _ sim.Observer = (*Request)(nil)

// Begin counts a request that has arrived at the frontend. [Request.Ended] must follow.
func (m *Metrics) Begin(streaming bool) *Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &Request{metrics: m, frontend: m.frontend, kind: "unary", queued: true}
	if streaming {
		r.kind = "stream"
	}
	f := r.frontend
	f.started.WithLabelValues(r.kind).Inc()
	f.inflight.Inc()
	f.active.Inc()
	f.queued.Inc()
	r.enter(f.preprocess)
	return r
}

// enter moves the request to another stage; nil means a stage that is not counted.
func (r *Request) enter(stage prometheus.Gauge) {
	if r.stage != nil {
		r.stage.Dec()
	}
	if r.stage = stage; stage != nil {
		stage.Inc()
	}
}

// dequeue ends the wait for the first token.
func (r *Request) dequeue() {
	r.enter(nil)
	if r.queued {
		r.queued = false
		r.frontend.queued.Dec()
	}
}

// Tokenized moves the request to routing. Dynamo counts its tokens later: when the router has decided, and at the
// first token.
func (r *Request) Tokenized() {
	r.metrics.mu.Lock()
	defer r.metrics.mu.Unlock()
	if !r.ended {
		r.enter(r.frontend.route)
	}
}

// Routed counts the router's decision.
func (r *Request) Routed(d *sim.Decision) {
	r.metrics.mu.Lock()
	defer r.metrics.mu.Unlock()
	f, id := r.frontend, d.Worker().Worker
	r.decision, r.worker = d, r.metrics.worker(id)
	if r.latest = f.latest[id]; r.latest == nil {
		r.latest = &latest{}
		f.latest[id] = r.latest
	}
	r.enter(f.dispatch)
	f.sent.Inc()
	f.routerStarted.Inc()
	f.routerInput.Observe(float64(d.PromptTokens))
	if d.Mode == api.ModeKV {
		f.admitted.Inc()
		f.hitRate.Observe(d.PredictedHit())
	}
}

// FirstToken counts the time to the first token, and the prompt.
func (r *Request) FirstToken(report sim.Report) {
	r.metrics.mu.Lock()
	defer r.metrics.mu.Unlock()
	r.dequeue()
	f, seconds := r.frontend, (report.FirstToken - report.Submitted).Seconds()
	f.firstToken.Observe(seconds)
	f.routerFirstToken.Observe(seconds)
	f.roundTrip.Observe(seconds)
	f.roundTripStage.Observe(seconds)
	f.input.Observe(float64(report.PromptTokens))
	r.latest.firstToken, r.latest.inputTokens = seconds, report.PromptTokens
	r.worker.engine.firstToken(r.worker.timing(&report))
}

// Tokens counts a chunk of n tokens. The gap between chunks is divided evenly among them. The first chunk has no gap.
func (r *Request) Tokens(at time.Duration, n int) {
	r.metrics.mu.Lock()
	defer r.metrics.mu.Unlock()
	f := r.frontend
	f.output.Add(float64(n))
	if r.chunk > 0 && n > 0 {
		gap := (at - r.chunk).Seconds()
		r.latest.interToken = gap / float64(n)
		for range n {
			f.interToken.Observe(r.latest.interToken)
		}
		r.worker.engine.step(gap, n)
	}
	r.chunk = at
}

// Finished counts the result of a request at its end.
func (r *Request) Finished(report sim.Report) {
	r.metrics.mu.Lock()
	defer r.metrics.mu.Unlock()
	f := r.frontend
	f.sent.Dec()
	f.routerRequests.Inc()
	if report.OutputTokens > 0 {
		f.outputTokens.Observe(float64(report.OutputTokens))
		f.routerOutput.Observe(float64(report.OutputTokens))
	}
	if report.Err == nil && f.reportsCached {
		f.cached.Observe(float64(report.CachedTokens)) // known from the usage
	}
	// Dynamo counts this in all modes except kv.
	if r.decision.Mode != api.ModeKV && report.Err == nil && report.OutputTokens > 1 {
		f.routerInterToken.Observe((report.Ended - report.FirstToken).Seconds() / float64(report.OutputTokens-1))
	}
	if report.Arrived > 0 {
		r.worker.finished(&report)
	}
	r.finished, r.took = true, report.Ended-report.Submitted
	r.settle()
}

// Ended counts a request that has left the frontend. errorType is "" for success, or Dynamo's type of the error
// (validation, not_found, overload, unavailable, cancelled, response_timeout, internal, not_implemented). It must be
// called once, before or after Finished, and also for a request that was refused before routing.
func (r *Request) Ended(errorType string) {
	r.metrics.mu.Lock()
	defer r.metrics.mu.Unlock()
	if r.ended {
		return
	}
	r.ended, r.errorClass = true, errorType
	r.dequeue()
	r.frontend.inflight.Dec()
	r.frontend.active.Dec()
	r.settle()
}

// settle counts a request as processed, once it has ended and finished. Refused requests took no virtual time.
func (r *Request) settle() {
	if !r.ended || r.decision != nil && !r.finished {
		return
	}
	f, status := r.frontend, "success"
	if r.errorClass != "" {
		status = "error"
	}
	f.requests.WithLabelValues(r.errorClass, r.kind, status).Inc()
	f.duration.Observe(r.took.Seconds())
	switch r.errorClass {
	case "cancelled":
		f.disconnected.Inc()
		f.canceled.WithLabelValues(r.kind).Inc()
	case "overload":
		f.rejected.WithLabelValues().Inc()
	}
}
