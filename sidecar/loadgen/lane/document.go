package lane

import (
	"encoding/json"
	"sync"
	"time"
)

// document caches a JSON document, so that all readers within a second share one encoding. After a
// change it is encoded anew. It is safe for concurrent use.
type document struct {
	changed *signal
	make    func() any

	mu      sync.Mutex
	text    []byte
	made    time.Time
	changes uint64 // the count of changes when text was encoded
}

// latest returns a text that is at most a second old and contains every change made before the
// call. The text must not be modified.
func (d *document) latest() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.text != nil && d.changes == d.changed.count.Load() && time.Since(d.made) < time.Second {
		return d.text, nil
	}
	return d.encode()
}

// renew encodes the document as it is now.
func (d *document) renew() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.encode()
}

// encode encodes the document. A change during the encoding is not counted, so that the next call
// encodes again. The lock is held.
func (d *document) encode() (text []byte, err error) {
	d.changes, d.made = d.changed.count.Load(), time.Now()
	d.text, err = json.Marshal(d.make())
	return d.text, err
}
