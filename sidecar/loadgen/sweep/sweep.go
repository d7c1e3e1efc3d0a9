package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report"
)

// How long a cluster may take to come to a mode, and how often that and a disk that takes
// nothing are tried again.
const (
	switchPatience = 2 * time.Minute
	tryAgain       = 2 * time.Second
)

// document is a sweep as the store keeps it.
type document struct {
	Sweep   api.Sweep       `json:"sweep"`
	Machine json.RawMessage `json:"machine"`
	Before  *lane.Before    `json:"before,omitempty"` // to be brought back to; nil: it is in force
}

// sweep is one of a desk, whose lock guards it, but for what only its run uses.
type sweep struct {
	desk *Desk
	lane *lane.Lane

	doc     document
	machine machine
	stop    context.CancelCauseFunc // of the run; nil: none
	lease   *lane.Lease             // nil: the lane is not taken

	// What the state of the lane shows is read without the lock. Each part has one writer at a
	// time, so that neither overwrites what the other one has shown since.
	shown atomic.Pointer[api.SweepSummary] // without the spans under way
	now   [2]atomic.Pointer[api.SweepNow]  // the spans under way
}

// read makes a sweep of what was stored.
func (d *Desk) read(data []byte) (*sweep, error) {
	s := &sweep{desk: d, lane: d.opts.Lane}
	if err := json.Unmarshal(data, &s.doc); err != nil {
		return nil, err
	}
	var err error
	if s.machine, err = readMachine(&s.doc.Sweep, s.doc.Machine); err != nil {
		return nil, fmt.Errorf("%s: %w", s.doc.Sweep.ID, err)
	}
	if _, old := s.machine.(earlier); old {
		s.readEarlier()
	}
	s.renew()
	return s, nil
}

// What is said of a trial that an earlier version decided, or left unfinished.
const (
	decidedOnPairs = "Decided by the method of earlier versions, which looked after each pair of spans."
	leftOnPairs    = "it was left unfinished by an earlier version, which decided by another method; ask again"
)

// readEarlier makes a trial of earlier versions one that has ended.
func (s *sweep) readEarlier() {
	v := &s.doc.Sweep
	if v.Trial == nil {
		v.Trial = &api.TrialState{
			Verdict: string(proof.Running), Looks: []api.TrialLook{}, Others: []api.TrialDifference{},
		}
	}
	v.Trial.Method = api.TrialOnPairs
	switch {
	case !v.State.Ended():
		ended := v.Asked.Add(time.Duration(v.Progress.SecondsUsed * float64(time.Second)))
		v.State, v.Reason, v.Cause, v.Ended = api.SweepFailed, leftOnPairs, "", &ended
		v.Progress.Beyond = false
		v.Words = []string{"Unfinished, with no verdict: " + leftOnPairs + "."}
	case v.State == api.SweepDone && !slices.Contains(v.Words, decidedOnPairs):
		v.Words = append(v.Words, decidedOnPairs)
	}
}

func (s *sweep) request() api.SweepRequest { return s.doc.Sweep.Request }

// by is who asked for it.
func (s *sweep) by() string { return s.doc.Sweep.By }

// title names it in a sentence.
func (s *sweep) title() string { return "the " + name(s.doc.Sweep) }

// take takes the lane. The desk's lock is held.
func (s *sweep) take() error {
	life := s.desk.life
	if life == nil || life.Err() != nil {
		return fmt.Errorf("%w: the load generator is starting or shutting down", api.ErrUnavailable)
	}
	lease, before, err := s.lane.Take(life, s.current)
	if err != nil {
		return err
	}
	s.lease = lease
	if s.doc.Before == nil {
		s.doc.Before = &before
	}
	return nil
}

// giveBack gives the lane back, since nothing has been begun. The desk's lock is held.
func (s *sweep) giveBack() {
	_ = s.lease.Release(s.desk.life, s.by(), *s.doc.Before) // which changes nothing
	s.lease, s.doc.Before = nil, nil
}

// renew computes what is shown from what was measured. The desk's lock is held.
func (s *sweep) renew() {
	p := &s.doc.Sweep.Progress
	p.Spans, p.Spoiled, p.SecondsUsed = 0, 0, 0
	for _, span := range s.doc.Sweep.Spans {
		p.SecondsUsed += span.Elapsed
		if span.Spoiled == "" {
			p.Spans++
		} else {
			p.Spoiled++
		}
	}
	s.doc.Sweep.Rows = rows(s.doc.Sweep.Spans)
	writeState(s.machine, &s.doc.Sweep)
	if s.doc.Sweep.State.Ended() {
		p.SecondsLeft, p.SecondsLeast, p.SecondsMost = nil, nil, nil
	}
	s.doc.Sweep.Words = report.Words(&s.doc.Sweep)
	s.publish()
}

