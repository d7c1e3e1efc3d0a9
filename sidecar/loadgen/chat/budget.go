package chat

import "sync/atomic"

// TextBudget bounds the bytes of text that answers hold together: those that stream, and those
// that their conversations still send along. It is safe for concurrent use; nil bounds nothing.
type TextBudget struct {
	limit int64
	used  atomic.Int64
}

// NewTextBudget makes one of so many bytes.
func NewTextBudget(limit int64) *TextBudget { return &TextBudget{limit: limit} }

// take counts n more bytes; false says that there is no room for them, and counts nothing.
func (b *TextBudget) take(n int) bool {
	if b == nil || n == 0 {
		return true
	}
	if b.used.Add(int64(n)) > b.limit {
		b.used.Add(int64(-n))
		return false
	}
	return true
}

// Release gives n bytes back.
func (b *TextBudget) Release(n int) {
	if b != nil {
		b.used.Add(int64(-n))
	}
}
