package lane

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// Store keeps what must not be lost; [kvbooth/sidecar/loadgen/store.Store] is one. The
// methods without an error hand over and never wait.
type Store interface {
	SaveConversation(api.Conversation)
	SaveTurn(api.Turn)
	SaveStep(api.StepRecord)
	LostTurns() int64
	Status() api.StoreStatus

	SaveEvent(context.Context, api.Event) (api.Event, error)
	SaveSettings(context.Context, api.Settings) error
	Settings(context.Context) (s api.Settings, kept bool, err error)
	SaveBaseline(context.Context, api.Baseline) error
	Baselines(context.Context) ([]api.Baseline, error)
	Conversations(context.Context, api.ConversationQuery) (api.ConversationList, error)
	Conversation(ctx context.Context, id string) (api.Conversation, error)
	TurnsCSV(ctx context.Context, w io.Writer, lane string, step int64) error
	Events(ctx context.Context, lane string, limit int) ([]api.Event, error)
}

// Client talks to the target; [chat.Client] is one.
type Client interface {
	workload.Sender
	Probe(context.Context) *chat.Error
	Models(context.Context) ([]string, *chat.Error)
	Root() string
	Model() string
	Extensions() map[string]bool
}

// Turned is a Client that is turned from one address to another. Its root stays
// the same all the time.
type Turned interface {
	// Endpoint is the address in use.
	Endpoint() string
}

var (
	_ Client = (*chat.Client)(nil)
	_ Client = (*chat.Switch)(nil)
	_ Turned = (*chat.Switch)(nil)
)

// Options are what a lane is made of.
type Options struct {
	Name       string
	Version    string
	Client     Client
	Corpus     *corpus.Corpus // at the start; see [Lane.SetCorpus]
	Questioner corpus.Questioner
	Settings   workload.Settings
	Seed       uint64
	Deployment api.Deployment // as configured; the cluster fills what is left empty
	Driver     workload.Driver
	Mode       api.ModeState
	LastStep   int64              // of an earlier process, so that steps go on
	Cluster    func() api.Cluster // never nil
	// ModeChanged hears of each mode that was switched to, or that the cluster was
	// found in; nil: nobody does.
	ModeChanged func(api.ModeState)
	// CorpusStatus says what was read and what was wrong with it; nil: the corpus
	// is not read from outside.
	CorpusStatus func() api.CorpusStatus
	Log          *slog.Logger
}

// Lane is one target under one workload. It is safe for concurrent use.
type Lane struct {
	opts   Options
	target *target
	record *stats.Recorder
	meter  *stats.Meter
	steps  steps
	hub    *Hub
	store  Store

	ctx   context.Context // of the process; everything of the lane ends with it
	wg    sync.WaitGroup  // of what hands over jobs; added to with the lock held
	runID string          // of the process, in conversation ids
	jobs  chan func(context.Context)
	ended chan struct{} // closed when the last job is done

	mu       sync.Mutex
	phase    api.Phase
	settings workload.Settings
	corpus   *corpus.Corpus
	mode     api.ModeState
	change   *change
	nonce    string
	run      *run
	runs     int
	started  *time.Time
	reshaped time.Time // when the shape changed last; conversations begun before have another
	kept     time.Time // when a row for the baseline "this target" was due last
}

// run is one span from a start to its stop.
type run struct {
	workload *workload.Workload
	cancel   context.CancelFunc
	cut      bool // a stop at once has begun
	ended    chan struct{}
}

// end lets the turns in flight end, or cancels them.
func (r *run) end(drain bool) {
	if drain {
		r.workload.Drain()
		return
	}
	r.cut = true
	r.cancel()
}

// newLane makes a lane that is stopped. ctx ends all that it will ever start.
func newLane(ctx context.Context, hub *Hub, opts Options) *Lane {
	now := time.Now()
	l := &Lane{
		opts: opts, hub: hub, store: hub.opts.Store, ctx: ctx, phase: api.PhaseStopped, settings: opts.Settings, corpus: opts.Corpus, mode: opts.Mode,
		record: stats.NewRecorder(now, hub.Settings().SLO), meter: stats.NewMeter(now), runID: strconv.FormatInt(now.UnixMilli(), 36),
		jobs: make(chan func(context.Context), 64), ended: make(chan struct{}),
	}
	l.target = newTarget(opts.Client, l.notify)
	l.steps.lane, l.steps.now.ID = opts.Name, opts.LastStep
	l.steps.save = func(s api.StepRecord) {
		l.store.SaveStep(s)
		l.notify()
	}
	l.wg.Go(func() { l.target.watch(ctx) })
	if d, ok := opts.Driver.(workload.Teller); ok {
		l.wg.Go(func() { l.follow(ctx, d) })
	}
	go l.work()
	return l
}

