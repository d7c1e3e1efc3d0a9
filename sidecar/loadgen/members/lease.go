package members

import (
	"context"
	"sync/atomic"
	"time"
)

// A lease holds for leaseSpan from its last renewal. The member counts from the time at which it
// sent the renewal, the coordinator from the time at which it received it, which is later. So a
// member has stopped before its share is given to others.
const (
	leaseSpan   = 3 * time.Second
	renewEvery  = 500 * time.Millisecond
	leaseMargin = 500 * time.Millisecond // time for a member without a lease to stop
)

// lease is a member's permission to send requests and messages. It is safe for concurrent use.
type lease struct {
	base  time.Time    // has a monotonic reading
	until atomic.Int64 // end of the lease in ns since base; only grows, or becomes leaseEnded
}

const leaseEnded = -1

// newLease returns a lease that does not hold before its first renewal.
func newLease() *lease { return &lease{base: time.Now()} }

// renewed records a renewal that was sent at the given time and has been acknowledged. A lease that
// has ended is not renewed.
func (l *lease) renewed(sent time.Time) {
	next := int64(sent.Sub(l.base) + leaseSpan - leaseMargin)
	for {
		now := l.until.Load()
		if now == leaseEnded || next <= now || now != 0 && int64(time.Since(l.base)) >= now {
			return
		}
		if l.until.CompareAndSwap(now, next) {
			return
		}
	}
}

// holds reports whether the lease holds now. It is checked before every request and every message,
// since a process that was stopped by a signal continues wherever it was. It only reads the clock.
func (l *lease) holds() bool {
	until := l.until.Load()
	return until != leaseEnded && int64(time.Since(l.base)) < until
}

// lost reports whether the lease was held and has ended.
func (l *lease) lost() bool { return l.until.Load() != 0 && !l.holds() }

// end gives up the lease.
func (l *lease) end() { l.until.Store(leaseEnded) }

// watch returns when the lease has ended, or ctx has ended.
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
