package workload

import (
	"sync"
	"time"
)

// The pauses after a failed turn: doubled with each further failure, so that an
// unreachable target is never asked in a hot loop, and short enough that one
// that comes back is noticed within seconds.
const (
	firstPause = 250 * time.Millisecond
	maxPause   = 4 * time.Second
	maxAsked   = time.Minute // of a pause that the server itself asked for
)

// gate keeps new conversations back while the target fails. A failure closes
// it; after a pause one conversation may try; the first token of any turn opens
// it again. A try that says nothing keeps the next one back for maxPause only,
// because its connection may be one that the target has forgotten. The zero
// value is open.
type gate struct {
	mu     sync.Mutex
	closed bool
	pause  time.Duration
	next   time.Time // when the next conversation may try
	fresh  time.Time // what began before tells nothing new
}

// wait says how long no conversation may start, 0 for not at all.
func (g *gate) wait(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		return 0
	}
	return max(0, g.next.Sub(now))
}

// admit says whether a conversation may start now, which is a try while the
// gate is closed.
func (g *gate) admit(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		return true
	}
	if now.Before(g.next) {
		return false
	}
	g.fresh, g.next = now, now.Add(maxPause)
	return true
}

// failure reports a turn that failed and had begun at the given time, and says
// whether that moved the next try. What began before the pause was over, or
// before the last try, tells nothing new.
func (g *gate) failure(now, began time.Time, asked time.Duration) (moved bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed && began.Before(g.fresh) {
		return false
	}
	g.pause = min(max(2*g.pause, firstPause), maxPause)
	g.next = now.Add(max(g.pause, min(asked, maxAsked)))
	g.closed, g.fresh = true, g.next
	return true
}

// success reports a first token, and says whether that opened the gate.
func (g *gate) success() (opened bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	opened = g.closed
	g.closed, g.pause = false, 0
	return opened
}
