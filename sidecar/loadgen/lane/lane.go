package lane

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// Client talks to the target; [chat.Client] is one.
type Client interface {
	workload.Sender
	Probe(context.Context) *chat.Error
	Models(context.Context) ([]string, *chat.Error)
	Root() string
	Model() string
	Extensions() map[string]bool
	// Probes is how many requests it has sent that belong to no turn.
	Probes() int64
}

// Redirected is a Client that is sent from one address to another. Its root stays
// the same all the time.
type Redirected interface {
	// Endpoint is the address in use.
	Endpoint() string
}

var (
	_ Client     = (*chat.Client)(nil)
	_ Client     = (*chat.Switch)(nil)
	_ Redirected = (*chat.Switch)(nil)
)

// Options are what a lane is made of.
type Options struct {
	Name       string
	Client     Client
	Corpus     *corpus.Corpus // at the start; see [Lane.SetCorpus]
	Questioner corpus.Questioner
	Settings   workload.Settings
	Seed       uint64
	Timeouts   *api.Timeouts // of the client; nil: not known
	// AnswerMemory is that of [workload.Options].
	AnswerMemory int64
	Request      string         // further fields of the client's requests, for the shape; empty: none
	Target       api.TargetKind // as configured; empty: not known, unless the driver knows
	Deployment   api.Deployment // as configured; the cluster fills what is left empty
	Driver       workload.Driver
	Mode         api.ModeState
	LastStep     int64              // of an earlier process, so that steps go on
	Cluster      func() api.Cluster // never nil
	Shadow       bool               // other routers are followed in the shadow of the one in force
	// ModeChanged hears of each mode that was switched to, or that the cluster was
	// found in; nil: nobody does.
	ModeChanged func(api.ModeState)
	// Engine begins the runs where other processes hold the conversations; nil: this one does.
	Engine Engine
	// Inherits is a run that the engine's processes hold already; nil: there is none.
	Inherits *Inherited
	// Ended hears of every turn of the lane that has ended, whatever run it belongs to,
	// after the store. It is called concurrently, and must not wait; nil: nobody hears.
	Ended func(EndedTurn)
	// SharedWorkers names the workers that serve another lane, too, so that the lanes
	// disturb each other. It is called with locks held, and must not wait; nil: none do.
	SharedWorkers func() []string
	// CorpusStatus says what was read and what was wrong with it; nil: the corpus
	// is not read from outside.
	CorpusStatus func() api.CorpusStatus
}

// Lane is one target under one workload: the state machine of its runs. It is
// safe for concurrent use.
type Lane struct {
	opts      Options
	process   Process
	catalogue *Catalogue
	target    *target
	record    *stats.Recorder
	meter     *stats.Meter
	steps     steps
	history   history
	failures  failures
	shadow    *live.Live // nil: there is none

	ctx   context.Context // of the process; everything of the lane ends with it
	wg    sync.WaitGroup  // of what enqueues jobs; added to with the lock held
	runID string          // of the process, in conversation ids
	jobs  chan func(context.Context)
	ended chan struct{} // closed when the last job is done

	runner          atomic.Pointer[Runner] // of the latest run
	probesElsewhere atomic.Int64           // that other processes sent to the target

	mu         sync.Mutex
	lanes      []*Lane // that are steered as one, this one among them; see [Join]
	phase      api.Phase
	settings   workload.Settings
	corpus     *corpus.Corpus
	mode       api.ModeState
	modeFrom   api.ModeSource
	change     *change
	nonce      string
	run        *run
	runs       int
	opened     int64 // conversations of earlier runs
	brake      brake
	started    *time.Time
	lease      *Lease         // nil: the lane is nobody's
	nextCorpus *corpus.Corpus // that came while it was somebody's
	lastRow    time.Time      // when a row for the baseline "this target" was due last
	notKept    *api.NotKept   // the latest such row that was not kept
	engines    stats.EngineRecord
	enginesOf  int64    // the step that it is of
	asides     []*Aside // beside the workload
}

// run is one span from a start to its stop.
type run struct {
	workload  Runner
	cancel    context.CancelFunc
	cancelled bool // a stop at once has begun
	ended     chan struct{}
}

