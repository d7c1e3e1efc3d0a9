package workload

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// pacer lets no more than so many a second pass, at a rate that may change
// while some wait.
type pacer struct {
	limiter *rate.Limiter

	// head holds one word: whoever has it is the next to pass, and the only one
	// with a reservation. So a reservation can be given back whole, and a new
	// rate holds for everybody who waits.
	head chan struct{}
}

func newPacer(perSecond float64) *pacer {
	p := &pacer{limiter: rate.NewLimiter(limit(perSecond), burst(perSecond)), head: make(chan struct{}, 1)}
	p.head <- struct{}{}
	return p
}

// set changes the rate. The workload wakes those who wait.
func (p *pacer) set(perSecond float64) {
	p.limiter.SetLimit(limit(perSecond))
	p.limiter.SetBurst(burst(perSecond))
}

// limit takes 0 for no limit.
func limit(perSecond float64) rate.Limit {
	if perSecond == 0 {
		return rate.Inf
	}
	return rate.Limit(perSecond)
}

// burst is what passes in 10 ms, since a timer that comes late by a millisecond
// must not cost a high rate its accuracy.
func burst(perSecond float64) int { return max(1, int(perSecond/100)) }

// pass waits for its turn; false says that ctx ended or changed came first.
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
	if sleep(ctx, changed, r.Delay()) {
		return true
	}
	r.Cancel()
	return false
}

// sleep waits for d; false says that ctx ended or changed came first.
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
