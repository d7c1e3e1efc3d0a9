package lane

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// Client sends requests to the target; [chat.Client] is one.
type Client interface {
	workload.Sender
	// Probe checks whether the target can serve, and which extensions it supports.
	Probe(context.Context) *chat.Error
	// Plan has later probes prepare for requests of a plan. It reports whether that is new.
	Plan() bool
	// Models returns the target's list of models.
	Models(context.Context) ([]string, *chat.Error)
	// Root returns the address of the target, without the path of the API and without a query.
	Root() string
	// Model returns the model that is requested; empty if it is not known yet.
	Model() string
	// Extensions reports which extensions of requests are in use, by name. Before a probe it is empty.
	Extensions() map[string]bool
	// Recognized returns the properties of the server that the last successful probe shows.
	Recognized() chat.Recognized
	// Probes returns the number of requests sent so far that belong to no turn.
	Probes() int64
}

// Redirected reports the address in use after a failover. It is implemented by a Client that can
// switch to another address. The client's root does not change.
type Redirected interface {
	// Endpoint returns the address in use, and InUse its name.
	Endpoint() string
	InUse() string
}

var (
	_ Client     = (*chat.Client)(nil)
	_ Client     = (*chat.Switch)(nil)
	_ Redirected = (*chat.Switch)(nil)
)

// Options configure a lane.
type Options struct {
	Name       string
	Client     Client
	Corpus     *corpus.Corpus // initial corpus; see [Lane.SetCorpus]
	Questioner corpus.Questioner
	Settings   workload.Settings
	Seed       uint64
	Timeouts   *api.Timeouts // the client's timeouts; nil: not known
	// AnswerMemory is the limit of the same name in [workload.Options].
	AnswerMemory int64
	Request      string         // further fields of the client's requests, as shown in the shape; empty: none
	Session      string         // session setting of the client, as shown in the shape; empty: none
	Target       api.TargetKind // configured kind; empty: not known, unless the driver reports it
	Deployment   api.Deployment // configured values; empty fields are filled from the cluster's metrics
	Driver       workload.Driver
	Mode         api.ModeState
	LastStep     int64              // number of the last step of an earlier process; steps continue from it
	Cluster      func() api.Cluster // required
	// SharesMetrics reports whether the cluster's metrics may be those of other arms than the named one, too. nil: they
	// are not.
	SharesMetrics func(arm string) bool
	Note          func(arm string) string // what the operator has noted of an arm; nil: nothing
	Shadow        bool                    // whether the lane simulates other routers on its traffic
	// RampedStart makes the conversations that begin a run start in their middle, except those of spans. The load then
	// does not come in waves. See [draw.Shape].
	RampedStart bool
	// FreshTexts makes each run that is started begin its openings with a nonce of its own.
	FreshTexts bool
	// Exact is the option of the same name in [workload.Options].
	Exact bool
	// Turns is the number of turns that a run sends, except those of spans; 0: no limit. With WarmsUp, they are those
	// after [Lane.EndWarmUp].
	Turns   int64
	WarmsUp bool
	// Plan is the traffic of each run in place of conversations about the corpus; nil: there is none.
	Plan *workload.Plan
	// Steps are levels that a run that is started at the first of them has one after another, for StepDuration each. The
	// last one stays.
	Steps        []api.Level
	StepDuration time.Duration
	// ModeChanged is called with each mode that was switched to, or that the cluster was found in.
	// nil disables the callback.
	ModeChanged func(api.ModeState)
	// Ended is called with every turn of the lane that has ended, in any run, after it was handed
	// to the store. It is called concurrently, and must neither block nor keep the turn. nil disables
	// the callback.
	Ended func(*workload.Turn)
	// TraceParent is the option of the same name in [workload.Options].
	TraceParent func(requestID string) string
	// SharedWorkers returns the names of workers that also serve another lane, so that the lanes
	// affect each other. It is called with locks held, and must not block. nil: there are none.
	SharedWorkers func() []string
	// CorpusStatus reports how reading the corpus went; nil: the corpus is not read from files.
	CorpusStatus func() api.CorpusStatus
}