// end lets the turns in flight end, or cancels them.
func (r *run) end(drain bool) {
	if drain {
		r.workload.Drain()
		return
	}
	r.cancelled = true
	r.cancel()
}

// New adds a lane that is stopped to a catalogue. ctx ends all that it will ever
// start. All lanes are added before the catalogue is used and viewed.
func New(ctx context.Context, catalogue *Catalogue, opts Options) *Lane {
	now := time.Now()
	l := &Lane{
		opts: opts, process: catalogue.process, catalogue: catalogue, ctx: ctx,
		phase: api.PhaseStopped, settings: opts.Settings, corpus: opts.Corpus, mode: opts.Mode,
		record: stats.NewRecorder(now, catalogue.Settings().SLO), meter: stats.NewMeter(now),
		runID: strconv.FormatInt(now.UnixMilli(), 36),
		jobs:  make(chan func(context.Context), 64), ended: make(chan struct{}),
	}
	l.lanes, l.modeFrom = []*Lane{l}, l.sourceOf(opts.Mode)
	l.target = newTarget(opts.Client, l.notify)
	l.failures.log, l.failures.lane = l.process.Log, opts.Name
	l.steps.lane, l.steps.now.ID = opts.Name, opts.LastStep
	l.steps.save = func(s api.StepRecord) {
		l.process.Store.SaveStep(s)
		if r := l.runner.Load(); r != nil {
			(*r).Step(s)
		}
		l.notify()
	}
	catalogue.lanes = append(catalogue.lanes, l)
	l.startShadow(ctx)
	l.wg.Go(func() { l.target.watch(ctx) })
	l.wg.Go(func() {
		every(ctx, time.Second, func() {
			now := time.Now()
			l.adoptRouterMode()
			l.tick(now)
			l.history.add(l.point(now))
		})
	})
	if d, ok := opts.Driver.(workload.Teller); ok {
		l.wg.Go(func() { every(ctx, followEvery, func() { l.follow(d) }) })
	}
	if opts.Inherits != nil {
		l.inherit(*opts.Inherits)
	}
	go l.runJobs()
	return l
}

// open refuses to start anything when the lane's context has ended. The lock is held.
func (l *Lane) open() error {
	if l.ctx.Err() != nil {
		return fmt.Errorf("%w: the load generator is stopping", api.ErrUnavailable)
	}
	return nil
}

// notify calls for a snapshot. It never waits.
func (l *Lane) notify() { l.catalogue.changed.raise() }

// do makes a change with the lock held, and gives the state after it.
func (l *Lane) do(change func() error) (api.State, error) {
	err := func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		return change()
	}()
	l.notify()
	return l.State(), err
}

// State is the lane's run state.
func (l *Lane) State() api.State {
	s, _ := l.stateAt(time.Now())
	return s
}

