package main

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"kvbooth/sidecar/api"
)

// clearLine clears the line of the cursor.
const clearLine = "\r\x1b[K"

// terminal shares a screen between log lines and the status line: a log line first clears the status line. It is safe
// for concurrent use.
type terminal struct {
	mu     sync.Mutex
	w      io.Writer
	status bool // the last thing written was a status line
}

// file returns the file of a terminal, or nil for any other writer.
func (t *terminal) file() *os.File {
	f, ok := t.w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// Write writes a log line, with escapes in place of control characters.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status {
		t.status = false
		if _, err := io.WriteString(t.w, clearLine); err != nil {
			return 0, err
		}
	}
	return api.PrintableWriter(t.w).Write(p)
}

// show replaces the status line. It is written without the terminal's line wrap: a wrapped line could not be cleared,
// and only the terminal has the width of each character.
func (t *terminal) show(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = true
	_, _ = io.WriteString(t.w, clearLine+"\x1b[?7l"+line+"\x1b[?7h")
}

// end keeps the last status line on the screen.
func (t *terminal) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status {
		t.status = false
		_, _ = io.WriteString(t.w, "\n")
	}
}