// Lane is one target under one workload: the state machine of its runs. It is safe for concurrent
// use.
type Lane struct {
	opts     Options
	process  Process
	catalog  *Catalog
	target   *target
	record   *stats.Recorder
	doubt    cacheDoubt
	meter    *stats.Meter
	steps    steps
	history  history
	failures failures
	shadow   *live.Live // nil: disabled

	armWorkers armWorkers
	planned    plannedShape
	beginning  beginning

	ctx   context.Context // ends everything of the lane
	wg    sync.WaitGroup  // goroutines that enqueue jobs; added to with the lock held
	runID string          // identifies the process in conversation ids
	jobs  chan func(context.Context)
	ended chan struct{} // closed when the last job is done

	mu         sync.Mutex
	lanes      []*Lane // all lanes that change together, including this one; see [Join]
	phase      api.Phase
	settings   workload.Settings
	corpus     *corpus.Corpus
	mode       api.ModeState
	modeFrom   api.ModeSource
	change     *change
	nonce      string
	caches     api.StepCaches             // what the change of mode before the next step did
	series     map[setting][]stats.Series // TTFT of earlier steps, oldest first
	headlines  headlines
	judged     int // number of batches of the step that the headline accounts for; only the ticking goroutine uses it
	run        *run
	runs       int
	opened     int64 // number of conversations of earlier runs
	holds      holdDetector
	started    *time.Time
	warming    bool           // EndWarmUp has yet to be called
	lease      *Lease         // nil: the lane is not taken
	nextCorpus *corpus.Corpus // a corpus that was set while the lane was taken
	lastRow    time.Time      // time at which a row of the baseline "this target" was last due
	notKept    *api.NotKept   // the latest such row that was not kept

	trafficEnded bool // the latest run ended because its traffic did

	engines           stats.EngineRecord
	enginesStep       int64              // the step that engines belongs to
	latest            stats.EngineRecord // of the last 60 s
	sideConversations []*SideConversation
}

// run is the time from a start to its stop.
type run struct {
	workload  *workload.Workload
	observer  *observer
	cancel    context.CancelFunc
	cancelled bool          // an immediate stop has begun
	warmUp    workload.Pace // at the end of the warm-up; zero: there was none
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

// New adds a stopped lane to a catalog. The end of ctx ends everything that the lane starts. All
// lanes are added before the catalog and its view are used.
func New(ctx context.Context, catalog *Catalog, opts Options) *Lane {
	now := time.Now()
	l := &Lane{
		opts: opts, process: catalog.process, catalog: catalog, ctx: ctx,
		phase: api.PhaseStopped, settings: opts.Settings, corpus: opts.Corpus, mode: opts.Mode,
		record: stats.NewRecorder(now, catalog.Settings().SLO), meter: stats.NewMeter(now),
		runID: strconv.FormatInt(now.UnixMilli(), 36),
		jobs:  make(chan func(context.Context), 64), ended: make(chan struct{}),
	}
	l.lanes, l.modeFrom, l.warming = []*Lane{l}, l.sourceOf(opts.Mode), opts.WarmsUp
	l.target = newTarget(opts.Client, l.notify)
	l.failures.log, l.failures.lane = l.process.Log, opts.Name
	l.steps.lane, l.steps.now.ID = opts.Name, opts.LastStep
	l.steps.save = func(s api.StepRecord) {
		l.process.Store.SaveStep(s)
		l.notify()
	}
	catalog.lanes = append(catalog.lanes, l)
	l.startShadow(ctx)
	l.wg.Go(func() { l.target.watch(ctx) })
	l.wg.Go(func() {
		every(ctx, time.Second, func() {
			now := time.Now()
			l.adoptRouterMode()
			l.tick(now)
			l.judge(now)
			l.history.add(l.point(now))
		})
	})
	if opts.Driver.Abilities().Current != nil {
		l.wg.Go(func() { every(ctx, followEvery, func() { _ = l.follow(ctx) }) })
	}
	go l.runJobs()
	return l
}

// checkOpen refuses to start anything when the lane's context has ended. The lock is held.
func (l *Lane) checkOpen() error {
	if l.ctx.Err() != nil {
		return fmt.Errorf("%w: the load generator is stopping", api.ErrUnavailable)
	}
	return nil
}

// notify requests a snapshot. It does not block.
func (l *Lane) notify() { l.catalog.changed.raise() }

// do makes a change with the lock held, and returns the state after it.
func (l *Lane) do(change func() error) (api.State, error) {
	err := func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		return change()
	}()
	l.notify()
	return l.State(), err
}

