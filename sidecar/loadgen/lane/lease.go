package lane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/workload"
)

// SpanObserver receives the data that a span's figures are computed from. Its methods are called
// concurrently, and must not block.
type SpanObserver interface {
	// TurnBegan and FirstToken receive every turn that this process sends, by its request's id. At a rate, a turn begins
	// when it was to be sent.
	TurnBegan(request string, at time.Time)
	FirstToken(request string, at time.Time)
	// Tokens receives the number of output tokens as they arrive. At a turn's end a negative
	// number may correct earlier ones.
	Tokens(at time.Time, n int)
	// Turn receives every turn that has ended, as it is stored, and does not keep it.
	Turn(t *workload.Turn)
	// ConversationEnded receives the number of a conversation that has ended. The conversations
	// that begin a span have the numbers from 0 to the span's concurrency less one.
	ConversationEnded(number int64)
}

// Before is the state of a lane when it was taken. [Lease.Release] restores it.
type Before struct {
	Mode    api.ModeState `json:"mode"`
	Running bool          `json:"running"`
	Level   api.Level     `json:"concurrency"`
	// Others are the modes of the lanes that are joined with it.
	Others []api.ModeState `json:"others,omitempty"`
}

// Lease is a lane that has been taken for spans. Until [Lease.Release], starting or changing the
// workload or its mode otherwise is an [api.ErrConflict]. An operator's stop is accepted, and ends
// the lease's context. A Lease is not safe for concurrent use.
type Lease struct {
	lane  *Lane
	sweep func() *api.SweepSummary
	ctx   context.Context
	cause context.CancelCauseFunc
	spans []*SpanRun // spans of the latest Begin
	begun bool       // the lane has been changed
	over  bool       // no span follows
}

// Take takes the lane and all lanes that are joined with it. They stop with the first span. sweep
// returns what the state shows of the owner; it is called with locks held and must take none. The
// error is an [api.ErrConflict] while the lane drains, switches or is taken, and
// [api.ErrUnavailable] at the end of the process.
func (l *Lane) Take(ctx context.Context, sweep func() *api.SweepSummary) (*Lease, Before, error) {
	defer l.lockAll()()
	for _, each := range l.lanes {
		err := each.checkFree()
		if err == nil && each.phase == api.PhaseDraining {
			err = fmt.Errorf("%w: the workload is draining; begin when it has stopped, or stop it immediately first",
				api.ErrConflict)
		}
		if err != nil {
			return nil, Before{}, l.nameLane(each, err)
		}
	}
	s := &Lease{lane: l, sweep: sweep}
	s.ctx, s.cause = context.WithCancelCause(ctx)
	for _, each := range l.lanes {
		each.lease = s
	}
	before := Before{Mode: l.mode, Running: l.phase == api.PhaseRunning, Level: l.settings.Level}
	for _, other := range l.others() {
		before.Others = append(before.Others, other.mode)
	}
	return s, before, nil
}

// Context ends with the context that [Lane.Take] was given, and when an operator stops the
// workload. [Lease.StoppedBy] distinguishes the two.
func (s *Lease) Context() context.Context { return s.ctx }

// StoppedBy returns the name of the operator who stopped the workload; false if it was not
// stopped.
func (s *Lease) StoppedBy() (string, bool) {
	var err stoppedBy
	stopped := errors.As(context.Cause(s.ctx), &err)
	return string(err), stopped
}

// stoppedBy is the error of a lease whose workload an operator has stopped. It is the operator's
// name.
type stoppedBy string

// Error implements the error interface.
func (name stoppedBy) Error() string { return "the workload was stopped by " + string(name) }

// checkUntaken refuses a change of a lane that is taken. The lock is held.
func (l *Lane) checkUntaken() error {
	if l.lease == nil {
		return nil
	}
	return fmt.Errorf("%w: a %s is in progress; pause or cancel it first, or stop the workload, which pauses it",
		api.ErrConflict, l.lease.noun())
}

// noun names what the lane is taken for.
func (s *Lease) noun() string {
	if summary := s.sweep(); summary != nil {
		return summary.Request.Kind.Noun()
	}
	return "sweep"
}

// SpanSettings are the settings of a span.
type SpanSettings struct {
	Mode  api.ModeState
	Level api.Level
	Seed  uint64 // seed of the conversations, whose numbers begin at 0
	// RampedStart is the number of conversations, from the first on, that start in their middle:
	// with as many turns as remain of a conversation at a random moment. See [draw.Shape].
	RampedStart int
}

