package main

import (
	"io"
	"sync"
)

// clearLine takes the line away that the cursor stands on.
const clearLine = "\r\x1b[K"

// terminal lets log lines and the status line share a screen: a log line first
// clears the line that the cursor stands on. It is safe for concurrent use.
type terminal struct {
	mu     sync.Mutex
	w      io.Writer
	status bool // the last thing written was a status line
}

// Write writes a log line.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status {
		t.status = false
		if _, err := io.WriteString(t.w, clearLine); err != nil {
			return 0, err
		}
	}
	return t.w.Write(p)
}

// show puts a new status line in the place of the old one. It is written without
// the terminal's line wrap: what wraps could not be cleared, and how wide a
// character is, the terminal alone knows.
func (t *terminal) show(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = true
	_, _ = io.WriteString(t.w, clearLine+"\x1b[?7l"+line+"\x1b[?7h")
}

// end leaves the last status line standing.
func (t *terminal) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status {
		t.status = false
		_, _ = io.WriteString(t.w, "\n")
	}
}