// State returns the lane's run state.
func (l *Lane) State() api.State {
	s, _ := l.stateAt(time.Now())
	return s
}

// SettlesIn returns an estimate of the time until the step in progress is compared; 0 once it is.
func (l *Lane) SettlesIn() time.Duration {
	_, in := l.stateAt(time.Now())
	return in
}

// stateAt returns the state, and an estimate of the time until the step is compared.
func (l *Lane) stateAt(now time.Time) (api.State, time.Duration) {
	step, actual, _ := l.steps.view(now)
	turn := l.meanTurn(now)
	values, _ := l.record.FirstTokens()
	grows := l.history.grows(step, now)
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := l.steps.comparedIn(now, turn, l.settings.StartRate)
	s := api.State{
		Running: l.phase == api.PhaseRunning || l.phase == api.PhaseDraining, Phase: l.phase,
		Concurrency: api.Concurrency{Target: l.settings.Level, Actual: actual, Dropped: l.dropped()},
		Step:        step, Settling: (wait > 0 || values == 0) && l.phase == api.PhaseRunning,
		Arm: l.mode.Arm, Mode: l.mode.Mode, ModeFrom: l.modeFrom, Speculation: l.mode.Speculation,
		Driver: l.opts.Driver.Name(), Modes: notNil(l.opts.Driver.Offers()), Started: l.started,
		Shape: l.shape(), Questioner: l.opts.Questioner.Kind(), StartRate: l.settings.StartRate,
		TargetRPS: l.settings.TargetRPS, Arrivals: l.settings.Arrivals, Burstiness: l.settings.Burstiness,
		MaxInflight: l.settings.MaxInflight, TrafficShape: l.settings.TrafficShape,
	}
	if l.doubt.text() == "" {
		s.Caches = l.beginning.caches(l.corpus.Length)
	}
	s.Showcase = len(l.sideConversations) > 0
	if limit := l.holds.limiter(); s.Phase == api.PhaseRunning &&
		(actual < s.Concurrency.Target.Conversations() || limit == api.LimitedByTargetRPS) {
		s.Concurrency.LimitedBy = limit
	}
	s.Concurrency.Grows = grows && s.Phase == api.PhaseRunning && l.settings.Level.Kind == api.Rate
	if simulation := l.opts.Driver.Abilities().Simulation; simulation != nil {
		s.Simulation = simulation()
	}
	if l.change != nil {
		s.ModeChange = new(l.change.ModeChange)
	}
	if l.lease != nil {
		s.Sweep = l.lease.sweep()
	}
	return s, wait
}

// shape returns the settings of the workload that affect its results. The lock is held.
func (l *Lane) shape() api.WorkloadShape { return l.shapeAt(l.settings.Level) }

// shapeAt returns the shape of the workload at a level. The lock is held.
func (l *Lane) shapeAt(level api.Level) api.WorkloadShape {
	settings := l.settings
	settings.Level = level
	exact := l.opts.Client.Extensions()[chat.ExtExact]
	s := settings.Shape(l.corpus, exact)
	switch {
	case l.opts.Plan != nil:
		s = l.opts.Plan.Shape(settings, exact)
	case settings.TrafficShape.Recorded():
		s.Corpus, s.Followup = l.corpus.Name, l.corpus.Asker(l.opts.Questioner)
	}
	s.Timeouts = l.opts.Timeouts
	s.Request, s.Session, s.NoRequestID = l.opts.Request, l.opts.Session, l.opts.Client.Recognized().NoRequestID
	return s
}

