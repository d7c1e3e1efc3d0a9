package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/term"
)

// progress says what runs and for how long it will: on a terminal in one line
// that changes every second, elsewhere in a line now and then.
type progress struct {
	to       io.Writer
	terminal bool
	run, all int
	what     string
	told     time.Duration // what was left when the last line was written
}

// lineEvery is how much less must be left for another line, where there is no
// terminal.
const lineEvery = 30 * time.Second

func newProgress(to io.Writer, runs int) *progress {
	file, ok := to.(*os.File)
	return &progress{to: to, all: runs, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

// next begins another run.
func (p *progress) next(what string) {
	p.run++
	p.what, p.told = what, math.MaxInt64
	p.line("starting")
}

// left says how long the run still takes.
func (p *progress) left(d time.Duration) {
	if !p.terminal && p.told-d < lineEvery {
		return
	}
	p.told = d
	p.line(fmt.Sprintf("%.0f s left", d.Seconds()))
}

func (p *progress) line(how string) {
	text := fmt.Sprintf("%d of %d: %s: %s", p.run, p.all, p.what, how)
	if p.terminal {
		fmt.Fprint(p.to, clearLine+text)
		return
	}
	fmt.Fprintln(p.to, text)
}

// clearLine empties the terminal's line and goes to its beginning.
const clearLine = "\r\x1b[K"

// done takes the line off the terminal.
func (p *progress) done() {
	if p.terminal {
		fmt.Fprint(p.to, clearLine)
	}
}