// stateAt is the state with the time for which the step must still settle.
func (l *Lane) stateAt(now time.Time) (api.State, time.Duration) {
	step, actual, wait := l.steps.view(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	s := api.State{
		Running: l.phase == api.PhaseRunning || l.phase == api.PhaseDraining, Phase: l.phase,
		Concurrency: api.Concurrency{Target: l.settings.Concurrency, Actual: actual},
		Step:        step, Settling: wait > 0 && l.phase == api.PhaseRunning,
		Mode: l.mode.Mode, ModeFrom: l.modeFrom, Speculation: l.mode.Speculation,
		Driver: l.opts.Driver.Name(), Modes: notNil(l.opts.Driver.Offers()), Started: l.started,
		Shape: l.shape(), Questioner: l.opts.Questioner.Kind(), StartRate: l.settings.StartRate,
		TargetRPS: l.settings.TargetRPS,
	}
	s.Showcase = len(l.asides) > 0
	if s.Phase == api.PhaseRunning && actual < s.Concurrency.Target {
		s.Concurrency.LimitedBy = l.brake.limiter()
	}
	if d, ok := l.opts.Driver.(workload.Simulator); ok {
		s.Simulation = d.Simulation()
	}
	if l.change != nil {
		s.ModeChange = new(l.change.ModeChange)
	}
	if l.lease != nil {
		s.Sweep = l.lease.what()
	}
	return s, wait
}

// shape is what of the workload changes its results. The lock is held.
func (l *Lane) shape() api.WorkloadShape {
	return api.WorkloadShape{
		Turns: l.corpus.Turns(l.settings.Turns), MaxTokens: l.settings.MaxTokens,
		Openings: new(l.settings.Openings.Of(l.corpus)), OpeningTokens: l.corpus.Length, OutputTokens: l.settings.Output,
		Corpus: l.corpus.Name, Followup: l.corpus.Asker(l.opts.Questioner),
		ThinkSeconds: new(l.settings.ThinkTime.Seconds()), TargetRPS: new(l.settings.TargetRPS), Timeouts: l.opts.Timeouts,
		Request: l.opts.Request,
	}
}

// Start starts the workload, or sets the concurrency of a running one, and that of every
// lane that is steered as one with it (see [Join]). It gives
// an [api.FieldError] for a concurrency out of range, [api.ErrConflict] while
// the lane drains, changes its mode or is taken, and [api.ErrUnavailable] when the
// process is ending.
func (l *Lane) Start(_ context.Context, by string, req api.StartRequest) (api.State, error) {
	limit := l.catalogue.Settings().MaxConcurrency
	return l.together(func(l *Lane) (func(), error) { return l.prepareStart(by, req, limit) })
}

// prepareStart gives what a start does, where it can be done. The lock is held.
func (l *Lane) prepareStart(by string, req api.StartRequest, limit int) (func(), error) {
	next, err := l.next(api.WorkloadPatch{Concurrency: req.Concurrency}, limit)
	if err == nil {
		err = l.open()
	}
	if err == nil {
		err = l.untaken()
	}
	if err != nil {
		return nil, err
	}
	switch l.phase {
	case api.PhaseDraining:
		return nil, fmt.Errorf("%w: the workload is draining; start it when it has stopped, or stop it immediately first",
			api.ErrConflict)
	case api.PhaseSwitching:
		return nil, fmt.Errorf("%w: a mode change is in progress; wait until it ends, or cancel it", api.ErrConflict)
	case api.PhaseRunning:
		return func() { l.apply(by, next) }, nil
	}
	return func() {
		l.settings = next
		l.begin(by)
	}, nil
}

// Patch changes the workload's settings, those of every lane that is steered as one; what
// is left out stays. It gives an
// [api.FieldError] for a value out of range and [api.ErrConflict] while the lane is taken,
// and then changes nothing.
func (l *Lane) Patch(_ context.Context, by string, p api.WorkloadPatch) (api.State, error) {
	limit := l.catalogue.Settings().MaxConcurrency
	return l.together(func(l *Lane) (func(), error) {
		next, err := l.next(p, limit)
		if err == nil {
			err = l.untaken()
		}
		return func() { l.apply(by, next) }, err
	})
}

// next is the settings after a change. The lock is held.
func (l *Lane) next(p api.WorkloadPatch, limit int) (workload.Settings, error) {
	if p.Openings != nil && *p.Openings == l.settings.Openings.Of(l.corpus) {
		p.Openings = nil // as it is in force, if only because the corpus has so many
	}
	next, err := l.settings.Apply(p, limit)
	if err == nil {
		err = l.process.checkConcurrency("concurrency", next.Concurrency)
	}
	return next, err
}

// apply takes new settings. The lock is held.
func (l *Lane) apply(by string, next workload.Settings) {
	if next == l.settings {
		return
	}
	if l.inNewStep(func() { l.settings = next }) {
		step := l.steps.current()
		l.event(api.EventStep, by, fmt.Sprintf("step %d: %d conversations, %s", step.ID, step.Concurrency, step.Mode.Name()))
	}
}

// inNewStep makes a change of settings, corpus or mode. Where the workload runs,
// what it measured so far is kept under what was in force, and it goes on in a new
// step, which settles when the last conversation of another shape has ended; else
// it says false. The lock is held.
func (l *Lane) inNewStep(change func()) bool {
	if l.phase != api.PhaseRunning {
		change()
		return false
	}
	now, before, mixed := time.Now(), l.shape(), l.steps.isMixed()
	l.endStep(now)
	change()
	reshapes := !reflect.DeepEqual(l.shape(), before)
	l.brake.reset()
	l.steps.begin(now, l.settings.Concurrency, l.mode, mixed || reshapes)
	l.run.workload.SetCorpus(l.corpus)
	l.run.workload.Set(l.settings) // tells the new step how many are in progress
	return true
}

// SetCorpus gives the texts of the conversations that begin from now on, on every lane
// that is steered as one; those in progress keep theirs. Other texts are another workload.
func (l *Lane) SetCorpus(c *corpus.Corpus) {
	defer l.lockAll()()
	for _, each := range l.lanes {
		each.setCorpus(c)
	}
}

// setCorpus is SetCorpus of one lane. The lock is held.
func (l *Lane) setCorpus(c *corpus.Corpus) {
	if l.lease != nil { // spans that are compared have the same texts
		l.nextCorpus = c
		return
	}
	if c.Name == l.corpus.Name || l.open() != nil {
		return
	}
	l.inNewStep(func() { l.corpus = c })
	l.event(api.EventSettings, "corpus", fmt.Sprintf("corpus %s: %d starters", c.Name, len(c.Starters)))
	l.notify()
}

// corpusInUse is that of the conversations that begin now.
func (l *Lane) corpusInUse() *corpus.Corpus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.corpus
}

