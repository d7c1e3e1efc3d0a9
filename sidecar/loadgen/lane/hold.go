package lane

import (
	"fmt"
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

const (
	holdSpan  = 30 * time.Second // a workload that does not grow for this time is held
	limitSpan = 5 * time.Second  // the current limiter is determined over this time
)

// holdDetector determines whether a setting keeps a workload below its concurrency. It is used
// with the lane's lock held.
type holdDetector struct {
	paces []pace // one a second, of the last holdSpan, and the one before that
}

// pace is a workload's pace at a time.
type pace struct {
	workload.Pace
	at time.Time
}

// add records the pace of the workload.
func (d *holdDetector) add(at time.Time, p workload.Pace) {
	d.paces = append(d.paces, pace{p, at})
	if first := d.within(at, holdSpan); first > 0 {
		d.paces = slices.Delete(d.paces, 0, first)
	}
}

// reset discards all records, since they were made with other settings.
func (d *holdDetector) reset() { d.paces = nil }

// within returns the index of the last record that is at least span old, or of the first record.
func (d *holdDetector) within(now time.Time, span time.Duration) int {
	for i := len(d.paces) - 1; i > 0; i-- {
		if now.Sub(d.paces[i].at) >= span {
			return i
		}
	}
	return 0
}

// limiter returns the limit that turns or the next conversation have waited for during more than
// half of limitSpan; empty if there is none.
func (d *holdDetector) limiter() api.Limiter {
	if len(d.paces) == 0 {
		return ""
	}
	return limiter(d.paces[d.within(d.paces[len(d.paces)-1].at, limitSpan):])
}

// limiter returns the limit that was waited for during more than half of the time of paces, the one
// with the longest wait if there are several; empty if there is none. There must be at least one pace.
func limiter(paces []pace) (longest api.Limiter) {
	first, last := paces[0], paces[len(paces)-1]
	most := last.at.Sub(first.at) / 2
	for limitedBy, waited := range last.Waited {
		if waited -= first.Waited[limitedBy]; waited > most {
			longest, most = limitedBy, waited
		}
	}
	return longest
}

// Limited is the limit that turns and conversations of a run waited for longest.
type Limited struct {
	By    api.Limiter `json:"by"`
	Text  string      `json:"text"`  // the limit with its value
	Share float64     `json:"share"` // of the time of the run
}

// limitedFrom is the share of a run from which a limit is named.
const limitedFrom = .1

// Limited returns the limit that has held the load of the run under way down; nil if there is none.
func (l *Lane) Limited() *Limited {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == nil {
		return nil
	}
	most := Limited{Share: limitedFrom}
	for limitedBy, waited := range l.run.workload.Pace().Waited {
		waited -= l.run.warmUp.Waited[limitedBy]
		if share := waited.Seconds() / time.Since(*l.started).Seconds(); share > most.Share {
			most = Limited{limitedBy, l.limiterText(limitedBy), min(1, share)}
		}
	}
	if most.By == "" {
		return nil
	}
	return &most
}

// Limit names the limit that now holds the load of the span's lane down; empty if there is none.
func (r *SpanRun) Limit() string {
	r.lane.mu.Lock()
	defer r.lane.mu.Unlock()
	if limitedBy := r.lane.holds.limiter(); limitedBy != "" {
		return r.lane.limiterText(limitedBy)
	}
	return ""
}

// held reports where a workload is held below its concurrency. It returns nil unless during all of
// holdSpan a conversation was missing, the next one waited for the same limit for more than half of
// that time, at least one conversation began, and the number in progress changed by no more than a
// tenth of those that began.
func (d *holdDetector) held(target int) *api.Held {
	if len(d.paces) < 2 {
		return nil
	}
	first, last := d.paces[0], d.paces[len(d.paces)-1]
	limitedBy := limiter(d.paces)
	if last.at.Sub(first.at) < holdSpan || limitedBy == "" {
		return nil
	}
	if slices.ContainsFunc(d.paces, func(p pace) bool { return p.Actual >= target }) {
		return nil
	}
	begun, grown := last.Begun-first.Begun, int64(last.Actual-first.Actual)
	if begun == 0 || 10*max(grown, -grown) > begun {
		return nil
	}
	return &api.Held{By: limitedBy, At: int(math.Round(d.mean()))}
}

// mean returns the mean number of conversations in progress, NaN without records.
func (d *holdDetector) mean() float64 {
	sum := 0.0
	for _, p := range d.paces {
		sum += float64(p.Actual)
	}
	return sum / float64(len(d.paces))
}

// isNear reports whether a mean number of conversations is within a tenth of the level. At a rate, any number is.
func isNear(mean float64, level api.Level) bool {
	return level.Kind != api.Conversations || math.Abs(mean-level.Value) <= level.Value/10
}

// effectiveLevel returns the level that a step's figures apply to: where the step is held, less than the target.
func effectiveLevel(target api.Level, held *api.Held) api.Level {
	if held != nil {
		return api.AtConversations(held.At)
	}
	return target
}

// settleHeld settles a step that is held below its target. If a settled step turns out to be held
// at another concurrency, or reaches its target after all, it ends and a new step begins. The lock
// is held.
func (l *Lane) settleHeld(now time.Time) {
	step, held := l.steps.current(), l.holds.held(l.settings.Level.Conversations())
	reached := step.Held != nil && l.holds.paces[len(l.holds.paces)-1].Actual >= l.settings.Level.Conversations()
	switch {
	case l.steps.isMixed() || held == nil && !reached:
		return
	case held != nil && step.Settled != nil && isNear(float64(held.At), effectiveLevel(step.Level, step.Held)):
		return
	case step.Settled != nil:
		l.endStep(now)
		l.beginStep(now, leadSwitched, false)
	}
	text := fmt.Sprintf("step %d: reached %d conversations", l.steps.current().ID, l.settings.Level.Conversations())
	if held != nil {
		text = fmt.Sprintf("step %d: held at %d of %d conversations by %s", l.steps.current().ID, held.At,
			l.settings.Level.Conversations(), l.limiterText(held.By))
	}
	l.steps.settleAt(now, held)
	l.event(api.EventStep, "load generator", text)
	l.notify()
}

// dropped returns the number of turns that the run under way has dropped after its warm-up. The lock is held.
func (l *Lane) dropped() int64 {
	if l.run == nil {
		return 0
	}
	return l.run.workload.Pace().Dropped - l.run.warmUp.Dropped
}

// limiterText describes a limiter. The lock is held.
func (l *Lane) limiterText(limitedBy api.Limiter) string {
	if limitedBy == api.LimitedByStartRate {
		return fmt.Sprintf("the start rate of %v conversations/s", l.settings.StartRate)
	}
	return fmt.Sprintf("the cap of %v requests/s", l.settings.TargetRPS)
}