// Start starts the workload, or sets the concurrency of a running one, on all joined lanes (see
// [Join]). It returns an [api.FieldError] for a concurrency out of range, [api.ErrConflict] while
// the lane drains, changes its mode or is taken, and [api.ErrUnavailable] when the process is
// ending.
func (l *Lane) Start(_ context.Context, actor string, req api.StartRequest) (api.State, error) {
	limit := l.catalog.Settings().MaxConcurrency
	return l.changeAll(func(l *Lane) (func(), error) { return l.prepareStart(actor, req, limit) })
}

// prepareStart returns the change that a start makes, or the reason why it cannot be made. The lock
// is held.
func (l *Lane) prepareStart(actor string, req api.StartRequest, limit int) (func(), error) {
	next, err := l.next(api.WorkloadPatch{Level: req.Level}, limit)
	if err == nil {
		err = l.checkOpen()
	}
	if err == nil {
		err = l.checkUntaken()
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
		return func() { l.apply(actor, next) }, nil
	}
	return func() {
		l.settings = next
		if l.opts.FreshTexts {
			l.nonce = newNonce()
			l.shadow.Reset()
		}
		l.begin(actor)
		if steps := l.opts.Steps; len(steps) > 0 && l == l.lanes[0] && next.Level == steps[0] {
			ended := l.run.ended
			l.wg.Go(func() { l.followSteps(ended) })
		}
	}, nil
}

// followSteps sets the levels of [Options.Steps] one after another, as an operator would, until the run has ended, or a
// level is not that of the step any more.
func (l *Lane) followSteps(ended <-chan struct{}) {
	tick := time.NewTicker(l.opts.StepDuration)
	defer tick.Stop()
	for i, level := range l.opts.Steps[1:] {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if l.State().Concurrency.Target != l.opts.Steps[i] {
			return
		}
		if _, err := l.Patch(l.ctx, "steps", api.WorkloadPatch{Level: &level}); err != nil {
			return // the lane is taken
		}
	}
}

// Patch changes the workload's settings on all joined lanes. Fields that are left out stay. It
// returns an [api.FieldError] for a value out of range and [api.ErrConflict] while the lane is
// taken; then nothing has changed.
func (l *Lane) Patch(ctx context.Context, actor string, p api.WorkloadPatch) (api.State, error) {
	if s := p.TrafficShape; s != nil && !s.Recorded() {
		for _, each := range l.lanes {
			each.target.plan(ctx)
		}
	}
	limit := l.catalog.Settings().MaxConcurrency
	return l.changeAll(func(l *Lane) (func(), error) {
		next, err := l.next(p, limit)
		if err == nil {
			err = l.checkUntaken()
		}
		return func() { l.apply(actor, next) }, err
	})
}

// MeasureAnew begins a new step on all joined lanes, with unchanged settings: turns from before it no longer count. It
// returns an [api.ErrConflict] unless the workload runs, or while the lane is taken.
func (l *Lane) MeasureAnew(_ context.Context, actor string, _ api.MeasureRequest) (api.State, error) {
	return l.beginAnew(actor, "measured anew", func(l *Lane) { l.headlines.forget() })
}

// beginAnew begins a new step on all joined lanes, with unchanged settings, for a reason. before is called for each.
func (l *Lane) beginAnew(actor, reason string, before func(*Lane)) (api.State, error) {
	return l.changeAll(func(l *Lane) (func(), error) {
		if err := l.checkUntaken(); err != nil {
			return nil, err
		}
		if l.phase != api.PhaseRunning {
			return nil, fmt.Errorf("%w: the workload does not run, so there is nothing to measure; start it first",
				api.ErrConflict)
		}
		return func() {
			before(l)
			l.inNewStep(leadAnew, func() {})
			l.event(api.EventStep, actor, fmt.Sprintf("step %d: %s", l.steps.current().ID, reason))
		}, nil
	})
}