// publish shows the present state. The desk's lock is held.
func (s *sweep) publish() {
	v := s.doc.Sweep.SweepSummary
	v.Words = slices.Clone(v.Words)
	s.shown.Store(&v)
}

// current is what was published last, with the spans under way. It takes no lock.
func (s *sweep) current() *api.SweepSummary { return new(s.withSpans(*s.shown.Load())) }

// withSpans adds the spans under way, which have used some of the time that was left when the last one ended.
func (s *sweep) withSpans(v api.SweepSummary) api.SweepSummary {
	if v.State != api.SweepRunning {
		return v
	}
	p := &v.Progress
	p.Span, p.Beside = s.now[0].Load(), s.now[1].Load()
	if p.Span == nil {
		return v
	}
	rest := 0. // of the span itself
	if p.Span.Of != nil {
		rest = max(0, *p.Span.Of-p.Span.Seconds)
	}
	for _, left := range []**float64{&p.SecondsLeft, &p.SecondsLeast, &p.SecondsMost} {
		if *left != nil {
			*left = new(max(rest, **left-p.Span.Elapsed))
		}
	}
	return v
}

// summary is what a list shows. The desk's lock is held.
func (s *sweep) summary() api.SweepSummary {
	v := s.withSpans(s.doc.Sweep.SweepSummary)
	v.Words = slices.Clone(v.Words)
	return v
}

// view is all of it. The desk's lock is held.
func (s *sweep) view() api.Sweep {
	v := s.doc.Sweep
	v.SweepSummary = s.summary()
	v.Spans, v.Rows = slices.Clone(v.Spans), slices.Clone(v.Rows)
	return v
}

// rows are the figures of each level and mode, over the spans that count; a pilot's do not.
func rows(spans []api.SweepSpan) []api.BaselineRow {
	type key struct {
		level int
		mode  api.ModeState
	}
	groups := map[key][]api.BaselineRow{}
	for _, s := range spans {
		if s.Spoiled == "" && s.Row != nil && s.Arm != string(proof.ArmPilot) {
			k := key{s.Concurrency, s.Mode}
			groups[k] = append(groups[k], *s.Row)
		}
	}
	all := []api.BaselineRow{}
	for _, group := range groups {
		all = append(all, proof.MeanRow(group))
	}
	proof.AddClusterFigures(all, spans)
	slices.SortFunc(all, func(a, b api.BaselineRow) int {
		return cmp.Or(
			a.Concurrency-b.Concurrency,
			slices.Index(api.Modes, a.Mode)-slices.Index(api.Modes, b.Mode),
			slices.Index(api.Speculations, a.Speculation)-slices.Index(api.Speculations, b.Speculation),
		)
	})
	return all
}

// save commits the sweep, with the seconds of a span if there are any. The desk's lock is held.
func (s *sweep) save(ctx context.Context, place int, seconds []byte) error {
	var err error
	if s.doc.Machine, err = json.Marshal(s.machine); err != nil {
		return err
	}
	stored := s.doc
	stored.Sweep.Progress.Span, stored.Sweep.Progress.Beside = nil, nil
	data, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	return s.desk.opts.Store.SaveSweep(ctx, s.doc.Sweep.ID, data, place, seconds)
}

// resume lets a paused sweep go on. The desk's lock is held.
func (s *sweep) resume(ctx context.Context, by string) error {
	if err := s.desk.free(); err != nil {
		return err
	}
	if err := s.take(); err != nil {
		return err
	}
	before := s.doc.Sweep.SweepSummary
	s.doc.Sweep.State, s.doc.Sweep.Reason, s.doc.Sweep.Cause = api.SweepRunning, "", ""
	if err := s.save(ctx, 0, nil); err != nil {
		s.restore(&before)
		s.giveBack()
		return err
	}
	s.publish()
	s.lane.Note(by, "resumed "+s.title())
	s.desk.nudge()
	return nil
}

// restore brings back the state that could not be replaced in the store. The desk's lock is held.
func (s *sweep) restore(was *api.SweepSummary) {
	v := &s.doc.Sweep
	v.State, v.Reason, v.Cause, v.Ended = was.State, was.Reason, was.Cause, was.Ended
}

