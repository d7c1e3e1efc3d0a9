package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"kvbooth/sidecar/api"
)

// screen prints the booth's messages. It is safe for concurrent use.
type screen struct {
	mu       sync.Mutex
	stdout   io.Writer
	stderr   io.Writer
	terminal *os.File // standard error if it is a terminal, which also shows the load generator's status line
}

func newScreen(stdout, stderr io.Writer) *screen {
	s := &screen{stdout: stdout, stderr: stderr}
	if file, ok := stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.terminal = file
	}
	return s
}

// clearLine erases a status line.
const clearLine = "\r\x1b[K"

// clear erases the line that is rewritten. The caller holds s.mu.
func (s *screen) clear() {
	if s.terminal != nil {
		fmt.Fprint(s.stderr, clearLine)
	}
}

// say writes a message to standard error.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintf(api.PrintableWriter(s.stderr), "booth: "+format+"\n", args...)
}

// remindInterval is the time between reminders of a long wait without a terminal.
const remindInterval = 10 * time.Second

// waiting shows what the booth waits for, and for how long, until done is called: on a terminal in a line that is
// rewritten, otherwise in a line at intervals.
func (s *screen) waiting(current func() string) (done func()) {
	began, end := time.Now(), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		interval := remindInterval
		if s.terminal != nil {
			interval = time.Second
		}
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case now := <-tick.C:
				s.remind(current(), now.Sub(began).Round(time.Second))
			}
		}
	})
	return func() {
		close(end)
		wg.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.clear()
	}
}

func (s *screen) remind(current string, since time.Duration) {
	if s.terminal == nil {
		s.say("waiting for %s, %v so far", current, since)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.stderr, "%sbooth: waiting for %s · %v", clearLine, current, since)
}

// table writes a heading, rows of a name and its description, and a last line to standard output.
func (s *screen) table(heading string, rows [][2]string, last string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintln(s.stdout, heading)
	w := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(w, "  %s\t%s\n", row[0], row[1])
	}
	_ = w.Flush()
	fmt.Fprintln(s.stdout, last)
}
