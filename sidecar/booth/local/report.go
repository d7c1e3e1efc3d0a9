package local

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// report shows the progress of something long: as a bar on a terminal, elsewhere
// as a line now and then.
type report struct {
	to    io.Writer
	total int64
	bar   *progressbar.ProgressBar // nil where there is no terminal
	every time.Duration            // at least, from one showing to the next
	next  time.Time                // when that is due
}

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
)

// descriptionWidth keeps the bar within a terminal of 100 columns.
const descriptionWidth = 40

func newReport(to io.Writer, total int64) *report {
	r := &report{to: to, total: total, every: lineEvery}
	if file, ok := to.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		r.every = barEvery
		r.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(to), progressbar.OptionSetWidth(24),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionSetPredictTime(false))
	}
	r.next = time.Now().Add(r.every)
	return r
}

func (r *report) line(text string) { fmt.Fprintln(r.to, text) }

// show says how far it is, and what is being done.
func (r *report) show(done int64, what string) {
	now := time.Now()
	if now.Before(r.next) {
		return
	}
	r.next = now.Add(r.every)
	what, _, _ = strings.Cut(what, " (from ") // pip's chain of who needs a package
	if r.total > 0 {
		done = min(done, r.total-1) // the total may be an estimate
	}
	switch {
	case r.bar != nil:
		r.bar.Describe(fmt.Sprintf("%-*.*s", descriptionWidth, descriptionWidth, what))
		_ = r.bar.Set64(done)
	case r.total > 0:
		r.line(fmt.Sprintf("  %d of about %d MB: %.100s", done>>20, r.total>>20, what))
	default:
		r.line(fmt.Sprintf("  %d MB: %.100s", done>>20, what))
	}
}

func (r *report) close() {
	if r.bar != nil {
		_ = r.bar.Clear()
	}
}
