package httpd

import (
	"sync"
	"time"

	"kvbooth/sidecar/booth/httpd/metrics"
	"kvbooth/sidecar/sim"
)

// stream holds the events of a request that its handler has not yet delivered. It is the request's [sim.Observer]. Its
// methods are called while the cluster is locked, so they only record.
type stream struct {
	meter *metrics.Request
	ready chan struct{} // holds a value if there are events to take

	mu       sync.Mutex
	decision *sim.Decision
	chunks   []int // tokens per chunk
	report   *sim.Report
}

func newStream(meter *metrics.Request) *stream {
	return &stream{meter: meter, ready: make(chan struct{}, 1)}
}

// Routed records the router's decision.
func (s *stream) Routed(d *sim.Decision) {
	s.meter.Routed(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decision = d
}

// FirstToken updates the metrics only.
func (s *stream) FirstToken(r sim.Report) { s.meter.FirstToken(r) }

// Tokens records a chunk.
func (s *stream) Tokens(at time.Duration, n int) {
	s.meter.Tokens(at, n)
	s.mu.Lock()
	s.chunks = append(s.chunks, n)
	s.mu.Unlock()
	s.signal()
}

// Finished records the end.
func (s *stream) Finished(r sim.Report) {
	s.meter.Finished(r)
	s.mu.Lock()
	s.report = &r
	s.mu.Unlock()
	s.signal()
}

func (s *stream) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// take returns the chunks since the previous call, and the report once the request has ended. The chunks are valid
// until the next call, to which the caller passes them for reuse.
func (s *stream) take(reuse []int) (chunks []int, report *sim.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chunks, s.chunks = s.chunks, reuse[:0]
	return chunks, s.report
}

func (s *stream) routed() *sim.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decision
}
