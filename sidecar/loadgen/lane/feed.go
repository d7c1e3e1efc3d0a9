package lane

import "sync"

// feed hands the newest frame to every subscriber. The zero value is ready.
type feed struct {
	mu     sync.Mutex
	subs   map[chan []byte]struct{}
	closed bool
}

func (f *feed) subscribe() (<-chan []byte, func()) {
	c := make(chan []byte, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		close(c)
		return c, func() {}
	}
	if f.subs == nil {
		f.subs = map[chan []byte]struct{}{}
	}
	f.subs[c] = struct{}{}
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, c)
	}
}

func (f *feed) wanted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs) > 0
}

// publish puts the frame in the place of one that was not read yet.
func (f *feed) publish(frame []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.subs {
		select {
		case <-c:
		default:
		}
		c <- frame // only publish sends, and holds the lock: there is room
	}
}

func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for c := range f.subs {
		close(c)
	}
	f.subs = nil
}
