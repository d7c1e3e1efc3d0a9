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

const (
	switchTimeout = 2 * time.Minute // for the cluster to reach a mode
	retryPause    = 2 * time.Second // after a failed switch or commit
)

// document is the stored form of a sweep.
type document struct {
	Sweep   api.Sweep       `json:"sweep"`
	Machine json.RawMessage `json:"machine"`
	Before  *lane.Before    `json:"before,omitempty"` // state of the lane to restore; nil: it was restored
	// Routes is where the turns of each mode of the request went; see [lane.Lane.Route].
	Routes []string `json:"routes,omitempty"`
}

// sweep is a sweep of a desk, guarded by the desk's lock, except for what only its run uses.
type sweep struct {
	desk *Desk
	lane *lane.Lane

	doc     document
	machine machine
	stop    context.CancelCauseFunc // of the run; nil while it does not run
	lease   *lane.Lease             // nil while the lane is not taken

	// The fields below are shown in the state of the lane and are read without the lock. Each has one
	// writer at a time, so that no writer overwrites what another has published.
	shown atomic.Pointer[api.SweepSummary] // without the spans in progress
	now   [2]atomic.Pointer[api.SweepNow]  // the spans in progress
}

// read makes a sweep from its stored form.
func (d *Desk) read(data []byte) (*sweep, error) {
	s := &sweep{desk: d, lane: d.opts.Lane}
	if err := json.Unmarshal(api.PresentNames(data), &s.doc); err != nil {
		return nil, err
	}
	var err error
	if s.machine, err = readMachine(&s.doc.Sweep, s.doc.Machine); err != nil {
		return nil, fmt.Errorf("%s: %w", s.doc.Sweep.ID, err)
	}
	if _, legacy := s.machine.(legacyTrial); legacy {
		s.endLegacy()
	}
	s.refresh()
	return s, nil
}

// Remarks on a trial that an earlier version decided, or left unfinished.
const (
	decidedOnPairs = "Decided by the method of earlier versions, which looked after each pair of spans."
	leftOnPairs    = "it was left unfinished by an earlier version, which decided by another method; ask again"
)

// endLegacy makes a trial of an earlier version one that has ended.
func (s *sweep) endLegacy() {
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
		v.State = api.SweepFailed
		v.Reason = leftOnPairs
		v.Cause = ""
		v.Ended = &ended
		v.Words = []string{"Unfinished, with no verdict: " + leftOnPairs + "."}
	case v.State == api.SweepDone && !slices.Contains(v.Words, decidedOnPairs):
		v.Words = append(v.Words, decidedOnPairs)
	}
}

func (s *sweep) request() api.SweepRequest { return s.doc.Sweep.Request }

// by returns the user that started the sweep.
func (s *sweep) by() string { return s.doc.Sweep.By }

// title names the sweep in a sentence.
func (s *sweep) title() string { return "the " + name(s.doc.Sweep) }

