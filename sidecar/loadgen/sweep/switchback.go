package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
)

// errSpoiled reports that a slot does not count, so that its pair begins anew.
var errSpoiled = errors.New("a slot does not count")

// slots is one run of a switchback, whose arm changes every slot. The result of a slot is computed once all of its
// turns have ended, at the latest at the end of the next one, which has begun by then.
type slots struct {
	sweep   *sweep
	lease   *lane.Lease
	run     *lane.SpanRun
	record  *recorder
	lost    int64    // turns that the store had lost before the run
	pending *attempt // the slot before the one in progress; nil: its result is in
}

// switchback runs the slots of a trial until there are no more, or ctx ends. After a fault the latest pair is measured
// anew, in a new run.
func (s *sweep) switchback(ctx context.Context, lease *lane.Lease) error {
	for began := time.Now(); ; {
		span, more := s.beginPair()
		if !more {
			return nil
		}
		measured := s.measured()
		err := s.runSlots(ctx, lease, span)
		if s.measured() > measured {
			began = time.Now()
		}
		var cannot errSwitch
		switch {
		case errors.As(err, &cannot) && time.Since(began) < switchTimeout:
			if err := pause(ctx); err != nil {
				return err
			}
		case err != nil && !errors.Is(err, errSpoiled):
			return err
		}
	}
}

// beginPair returns the next slot, which is the first one of a pair. A slot whose pair was not completed does not
// count.
func (s *sweep) beginPair() (proof.Span, bool) {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	trial := s.machine.(*proof.Trial)
	for i := range trial.BeginAnew() {
		spans := s.doc.Sweep.Spans
		if last := &spans[len(spans)-1-i]; last.Spoiled == "" {
			last.Spoiled = "the other slot of its pair does not count"
		}
	}
	return trial.Next()
}

// measured returns the number of spans that were measured.
func (s *sweep) measured() int {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	return len(s.doc.Sweep.Spans)
}

// runSlots runs slots until the trial is over: on the run in progress, if it has as many conversations as the trial,
// else on one that begins with cold caches and warms up.
func (s *sweep) runSlots(ctx context.Context, lease *lane.Lease, span proof.Span) error {
	now := time.Now()
	r := &slots{sweep: s, lease: lease, record: newRecorder(now, 0, s.lane.Opening), lost: s.desk.opts.Store.LostTurns()}
	a := &attempt{sweep: s, lane: s.lane, began: now, span: span, record: r.record}
	if r.run = lease.Adopt(span.Level, r.record); r.run == nil {
		if err := r.begin(ctx, a); err != nil {
			return err
		}
	}
	defer r.run.End()
	a.run, a.start = r.run, r.run.Began
	err := r.warmUp(ctx, a)
	for over := false; !over && err == nil; now = time.Now() {
		s.desk.mu.Lock()
		next := s.machine.(*proof.Trial).Slot(r.ahead())
		s.desk.mu.Unlock()
		over, err = r.slot(ctx, next, now)
	}
	return err
}

// begin begins a run.
func (r *slots) begin(ctx context.Context, a *attempt) error {
	all, begin := r.sweep.attempts(a.began, []proof.Span{a.span})
	r.record, a.record = all[0].record, all[0].record
	switching := func(message string) {
		n := a.state(api.SpanSwitching, a.began, nil)
		n.Message = message
		a.publish(n)
	}
	switching("")
	runs, err := r.lease.Begin(ctx, r.sweep.by(), begin, switching)
	if err != nil {
		return r.switchError(ctx, a.span, err)
	}
	r.run = runs[0]
	return nil
}

// switchError returns the error of a change of the mode.
func (r *slots) switchError(ctx context.Context, span proof.Span, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errSwitch{fmt.Errorf("the change to %s failed: %w", span.Mode.Name(), err)}
}

// ahead returns the number of slots whose results are not in.
func (r *slots) ahead() int {
	if r.pending != nil {
		return 1
	}
	return 0
}

// over reports whether the trial needs no more slots.
func (r *slots) over() bool {
	r.sweep.desk.mu.Lock()
	defer r.sweep.desk.mu.Unlock()
	_, more := r.sweep.machine.Next()
	return !more
}