// Starter gives a text of the corpus in force, or one made of it. The error is an [api.ErrNotFound]
// where that has none of this id, which another corpus before it may have had.
func (l *Lane) Starter(id string) (api.Starter, error) {
	c := l.corpusInUse()
	if s, ok := c.Find(l.opts.Seed, id); ok {
		return api.Starter{ID: s.ID, Topic: s.Topic, Text: cmp.Or(s.Text, strings.Join(s.Script, "\n\n"))}, nil
	}
	return api.Starter{}, fmt.Errorf("%w: the corpus in use, %s, has no starter %q; it may have had one before it was "+
		"reloaded", api.ErrNotFound, c.Name, id)
}

// endStep keeps what the step under way measured, and ends it. It comes before
// any change of settings or mode, which the row is kept under. The lock is held.
func (l *Lane) endStep(now time.Time) {
	l.dropUnsettled(now)
	l.keepRow(now, true)
	l.steps.end(now)
}

// begin starts a run with the settings and mode in force. The lock is held.
func (l *Lane) begin(by string) { l.beginRun(by, l.opts.Seed, l.opened, 0, nil) }

// beginRun is begin with conversations of a seed, behind those that were opened before,
// the first so many held from their midst, and with somebody who hears of what they do, or
// nil. The lock is held.
func (l *Lane) beginRun(by string, seed uint64, opened, midway int64, tap Tap) {
	now := time.Now()
	l.started, l.phase = &now, api.PhaseRunning
	l.runs++
	l.brake.reset()
	l.record.Reset(now)
	l.meter.Reset(now)
	l.steps.begin(now, l.settings.Concurrency, l.mode, false)
	l.holdRun(Task{
		Lane: l.opts.Name, Run: fmt.Sprintf("%s%d", l.runID, l.runs), Seed: seed, Opened: opened, Midway: midway,
		Nonce:    l.nonce,
		Settings: l.settings, Corpus: l.corpus, Step: l.steps.current(), Taken: l.lease != nil,
	}, tap)
	l.event(api.EventStart, by, fmt.Sprintf("%d conversations, %s", l.settings.Concurrency, l.mode.Mode.Name()))
}

// holdRun has a run held, in this process or by the engine. The lock is held.
func (l *Lane) holdRun(t Task, tap Tap) {
	ctx, cancel := context.WithCancel(l.ctx)
	heard := &observer{lane: l, tap: tap, seed: t.Seed, opened: t.Opened}
	t.Heard = heard
	r := &run{cancel: cancel, ended: make(chan struct{})}
	if l.opts.Engine != nil {
		r.workload = l.opts.Engine.Begin(t)
	} else {
		r.workload = here{workload.New(workload.Options{
			Lane: t.Lane, Run: t.Run, Seed: t.Seed, Opened: t.Opened, Midway: t.Midway, Nonce: t.Nonce,
			Sender: l.target, Corpus: t.Corpus, Questioner: l.opts.Questioner, AnswerMemory: l.opts.AnswerMemory,
			Instance: l.opts.Driver.Instance, Observer: heard, Witness: heard.witness(),
		}, t.Settings)}
	}
	l.run = r
	l.runner.Store(&r.workload)
	l.wg.Go(func() {
		defer cancel()
		r.workload.Run(ctx)
		l.stopped(r)
	})
}

