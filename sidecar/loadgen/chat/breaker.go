package chat

import (
	"sync"
	"time"
)

// Breaker keeps requests from a server that fails. It pauses after failures, longer after each further one, and then
// admits one request as a try. Other libraries pause equally long each time, or count the failure of a request that
// began before the pause as a new failure. Its exported fields do not change once it is used. It is safe for
// concurrent use.
type Breaker struct {
	Failures    int           // number of successive failures that begin a pause, at least 1
	Least, Most time.Duration // the first pause, which doubles with each further failure, and the longest

	mu     sync.Mutex
	failed int // number of successive failures
	pause  time.Duration
	next   time.Time // earliest time of the next try
	fresh  time.Time // failures of requests that began before are ignored
}

// Wait returns the time for which no request may begin; 0: one may begin now.
func (b *Breaker) Wait(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open() {
		return 0
	}
	return max(0, b.next.Sub(now))
}

// open reports whether the breaker pauses between tries. The lock is held.
func (b *Breaker) open() bool { return b.failed >= b.Failures }

// Admit reports whether a request may begin now. After a pause, that is a try. If a try has no
// result, the next one is admitted after the longest pause, since the connection of the first may
// be one that the server no longer has.
func (b *Breaker) Admit(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open() {
		return true
	}
	if now.Before(b.next) {
		return false
	}
	b.fresh, b.next = now, now.Add(b.Most)
	return true
}

// Failure records a request that failed. began is its start, and asked the pause that the server
// asked for, 0 for none, which begins at once. It reports whether a pause begins. A request that
// began before the end of the pause, or before the last try, is ignored.
func (b *Breaker) Failure(now, began time.Time, asked time.Duration) (paused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open() && began.Before(b.fresh) {
		return false
	}
	b.failed++
	if asked > 0 {
		b.failed = max(b.failed, b.Failures)
	}
	if !b.open() {
		return false
	}
	b.pause = min(max(2*b.pause, b.Least), b.Most)
	b.next = now.Add(max(b.pause, asked))
	b.fresh = b.next
	return true
}

// Success records that the server answers, and reports whether that ended the pauses.
func (b *Breaker) Success() (ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ended = b.open()
	b.failed, b.pause = 0, 0
	return ended
}

// Release records a try that was not made: another one may begin.
func (b *Breaker) Release(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open() {
		b.next = now
	}
}
