//go:build !linux

package workload

import (
	"net"
	"sync"
	"time"
)

// Timer is a timer of the Go runtime.
type Timer struct {
	Start time.Time // one interval before the first expiry
	every time.Duration
	n     uint64
	ended chan struct{}
	once  sync.Once
}

// NewTimer starts a timer that expires at every interval.
func NewTimer(interval time.Duration) (*Timer, error) {
	return &Timer{Start: time.Now(), every: interval, ended: make(chan struct{})}, nil
}

// Wait blocks until the timer has expired at least once since the last call, and returns how often.
func (t *Timer) Wait() (uint64, error) {
	select {
	case <-time.After(time.Until(t.Start.Add(time.Duration(t.n+1) * t.every))):
	case <-t.ended:
		return 0, net.ErrClosed
	}
	n := uint64(time.Since(t.Start)/t.every) - t.n
	t.n += n
	return n, nil
}

// Close ends the timer and a call of Wait.
func (t *Timer) Close() { t.once.Do(func() { close(t.ended) }) }
