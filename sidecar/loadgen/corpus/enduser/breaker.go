package enduser

import (
	"sync"
	"time"
)

// A server that fails so often in a row is left alone for a while, so that a dead
// one does not delay every conversation by the time limit.
const (
	tolerated  = 3
	leastBreak = time.Second // doubled with each failure after it
	mostBreak  = 30 * time.Second
)

// breaker keeps questions from a server that fails. After a break one question
// may try; its answer ends the breaks, its failure begins a longer one. The zero
// value lets everything pass.
type breaker struct {
	mu       sync.Mutex
	failures int // in a row
	pause    time.Duration
	until    time.Time // of the break, or of the patience with who tries
	fresh    time.Time // what began before tells nothing new
}

// admit says whether the server may be asked now.
func (b *breaker) admit(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < tolerated {
		return true
	}
	if now.Before(b.until) {
		return false
	}
	b.fresh, b.until = now, now.Add(mostBreak)
	return true
}

// failure reports a question that had begun at the given time. One that was under
// way when the break began tells nothing new.
func (b *breaker) failure(now, began time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures >= tolerated && began.Before(b.fresh) {
		return
	}
	if b.failures++; b.failures < tolerated {
		return
	}
	b.pause = min(max(2*b.pause, leastBreak), mostBreak)
	b.until = now.Add(b.pause)
	b.fresh = b.until
}

// success reports an answer.
func (b *breaker) success() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.pause = 0, 0
}

// release reports a question that was given up: another one may try.
func (b *breaker) release(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures >= tolerated {
		b.until = now
	}
}
