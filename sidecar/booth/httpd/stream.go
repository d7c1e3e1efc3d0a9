package httpd

import (
	"sync"
	"time"

	"kvbooth/sidecar/booth/httpd/metrics"
	"kvbooth/sidecar/sim"
)

// stream is what the cluster has told of one request and its handler has not yet
// passed on. It is the request's [sim.Observer], called with the cluster locked:
// it only notes.
type stream struct {
	meter *metrics.Request
	ready chan struct{} // holds one where there is something to take

	mu       sync.Mutex
	decision *sim.Decision
	chunks   []int // the tokens of each
	report   *sim.Report
}

func newStream(meter *metrics.Request) *stream {
	return &stream{meter: meter, ready: make(chan struct{}, 1)}
}

// Routed notes the router's decision.
func (s *stream) Routed(d *sim.Decision) {
	s.meter.Routed(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decision = d
}

// FirstToken is for the metrics only.
func (s *stream) FirstToken(r sim.Report) { s.meter.FirstToken(r) }

// Tokens notes a chunk.
func (s *stream) Tokens(at time.Duration, n int) {
	s.meter.Tokens(at, n)
	s.mu.Lock()
	s.chunks = append(s.chunks, n)
	s.mu.Unlock()
	s.signal()
}

// Finished notes the end.
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

// take gives the chunks that came since the last time, which are valid until the
// next, and the report once the request has ended. The caller hands back the
// chunks that it took before.
func (s *stream) take(before []int) (chunks []int, report *sim.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chunks, s.chunks = s.chunks, before[:0]
	return chunks, s.report
}

func (s *stream) routed() *sim.Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.decision
}
