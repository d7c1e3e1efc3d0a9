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
	holdSpan  = 30 * time.Second // for which a workload must have stood still to be held
	limitSpan = 5 * time.Second  // that what limits it now is told from
)

// brake tells whether a setting keeps a workload below its concurrency. It is used
// with the lane's lock held.
type brake struct {
	paces []pace // one a second, of the last holdSpan and the one before that
}

type pace struct {
	workload.Pace
	at time.Time
}

// add notes how the workload goes at the moment.
func (b *brake) add(at time.Time, p workload.Pace) {
	b.paces = append(b.paces, pace{p, at})
	if first := b.within(at, holdSpan); first > 0 {
		b.paces = slices.Delete(b.paces, 0, first)
	}
}

// reset forgets: what was before went by other settings.
func (b *brake) reset() { b.paces = nil }

// within is the place of the last note that is at least so old, or of the first.
func (b *brake) within(now time.Time, span time.Duration) int {
	for i := len(b.paces) - 1; i > 0; i-- {
		if now.Sub(b.paces[i].at) >= span {
			return i
		}
	}
	return 0
}

// limiter is what the next conversation has waited for during more than half of the
// last seconds; empty where it was for neither.
func (b *brake) limiter() api.Limiter {
	if len(b.paces) == 0 {
		return ""
	}
	return limiter(b.paces[b.within(b.paces[len(b.paces)-1].at, limitSpan):])
}

func limiter(paces []pace) api.Limiter {
	first, last := paces[0], paces[len(paces)-1]
	for by, waited := range last.Waited {
		if 2*(waited-first.Waited[by]) > last.at.Sub(first.at) {
			return by
		}
	}
	return ""
}

// held says where a workload stands still below its concurrency: nil unless during all of
// holdSpan a conversation was missing, the next one waited for the same limit more than
// half of that time, and the number in progress changed by no more than a tenth of the
// conversations that began, of which there was one at least.
func (b *brake) held(target int) *api.Held {
	if len(b.paces) < 2 {
		return nil
	}
	first, last := b.paces[0], b.paces[len(b.paces)-1]
	by := limiter(b.paces)
	if last.at.Sub(first.at) < holdSpan || by == "" {
		return nil
	}
	if slices.ContainsFunc(b.paces, func(p pace) bool { return p.Actual >= target }) {
		return nil
	}
	begun, grown := last.Begun-first.Begun, int64(last.Actual-first.Actual)
	if begun == 0 || 10*max(grown, -grown) > begun {
		return nil
	}
	return &api.Held{By: by, At: int(math.Round(b.mean()))}
}

// mean is that of the conversations in progress, NaN where nothing was noted.
func (b *brake) mean() float64 {
	sum := 0.0
	for _, p := range b.paces {
		sum += float64(p.Actual)
	}
	return sum / float64(len(b.paces))
}

// isNear says whether a mean number in progress is as good as the level: within a tenth.
func isNear(mean float64, level int) bool { return math.Abs(mean-float64(level)) <= float64(level)/10 }

// levelOf is the concurrency that a step's figures are those of.
func levelOf(target int, held *api.Held) int {
	if held != nil {
		return held.At
	}
	return target
}

// hold settles a step that is held below its target. Where one is held that had settled
// elsewhere, or comes to its target after all, a new step begins with that. The lock is held.
func (l *Lane) hold(now time.Time) {
	step, held := l.steps.current(), l.brake.held(l.settings.Concurrency)
	reached := step.Held != nil && l.brake.paces[len(l.brake.paces)-1].Actual >= l.settings.Concurrency
	switch {
	case l.steps.isMixed() || held == nil && !reached:
		return
	case held != nil && step.Settled != nil && isNear(float64(held.At), levelOf(step.Concurrency, step.Held)):
		return
	case step.Settled != nil:
		l.endStep(now)
		l.steps.begin(now, l.settings.Concurrency, l.mode, false)
	}
	text := fmt.Sprintf("step %d: reached %d conversations", l.steps.current().ID, l.settings.Concurrency)
	if held != nil {
		text = fmt.Sprintf("step %d: held at %d of %d conversations by %s", l.steps.current().ID, held.At,
			l.settings.Concurrency, l.limit(held.By))
	}
	l.steps.settleAt(now, held)
	l.event(api.EventStep, "load generator", text)
	l.notify()
}

// limit is a limiter in words. The lock is held.
func (l *Lane) limit(by api.Limiter) string {
	if by == api.LimitedByStartRate {
		return fmt.Sprintf("the start rate of %v conversations/s", l.settings.StartRate)
	}
	return fmt.Sprintf("the cap of %v requests/s", l.settings.TargetRPS)
}