// EndWarmUp makes the run under way begin now on all joined lanes, as after a start: the turns that were sent before
// are in none of its figures. The conversations go on. It returns an [api.ErrConflict] unless the workload runs.
func (l *Lane) EndWarmUp(actor string) (api.State, error) {
	return l.changeAll(func(l *Lane) (func(), error) {
		if l.phase != api.PhaseRunning || l.lease != nil {
			return nil, fmt.Errorf("%w: the workload does not run", api.ErrConflict)
		}
		return func() {
			l.inNewStep(leadAnew, func() {
				l.headlines.forget()
				l.record.Reset(time.Now())
				l.record.DoubtCached(l.doubt.text() != "")
			})
			l.started, l.warming = new(l.steps.current().Started), false
			l.run.warmUp = l.run.workload.Pace()
			l.run.workload.LimitTurns(l.opts.Turns)
			l.event(api.EventStep, actor, fmt.Sprintf("step %d: the warm-up has ended", l.steps.current().ID))
		}, nil
	})
}

// next returns the settings after a change. The lock is held.
func (l *Lane) next(p api.WorkloadPatch, limit int) (workload.Settings, error) {
	if p.Openings != nil && *p.Openings == l.settings.Openings.Of(l.corpus) {
		p.Openings = nil // no change; it keeps following the corpus if it does now
	}
	next, err := l.settings.Apply(p, limit)
	if trace := l.opts.Plan; err == nil && trace != nil {
		switch {
		case !next.TrafficShape.Recorded():
			err = api.Refuse("shape.preset", next.TrafficShape.Preset, "recorded: the load generator runs a trace")
		case next.Ramp != api.Ramp{} && trace.Times != nil:
			err = api.Refuse("ramp.from", next.Ramp.From, "no ramp: the trace has times of its own")
		}
	}
	if err == nil {
		err = api.TrafficKind{Trace: l.opts.Plan != nil, Shape: next.TrafficShape, Arrivals: next.Arrivals}.CheckRequest(p)
	}
	if err == nil {
		err = l.process.checkConcurrency("concurrency", next.Level.Conversations())
	}
	if err == nil {
		err = l.checkContext(next)
	}
	return next, err
}

// checkContext refuses settings whose prompts do not fit into the context of the model. The lock is held.
func (l *Lane) checkContext(s workload.Settings) error {
	if l.opts.Plan != nil {
		return nil
	}
	return s.CheckContext(l.corpus, l.opts.Client.Recognized().ContextTokens)
}

// apply applies new settings. The lock is held.
func (l *Lane) apply(actor string, next workload.Settings) {
	if next == l.settings {
		return
	}
	lead := leadSwitched
	if l.settings.Level.Below(next.Level) {
		lead = leadStarted
	}
	if l.inNewStep(lead, func() { l.settings = next }) {
		step := l.steps.current()
		l.event(api.EventStep, actor,
			fmt.Sprintf("step %d: %s, %s", step.ID, l.settings.Ramp.InWords(step.Level), step.InMode().Short()))
	}
}

// inNewStep makes a change of settings, corpus or mode. While the workload runs, it ends the step,
// so that the results so far belong to the old setting, and begins a new one, which settles when
// the last conversation of another shape has ended. It reports whether it began a step. The lock is
// held.
func (l *Lane) inNewStep(lead leadIn, change func()) bool {
	if l.phase != api.PhaseRunning {
		change()
		return false
	}
	now, before, mixed := time.Now(), l.shape(), l.steps.isMixed()
	if lead != leadAnew { // what is measured anew is no reference
		l.keepSeries(now)
	}
	l.endStep(now)
	change()
	reshapes := !reflect.DeepEqual(l.shape(), before)
	l.holds.reset()
	l.beginStep(now, lead, mixed || reshapes)
	l.run.workload.SetCorpus(l.corpus)
	l.run.workload.Set(l.settings) // reports the number in progress to the new step
	return true
}