// SpanRun is a span under way.
type SpanRun struct {
	Began   time.Time
	Step    int64
	Emptied bool // the caches were emptied; else the prompts begin with a new nonce
	// Warnings are what went wrong in the switch before the span.
	Warnings []string

	lane    *Lane
	run     *run
	adopted bool // the run was in progress before the span, and goes on after it
}

// SpanOn is a span on one of the lanes that a lease has taken.
type SpanOn struct {
	Lane     *Lane
	Set      SpanSettings
	Observer SpanObserver
}

// Begin stops the workload, switches the lanes to their modes with cold caches, and starts a span on
// each of them, or on none. report receives the progress of the switch. The error is that of a
// driver, whose lane keeps its former mode unless the error is a [workload.ErrModeUnknown]; an
// [api.FieldError] for a concurrency or a mode that is not possible; or that of ctx, whose end
// aborts a switch in progress.
func (s *Lease) Begin(ctx context.Context, actor string, spans []SpanOn, report func(message string)) (
	[]*SpanRun, error,
) {
	limit := s.lane.catalog.Settings().MaxConcurrency
	changes, err := s.change(ctx, actor, report, func() ([]*Lane, []api.ModeState, error) {
		return s.plan(spans, limit)
	})
	if err != nil {
		return nil, err
	}
	defer s.lane.notify()
	defer s.lane.lockAll()()
	if err := s.checkActive(ctx); err != nil {
		return nil, err
	}
	s.spans = nil
	for i, n := range spans {
		l := n.Lane
		l.settings.Level, l.settings.Ramp = n.Set.Level, api.Ramp{}
		l.beginRun(actor, n.Set.Seed, 0, int64(n.Set.RampedStart), n.Observer)
		s.spans = append(s.spans, &SpanRun{
			Began: *l.started, Step: l.steps.current().ID, Emptied: changes[i].cold,
			Warnings: changes[i].warnings, lane: l, run: l.run,
		})
	}
	return s.spans, nil
}

// Adopt makes the run in progress a span, which observer receives from now on; nil where the lane does not run at that
// level, and at a rate, where a queue may be left from before. The run goes on at the end of the span.
func (s *Lease) Adopt(level api.Level, observer SpanObserver) *SpanRun {
	l := s.lane
	defer l.lockAll()()
	if l.phase != api.PhaseRunning || l.settings.Level != level || level.Kind == api.Rate || len(l.lanes) > 1 {
		return nil
	}
	l.run.observer.observe(observer)
	r := &SpanRun{Began: time.Now(), Step: l.steps.current().ID, lane: l, run: l.run, adopted: true}
	s.spans = []*SpanRun{r}
	return r
}

// Switch changes the mode of a span while its conversations and caches go on, and begins a new step, also where the
// mode stays. It returns at the end of the change. The errors are those of [Lease.Begin]; after one, the span goes on
// in its former mode. The driver must be able to change in place; see [Lane.Switchback].
func (s *Lease) Switch(ctx context.Context, actor string, r *SpanRun, to api.ModeState) error {
	l := r.lane
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := func() (*change, error) {
		defer l.lockAll()()
		if err := s.checkActive(ctx); err != nil {
			return nil, err
		}
		if err := l.checkOffered(l.opts.Driver.Offers(), to); err != nil {
			return nil, err
		}
		if to == l.mode {
			l.inNewStep(leadSwitched, func() {})
			return nil, nil
		}
		c := newChange(l, actor, to)
		c.keep, c.inPlace, c.cancel = true, true, cancel
		c.group = []*change{c}
		c.Phase, c.Message = "switching", fmt.Sprintf("switching to %s", to.Short())
		l.change = c
		return c, nil
	}()
	if c != nil {
		l.changeModes(ctx, []*Lane{l}, c.group)
		_, err = c.outcome()
	}
	r.Step = l.steps.current().ID
	l.notify()
	return err
}

// Switchback reports whether modes can change while a run goes on, and whether the same workers serve all of them, as
// far as is known.
func (l *Lane) Switchback(modes []api.ModeState) (inPlace, shared bool) {
	d := l.opts.Driver.Abilities()
	shared = d.SwitchWarm != nil
	inPlace = shared
	for _, m := range modes[1:] {
		inPlace = inPlace && d.InPlace(modes[0], m)
		shared = shared && d.SameWorkers(modes[0], m)
	}
	return inPlace, shared
}

// CheckLevel refuses a level that the lane cannot run at, with its settings as they are. The error is an
// [api.FieldError].
func (l *Lane) CheckLevel(level api.Level) error {
	limit := l.catalog.Settings().MaxConcurrency
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.next(api.WorkloadPatch{Level: &level}, limit)
	return err
}

