//go:build !linux

package selfcheck

import (
	"net"
	"sync"
	"time"
)

// timer is one of Go's.
type timer struct {
	start time.Time // an interval before the first expiry
	every time.Duration
	n     uint64
	ended chan struct{}
	once  sync.Once
}

func newTimer(interval time.Duration) (*timer, error) {
	return &timer{start: time.Now(), every: interval, ended: make(chan struct{})}, nil
}

// wait returns after one expiry or more that no call has returned yet, and says how many.
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