// SetCorpus sets the texts of the conversations that begin from now on, on all joined lanes. Those
// in progress keep their texts. Since other texts are another workload, a new step begins. While
// the lane is taken, the corpus is kept until it is released.
func (l *Lane) SetCorpus(c *corpus.Corpus) {
	defer l.lockAll()()
	for _, each := range l.lanes {
		each.setCorpus(c)
	}
}

// setCorpus is SetCorpus for one lane. The lock is held.
func (l *Lane) setCorpus(c *corpus.Corpus) {
	if l.lease != nil { // all spans of a sweep use the same texts
		l.nextCorpus = c
		return
	}
	if c.Name == l.corpus.Name || l.checkOpen() != nil {
		return
	}
	l.inNewStep(leadSwitched, func() { l.corpus = c })
	l.event(api.EventSettings, "corpus", fmt.Sprintf("corpus %s: %d starters", c.Name, len(c.Starters)))
	l.notify()
}

// corpusInUse returns the corpus of the conversations that begin now.
func (l *Lane) corpusInUse() *corpus.Corpus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.corpus
}

// Starter returns a text of the corpus in force by its id, or one that is derived from it. The
// error is an [api.ErrNotFound] if the corpus has no such id. An earlier corpus may have had it.
func (l *Lane) Starter(id string) (api.Starter, error) {
	c := l.corpusInUse()
	if s, ok := c.Find(l.opts.Seed, id); ok {
		return api.Starter{ID: s.ID, Topic: s.Topic, Text: cmp.Or(s.Text, strings.Join(s.Script, "\n\n"))}, nil
	}
	return api.Starter{}, fmt.Errorf("%w: the corpus in use, %s, has no starter %q; it may have had one before it was "+
		"reloaded", api.ErrNotFound, c.Name, id)
}

// endStep stores the results of the step under way and ends it. It precedes any change of settings
// or mode, because the results are stored under those in force. The lock is held.
func (l *Lane) endStep(now time.Time) {
	l.dropUnsettled(now)
	l.keepRow(now, true)
	l.steps.end(now)
}

// beginStep begins a step with the settings and the mode in force. mixed: see [steps.begin]. The lock is held.
func (l *Lane) beginStep(now time.Time, lead leadIn, mixed bool) {
	l.steps.begin(now, l.settings.Level, l.mode, mixed)
	l.steps.from(lead, l.caches)
	l.caches = ""
	l.record.BeginStep(l.steps.current().ID, l.series[l.setting()])
}

// begin starts a run with the settings and the mode in force. The lock is held.
func (l *Lane) begin(actor string) {
	ramped := 0
	if l.opts.RampedStart {
		ramped = l.settings.Level.Conversations()
	}
	l.beginRun(actor, l.opts.Seed, l.opened, int64(ramped), nil)
}

// beginRun starts a run of a seed. opened is the number of earlier conversations. rampedStart is
// the field RampedStart of [workload.Options]. span observes the run; nil: the run is not observed.
// The lock is held.
func (l *Lane) beginRun(actor string, seed uint64, opened, rampedStart int64, span SpanObserver) {
	now := time.Now()
	l.started, l.phase = &now, api.PhaseRunning
	l.runs++
	l.holds.reset()
	l.record.Reset(now)
	l.beginning.reset(now)
	l.doubt.reset(l.opts.Cluster().KV.Counted)
	l.meter.Reset(now)
	l.latest = stats.EngineRecord{Keep: int(settleSpan / time.Second)}
	l.beginStep(now, leadStarted, false)
	l.holdRun(seed, opened, rampedStart, span)
	l.event(api.EventStart, actor, fmt.Sprintf("%s, %s", l.settings.Ramp.InWords(l.settings.Level), l.mode.Short()))
}

