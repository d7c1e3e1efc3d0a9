package workload

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// pacer is a rate limiter. Its rate may change while callers wait, and applies to them at once. It
// is safe for concurrent use.
type pacer struct {
	limiter *rate.Limiter

	// head holds one value. The caller that has taken it is the next to pass, and the only one with
	// a reservation. So a reservation can be returned in full when the rate changes.
	head chan struct{}

	waits // for the rate
}

// newPacer returns a pacer that lets perSecond calls pass; 0: all.
func newPacer(perSecond float64) *pacer {
	p := &pacer{limiter: rate.NewLimiter(limit(perSecond), burst(perSecond)), head: make(chan struct{}, 1)}
	p.head <- struct{}{}
	return p
}

// set changes the rate. The workload wakes the callers that wait.
func (p *pacer) set(perSecond float64) {
	p.limiter.SetLimit(limit(perSecond))
	p.limiter.SetBurst(burst(perSecond))
}

// limit converts a rate, of which 0 means no limit.
func limit(perSecond float64) rate.Limit {
	if perSecond == 0 {
		return rate.Inf
	}
	return rate.Limit(perSecond)
}

// burst returns the number of calls that pass in 10 ms, at least 1. Without it, a timer that is
// late by a millisecond would reduce a high rate.
func burst(perSecond float64) int { return max(1, int(perSecond/100)) }

// pass blocks until the caller may pass. It returns false if ctx ended or changed was closed first.
func (p *pacer) pass(ctx context.Context, changed <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-changed:
		return false
	case <-p.head:
	}
	defer func() { p.head <- struct{}{} }()
	r := p.limiter.Reserve()
	delay := r.Delay()
	if delay > 0 {
		p.mark(time.Now())
		defer p.mark(time.Time{})
	}
	if sleep(ctx, changed, delay) {
		return true
	}
	r.Cancel()
	return false
}

// waits measures the time that waits take, one at a time. It is safe for concurrent use.
type waits struct {
	mu      sync.Mutex
	since   time.Time     // start of the wait in progress; zero: there is none
	elapsed time.Duration // of the waits that have ended
}

// during measures a wait.
func (w *waits) during(wait func()) {
	w.mark(time.Now())
	defer w.mark(time.Time{})
	wait()
}

// mark records the start of a wait, or with the zero time the end of the wait in progress.
func (w *waits) mark(start time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if start.IsZero() {
		w.elapsed += time.Since(w.since)
	}
	w.since = start
}

// waited returns the time of all waits.
func (w *waits) waited(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		return w.elapsed
	}
	return w.elapsed + now.Sub(w.since)
}

// sleep blocks for d. It returns false if ctx ended or changed was closed first.
func sleep(ctx context.Context, changed <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-changed:
	}
	return false
}

// sleepExactly is sleep by a [Timer], unless there is none.
func sleepExactly(ctx context.Context, changed <-chan struct{}, d time.Duration) bool {
	timer, err := NewTimer(d)
	if err != nil {
		return sleep(ctx, changed, d)
	}
	expired := make(chan struct{})
	go func() {
		defer close(expired)
		_, _ = timer.Wait() // fails once it is closed
	}()
	defer func() {
		timer.Close()
		<-expired
	}()
	return await(ctx, changed, expired)
}
