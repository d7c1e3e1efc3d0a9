package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"text/tabwriter"
	"time"

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

// clear takes away whatever line is rewritten; s.mu is held.
func (s *screen) clear() {
	if s.terminal != nil {
		fmt.Fprint(s.stderr, clearLine)
	}
}

// say writes what happens to standard error.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintf(s.stderr, "booth: "+format+"\n", args...)
}

// remindEvery is how often something long is mentioned where there is no terminal.
const remindEvery = 10 * time.Second

// waiting shows what is waited for, and for how long, until done is called: on a
// terminal in a line that is rewritten, elsewhere in a line now and then.
func (s *screen) waiting(what func() string) (done func()) {
	began, end := time.Now(), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		every := remindEvery
		if s.terminal != nil {
			every = time.Second
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case now := <-tick.C:
				s.remind(what(), now.Sub(began).Round(time.Second))
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

func (s *screen) remind(what string, since time.Duration) {
	if s.terminal == nil {
		s.say("waiting for %s, %v so far", what, since)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.stderr, "%sbooth: waiting for %s · %v", clearLine, what, since)
}

// table writes a heading, rows of a name and what it is, and last words to
// standard output.
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
