package chat

import (
	"sync/atomic"
	"unsafe"
)

// TextBudget limits the memory of answers: of those in progress with their chunks, of earlier ones that are part of a
// conversation's history, and of the latter's copies in requests. It is safe for concurrent use; nil sets no limit.
type TextBudget struct {
	limit int64
	used  atomic.Int64
}

// NewTextBudget returns a budget of limit bytes.
func NewTextBudget(limit int64) *TextBudget { return &TextBudget{limit: limit} }

// garbage is the memory that the process takes for each byte that is in use, since unused memory is collected with a
// delay and returned later. It was measured with 60 answers of 7 MB at a time.
const garbage = 2

// chunkMemory is the memory of a chunk in bytes.
const chunkMemory = garbage * int(unsafe.Sizeof(Chunk{}))

// TextMemory returns the memory of a text of n bytes, in bytes.
func TextMemory(n int) int { return garbage * n }

// requestMemory returns the memory of the history's answers in a request, in bytes.
func requestMemory(messages []Message) (n int) {
	for i := range messages {
		if messages[i].Role == RoleAssistant {
			n += historyMemory(messages[i : i+1])
		}
	}
	return n
}

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