// takeLane takes the lane. The desk's lock is held.
func (s *sweep) takeLane() error {
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

// returnLane returns the lane before the sweep has begun. The desk's lock is held.
func (s *sweep) returnLane() {
	_ = s.lease.Release(s.desk.life, s.by(), *s.doc.Before) // the lane is unchanged
	s.lease = nil
	s.doc.Before = nil
}

// refresh recomputes the shown state from the measurements. The desk's lock is held.
func (s *sweep) refresh() {
	p := &s.doc.Sweep.Progress
	p.Spans = 0
	p.Spoiled = 0
	p.SecondsUsed = 0
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
	s.doc.Sweep.Headline = report.Headline(&s.doc.Sweep)
	s.publish()
}

// publish shows the present summary. The desk's lock is held.
func (s *sweep) publish() {
	v := s.doc.Sweep.SweepSummary
	v.Words = slices.Clone(v.Words)
	s.shown.Store(&v)
}

// current returns the summary that was published last, with the spans in progress. It takes no lock.
func (s *sweep) current() *api.SweepSummary { return new(s.withSpans(*s.shown.Load())) }

// withSpans adds the spans in progress, and subtracts their elapsed time from the remaining times.
func (s *sweep) withSpans(v api.SweepSummary) api.SweepSummary {
	if v.State != api.SweepRunning {
		return v
	}
	p := &v.Progress
	p.Span, p.Beside = s.now[0].Load(), s.now[1].Load()
	if p.Span == nil {
		return v
	}
	rest := 0. // remaining time of the span itself
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

// summary returns the summary for a list. The desk's lock is held.
func (s *sweep) summary() api.SweepSummary {
	v := s.withSpans(s.doc.Sweep.SweepSummary)
	v.Words = slices.Clone(v.Words)
	return v
}

// view returns the whole sweep. The desk's lock is held.
func (s *sweep) view() api.Sweep {
	v := s.doc.Sweep
	v.SweepSummary = s.summary()
	v.Spans, v.Rows = slices.Clone(v.Spans), slices.Clone(v.Rows)
	return v
}

// rows computes the figures of each level and mode over the spans that count, without pilots, and without overloaded
// spans where there are others.
func rows(spans []api.SweepSpan) []api.BaselineRow {
	type key struct {
		level api.Level
		mode  api.ModeState
	}
	groups, overloaded := map[key][]api.BaselineRow{}, map[key][]api.BaselineRow{}
	for _, s := range spans {
		if s.Spoiled == "" && s.Row != nil && s.Arm != string(proof.ArmPilot) {
			into := groups
			if s.Overloaded != "" {
				into = overloaded
			}
			k := key{s.Level, s.Mode}
			into[k] = append(into[k], *s.Row)
		}
	}
	for k, group := range overloaded {
		if groups[k] == nil {
			groups[k] = group
		}
	}
	all := []api.BaselineRow{}
	for _, group := range groups {
		all = append(all, proof.MeanRow(group))
	}
	proof.AddSpanFigures(all, spans)
	slices.SortFunc(all, func(a, b api.BaselineRow) int {
		return cmp.Or(
			a.Level.Compare(b.Level),
			slices.Index(api.Modes, a.Mode)-slices.Index(api.Modes, b.Mode),
			slices.Index(api.Speculations, a.Speculation)-slices.Index(api.Speculations, b.Speculation),
			cmp.Compare(a.Arm, b.Arm),
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
	stored.Sweep.Progress.Span = nil
	stored.Sweep.Progress.Beside = nil
	data, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	return s.desk.opts.Store.SaveSweep(ctx, s.doc.Sweep.ID, data, place, seconds)
}

// resume continues a paused sweep. The desk's lock is held.
func (s *sweep) resume(ctx context.Context, by string) error {
	if err := s.desk.checkFree(); err != nil {
		return err
	}
	if err := s.takeLane(); err != nil {
		return err
	}
	before := s.doc.Sweep.SweepSummary
	s.setState(api.SweepRunning, "", "")
	if err := s.save(ctx, 0, nil); err != nil {
		s.restore(&before)
		s.returnLane()
		return err
	}
	s.publish()
	s.lane.Note(by, "resumed "+s.title())
	s.desk.nudge()
	return nil
}

// setState sets the state with its reason and cause. The desk's lock is held.
func (s *sweep) setState(state api.SweepState, reason string, cause api.SweepCause) {
	v := &s.doc.Sweep
	v.State = state
	v.Reason = reason
	v.Cause = cause
}

// restore resets the state after the store has rejected a new one. The desk's lock is held.
func (s *sweep) restore(before *api.SweepSummary) {
	s.setState(before.State, before.Reason, before.Cause)
	s.doc.Sweep.Ended = before.Ended
}

// interrupt pauses or cancels a sweep at once. The desk's lock is held.
func (s *sweep) interrupt(ctx context.Context, by string, to api.SweepState) error {
	before := s.doc.Sweep.SweepSummary
	cause, done := errPaused, "paused "
	if to == api.SweepCancelled {
		cause, done = errCancelled, "cancelled "
	}
	s.setState(to, "by "+by, api.CauseOperator)
	if to.Ended() {
		s.doc.Sweep.Ended = new(time.Now())
	}
	if err := s.save(ctx, 0, nil); err != nil {
		s.restore(&before)
		return err
	}
	s.refresh()
	if s.stop != nil {
		s.stop(cause)
	}
	s.lane.Note(by, done+s.title())
	return nil
}

// run runs spans until there are no more, the sweep is paused or cancelled, or ctx ends, and then
// restores the lane. It only restores the lane of a sweep that is not running.
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
	if running {
		err = s.lookAtRouters(work)
	}
	if running && err == nil && s.request().Warm() {
		err, running = s.switchback(work, lease), false
	}
	for running && err == nil {
		spans := s.next()
		if len(spans) == 0 {
			break
		}
		err = s.step(work, lease, spans)
	}
	s.finish(ctx, lease, err)
}

// lookAtRouters finds out what the routers of the arms do before the first span of a trial, so that a policy without
// effect is known before hours of it are measured. The error is that of ctx, or of the store.
func (s *sweep) lookAtRouters(ctx context.Context) error {
	r, look := s.request(), s.desk.opts.Look
	s.desk.mu.Lock()
	loaded, looked := s.doc.Before.Running, s.doc.Sweep.RouterFindings != nil || len(s.doc.Sweep.Spans) > 0
	s.desk.mu.Unlock()
	if look == nil || looked || r.Kind != api.SweepTrial {
		return nil
	}
	s.now[0].Store(&api.SweepNow{
		Attempt: 1, Mode: r.Modes[0], Level: r.Levels[0], Phase: api.SpanSwitching,
		Message: "looking at the routers of the arms",
	})
	s.lane.Changed()
	found := look(ctx, r.Modes)
	s.now[0].Store(nil)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(found) == 0 {
		return nil
	}
	s.desk.mu.Lock()
	for i := range found {
		if loaded {
			found[i] += " (while the workload ran)"
		}
		s.lane.Note("load generator", found[i])
	}
	s.doc.Sweep.RouterFindings = found
	s.refresh()
	s.desk.mu.Unlock()
	return s.commit(ctx, 0, nil)
}

// next returns the machine's next spans, which run at the same time; none once there are no more.
func (s *sweep) next() (spans []proof.Span) {
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	if span, more := s.machine.Next(); more {
		spans = append(spans, span)
	}
	if span, more := s.machine.Beside(); more {
		spans = append(spans, span)
	}
	return spans
}

// begin returns the lease of the lane. It takes the lane if an earlier process began the sweep, and
// waits until it is free. nil means that ctx has ended.
func (s *sweep) begin(ctx context.Context) *lane.Lease {
	for ctx.Err() == nil {
		s.desk.mu.Lock()
		if s.lease == nil && s.takeLane() == nil && s.doc.Sweep.State == api.SweepRunning {
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

// pause waits before a retry. The error is the cause of ctx's end.
func pause(ctx context.Context) error {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// step runs spans at the same time, and stores their results.
func (s *sweep) step(ctx context.Context, lease *lane.Lease, spans []proof.Span) error {
	began := time.Now()
	var all []*outcome
	for all == nil {
		var err error
		all, err = s.measure(ctx, lease, spans)
		var cannot errSwitch
		switch {
		case errors.As(err, &cannot) && time.Since(began) < switchTimeout:
			if err := pause(ctx); err != nil {
				return err
			}
		case errors.As(err, &cannot) && s.retire(ctx, spans[0].Mode, err.Error()):
			return s.commit(ctx, 0, nil)
		case err != nil:
			return err
		}
	}
	err := s.store(ctx, all)
	if failed := (errTarget{}); errors.As(err, &failed) {
		last := all[len(all)-1].span
		if last.Spoiled != "" && s.retire(ctx, last.Mode, last.Spoiled) {
			return s.commit(ctx, 0, nil)
		}
	}
	return err
}

// retire removes the arm that is next from a trial, for a reason: its target does not serve. It is false where the
// trial pauses instead: where the others cannot go on without it, or one that is left does not serve either.
func (s *sweep) retire(ctx context.Context, m api.ModeState, reason string) bool {
	t, ok := s.machine.(*proof.Trial)
	if !ok || t.Shown.Ranking == nil {
		return false
	}
	var others []api.ModeState
	for _, p := range t.Shown.Ranking.Places {
		if p.Mode != m && p.LeftAfter == nil {
			others = append(others, p.Mode)
		}
	}
	if !s.lane.Serve(ctx, others) {
		return false
	}
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	if !t.Retire(reason) {
		return false
	}
	s.lane.Note("load generator", m.Name()+" left "+s.title()+": "+reason)
	s.refresh()
	return true
}

// store takes in the results of spans that ran at the same time. It returns once they are on the
// disk, so that a disk that is full for a while loses no measurement.
func (s *sweep) store(ctx context.Context, all []*outcome) error {
	s.desk.mu.Lock()
	first := len(s.doc.Sweep.Spans)
	for _, o := range all {
		o.span.Spoiled = s.machine.Add(o.result)
	}
	invalidateBoth(all)
	for _, o := range all {
		s.doc.Sweep.Spans = append(s.doc.Sweep.Spans, o.span)
	}
	s.refresh()
	s.desk.mu.Unlock()
	for i, o := range all {
		if err := s.commit(ctx, first+i+1, o.seconds); err != nil {
			return err
		}
	}
	return s.pauseReason(all)
}

// pauseReason returns why the sweep pauses after these spans; nil: it continues. In a trial the failures of a target
// that serves are observations, and spans in which it answered no turn count. It pauses where both arms fail like that.
func (s *sweep) pauseReason(all []*outcome) error {
	trial := s.trial()
	for _, o := range all {
		if !o.failing || o.span.Attempt < 2 {
			continue
		}
		next := ": the sweep continues without that span"
		if trial {
			next = ": the trial repeats that span"
		}
		return errTarget{fmt.Errorf("the target failed twice in a span of %s: %s; fix it and resume%s", o.span.Mode.Name(),
			o.span.Spoiled, next)}
	}
	for _, o := range all {
		if trial && o.span.Spoiled != "" && o.span.Attempt >= 2 {
			return fmt.Errorf("a span of %s failed twice for another reason than the target: %s; fix it and resume",
				o.span.Mode.Name(), o.span.Spoiled)
		}
	}
	spans := s.doc.Sweep.Spans
	n := len(spans)
	if trial && n >= 2 && silent(&spans[n-1]) && silent(&spans[n-2]) && spans[n-1].Arm != spans[n-2].Arm {
		return errTarget{errors.New("the target answered no turn in the latest spans of both arms, which count; " +
			"fix it and resume, or cancel it")}
	}
	return nil
}

// silent reports whether the target answered no turn of a span that counts. One that does not keep up with its rate is
// named by the trial.
func silent(s *api.SweepSpan) bool { return s.Spoiled+s.Overloaded == "" && s.Turns == 0 }

// invalidateBoth invalidates all spans that ran at the same time if one does not count. The machine
// repeats them all, so that compared spans run in the same minutes.
func invalidateBoth(all []*outcome) {
	i := slices.IndexFunc(all, func(o *outcome) bool { return o.span.Spoiled != "" })
	for _, o := range all {
		if i >= 0 && o.span.Spoiled == "" {
			o.span.Spoiled = fmt.Sprintf("the one that ran at the same time on lane %s does not count", all[i].span.Lane)
		}
	}
}

// commit saves the sweep with the seconds of the span at an index, and retries while the disk fails.
func (s *sweep) commit(ctx context.Context, place int, seconds []byte) error {
	storing := context.WithoutCancel(ctx)
	for {
		s.desk.mu.Lock()
		err := s.save(storing, place, seconds)
		reason, cause := "", api.SweepCause("")
		if err != nil {
			reason = "waiting for the disk: " + err.Error()
			cause = api.CauseDisk
		}
		if s.doc.Sweep.State == api.SweepRunning && s.doc.Sweep.Reason != reason {
			s.setState(api.SweepRunning, reason, cause)
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

// finish sets the final state of the sweep, and restores the lane.
func (s *sweep) finish(ctx context.Context, lease *lane.Lease, err error) {
	if ctx.Err() != nil { // the process exits, and the next one continues the sweep
		return
	}
	s.desk.mu.Lock()
	s.stop = nil
	by, note := s.conclude(lease, err)
	s.remember(ctx)
	s.now[0].Store(nil)
	s.now[1].Store(nil)
	s.refresh()
	before := *s.doc.Before
	s.desk.mu.Unlock()
	if note != "" {
		s.lane.Note(by, note)
	}
	restoreErr := lease.Release(ctx, by, before)
	s.desk.mu.Lock()
	defer s.desk.mu.Unlock()
	s.lease = nil
	if ctx.Err() != nil {
		return
	}
	s.doc.Before = nil
	state := s.lane.State()
	note = restoredText(before, state.InMode())
	if restoreErr != nil {
		note = fmt.Sprintf("the lane could not be restored to %s: %v", before.Mode.Name(), restoreErr)
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

// remember adds a sweep that has ended to the history. The desk's lock is held.
func (s *sweep) remember(ctx context.Context) {
	if v := s.doc.Sweep; v.State == api.SweepDone && len(v.Rows) > 0 {
		if err := s.desk.opts.Store.SaveRun(context.WithoutCancel(ctx), s.desk.record(v)); err != nil {
			s.desk.opts.Log.Warn(s.title()+" could not be added to the history", "error", err)
		}
	}
}

// restoredText describes the lane after a sweep, in its present mode. A mode that was unknown before is not restored.
func restoredText(before lane.Before, mode api.ModeState) string {
	text, workload := "the lane is restored: ", "stopped"
	if !before.Mode.Known() && mode.Known() {
		text = "the lane stays in "
	}
	if before.Running {
		workload = "running"
	}
	return fmt.Sprintf("%s%s, %s, %s", text, mode.Name(), before.Level.InWords(), workload)
}

// conclude sets the state of a sweep that does not run any more, unless it is set already, and
// returns a note with its author. The desk's lock is held.
func (s *sweep) conclude(lease *lane.Lease, err error) (by, note string) {
	by, doc := "load generator", &s.doc.Sweep
	user, stopped := lease.StoppedBy()
	switch {
	case doc.State != api.SweepRunning:
		return by, ""
	case stopped:
		s.setState(api.SweepPaused, "by "+user+", who stopped the workload", api.CauseOperator)
		s.doc.Before.Running = false
		return user, "paused " + s.title() + ": the workload was stopped"
	case err != nil:
		s.setState(api.SweepPaused, err.Error(), causeOf(err))
		return by, "paused " + s.title() + ": " + err.Error()
	}
	doc.State = api.SweepDone
	doc.Ended = new(time.Now())
	return by, "finished " + s.title()
}

// errTarget reports that the target failed too often for the sweep to continue.
type errTarget struct{ error }

// causeOf returns the cause of a pause by its error.
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
