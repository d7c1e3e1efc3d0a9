package members

import (
	"context"
	"sync/atomic"
	"time"
)

// A lease holds for leaseSpan from its last renewal. The member counts from the moment when it
// sent the renewal, the coordinator from the moment when it heard of it, which is later: so a
// member has stopped before its share is given to others.
const (
	leaseSpan   = 3 * time.Second
	renewEvery  = 500 * time.Millisecond
	leaseMargin = 500 * time.Millisecond // in which a member that lost its lease stops
)

// lease is a member's right to do anything. It is safe for concurrent use.
type lease struct {
	base  time.Time    // with the monotonic clock
	until atomic.Int64 // since base; it only grows, or becomes over
}

const over = -1

func newLease() *lease { return &lease{base: time.Now()} }

// renewed notes a renewal that was sent at a moment and has been acknowledged. A lease that
// has run out stays so.
func (l *lease) renewed(sent time.Time) {
	next := int64(sent.Sub(l.base) + leaseSpan - leaseMargin)
	for {
		now := l.until.Load()
		if now == over || next <= now || now != 0 && int64(time.Since(l.base)) >= now {
			return
		}
		if l.until.CompareAndSwap(now, next) {
			return
		}
	}
}

// holds says whether the member may do anything at this moment. It costs a look at the clock:
// it is asked before every request and every message, since a process that was stopped goes
// on wherever it was.
func (l *lease) holds() bool {
	until := l.until.Load()
	return until != over && int64(time.Since(l.base)) < until
}

// lost says whether there was a lease that holds no more.
func (l *lease) lost() bool { return l.until.Load() != 0 && !l.holds() }

// end gives the lease up.
func (l *lease) end() { l.until.Store(over) }

// watch returns when the lease has run out, or ctx has ended.
func (l *lease) watch(ctx context.Context) {
	for l.holds() {
		wait := time.NewTimer(time.Duration(l.until.Load()) - time.Since(l.base))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}