// checkActive refuses to start anything when the process is ending or ctx has ended. The lane's
// lock is held.
func (s *Lease) checkActive(ctx context.Context) error {
	if err := s.lane.checkOpen(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// plan checks all spans, and returns their lanes and modes. All locks are held.
func (s *Lease) plan(spans []SpanOn, limit int) (lanes []*Lane, modes []api.ModeState, err error) {
	for _, n := range spans {
		l := n.Lane
		if _, err := l.next(api.WorkloadPatch{Level: &n.Set.Level}, limit); err != nil {
			return nil, nil, s.lane.nameLane(l, err)
		}
		if err := l.checkOffered(l.opts.Driver.Offers(), n.Set.Mode); err != nil {
			return nil, nil, s.lane.nameLane(l, err)
		}
		lanes, modes = append(lanes, l), append(modes, n.Set.Mode)
	}
	return lanes, modes, nil
}

// change switches the lanes that plan returns to its modes, and returns at the end of the switch. A switch to the mode
// in force empties the caches. Plan is called with all locks held.
func (s *Lease) change(ctx context.Context, actor string, report func(string),
	plan func() ([]*Lane, []api.ModeState, error),
) ([]*change, error) {
	changes, ended, err := func() ([]*change, <-chan struct{}, error) {
		defer s.lane.lockAll()()
		if err := s.checkActive(ctx); err != nil {
			return nil, nil, err
		}
		lanes, to, err := plan()
		if err != nil || len(lanes) == 0 {
			return nil, nil, err
		}
		s.begun = true
		changes := make([]*change, len(lanes))
		for i, l := range lanes {
			changes[i] = newChange(l, actor, to[i])
			changes[i].progress, changes[i].renew = report, s.over
		}
		return changes, s.lane.startChange(ctx, lanes, changes), nil
	}()
	if changes == nil {
		return nil, err
	}
	<-ended
	for _, c := range changes {
		err = cmp.Or(err, c.err)
	}
	return changes, err
}

// Ended returns a channel that is closed when the span has ended for any reason.
func (r *SpanRun) Ended() <-chan struct{} { return r.run.ended }

// End ends the span and cancels requests in flight. It returns when everything of the span has been
// reported to its observer. A run that was adopted goes on.
func (r *SpanRun) End() {
	if r.adopted {
		r.run.observer.observe(nil)
		return
	}
	r.lane.mu.Lock()
	if r.lane.run == r.run && r.lane.phase == api.PhaseRunning {
		r.lane.endStep(time.Now())
		r.lane.phase = api.PhaseDraining
	}
	r.lane.mu.Unlock()
	r.run.cancel()
	<-r.run.ended
	r.lane.notify()
}

// Undisturbed reports whether the lane is still in the step that the span began.
func (r *SpanRun) Undisturbed() bool { return r.lane.steps.current().ID == r.Step }

// Adopted reports whether the run was in progress before the span.
func (r *SpanRun) Adopted() bool { return r.adopted }

// Pace returns how the conversations of the span have begun so far.
func (r *SpanRun) Pace() workload.Pace { return r.run.workload.Pace() }

// BeginArrivals begins the arrivals at a rate anew, with the draws of a seed.
func (r *SpanRun) BeginArrivals(seed uint64) { r.run.workload.BeginArrivals(seed) }

// Release ends the spans and restores the lane: its mode, its concurrency, and the workload if it
// ran. If the mode cannot be restored, the lane is released stopped, with the driver's error. If no
// span was begun and the mode is unchanged, the workload is not touched. A mode that was unknown is
// not restored: the lane stays in its present one. At the end of the process nothing is restored.
func (s *Lease) Release(ctx context.Context, actor string, before Before) error {
	l := s.lane
	defer s.cause(nil)
	for _, span := range s.spans {
		span.End()
	}
	err := s.restoreInPlace(ctx, actor, before)
	if err == nil {
		err = s.restore(ctx, actor, before)
	}
	unlock := l.lockAll()
	texts := l.nextCorpus
	if summary := s.sweep(); summary != nil && err == nil {
		l.headlines.keep(time.Now(), l.setting(), summary.Headline)
	}
	for _, each := range l.lanes {
		each.lease, each.nextCorpus = nil, nil
	}
	if err == nil && l.checkOpen() == nil && s.begun {
		for _, each := range l.lanes {
			each.settings.Level = before.Level
		}
		if before.Running {
			l.beginAll(actor)
		}
	}
	unlock()
	if texts != nil {
		l.SetCorpus(texts)
	}
	l.notify()
	return err
}

// restoreInPlace switches back the mode of a run that was adopted and goes on.
func (s *Lease) restoreInPlace(ctx context.Context, actor string, before Before) error {
	for _, span := range s.spans {
		if in, _ := s.lane.Switchback([]api.ModeState{s.lane.State().InMode(), before.Mode}); span.adopted && in &&
			before.Mode.Known() && s.lane.State().Phase == api.PhaseRunning {
			return s.Switch(ctx, actor, span, before.Mode)
		}
	}
	return nil
}

// restore switches back the lanes whose mode has changed, and those whose driver restarts all pods after a sweep.
func (s *Lease) restore(ctx context.Context, actor string, before Before) error {
	s.over = true
	_, err := s.change(ctx, actor, nil, func() (lanes []*Lane, modes []api.ModeState, err error) {
		former := append([]api.ModeState{before.Mode}, before.Others...)
		all := append([]*Lane{s.lane}, s.lane.others()...)
		for i, l := range all[:min(len(all), len(former))] { // an earlier process may have had fewer lanes
			renews := s.begun && l.opts.Driver.Abilities().Renew != nil
			if (l.mode != former[i] || renews) && former[i].Known() {
				lanes, modes = append(lanes, l), append(modes, former[i])
			}
		}
		return lanes, modes, nil
	})
	return err
}

// Note stores an event of a sweep.
func (l *Lane) Note(actor, text string) {
	l.event(api.EventSweep, actor, text)
	l.notify()
}

// Changed requests a snapshot, after a change of the lease owner's summary.
func (l *Lane) Changed() { l.notify() }

// Opening returns the number of the opening text of a conversation with a draw. It is valid only
// while settings and corpus do not change, as in a span.
func (l *Lane) Opening(d workload.Draw) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.openingWith(d, l.settings, l.corpus)
}

// openingWith returns the number of the opening of a conversation that was drawn with settings and a corpus.
func (l *Lane) openingWith(d workload.Draw, s workload.Settings, texts *corpus.Corpus) int64 {
	switch {
	case l.opts.Plan != nil:
		return l.opts.Plan.Opening(d.Number)
	case !s.TrafficShape.Recorded():
		plan, err := l.planned.of(s, d.Seed, l.opts.Client.Recognized().ContextTokens)
		if err != nil { // the settings were checked before the server reported a smaller context
			return d.Number
		}
		return plan.Opening(d.Number)
	}
	return workload.Opening(d.Seed, d.Number, d.Opened+d.Number, s, texts)
}

// plannedShape keeps the latest plan of a shape, since the next turns ask for the same one. It is safe for concurrent
// use.
type plannedShape struct {
	mu     sync.Mutex
	shape  api.TrafficShape
	seed   uint64
	tokens int
	plan   *workload.Plan // nil: none yet
}

// of returns [workload.Settings.ShapePlan].
func (p *plannedShape) of(s workload.Settings, seed uint64, modelTokens int) (*workload.Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan != nil && p.shape == s.TrafficShape && p.seed == seed && p.tokens == modelTokens {
		return p.plan, nil
	}
	plan, err := s.ShapePlan(seed, modelTokens)
	if err == nil {
		p.shape, p.seed, p.tokens, p.plan = s.TrafficShape, seed, modelTokens, plan
	}
	return plan, err
}

// OpeningOf returns the number of the opening text of a conversation of the latest run by its id, as Opening does.
func (l *Lane) OpeningOf(conversation string) int64 {
	number, err := strconv.ParseInt(conversation[strings.LastIndex(conversation, "-")+1:], 10, 64)
	if err != nil {
		return -1
	}
	return l.Opening(workload.Draw{Seed: l.opts.Seed, Number: number})
}

// MedianLatency returns the median latency in seconds of the turns of the last 60 s; 0 while the workload does not run
// at the level, and before its first turn has ended.
func (l *Lane) MedianLatency(level api.Level) float64 {
	if s := l.State(); !s.Running || s.Concurrency.Target != level {
		return 0
	}
	if p50 := l.record.Report(time.Now()).Window.Metrics.Latency.P50; p50 != nil {
		return *p50
	}
	return 0
}

// Name returns the name of the lane.
func (l *Lane) Name() string { return l.opts.Name }

// Describe returns the shape of the lane's workload at a level, its target, and the target's deployment.
func (l *Lane) Describe(level api.Level) (api.WorkloadShape, api.TargetID, api.Deployment) {
	d := l.deployment(l.Cluster())
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shapeAt(level), api.TargetID{URL: l.opts.Client.Root(), Model: d.Model}, d
}

// Route returns the part of a mode's identity that its name lacks; see [workload.Abilities].
func (l *Lane) Route(m api.ModeState) string {
	if route := l.opts.Driver.Abilities().Route; route != nil {
		return route(m)
	}
	return ""
}
