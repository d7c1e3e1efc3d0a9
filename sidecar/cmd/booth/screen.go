package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"text/tabwriter"

	"golang.org/x/term"
)

// screen is where the booth says what it does. It is safe for concurrent use.
type screen struct {
	mu       sync.Mutex
	stdout   io.Writer
	stderr   io.Writer
	terminal *os.File // standard error, if it is one; the load generator's status line stands there
}

func newScreen(stdout, stderr io.Writer) *screen {
	s := &screen{stdout: stdout, stderr: stderr}
	if file, ok := stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.terminal = file
	}
	return s
}

// clearLine takes a status line away.
const clearLine = "\r\x1b[K"

// say writes what happens to standard error.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal != nil {
		fmt.Fprint(s.stderr, clearLine)
	}
	fmt.Fprintf(s.stderr, "booth: "+format+"\n", args...)
}

// table writes a heading, rows of a name and what it is, and a last line to
// standard output.
func (s *screen) table(heading string, rows [][2]string, last string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal != nil {
		fmt.Fprint(s.stderr, clearLine)
	}
	fmt.Fprintln(s.stdout, heading)
	w := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(w, "  %s\t%s\n", row[0], row[1])
	}
	_ = w.Flush()
	fmt.Fprintln(s.stdout, last)
}
