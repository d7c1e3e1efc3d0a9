package chat

import (
	"strings"
	"sync"
)

// The blocks of a text are as long as the text before them, within these bytes.
const (
	leastBlock = 1 << 10
	mostBlock  = 64 << 10
)

// text is a text that grows in blocks, so that it is not copied and leaves no garbage while it grows. The zero value is
// empty.
type text struct {
	blocks [][]byte
	n      int
	whole  string // set by join, with the blocks gone
}

func (t *text) add(s string) {
	for s != "" {
		last := len(t.blocks) - 1
		if last < 0 || len(t.blocks[last]) == cap(t.blocks[last]) {
			t.blocks = append(t.blocks, make([]byte, 0, min(max(t.n, leastBlock), mostBlock)))
			last++
		}
		b := t.blocks[last]
		n := min(len(s), cap(b)-len(b))
		t.blocks[last], t.n, s = append(b, s[:n]...), t.n+n, s[n:]
	}
}

// String returns a copy of the text.
func (t *text) String() string {
	if t.blocks == nil {
		return t.whole
	}
	var b strings.Builder
	b.Grow(t.n)
	for _, block := range t.blocks {
		b.Write(block)
	}
	return b.String()
}

// joining lets one long text after the other be joined, since each is in memory twice meanwhile.
var joining sync.Mutex

// join replaces the blocks by the complete text. Nothing can be added afterwards.
func (t *text) join() {
	if t.n > mostBlock {
		joining.Lock()
		defer joining.Unlock()
	}
	t.whole, t.blocks = t.String(), nil
}
