package lane

import (
	"log/slog"
	"sync"
	"time"

	"kvbooth/sidecar/api"
)

// repeatAfter is the time between two log lines on one class of failures. The last one applies to
// all further lines.
var repeatAfter = [...]time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute}

// quietAfter is the time without a failed turn after which failures count as over.
const quietAfter = time.Minute

// lostAfter is the time for which all turns must have failed so that the first success is logged at
// once.
const lostAfter = 10 * time.Second

// failures logs how turns fail: the first message of each class at once, then at growing intervals
// the number of failures since, so that failures over hours take few lines; and the end of the
// failures. It is safe for concurrent use.
type failures struct {
	log  *slog.Logger
	lane string

	mu      sync.Mutex
	classes map[api.ErrorClass]*failing // since failures began; empty: there are none
	began   time.Time                   // start of the failures
	last    time.Time                   // time of the last failed turn
	total   int                         // failed turns since began
	well    int                         // turns that ended well since began
	lost    time.Time                   // time of the first failure since the last success; zero: none since
	since   int                         // failed turns since lost
}

// failing is one class of failures.
type failing struct {
	n        int    // failed turns since the last log line
	message  string // message of the first of them
	loggedAt time.Time
	times    int // number of log lines
	well     int // failures.well at the last log line
}

// turnFailed counts a failed turn, and logs it if a line is due.
func (f *failures) turnFailed(at time.Time, class api.ErrorClass, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle(at)
	if len(f.classes) == 0 {
		f.classes = map[api.ErrorClass]*failing{}
		f.began = at
		f.total, f.well = 0, 0
	}
	if f.lost.IsZero() {
		f.lost, f.since = at, 0
	}
	f.last, f.total, f.since = at, f.total+1, f.since+1
	c := f.classes[class]
	if c == nil {
		c = &failing{}
		f.classes[class] = c
	}
	if c.n++; c.n == 1 {
		c.message = message
	}
	if c.times == 0 || at.Sub(c.loggedAt) >= repeatAfter[min(c.times, len(repeatAfter))-1] {
		f.logClass(at, class, c)
	}
}

// logClass logs a class of failures: as an error if no turn ended well since the last line on it,
// else as a warning. The lock is held.
func (f *failures) logClass(at time.Time, class api.ErrorClass, c *failing) {
	write, text := f.log.Warn, "turns fail"
	attributes := []any{"lane", f.lane, "class", class, "turns", c.n}
	if c.times > 0 {
		text = "turns still fail"
		attributes = append(attributes,
			"within", at.Sub(c.loggedAt).Round(time.Second), "ended_well_meanwhile", f.well-c.well)
		if f.well == c.well {
			write = f.log.Error
		}
	}
	write(text, append(attributes, "first_message", c.message)...)
	*c = failing{loggedAt: at, times: c.times + 1, well: f.well}
}

// turnWell counts a turn that ended well. It logs the first one after a time without any.
func (f *failures) turnWell(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.well++
	if !f.lost.IsZero() && at.Sub(f.lost) >= lostAfter {
		f.log.Info("turns succeed again",
			"lane", f.lane, "after", at.Sub(f.lost).Round(time.Second), "failed_meanwhile", f.since)
	}
	f.lost = time.Time{}
	f.settle(at)
}

// settle ends the failures if turns end well and none has failed for quietAfter. The lock is held.
func (f *failures) settle(at time.Time) {
	if len(f.classes) > 0 && f.lost.IsZero() && at.Sub(f.last) >= quietAfter {
		f.log.Info("no turn has failed for a minute",
			"lane", f.lane, "failed_before", f.total, "within", f.last.Sub(f.began).Round(time.Second))
		f.classes = nil
	}
}

// stopped logs what was not logged yet, since the workload has ended. Failures of the next run are
// logged from its first turn on.
func (f *failures) stopped(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, class := range api.ErrorClasses {
		if c := f.classes[class]; c != nil && c.n > 0 {
			f.logClass(at, class, c)
		}
	}
	f.classes, f.lost = nil, time.Time{}
}