// holdRun holds the conversations of a run. The lock is held.
func (l *Lane) holdRun(seed uint64, opened, rampedStart int64, span SpanObserver) {
	ctx, cancel := context.WithCancel(l.ctx)
	settings, texts := l.settings, l.corpus
	o := &observer{lane: l, opening: func(d workload.Draw) int64 {
		return l.openingWith(d, settings, texts)
	}}
	o.observe(span)
	turns := l.opts.Turns
	if l.lease != nil || l.warming {
		turns = 0
	}
	r := &run{observer: o, cancel: cancel, ended: make(chan struct{}), workload: workload.New(workload.Options{
		Lane: l.opts.Name, Run: fmt.Sprintf("%s%d", l.runID, l.runs), Seed: seed, Opened: opened, RampedStart: rampedStart,
		Nonce: l.nonce, Sender: l.target, Corpus: texts, Questioner: l.opts.Questioner, AnswerMemory: l.opts.AnswerMemory,
		Turns: turns, Plan: l.opts.Plan, Exact: l.opts.Exact, ModelTokens: l.opts.Client.Recognized().ContextTokens,
		Instance: l.opts.Driver.Abilities().Instance, Observer: o, ObserveRouting: o.routingObserver(),
		TraceParent: l.opts.TraceParent,
	}, settings)}
	l.run = r
	l.wg.Go(func() {
		defer cancel()
		if settings.Level.IsRate() {
			_ = l.target.probe(ctx) // would make the first turns late, which report its error
		}
		r.workload.Run(ctx)
		if l.stopped(r) {
			l.event(api.EventStop, "traffic", "the traffic has ended")
		}
	})
}

// Stop ends the workload of all joined lanes. With Drain it lets the turns in flight end, and
// returns at once. Otherwise it cancels them, and returns when all runs have ended or with the
// error of ctx. The lane is draining until then. A stop during a mode change keeps the workload
// from starting again after it.
func (l *Lane) Stop(ctx context.Context, actor string, req api.StopRequest) (api.State, error) {
	ended := l.stopAll(actor, req.Drain)
	if req.Drain {
		return l.State(), nil
	}
	err := awaitAll(ctx, ended)
	return l.State(), err
}

