package lane

import "sync"

// broadcast hands the newest frame to every subscriber. The zero value is ready.
type broadcast struct {
	mu     sync.Mutex
	subs   map[chan []byte]struct{}
	closed bool
}

func (b *broadcast) subscribe() (<-chan []byte, func()) {
	c := make(chan []byte, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		close(c)
		return c, func() {}
	}
	if b.subs == nil {
		b.subs = map[chan []byte]struct{}{}
	}
	b.subs[c] = struct{}{}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subs, c)
	}
}

func (b *broadcast) wanted() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.subs) > 0
}

// publish puts the frame in the place of one that was not read yet.
func (b *broadcast) publish(frame []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.subs {
		select {
		case <-c:
		default:
		}
		c <- frame // only publish sends, and holds the lock: there is room
	}
}

func (b *broadcast) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for c := range b.subs {
		close(c)
	}
	b.subs = nil
}