// interrupt pauses or cancels a sweep, at once. The desk's lock is held.
func (s *sweep) interrupt(ctx context.Context, by string, to api.SweepState) error {
	before := s.doc.Sweep.SweepSummary
	cause, done := errPaused, "paused "
	if to == api.SweepCancelled {
		cause, done = errCancelled, "cancelled "
	}
	s.doc.Sweep.State, s.doc.Sweep.Reason, s.doc.Sweep.Cause = to, "by "+by, api.CauseOperator
	if to.Ended() {
		s.doc.Sweep.Ended = new(time.Now())
	}
	if err := s.save(ctx, 0, nil); err != nil {
		s.restore(&before)
		return err
	}
	s.renew()
	if s.stop != nil {
		s.stop(cause)
	}
	s.lane.Note(by, done+s.title())
	return nil
}

// run runs spans until there are no more, it is paused or cancelled, or ctx ends, and gives the
// lane back. Where it is not to run any more, it only does that.
func (s *sweep) run(ctx context.Context) {
	lease := s.begin(ctx)
	if lease == nil {
		return
	}
	work, stop := context.WithCancelCause(lease.Context())
	defer stop(nil)
	s.desk.mu.Lock()
	s.stop = stop
	running := s.doc.Sweep.State == api.SweepRunning
	s.desk.mu.Unlock()
	var err error
	for running && err == nil {
		spans := s.next()
		if len(spans) == 0 {
			break
		}
		err = s.step(work, lease, spans)
	}
	s.finish(ctx, lease, err)
}

// next is what the machine says: spans that run at the same time; none once there are no more.
func (s *sweep) next() (spans []proof.Span) {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	if span, more := s.machine.Next(); more {
		spans = append(spans, span)
	}
	if m, ok := s.machine.(pairing); ok {
		if span, more := m.Beside(); more {
			spans = append(spans, span)
		}
	}
	return spans
}

// begin has the lane taken, which it is not where the sweep was under way when the process
// before this one ended. It waits until it can be; nil is the end of ctx.
func (s *sweep) begin(ctx context.Context) *lane.Lease {
	for ctx.Err() == nil {
		s.desk.mu.Lock()
		if s.lease == nil && s.take() == nil && s.doc.Sweep.State == api.SweepRunning {
			s.lane.Note("load generator", "resumed "+s.title())
		}
		lease := s.lease
		s.desk.mu.Unlock()
		if lease != nil {
			return lease
		}
		_ = pause(ctx)
	}
	return nil
}

