package lane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
)

// Tap hears of a span what its figures are made of. Its methods are called
// concurrently, and must not wait.
type Tap interface {
	// Tokens hears of output tokens as they arrive; a negative number corrects what was
	// said before, at the turn's end.
	Tokens(at time.Time, n int)
	// Turn receives every turn that has ended, as the store gets it.
	Turn(t EndedTurn)
	// ConversationEnded hears of the conversation with a number: those that begin a
	// span have 0 to its concurrency less one.
	ConversationEnded(number int64)
}

// Before is what a lane was like when it was taken, so that it can be brought back to it.
type Before struct {
	Mode        api.ModeState `json:"mode"`
	Running     bool          `json:"running"`
	Concurrency int           `json:"concurrency"`
	// Others are the modes of the lanes that are steered as one with it.
	Others []api.ModeState `json:"others,omitempty"`
}

// Lease is a lane that has been taken for spans. Until [Lease.Release], nobody else
// starts the workload, changes it or switches its mode: that is an [api.ErrConflict]. An
// operator's stop is obeyed, and ends the lease's context. One goroutine uses it.
type Lease struct {
	lane  *Lane
	what  func() *api.SweepSummary
	ctx   context.Context
	cause context.CancelCauseFunc
	spans []*SpanRun // the latest
	begun bool       // something of the lane has been changed
}

// Take takes the lane, and with it every lane that is steered as one: those stop with its
// first span, and go on with it when it is released. what says for whom, as the state shows it; it is called with locks
// held and must take none. The error is an [api.ErrConflict] while the lane drains,
// switches or is taken, and [api.ErrUnavailable] at the end of the process.
func (l *Lane) Take(ctx context.Context, what func() *api.SweepSummary) (*Lease, Before, error) {
	defer l.lockAll()()
	for _, each := range l.lanes {
		err := each.free()
		if err == nil && each.phase == api.PhaseDraining {
			err = fmt.Errorf("%w: the workload is draining; begin when it has stopped, or stop it immediately first",
				api.ErrConflict)
		}
		if err != nil {
			return nil, Before{}, l.of(each, err)
		}
	}
	s := &Lease{lane: l, what: what}
	s.ctx, s.cause = context.WithCancelCause(ctx)
	for _, each := range l.lanes {
		each.lease = s
	}
	before := Before{Mode: l.mode, Running: l.phase == api.PhaseRunning, Concurrency: l.settings.Concurrency}
	for _, other := range l.others() {
		before.Others = append(before.Others, other.mode)
	}
	return s, before, nil
}

// Context ends with the one that [Lane.Take] was given, and with an operator's stop, whose
// cause says by whom.
func (s *Lease) Context() context.Context { return s.ctx }

// StoppedBy is who stopped the workload; false: nobody has.
func (s *Lease) StoppedBy() (string, bool) {
	var by stoppedBy
	stopped := errors.As(context.Cause(s.ctx), &by)
	return string(by), stopped
}

// stoppedBy is a stop by somebody.
type stoppedBy string

// Error says who it was.
func (by stoppedBy) Error() string { return "the workload was stopped by " + string(by) }

// untaken refuses to steer a lane that is taken. The lock is held.
func (l *Lane) untaken() error {
	if l.lease == nil {
		return nil
	}
	return fmt.Errorf("%w: a %s is in progress; pause or cancel it first, or stop the workload, which pauses it",
		api.ErrConflict, l.lease.noun())
}

// noun is what the lane is taken for.
func (s *Lease) noun() string {
	if s := s.what(); s != nil {
		return s.Request.Kind.Noun()
	}
	return "sweep"
}

// SpanSettings are what a span needs.
type SpanSettings struct {
	Mode        api.ModeState
	Concurrency int
	Seed        uint64 // of the conversations, which have numbers from 0
	// Midway is how many of them, from the first on, are held from their midst; see [draw.Shape].
	Midway int
}

// SpanRun is a span under way.
type SpanRun struct {
	Began   time.Time
	Step    int64
	Emptied bool // its caches were emptied; else its prompts begin with a nonce of their own

	lane *Lane
	run  *run
}

// SpanOn is a span for one of the lanes that a lease has taken.
type SpanOn struct {
	Lane *Lane
	Set  SpanSettings
	Tap  Tap
}

// Begin stops what runs, brings lanes to their modes with cold caches, and starts the workload
// of each anew: of all of them, or of none. report hears of the progress of the switch. The
// error is a driver's, whose lane then has gone back to the mode before; an [api.FieldError]
// for a concurrency or a mode that cannot be; or that of ctx, which ends a switch under way.
func (s *Lease) Begin(ctx context.Context, by string, spans []SpanOn, report func(message string)) ([]*SpanRun, error) {
	changes, ended, err := s.beginSwitch(ctx, by, spans, report)
	if err != nil {
		return nil, err
	}
	<-ended
	for _, c := range changes {
		if c.err != nil {
			return nil, c.err
		}
	}
	defer s.lane.notify()
	defer s.lane.lockAll()()
	if err := s.alive(ctx); err != nil {
		return nil, err
	}
	s.spans = nil
	for i, n := range spans {
		l := n.Lane
		l.settings.Concurrency = n.Set.Concurrency
		l.beginRun(by, n.Set.Seed, 0, int64(n.Set.Midway), n.Tap)
		s.spans = append(s.spans, &SpanRun{
			Began: *l.started, Step: l.steps.current().ID, Emptied: changes[i].cold, lane: l,
			run: l.run,
		})
	}
	return s.spans, nil
}

