//go:build !linux

package selfcheck

import (
	"net"
	"sync"
	"time"
)

// timer is a timer of the Go runtime.
type timer struct {
	start time.Time // one interval before the first expiry
	every time.Duration
	n     uint64
	ended chan struct{}
	once  sync.Once
}

// newTimer starts a timer that expires at every interval.
func newTimer(interval time.Duration) (*timer, error) {
	return &timer{start: time.Now(), every: interval, ended: make(chan struct{})}, nil
}

// wait blocks until the timer has expired at least once since the last call, and returns how often.
func (t *timer) wait() (uint64, error) {
	select {
	case <-time.After(time.Until(t.start.Add(time.Duration(t.n+1) * t.every))):
	case <-t.ended:
		return 0, net.ErrClosed
	}
	n := uint64(time.Since(t.start)/t.every) - t.n
	t.n += n
	return n, nil
}

func (t *timer) close() { t.once.Do(func() { close(t.ended) }) }