// wait returns when everything of the lane has ended, which its context brings about.
func (l *Lane) wait() { <-l.ended }

// open refuses to start anything when the lane's context has ended. The lock is held.
func (l *Lane) open() error {
	if l.ctx.Err() != nil {
		return fmt.Errorf("%w: the load generator is stopping", api.ErrUnavailable)
	}
	return nil
}

func (l *Lane) notify() { l.hub.changed() }

// Start starts the workload, or sets the concurrency of a running one. It gives
// an [api.FieldError] for a concurrency out of range, [api.ErrConflict] while
// the lane drains or changes its mode, and [api.ErrUnavailable] when the
// process is ending.
func (l *Lane) Start(_ context.Context, by string, req api.StartRequest) (api.State, error) {
	err := l.start(by, req)
	l.notify()
	return l.State(), err
}

func (l *Lane) start(by string, req api.StartRequest) error {
	limit := l.hub.Settings().MaxConcurrency
	l.mu.Lock()
	defer l.mu.Unlock()
	next, err := l.settings.Apply(api.WorkloadPatch{Concurrency: req.Concurrency}, limit)
	if err == nil {
		err = l.open()
	}
	if err != nil {
		return err
	}
	switch l.phase {
	case api.PhaseDraining:
		return fmt.Errorf("%w: the workload is draining; start it when it has stopped, or stop it at once first", api.ErrConflict)
	case api.PhaseSwitching:
		return fmt.Errorf("%w: a mode change is in progress; wait for its end, or cancel it", api.ErrConflict)
	case api.PhaseRunning:
		l.apply(by, next)
	default:
		l.settings = next
		l.begin(by)
	}
	return nil
}

// Patch changes the workload's settings; what is left out stays. It gives an
// [api.FieldError] for a value out of range, and then changes nothing.
func (l *Lane) Patch(_ context.Context, by string, p api.WorkloadPatch) (api.State, error) {
	err := l.patch(by, p)
	l.notify()
	return l.State(), err
}

func (l *Lane) patch(by string, p api.WorkloadPatch) error {
	limit := l.hub.Settings().MaxConcurrency
	l.mu.Lock()
	defer l.mu.Unlock()
	next, err := l.settings.Apply(p, limit)
	if err == nil {
		l.apply(by, next)
	}
	return err
}

// apply takes new settings, in a new step where the workload runs. The lock is held.
func (l *Lane) apply(by string, next workload.Settings) {
	if next == l.settings {
		return
	}
	if l.phase != api.PhaseRunning {
		l.settings = next
		return
	}
	now, before, mixed := time.Now(), l.shape(), l.steps.isMixed()
	l.endStep(now)
	l.settings = next
	reshapes := l.shape() != before
	step := l.steps.begin(now, next.Concurrency, l.mode, mixed || reshapes)
	l.run.workload.Set(next)
	if reshapes {
		l.reshaped = time.Now()
	}
	l.event(api.EventStep, by, fmt.Sprintf("step %d: %d conversations, %s", step.ID, step.Concurrency, step.Mode))
}

// SetCorpus gives the texts of the conversations that begin from now on; those in
// progress keep theirs. Other texts are another workload, so what goes on does so
// in a new step, which settles when the last conversation on the old ones has ended.
func (l *Lane) SetCorpus(c *corpus.Corpus) {
	l.mu.Lock()
	if c.Name == l.corpus.Name || l.open() != nil {
		l.mu.Unlock()
		return
	}
	running := l.phase == api.PhaseRunning
	if running {
		l.endStep(time.Now())
	}
	l.corpus = c
	if running {
		l.steps.begin(time.Now(), l.settings.Concurrency, l.mode, true)
		l.run.workload.SetCorpus(c)
		l.run.workload.Set(l.settings) // tells the new step how many are in progress
		l.reshaped = time.Now()
	}
	l.event(api.EventSettings, "corpus", fmt.Sprintf("corpus %s: %d starters", c.Name, len(c.Starters)))
	l.mu.Unlock()
	l.notify()
}

// Starter gives a text of the corpus in force. The error is an [api.ErrNotFound]
// where that has none of this id, which another corpus before it may have had.
func (l *Lane) Starter(id string) (api.Starter, error) {
	l.mu.Lock()
	c := l.corpus
	l.mu.Unlock()
	for _, s := range c.Starters {
		if s.ID == id {
			return api.Starter{ID: s.ID, Topic: s.Topic, Text: s.Text}, nil
		}
	}
	return api.Starter{}, fmt.Errorf("%w: the corpus in use, %s, has no starter %q; it may have had one before it was read anew", api.ErrNotFound, c.Name, id)
}

