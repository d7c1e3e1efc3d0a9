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

// report shows the progress of a long operation: as a bar on a terminal, otherwise as a line at intervals.
type report struct {
	to       io.Writer
	total    int64
	bar      *progressbar.ProgressBar // nil without a terminal
	interval time.Duration            // minimum time between updates
	next     time.Time                // time of the next update
}

const (
	barInterval  = 200 * time.Millisecond
	lineInterval = 10 * time.Second
)

// descriptionWidth keeps the bar within a terminal of 100 columns.
const descriptionWidth = 40

func newReport(to io.Writer, total int64) *report {
	r := &report{to: to, total: total, interval: lineInterval}
	if file, ok := to.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		r.interval = barInterval
		r.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(to), progressbar.OptionSetWidth(24),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionSetPredictTime(false))
	}
	r.next = time.Now().Add(r.interval)
	return r
}

func (r *report) line(text string) { fmt.Fprintln(r.to, text) }

// show updates the progress if the interval has passed. text describes the current step.
func (r *report) show(done int64, text string) {
	now := time.Now()
	if now.Before(r.next) {
		return
	}
	r.next = now.Add(r.interval)
	text, _, _ = strings.Cut(text, " (from ") // cuts pip's list of the packages that require this one
	if r.total > 0 {
		done = min(done, r.total-1) // the total may be an estimate
	}
	switch {
	case r.bar != nil:
		r.bar.Describe(fmt.Sprintf("%-*.*s", descriptionWidth, descriptionWidth, text))
		_ = r.bar.Set64(done)
	case r.total > 0:
		r.line(fmt.Sprintf("  %d of about %d MB: %.100s", done>>20, r.total>>20, text))
	default:
		r.line(fmt.Sprintf("  %d MB: %.100s", done>>20, text))
	}
}

func (r *report) close() {
	if r.bar != nil {
		_ = r.bar.Clear()
	}
}
