// Package breaker keeps requests from a server that fails. It pauses after
// failures, longer after each further one, and then lets one request try.
// Libraries at hand wait equally long each time, or take a failure of a request
// that began before the pause for news.
package breaker

import (
	"sync"
	"time"
)

// Breaker is a circuit breaker with growing pauses. Its fields do not change once
// it is used. It is safe for concurrent use.
type Breaker struct {
	Failures    int           // in a row that begin a pause, at least 1
	Least, Most time.Duration // the first pause, doubled with each further failure, and the longest

	mu     sync.Mutex
	failed int // in a row
	pause  time.Duration
	next   time.Time // when the next try may be
	fresh  time.Time // what began before tells nothing new
}

// Wait says how long no request may begin, 0 for not at all.
func (b *Breaker) Wait(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open() {
		return 0
	}
	return max(0, b.next.Sub(now))
}

// open says whether there are pauses. The lock is held.
func (b *Breaker) open() bool { return b.failed >= b.Failures }

// Admit says whether a request may begin now, which is a try after a pause. A try
// that says nothing keeps the next one back for the longest pause only, because its
// connection may be one that the server has forgotten.
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

// Failure reports a request that failed and had begun at the given time, and the
// pause that the server asked for, if it did. It says whether a pause begins. What
// began before the pause was over, or before the last try, tells nothing new.
func (b *Breaker) Failure(now, began time.Time, asked time.Duration) (paused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open() && began.Before(b.fresh) {
		return false
	}
	if b.failed++; !b.open() {
		return false
	}
	b.pause = min(max(2*b.pause, b.Least), b.Most)
	b.next = now.Add(max(b.pause, asked))
	b.fresh = b.next
	return true
}

// Success reports that the server answers, and says whether that ended the pauses.
func (b *Breaker) Success() (ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ended = b.open()
	b.failed, b.pause = 0, 0
	return ended
}

// Release reports a try that was given up: another one may begin.
func (b *Breaker) Release(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open() {
		b.next = now
	}
}
