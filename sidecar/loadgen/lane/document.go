package lane

import (
	"encoding/json"
	"sync"
	"time"
)

// document is encoded once for everybody who reads it within a second, and anew
// after a change. It is safe for concurrent use.
type document struct {
	changed *signal
	make    func() any

	mu      sync.Mutex
	text    []byte
	made    time.Time
	changes uint64 // that it knows of
}

// latest gives it, at most a second old and with everything that changed before
// the call. The text is not to be written to.
func (d *document) latest() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.text != nil && d.changes == d.changed.count.Load() && time.Since(d.made) < time.Second {
		return d.text, nil
	}
	return d.encode()
}

// renew gives it as it is now.
func (d *document) renew() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.encode()
}

// encode is called with the lock held. What changes meanwhile counts as not known.
func (d *document) encode() (text []byte, err error) {
	d.changes, d.made = d.changed.count.Load(), time.Now()
	d.text, err = json.Marshal(d.make())
	return d.text, err
}
