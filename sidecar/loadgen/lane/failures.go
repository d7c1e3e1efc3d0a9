package lane

import (
	"log/slog"
	"sync"
	"time"

	"kvbooth/sidecar/api"
)

// tellAfter is when turns that go on failing in one way are told of again, after they
// were told of; from the last one on, always after that.
var tellAfter = [...]time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute}

// quietAfter is how long no turn must have failed before failures count as over.
const quietAfter = time.Minute

// lostAfter is how long turns must have failed, and none ended well, before the first
// that does is told of at once.
const lostAfter = 10 * time.Second

// failures puts into the log how turns fail: each class with its first message at once,
// and then at growing intervals with how many there were since, so that a failure of
// hours takes a few lines; and that they no longer do. It is safe for concurrent use.
type failures struct {
	log  *slog.Logger
	lane string

	mu      sync.Mutex
	classes map[api.ErrorClass]*failing // since failures began; empty: none are under way
	began   time.Time                   // when they did
	last    time.Time                   // when a turn last failed
	total   int                         // since they began
	well    int                         // turns that ended well since they began
	lost    time.Time                   // of the first failure since a turn last ended well; zero: one did
	since   int                         // failures since then
}

// failing is one class of them.
type failing struct {
	n       int    // since they were told of
	message string // of the first of these
	told    time.Time
	times   int // they were told of
	well    int // as it was then
}

// turnFailed takes in a failed turn.
func (f *failures) turnFailed(at time.Time, class api.ErrorClass, message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle(at)
	if len(f.classes) == 0 {
		f.classes, f.began, f.total, f.well = map[api.ErrorClass]*failing{}, at, 0, 0
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
	if c.times == 0 || at.Sub(c.told) >= tellAfter[min(c.times, len(tellAfter))-1] {
		f.logClass(at, class, c)
	}
}

// logClass writes a log line on a class. It is an error where no turn ended well since the last
// line on it, and else a warning. The lock is held.
func (f *failures) logClass(at time.Time, class api.ErrorClass, c *failing) {
	write, text := f.log.Warn, "turns fail"
	attributes := []any{"lane", f.lane, "class", class, "turns", c.n}
	if c.times > 0 {
		text = "turns still fail"
		attributes = append(attributes, "within", at.Sub(c.told).Round(time.Second), "ended_well_meanwhile", f.well-c.well)
		if f.well == c.well {
			write = f.log.Error
		}
	}
	write(text, append(attributes, "first_message", c.message)...)
	c.n, c.message, c.told, c.well = 0, "", at, f.well
	c.times++
}

// turnWell takes in a turn that ended well. The first one after a time without any is
// told of at once.
func (f *failures) turnWell(at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.well++
	if !f.lost.IsZero() && at.Sub(f.lost) >= lostAfter {
		f.log.Info("turns succeed again", "lane", f.lane, "after", at.Sub(f.lost).Round(time.Second), "failed_meanwhile",
			f.since)
	}
	f.lost = time.Time{}
	f.settle(at)
}

// settle ends failures that are over: turns end well, and none has failed for a while.
// The lock is held.
func (f *failures) settle(at time.Time) {
	if len(f.classes) > 0 && f.lost.IsZero() && at.Sub(f.last) >= quietAfter {
		f.log.Info("no turn has failed for a minute", "lane", f.lane, "failed_before", f.total, "within",
			f.last.Sub(f.began).Round(time.Second))
		f.classes = nil
	}
}

// stopped tells of what was not told of yet: the workload has ended, and what comes
// with the next one is told of from its first turn on.
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
