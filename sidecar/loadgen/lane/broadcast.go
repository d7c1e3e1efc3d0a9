package lane

import "sync"

// broadcast sends the newest frame to every subscriber. The zero value is ready. It is safe for
// concurrent use.
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

func (b *broadcast) hasSubscribers() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.subs) > 0
}

// publish sends a frame to all subscribers. It replaces a frame that a subscriber has not read yet.
func (b *broadcast) publish(frame []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.subs {
		select {
		case <-c:
		default:
		}
		c <- frame // does not block: only publish sends, and it holds the lock
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
