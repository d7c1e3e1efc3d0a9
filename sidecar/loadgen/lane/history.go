package lane

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/api"
)

// historyLength is the number of points that are kept: ten minutes, one a second.
const historyLength = 600

// history keeps a lane's newest points for a screen that is opened or reloaded. It is not stored:
// Prometheus has the older points. The zero value is ready. It is safe for concurrent use.
type history struct {
	mu     sync.Mutex
	points []api.HistoryPoint // a ring buffer
	next   int                // index of the oldest point, once the buffer is full
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

// list returns the points, oldest first.
func (h *history) list() []api.HistoryPoint {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Concat(h.points[h.next:], h.points[:h.next])
}

// point returns the figures of a snapshot at now.
func (l *Lane) point(now time.Time) api.HistoryPoint {
	s, _ := l.stateAt(now)
	p := api.HistoryPoint{
		Time: now, Running: s.Running, Settling: s.Settling, Concurrency: s.Concurrency.Actual, Arm: s.Arm,
		Mode: s.Mode, Speculation: s.Speculation,
	}
	if s.Running { // else nothing is sent, and the last figures are out of date
		ttft, hits := l.record.Course(now)
		p.TTFTP50, p.TTFTP95 = ttft.P50, ttft.P95
		p.OutputTokensPerSecond = new(l.meter.Rate(now))
		if p.KVHitRatio = hits; l.doubt.text() == "" {
			p.KVHitRatio = cmp.Or(hits, l.Cluster().KV.HitRatio)
		}
	}
	return p
}

// History returns the lane's figures of the last ten minutes, or since the start of the process,
// oldest first.
func (l *Lane) History() api.History { return api.History{Points: notNil(l.history.list())} }
