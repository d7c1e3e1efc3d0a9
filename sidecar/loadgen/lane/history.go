package lane

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/api"
)

// historyLength is how many points are kept: ten minutes, one a second.
const historyLength = 600

// history keeps a lane's newest points, for a screen that is opened late or again.
// It is lost with the process: what is older than a screen, Prometheus knows. The
// zero value is ready. It is safe for concurrent use.
type history struct {
	mu     sync.Mutex
	points []api.HistoryPoint // a ring: next is the oldest once it is full
	next   int
}

func (h *history) add(p api.HistoryPoint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.points) < historyLength {
		h.points = append(h.points, p)
		return
	}
	h.points[h.next] = p
	h.next = (h.next + 1) % historyLength
}

// list gives the points, oldest first.
func (h *history) list() []api.HistoryPoint {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat(h.points[h.next:], h.points[:h.next])
}

// point is what a snapshot of this moment would say.
func (l *Lane) point(now time.Time) api.HistoryPoint {
	s, _ := l.stateAt(now)
	p := api.HistoryPoint{
		Time: now, Running: s.Running, Concurrency: s.Concurrency.Actual, Mode: s.Mode,
		Speculation: s.Speculation,
	}
	if s.Running { // else nothing is sent, and the last figures are no live ones
		ttft, hits := l.record.Course(now)
		p.TTFTP50, p.TTFTP95 = ttft.P50, ttft.P95
		p.OutputTokensPerSecond = new(l.meter.Rate(now))
		p.KVHitRatio = cmp.Or(hits, l.Cluster().KV.HitRatio)
	}
	return p
}

// History gives what the lane's snapshots said in the last ten minutes, as far as
// this process has run, oldest first.
func (l *Lane) History() api.History { return api.History{Points: notNil(l.history.list())} }