// Finish stops the workload of all joined lanes. For a grace period it lets the turns in flight end, and then cancels
// the others, as does the end of ctx. It returns when all runs have ended, or after a further within.
func (l *Lane) Finish(ctx context.Context, actor string, grace, within time.Duration) error {
	if grace > 0 {
		waiting, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		if awaitAll(waiting, l.stopAll(actor, true)) == nil {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	_, err := l.Stop(ctx, actor, api.StopRequest{})
	return err
}

// stopAll stops all joined lanes, and returns the ends of their runs.
func (l *Lane) stopAll(actor string, drain bool) (ended []<-chan struct{}) {
	unlock := l.lockAll()
	for _, each := range l.lanes {
		if end := each.stop(actor, drain); end != nil {
			ended = append(ended, end)
		}
	}
	unlock()
	l.notify()
	return ended
}

// Settle waits until the events so far are stored, or until ctx ends.
func (l *Lane) Settle(ctx context.Context) {
	done := make(chan struct{})
	l.enqueue(func(context.Context) { close(done) })
	select {
	case <-done:
	case <-l.ended:
	case <-ctx.Done():
	}
}

// stop returns a channel that is closed at the end of the run, nil if there is no run. The lock is
// held.
func (l *Lane) stop(actor string, drain bool) (ended <-chan struct{}) {
	if l.run != nil {
		ended = l.run.ended
	}
	if l.lease != nil {
		l.lease.cause(stoppedBy(actor))
	}
	switch {
	case l.phase == api.PhaseSwitching && l.change.resume:
		l.change.resume = false
	case l.phase == api.PhaseRunning:
		now := time.Now()
		l.keepSeries(now)
		l.endStep(now) // a draining lane has no steady concurrency
		l.phase = api.PhaseDraining
		l.run.end(drain)
	case l.phase == api.PhaseDraining && !drain && !l.run.cancelled:
		l.run.end(drain)
	default: // a repeated stop
		return ended
	}
	text := "stopped"
	if drain {
		text = "draining"
	}
	l.event(api.EventStop, actor, text)
	return ended
}

// TrafficEnded reports whether the latest run ended because its traffic did.
func (l *Lane) TrafficEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trafficEnded
}

// stopped updates the lane after a run has ended, and reports whether its traffic ended it.
func (l *Lane) stopped(r *run) (traffic bool) {
	l.failures.stopped(time.Now())
	l.mu.Lock()
	traffic = l.phase == api.PhaseRunning && l.ctx.Err() == nil
	l.trafficEnded = traffic
	l.endStep(time.Now())
	l.run, l.opened = nil, l.opened+r.workload.Pace().Begun
	if l.phase != api.PhaseSwitching {
		l.phase = api.PhaseStopped
	}
	l.mu.Unlock()
	close(r.ended)
	l.notify()
	return traffic
}

// event stores and logs an event. It does not block, so it may be called with the lock held.
func (l *Lane) event(kind api.EventKind, actor, text string) {
	l.eventAt(slog.LevelInfo, kind, actor, text)
}

// eventAt stores an event, and logs it with a level and further attributes. It does not block.
func (l *Lane) eventAt(level slog.Level, kind api.EventKind, actor, text string, further ...any) {
	e := api.Event{Time: time.Now(), Lane: l.opts.Name, Kind: kind, By: actor, Text: text}
	l.process.Log.Log(l.ctx, level, text, append([]any{"lane", e.Lane, "event", kind, "by", actor}, further...)...)
	l.enqueue(func(ctx context.Context) {
		if _, err := l.process.Store.SaveEvent(ctx, e); err != nil {
			l.process.Log.Warn("an event was dropped", "error", err, "text", e.Text)
		}
	})
}

// enqueue queues a job that may block on the store. It does not block itself; a full queue drops
// the job.
func (l *Lane) enqueue(job func(context.Context)) {
	select {
	case l.jobs <- job:
	default:
		l.process.Log.Warn("the store is too slow: an event or a measured row was dropped")
	}
}

// runJobs runs the jobs in order until the lane's context ends. Then it waits for everything else
// of the lane, and runs the remaining jobs.
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
			l.mu.Lock() // a goroutine that found the context open has been added to wg before this
			l.mu.Unlock()
			l.wg.Wait()
			for len(l.jobs) > 0 {
				do(<-l.jobs)
			}
			return
		}
	}
}

// running returns the run under way, nil if there is none.
func (l *Lane) running() *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run
}

// underway counts the turns under way.
func (l *Lane) underway(now time.Time) workload.Underway {
	if r := l.running(); r != nil {
		return r.workload.Underway(now)
	}
	return workload.Underway{}
}

// deployment fills the fields that the configuration leaves empty from the cluster's metrics. The
// client's model takes precedence over the cluster's: the metrics may be unavailable, and the model
// determines which baseline rows belong together.
func (l *Lane) deployment(c api.Cluster) api.Deployment {
	d := l.opts.Deployment
	if l.opts.Driver.Abilities().Simulation != nil {
		d.Kind = api.TargetSimulated
	}
	if c.Engines != nil && c.Engines.Energy != nil && c.Engines.Energy.Simulated {
		d.Kind = cmp.Or(d.Kind, api.TargetSimulated)
	}
	d.Engine = cmp.Or(d.Engine, c.Engine)
	d.Model = cmp.Or(d.Model, l.opts.Client.Model(), c.Model)
	d.GPU = cmp.Or(d.GPU, c.GPU)
	d.Workers = cmp.Or(d.Workers, c.WorkerCount())
	return d
}