// pause waits before something is tried again. The error is the cause of ctx's end.
func pause(ctx context.Context) error {
	timer := time.NewTimer(tryAgain)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// step runs spans at the same time, and keeps what came of them.
func (s *sweep) step(ctx context.Context, lease *lane.Lease, spans []proof.Span) error {
	began := time.Now()
	var all []*outcome
	for all == nil {
		var err error
		all, err = s.measure(ctx, lease, spans)
		var cannot errSwitch
		switch {
		case errors.As(err, &cannot) && time.Since(began) < switchPatience:
			if err := pause(ctx); err != nil {
				return err
			}
		case err != nil:
			return err
		}
	}
	return s.keep(ctx, all)
}

// keep takes in what came of spans that ran at the same time, and does not return before it is on
// the disk: what has been measured is not lost to a disk that is full for a while.
func (s *sweep) keep(ctx context.Context, all []*outcome) error {
	s.desk.mu.Lock()
	first := len(s.doc.Sweep.Spans)
	for _, o := range all {
		err := s.machine.Add(o.result)
		if err != nil { // the statistics cannot use it
			o.result.Spoiled = err.Error()
			err = s.machine.Add(o.result)
		}
		if err != nil {
			s.desk.mu.Unlock()
			return fmt.Errorf("a span was rejected: %w", err)
		}
		o.span.Spoiled = s.machine.Spoiled()
	}
	shareFate(all)
	for _, o := range all {
		s.doc.Sweep.Spans = append(s.doc.Sweep.Spans, o.span)
	}
	s.renew()
	s.desk.mu.Unlock()
	for i, o := range all {
		if err := s.commit(ctx, first+i+1, o.seconds); err != nil {
			return err
		}
	}
	return s.hopeless(all)
}

// hopeless is why the sweep pauses after these spans; nil: it goes on. In a trial the failures of the target are
// observations, and spans in which it answered nothing count: but it pauses where both arms are down.
func (s *sweep) hopeless(all []*outcome) error {
	trial := s.trial()
	for _, o := range all {
		switch {
		case o.span.Spoiled == "" || o.span.Attempt < 2:
		case trial:
			return fmt.Errorf("a span failed twice for another reason than the target: %s; fix it and resume",
				o.span.Spoiled)
		case o.failing:
			return errTarget{fmt.Errorf("the target failed twice in a span: %s; fix it and resume: the sweep continues without that span", o.span.Spoiled)}
		}
	}
	spans := s.doc.Sweep.Spans
	if n := len(spans); trial && n >= 2 && silent(&spans[n-1]) && silent(&spans[n-2]) && spans[n-1].Arm != spans[n-2].Arm {
		return errTarget{errors.New("the target answered no turn in the latest spans of both modes, which count; " +
			"fix it and resume, or cancel it")}
	}
	return nil
}

// silent says whether the target answered no turn of a span.
func silent(s *api.SweepSpan) bool { return s.Spoiled == "" && s.Turns == 0 }

// shareFate lets none of the spans that ran at the same time count where one does not, as the
// machine has it, which repeats them all: what is compared ran in the same minutes.
func shareFate(all []*outcome) {
	i := slices.IndexFunc(all, func(o *outcome) bool { return o.span.Spoiled != "" })
	for _, o := range all {
		if i >= 0 && o.span.Spoiled == "" {
			o.span.Spoiled = fmt.Sprintf("the one that ran at the same time on lane %s does not count", all[i].span.Lane)
		}
	}
}

// commit saves the sweep with the seconds of the span at a place, and waits for a disk that is full.
func (s *sweep) commit(ctx context.Context, place int, seconds []byte) error {
	storing := context.WithoutCancel(ctx)
	for {
		s.desk.mu.Lock()
		err := s.save(storing, place, seconds)
		reason, cause := "", api.SweepCause("")
		if err != nil {
			reason, cause = "waiting for the disk: "+err.Error(), api.CauseDisk
		}
		if s.doc.Sweep.State == api.SweepRunning && s.doc.Sweep.Reason != reason {
			s.doc.Sweep.Reason, s.doc.Sweep.Cause = reason, cause
			s.publish()
		}
		s.desk.mu.Unlock()
		if err == nil {
			return nil
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// finish says what became of the sweep, and gives the lane back.
func (s *sweep) finish(ctx context.Context, lease *lane.Lease, err error) {
	if ctx.Err() != nil { // the process ends: the next one goes on
		return
	}
	s.desk.mu.Lock()
	s.stop = nil
	by, note := s.conclude(lease, err)
	s.now[0].Store(nil)
	s.now[1].Store(nil)
	s.renew()
	before := *s.doc.Before
	s.desk.mu.Unlock()
	if note != "" {
		s.lane.Note(by, note)
	}
	back := lease.Release(ctx, by, before)
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	s.lease = nil
	if ctx.Err() != nil {
		return
	}
	s.doc.Before = nil
	note = fmt.Sprintf("the lane is restored: %s, %d conversations, %s", before.Mode.Name(), before.Concurrency, map[bool]string{true: "running", false: "stopped"}[before.Running])
	if back != nil {
		note = fmt.Sprintf("the lane could not be restored to %s: %v", before.Mode.Name(), back)
		s.doc.Sweep.Reason = joinWords(s.doc.Sweep.Reason, note)
		s.doc.Sweep.Cause = cmp.Or(s.doc.Sweep.Cause, api.CauseMode)
	}
	s.lane.Note(by, note)
	s.publish()
	for s.save(ctx, 0, nil) != nil && ctx.Err() == nil {
		s.desk.mu.Unlock()
		_ = pause(ctx)
		s.desk.mu.Lock()
	}
}

// conclude sets the state of a sweep that runs no more, unless somebody has, and gives what is
// to be noted of it. The desk's lock is held.
func (s *sweep) conclude(lease *lane.Lease, err error) (by, note string) {
	by, doc := "load generator", &s.doc.Sweep
	who, stopped := lease.StoppedBy()
	switch {
	case doc.State != api.SweepRunning:
		return by, ""
	case stopped:
		doc.State, doc.Reason, doc.Cause = api.SweepPaused, "by "+who+", who stopped the workload", api.CauseOperator
		s.doc.Before.Running = false
		return who, "paused " + s.title() + ": the workload was stopped"
	case err != nil:
		doc.State, doc.Reason, doc.Cause = api.SweepPaused, err.Error(), causeOf(err)
		return by, "paused " + s.title() + ": " + err.Error()
	}
	doc.State, doc.Ended = api.SweepDone, new(time.Now())
	return by, "finished " + s.title()
}

// errTarget says that the target failed too often for a sweep to go on by itself.
type errTarget struct{ error }

// causeOf is what an error that pauses a sweep is about.
func causeOf(err error) api.SweepCause {
	switch {
	case errors.As(err, new(errTarget)):
		return api.CauseTarget
	case errors.As(err, new(errSwitch)), errors.Is(err, errOneLane):
		return api.CauseMode
	}
	return api.CauseInternal
}

func joinWords(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