// each calls do every second from a second on, until it reports that it is done. The error is the cause of ctx's end,
// that of an operator's stop, or an errSpoiled.
func (r *slots) each(ctx context.Context, from float64, do func(second float64) (done bool, err error)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for second := from; ; second++ {
		timer.Reset(time.Until(r.record.at(second)))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.run.Ended():
			return fmt.Errorf("%w: the workload was stopped", errSpoiled)
		case <-timer.C:
		}
		if late := math.Floor(r.record.seconds(time.Now())); late > second {
			second = late // the machine was suspended or overloaded
		}
		if done, err := do(second); done || err != nil {
			return err
		}
	}
}

// warmUp waits until all conversations are in progress and those that began the run have ended, and says what latency
// their turns had.
func (r *slots) warmUp(ctx context.Context, a *attempt) error {
	a.progress = time.Now()
	return r.each(ctx, math.Ceil(r.record.seconds(time.Now())), func(second float64) (bool, error) {
		reason := a.abandonReason()
		if reason != "" {
			return false, fmt.Errorf("%w: %s", errSpoiled, reason)
		}
		if (r.record.warmingUp() > 0 || r.growing(a)) && !a.silent {
			a.publish(a.state(api.SpanWarmingUp, r.run.Began, nil))
			return false, nil
		}
		_, _, latency := r.record.counted(0, second)
		r.sweep.desk.mu.Lock()
		defer r.sweep.desk.mu.Unlock()
		r.sweep.machine.(*proof.Trial).Expect(latency)
		return true, nil
	})
}

// growing reports whether conversations of a run that was in progress are still to begin, and nothing holds them back.
func (r *slots) growing(a *attempt) bool {
	return r.run.Adopted() && r.run.Pace().Actual < a.span.Level.Conversations() && r.run.Limit() == ""
}

// slot runs a slot to its end, and meanwhile takes in the result of the one before. over means that this ended the
// trial.
func (r *slots) slot(ctx context.Context, span proof.Span, from time.Time) (over bool, err error) {
	a := &attempt{
		sweep: r.sweep, lane: r.sweep.lane, began: from, span: span, record: r.record, run: r.run, slot: true,
		progress: time.Now(),
	}
	if err := r.lease.Switch(ctx, r.sweep.by(), r.run, span.Mode); err != nil {
		return false, r.switchError(ctx, span, err)
	}
	a.step, a.start = r.run.Step, time.Now()
	if a.open() {
		r.run.BeginArrivals(span.Arrivals)
		a.queue.before = r.run.Pace().Dropped
	}
	begins := math.Ceil(r.record.seconds(a.start))
	a.from, a.until = begins+span.LeadIn, begins+span.LeadIn+span.Seconds
	err = r.each(ctx, begins, func(second float64) (bool, error) {
		if p := r.pending; p != nil && (second >= a.until || !r.record.underway(p.from, p.until)) {
			if over, err = r.take(ctx); over || err != nil {
				return true, err
			}
		}
		if reason := a.abandonReason(); reason != "" {
			return true, fmt.Errorf("%w: %s", errSpoiled, reason)
		}
		a.overloads(second, second >= a.until)
		switch {
		case second >= a.until || a.overloaded != "":
			a.until = second
			return true, nil
		case second < a.from:
			a.publish(a.state(api.SpanWarmingUp, a.start, &span.LeadIn))
		default:
			ok, _, _ := r.record.counted(a.from, second)
			a.count(r.record.at(second), ok, span.Seconds)
		}
		return false, nil
	})
	a.elapsed = time.Since(from).Seconds()
	if a.overloaded != "" && err == nil && r.pending != nil { // the one before ends with the run
		over, err = r.take(ctx)
	}
	r.pending = a
	if a.overloaded != "" && err == nil && !over {
		return r.take(ctx)
	}
	return over, err
}

// take takes in the result of the pending slot. over means that it ended the trial.
func (r *slots) take(ctx context.Context) (over bool, err error) {
	a := r.pending
	r.pending = nil
	unstored, err := r.sweep.flush(ctx, r.lost)
	if err != nil {
		return false, err
	}
	result, out := a.result(unstored, a.until)
	result.Elapsed, out.Elapsed = a.elapsed, a.elapsed
	o := &outcome{result, out, a.encodeSeconds(), result.Spoiled != "" && a.unserved}
	if err := r.sweep.store(ctx, []*outcome{o}); err != nil {
		return false, err
	}
	if reason := cmp.Or(o.span.Spoiled, o.span.Overloaded); reason != "" && !r.over() {
		return false, fmt.Errorf("%w: %s", errSpoiled, reason)
	}
	return r.over(), nil
}