// Stop ends the workload, that of every lane that is steered as one: at once, cancelling
// what is in flight, or by letting the turns in flight end. It returns when a stop at once is complete, with the
// error of ctx if that ends first. Either way the lane counts as draining until
// then. A lane that is stopped stays so; a mode change ends without a new start.
func (l *Lane) Stop(ctx context.Context, by string, req api.StopRequest) (api.State, error) {
	var ended []<-chan struct{}
	func() {
		defer l.lockAll()()
		for _, each := range l.lanes {
			if end := each.stop(by, req.Drain); end != nil && !req.Drain {
				ended = append(ended, end)
			}
		}
	}()
	l.notify()
	err := awaitAll(ctx, ended)
	return l.State(), err
}

// stop gives what tells the end of the run, nil where there is none. The lock is held.
func (l *Lane) stop(by string, drain bool) (ended <-chan struct{}) {
	if l.run != nil {
		ended = l.run.ended
	}
	if l.lease != nil {
		l.lease.cause(stoppedBy(by))
	}
	switch {
	case l.phase == api.PhaseSwitching && l.change.resume:
		l.change.resume = false
	case l.phase == api.PhaseRunning:
		l.endStep(time.Now()) // a lane that empties is at no concurrency
		l.phase = api.PhaseDraining
		l.run.end(drain)
	case l.phase == api.PhaseDraining && !drain && !l.run.cancelled:
		l.run.end(drain)
	default: // it has been said before
		return ended
	}
	l.event(api.EventStop, by, map[bool]string{true: "draining", false: "stopped"}[drain])
	return ended
}

// stopped closes the book of a run that has ended.
func (l *Lane) stopped(r *run) {
	l.failures.stopped(time.Now())
	l.mu.Lock()
	l.endStep(time.Now())
	l.run, l.opened = nil, l.opened+r.workload.Pace().Next
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
	l.process.Log.Info(text, "lane", e.Lane, "event", kind, "by", by)
	l.enqueue(func(ctx context.Context) {
		if _, err := l.process.Store.SaveEvent(ctx, e); err != nil {
			l.process.Log.Warn("an event was dropped", "error", err, "text", e.Text)
		}
	})
}

// enqueue hands over what has to wait for the store. It does not wait itself.
func (l *Lane) enqueue(job func(context.Context)) {
	select {
	case l.jobs <- job:
	default:
		l.process.Log.Warn("the store is too slow: an event or a measured row was dropped")
	}
}

// runJobs does the jobs in order until the lane's context ends, and then those that
// are left when everything else has ended.
func (l *Lane) runJobs() {
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

// running is the run under way, nil where there is none.
func (l *Lane) running() *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run
}

// underway are the turns of the run under way.
func (l *Lane) underway(now time.Time) workload.Underway {
	if r := l.running(); r != nil {
		return r.workload.Underway(now)
	}
	return workload.Underway{}
}

// Cluster is what is known of the cluster, with lists that are never nil.
func (l *Lane) Cluster() api.Cluster {
	c := l.opts.Cluster()
	c.Workers = notNil(c.Workers)
	return c
}

// deployment fills with the cluster's own words what the configuration leaves
// open. The client's model comes first, because the cluster's is gone whenever
// its metrics are, and the model decides which rows belong together.
func (l *Lane) deployment(c api.Cluster) api.Deployment {
	d := l.opts.Deployment
	d.Engine = cmp.Or(d.Engine, c.Engine)
	d.Model = cmp.Or(d.Model, l.opts.Client.Model(), c.Model)
	d.GPU = cmp.Or(d.GPU, c.GPU)
	d.Workers = cmp.Or(d.Workers, c.WorkerCount())
	return d
}
