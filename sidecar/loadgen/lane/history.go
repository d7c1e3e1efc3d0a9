package lane

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/arrival"
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
		if ttft.Shape != nil {
			p.TTFTMean = &ttft.Shape.Mean
		}
		p.TTFTP50, p.TTFTP95 = ttft.P50, ttft.P95
		p.OutputTokensPerSecond = new(l.meter.Rate(now))
		if p.KVHitRatio = hits; l.doubt.text() == "" {
			p.KVHitRatio = cmp.Or(hits, l.Cluster().KV.HitRatio)
		}
	}
	return p
}

// When the number in progress at a rate is looked at for growth without end: after the load has filled up and at
// growing intervals, so that few looks find growth by chance.
const (
	firstLook = 30  // seconds since the step settled; at least as long as it took to settle
	nextLook  = 1.5 // times as long as before
	lookSpan  = 300 // seconds: longest interval, and longest span that is looked at
)

// grows reports whether the number in progress grew without end at the latest look at a step.
func (h *history) grows(s api.Step, now time.Time) bool {
	if s.Settled == nil {
		return false
	}
	look, next := 0., max(firstLook, s.Settled.Sub(s.Started).Seconds())
	for ; next <= now.Sub(*s.Settled).Seconds(); next = min(nextLook*next, next+lookSpan) {
		look = next
	}
	var active []float64
	for _, p := range h.list() {
		if at := p.Time.Sub(*s.Settled).Seconds(); at >= max(0, look-lookSpan) && at < look {
			active = append(active, float64(p.Concurrency))
		}
	}
	return arrival.Grows(active)
}

// History returns the lane's figures of the last ten minutes, or since the start of the process,
// oldest first.
func (l *Lane) History() api.History { return api.History{Points: notNil(l.history.list())} }
