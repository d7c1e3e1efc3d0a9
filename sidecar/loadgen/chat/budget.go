package chat

import "sync/atomic"

// TextBudget limits the bytes of answer text that are in memory at a time: text of answers in progress and of earlier
// answers that are part of a conversation's history. It is safe for concurrent use; nil sets no limit.
type TextBudget struct {
	limit int64
	used  atomic.Int64
}

// NewTextBudget returns a budget of limit bytes.
func NewTextBudget(limit int64) *TextBudget { return &TextBudget{limit: limit} }

// take reserves n more bytes. It reports false, and reserves nothing, where they exceed the budget.
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

// Release returns n bytes to the budget.
func (b *TextBudget) Release(n int) {
	if b != nil {
		b.used.Add(int64(-n))
	}
}