// alive is the reason why nothing more is started. The lane's lock is held.
func (s *Lease) alive(ctx context.Context) error {
	if err := s.lane.open(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (s *Lease) beginSwitch(ctx context.Context, by string, spans []SpanOn, report func(string)) ([]*change,
	<-chan struct{}, error,
) {
	limit := s.lane.catalogue.Settings().MaxConcurrency
	defer s.lane.lockAll()()
	if err := s.alive(ctx); err != nil {
		return nil, nil, err
	}
	lanes, modes := make([]*Lane, len(spans)), make([]api.ModeState, len(spans))
	for i, n := range spans {
		l := n.Lane
		if _, err := l.next(api.WorkloadPatch{Concurrency: &n.Set.Concurrency}, limit); err != nil {
			return nil, nil, s.lane.of(l, err)
		}
		if err := l.checkOffered(l.opts.Driver.Offers(), n.Set.Mode); err != nil {
			return nil, nil, s.lane.of(l, err)
		}
		lanes[i], modes[i] = l, n.Set.Mode
	}
	changes, ended := s.change(ctx, by, lanes, modes, report)
	return changes, ended, nil
}

// change switches lanes, from the mode in force to itself, too, which makes the caches cold. All
// locks are held.
func (s *Lease) change(ctx context.Context, by string, lanes []*Lane, to []api.ModeState,
	report func(string),
) ([]*change, <-chan struct{}) {
	s.begun = true
	changes := make([]*change, len(lanes))
	for i, l := range lanes {
		changes[i] = newChange(l, by, to[i])
		changes[i].progress = report
	}
	return changes, s.lane.startChange(ctx, lanes, changes)
}

// Ended is closed when the span has ended, by whatever.
func (r *SpanRun) Ended() <-chan struct{} { return r.run.ended }

// End ends the span, cancelling what is in flight, and returns when everything that
// will ever be heard of it has been heard.
func (r *SpanRun) End() {
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

// Undisturbed says whether the lane is still in the step that the span began.
func (r *SpanRun) Undisturbed() bool { return r.lane.steps.current().ID == r.Step }

// Actual is how many conversations are in progress.
func (r *SpanRun) Actual() int { return r.run.workload.Pace().Actual }

// Release ends what runs and gives the lane back, as it was before: in its mode, at
// its concurrency, and running if it was. Where the mode cannot be brought back, the lane is
// given back stopped, with the driver's error. Where nothing has been begun and the mode is
// that of before, whatever runs goes on. At the end of the process nothing is brought back.
func (s *Lease) Release(ctx context.Context, by string, before Before) error {
	l := s.lane
	defer s.cause(nil)
	for _, span := range s.spans {
		span.End()
	}
	err := s.restore(ctx, by, before)
	unlock := l.lockAll()
	texts := l.nextCorpus
	for _, each := range l.lanes {
		each.lease, each.nextCorpus = nil, nil
	}
	if err == nil && l.open() == nil && s.begun {
		for _, each := range l.lanes {
			each.settings.Concurrency = before.Concurrency
		}
		if before.Running {
			l.beginAll(by)
		}
	}
	unlock()
	if texts != nil {
		l.SetCorpus(texts)
	}
	l.notify()
	return err
}

// restore brings the modes back where others are in force.
func (s *Lease) restore(ctx context.Context, by string, before Before) error {
	changes, ended, err := func() ([]*change, <-chan struct{}, error) {
		defer s.lane.lockAll()()
		if err := s.alive(ctx); err != nil {
			return nil, nil, err
		}
		lanes, modes := []*Lane{}, []api.ModeState{}
		were, all := append([]api.ModeState{before.Mode}, before.Others...), append([]*Lane{s.lane}, s.lane.others()...)
		for i, l := range all[:min(len(all), len(were))] { // a process before this one may have had fewer lanes
			if l.mode != were[i] {
				lanes, modes = append(lanes, l), append(modes, were[i])
			}
		}
		if len(lanes) == 0 {
			return nil, nil, nil
		}
		changes, ended := s.change(ctx, by, lanes, modes, nil)
		return changes, ended, nil
	}()
	if err != nil || changes == nil {
		return err
	}
	<-ended
	for _, c := range changes {
		err = cmp.Or(err, c.err)
	}
	return err
}

// Note keeps for the list of events what became of a sweep.
func (l *Lane) Note(by, text string) {
	l.event(api.EventSweep, by, text)
	l.notify()
}

// Changed calls for a snapshot, which has what a lease's owner says of it.
func (l *Lane) Changed() { l.notify() }

// Opening is the number of the text that opens a conversation with a draw, as long as settings and
// corpus are those that it was drawn with, as in a span.
func (l *Lane) Opening(d Draw) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return workload.Opening(d.Seed, d.Number, d.Opened+d.Number, l.settings, l.corpus)
}

// Name is that of the lane.
func (l *Lane) Name() string { return l.opts.Name }

// Told is what is known of the lane's workload, target and deployment, for whoever reports
// on it.
func (l *Lane) Told() (api.WorkloadShape, api.TargetID, api.Deployment) {
	d := l.deployment(l.Cluster())
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shape(), api.TargetID{URL: l.opts.Client.Root(), Model: d.Model}, d
}
