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

// text is a text that grows in blocks, so that it neither is copied nor leaves garbage while it grows. The zero value
// is empty.
type text struct {
	blocks [][]byte
	n      int
	whole  string // set by join, with the blocks gone
}

// blocks holds blocks of mostBlock that are not in use.
var blocks = sync.Pool{New: func() any { return new([mostBlock]byte) }}

func newBlock(size int) []byte {
	if size < mostBlock {
		return make([]byte, 0, size)
	}
	return blocks.Get().(*[mostBlock]byte)[:0]
}

func (t *text) add(s string) {
	for s != "" {
		last := len(t.blocks) - 1
		if last < 0 || len(t.blocks[last]) == cap(t.blocks[last]) {
			t.blocks = append(t.blocks, newBlock(max(t.n, leastBlock)))
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

// join returns the complete text, and replaces the blocks by it. Nothing can be added afterwards.
func (t *text) join() string {
	if t.n > mostBlock {
		joining.Lock()
		defer joining.Unlock()
	}
	t.whole = t.String()
	for _, block := range t.blocks {
		if cap(block) == mostBlock {
			blocks.Put((*[mostBlock]byte)(block[:mostBlock]))
		}
	}
	t.blocks = nil
	return t.whole
}
