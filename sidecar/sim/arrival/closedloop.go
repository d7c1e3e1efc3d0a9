package arrival

import (
	"math"
	"time"
)

// ClosedLoop keeps a number of conversations in progress: one begins whenever one has ended, but no more in a second
// than its rate. The zero value holds none.
type ClosedLoop struct {
	concurrency int
	rate        float64       // conversations that begin in a second; +Inf: no limit
	next        time.Duration // when the rate allows the next one
}

var _ Process = (*ClosedLoop)(nil)

// NewClosedLoop returns a loop that may begin a conversation at once. A rate of 0 sets no limit.
func NewClosedLoop(concurrency int, rate float64) *ClosedLoop {
	l := &ClosedLoop{rate: math.Inf(1), next: math.MinInt64}
	l.Set(0, concurrency, rate)
	return l
}

// Set changes the number of conversations, and the rate from now on: the part of the wait for the next conversation
// that is left becomes as much longer as the rate becomes lower.
func (l *ClosedLoop) Set(now time.Duration, concurrency int, rate float64) {
	if rate == 0 {
		rate = math.Inf(1)
	}
	if l.next > now {
		l.next = now + time.Duration(float64(l.next-now)*l.rate/rate)
	}
	l.concurrency, l.rate = concurrency, rate
}

// Next implements [Process].
func (l *ClosedLoop) Next(s State) (at time.Duration, ok bool) {
	return l.next, s.Active < l.concurrency
}

// Begin implements [Process]. Of a high rate, what was missed within the last 10 ms is made up for. Without that, a
// timer that is late by a millisecond would reduce it.
func (l *ClosedLoop) Begin(s State) (intended time.Duration) {
	if math.IsInf(l.rate, 1) {
		return s.Now
	}
	interval := time.Duration(float64(time.Second) / l.rate)
	missed := time.Duration(max(0, int(l.rate/100)-1)) * interval
	l.next = max(l.next, s.Now-missed) + interval
	return s.Now
}

// Surplus implements [Process].
func (l *ClosedLoop) Surplus(s State) bool { return s.Active > l.concurrency }

// Waits implements [Process].
func (l *ClosedLoop) Waits() bool { return true }

// Settled implements [Process].
func (l *ClosedLoop) Settled(s State) bool { return s.Active == l.concurrency }