// endStep keeps what the step under way measured, and ends it. It comes before
// any change of settings or mode, which the row is kept under. The lock is held.
func (l *Lane) endStep(now time.Time) {
	l.keep(now)
	l.steps.end(now)
}

// begin starts a run with the settings and mode in force. The lock is held.
func (l *Lane) begin(by string) {
	now := time.Now()
	l.started, l.phase = &now, api.PhaseRunning
	l.runs++
	l.record.Reset(now)
	l.meter.Reset(now)
	l.steps.begin(now, l.settings.Concurrency, l.mode, false)
	ctx, cancel := context.WithCancel(l.ctx)
	w := workload.New(workload.Options{
		Lane: l.opts.Name, Run: fmt.Sprintf("%s%d", l.runID, l.runs), Seed: l.opts.Seed, Nonce: l.nonce,
		Sender: l.target, Corpus: l.corpus, Questioner: l.opts.Questioner,
		Instance: l.opts.Driver.Instance, Observer: &observer{lane: l},
	}, l.settings)
	r := &run{workload: w, cancel: cancel, ended: make(chan struct{})}
	l.run = r
	l.wg.Go(func() {
		defer cancel()
		w.Run(ctx)
		l.stopped(r)
	})
	l.event(api.EventStart, by, fmt.Sprintf("%d conversations, %s", l.settings.Concurrency, l.mode.Mode))
}

// Stop ends the workload: at once, cancelling what is in flight, or by letting
// the turns in flight end. It returns when a stop at once is complete, with the
// error of ctx if that ends first. Either way the lane counts as draining until
// then. A lane that is stopped stays so; a mode change ends without a new start.
func (l *Lane) Stop(ctx context.Context, by string, req api.StopRequest) (api.State, error) {
	ended := l.stop(by, req.Drain)
	l.notify()
	if ended != nil && !req.Drain {
		select {
		case <-ended:
		case <-ctx.Done():
			return l.State(), ctx.Err()
		}
	}
	return l.State(), nil
}

// stop gives what tells the end of the run, nil where there is none.
func (l *Lane) stop(by string, drain bool) (ended <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run != nil {
		ended = l.run.ended
	}
	switch {
	case l.phase == api.PhaseSwitching && l.change.resume:
		l.change.resume = false
	case l.phase == api.PhaseRunning:
		l.endStep(time.Now()) // a lane that empties is at no concurrency
		l.phase = api.PhaseDraining
		l.run.end(drain)
	case l.phase == api.PhaseDraining && !drain && !l.run.cut:
		l.run.end(drain)
	default: // it has been said before
		return ended
	}
	l.event(api.EventStop, by, map[bool]string{true: "draining", false: "stopped"}[drain])
	return ended
}

// stopped closes the book of a run that has ended.
func (l *Lane) stopped(r *run) {
	l.mu.Lock()
	l.endStep(time.Now())
	l.run = nil
	if l.phase != api.PhaseSwitching {
		l.phase = api.PhaseStopped
	}
	l.mu.Unlock()
	close(r.ended)
	l.notify()
}

// event keeps what happened for the list of events. It does not wait, so it may
// be called with the lock held.
func (l *Lane) event(kind api.EventKind, by, text string) {
	e := api.Event{Time: time.Now(), Lane: l.opts.Name, Kind: kind, By: by, Text: text}
	l.opts.Log.Info(text, "lane", e.Lane, "event", kind, "by", by)
	l.later(func(ctx context.Context) {
		if _, err := l.store.SaveEvent(ctx, e); err != nil {
			l.opts.Log.Warn("an event was not kept", "error", err, "text", e.Text)
		}
	})
}

// later hands over what has to wait for the store. It does not wait itself.
func (l *Lane) later(job func(context.Context)) {
	select {
	case l.jobs <- job:
	default:
		l.opts.Log.Warn("the store is too slow: an event or a measured row was not kept")
	}
}

// work does the jobs in order until the lane's context ends, and then those that
// are left when everything else has ended.
func (l *Lane) work() {
	defer close(l.ended)
	do := func(job func(context.Context)) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), 5*time.Second)
		defer cancel()
		job(ctx)
	}
	for {
		select {
		case job := <-l.jobs:
			do(job)
		case <-l.ctx.Done():
			l.mu.Lock() // who found the context alive has added to wg by now
			l.mu.Unlock()
			l.wg.Wait()
			for len(l.jobs) > 0 {
				do(<-l.jobs)
			}
			return
		}
	}
}
