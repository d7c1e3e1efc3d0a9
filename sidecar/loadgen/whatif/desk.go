package whatif

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/study"
)

// Bounds of what a [Desk] holds.
const (
	maxKept   = 8 // simulations, with those that have not ended
	maxQueued = 4
)

// patience is how long a simulation goes on that nobody follows.
const patience = 15 * time.Second

const defaultMemory = 512 << 20

// Options make a [Desk].
type Options struct {
	CPUs     int          // cores that a simulation may use; 0: there are no simulations
	Memory   int64        // bytes of heap that a simulation may use; 0: 512 MiB
	Profiles string       // folder of files with profiles; empty: none
	Log      *slog.Logger // nil: silence
}

// Desk takes simulations and computes them one after the other, while [Desk.Run] runs.
// It is safe for concurrent use.
type Desk struct {
	opts    Options
	environ []string      // of the processes, besides what bounds them
	wake    chan struct{} // there may be something to compute, or the end of Run

	mu    sync.Mutex
	all   []*simulation // oldest first
	ended time.Time     // the last one that computed
}

// simulation is one of a desk, whose lock guards it.
type simulation struct {
	id, by, who string
	request     api.SimulationRequest // complete
	grid        study.Grid
	calibrated  bool
	notes       []string
	asked       time.Time

	state       api.SimulationState
	problem     string
	explanation []string
	begun       time.Time // to compute
	end         time.Time
	stop        context.CancelFunc // of what computes it; nil: nothing does

	points   []point // in the order of levels, then modes
	done     int     // runs
	changed  chan struct{}
	readers  int
	lastRead time.Time
}

// point is one with the number of times that it has changed: 0, if there is nothing yet.
type point struct {
	api.SimulationPoint
	version int
}

// New makes a desk.
func New(o Options) *Desk {
	o.Memory = cmp.Or(o.Memory, defaultMemory)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Desk{opts: o, wake: make(chan struct{}, 1)}
}

// Why a simulation was cancelled.
var (
	errAsked    = errors.New("it was cancelled")
	errReplaced = errors.New("the same user started a newer simulation")
	errAlone    = errors.New("nobody was watching it any more")
	errEnding   = errors.New("the load generator is shutting down")
)

// Run computes what is asked until ctx ends; then no process of the desk is left.
func (d *Desk) Run(ctx context.Context) {
	defer d.cancelAll(errEnding)
	defer context.AfterFunc(ctx, d.nudge)()
	var wg sync.WaitGroup
	wg.Go(func() { d.watchReaders(ctx) })
	defer wg.Wait()
	for ctx.Err() == nil {
		s, work := d.next(ctx)
		if s == nil {
			<-d.wake
			continue
		}
		d.compute(work, s)
	}
}

func (d *Desk) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// next takes the oldest simulation that waits, and gives the context that it ends with.
func (d *Desk) next(ctx context.Context) (*simulation, context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.all, func(s *simulation) bool { return s.state == api.SimulationQueued })
	if i < 0 {
		return nil, nil
	}
	s := d.all[i]
	s.state, s.begun = api.SimulationRunning, time.Now()
	work, stop := context.WithCancel(ctx)
	s.stop = stop
	s.notify()
	return s, work
}

// compute lets a process compute a simulation, and waits for that process's end.
func (d *Desk) compute(ctx context.Context, s *simulation) {
	explanation, err := d.process(ctx, s)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = time.Now()
	cancelled := ctx.Err() != nil
	s.stop()
	s.stop = nil
	switch {
	case cancelled:
		s.finish(api.SimulationCancelled, errEnding.Error()) // unless it has been cancelled for another reason
	case err != nil:
		d.opts.Log.Warn("a simulation failed", "id", s.id, "error", err)
		s.finish(api.SimulationFailed, err.Error())
	default:
		s.explanation = explanation
		s.finish(api.SimulationDone, "")
	}
}

// finish ends a simulation, if it has not ended.
func (s *simulation) finish(state api.SimulationState, problem string) {
	if s.state.Ended() {
		return
	}
	s.state, s.problem, s.end = state, problem, time.Now()
	if s.stop != nil {
		s.stop()
	}
	s.notify()
}

// notify wakes all followers.
func (s *simulation) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// grow takes a point that has one run more.
func (d *Desk) grow(s *simulation, p api.SimulationPoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(s.points, func(of point) bool { return of.Concurrency == p.Concurrency && of.Mode == p.Mode })
	if i < 0 || s.state.Ended() {
		return
	}
	s.points[i] = point{p, s.points[i].version + 1}
	s.done++
	s.notify()
}

// watchReaders looks from time to time whether anybody follows.
func (d *Desk) watchReaders(ctx context.Context) {
	tick := time.NewTicker(patience / 10)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			d.cancelUnread(now)
		}
	}
}

// cancelUnread cancels what nobody has followed for some time.
func (d *Desk) cancelUnread(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.all {
		if s.readers == 0 && now.Sub(s.lastRead) > patience {
			s.finish(api.SimulationCancelled, errAlone.Error())
		}
	}
}

func (d *Desk) cancelAll(reason error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.all {
		s.finish(api.SimulationCancelled, reason.Error())
	}
}

// Ran says whether a simulation has computed since a moment.
func (d *Desk) Ran(since time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended.After(since) || slices.ContainsFunc(d.all, func(s *simulation) bool { return s.stop != nil })
}

// off says why there are no simulations.
const off = "what-if simulations are disabled: the configuration sets whatif.cpus to 0"

// StartSimulation takes a question. by is who the others are told asked it, who
// identifies them: their unfinished simulation, whose answer they no longer want, is
// cancelled. The error is an [api.FieldError], or an [api.ErrUnavailable].
func (d *Desk) StartSimulation(by, who string, req api.SimulationRequest) (api.SimulationResult, error) {
	if d.opts.CPUs == 0 {
		return api.SimulationResult{}, fmt.Errorf("%w: %s", api.ErrUnavailable, off)
	}
	s, err := d.read(req)
	if err != nil {
		return api.SimulationResult{}, err
	}
	s.by, s.who, s.asked, s.lastRead = by, who, time.Now(), time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, of := range d.all {
		if of.who == who {
			of.finish(api.SimulationCancelled, errReplaced.Error())
		}
	}
	if n := d.ahead(nil); n > maxQueued {
		return api.SimulationResult{}, fmt.Errorf("%w: %d simulations are ahead of this one; try again when one has ended", api.ErrUnavailable, n)
	}
	if len(d.all) >= maxKept { // of which at most maxQueued and one more have not ended
		oldest := slices.IndexFunc(d.all, func(s *simulation) bool { return s.state.Ended() })
		d.all = slices.Delete(d.all, oldest, oldest+1)
	}
	d.all = append(d.all, s)
	d.nudge()
	return d.result(s), nil
}

// read makes a simulation of a question.
func (d *Desk) read(req api.SimulationRequest) (*simulation, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	p, err := d.profile(req.Profile)
	if err != nil {
		return nil, err
	}
	full := api.SimulationRequest(study.Request(req).Complete(p))
	if err := full.CheckWork(); err != nil {
		return nil, err
	}
	s := &simulation{
		id: strings.ToLower(rand.Text()[:13]), request: full, state: api.SimulationQueued, changed: make(chan struct{}),
		calibrated: p.CalibratedFor(*full.Speculation), notes: notes(p, full),
	}
	if s.grid, err = study.Request(full).GridOn(p); err != nil {
		return nil, err
	}
	for _, level := range full.Levels {
		for _, mode := range full.Modes {
			s.points = append(s.points, point{SimulationPoint: api.SimulationPoint{Concurrency: level, Mode: mode}})
		}
	}
	return s, nil
}

// notes are what a reader of the figures must know.
func notes(p sim.Profile, r api.SimulationRequest) []string {
	all := []string{"Simulated on the profile " + p.Name + ": none of these figures was measured."}
	if !p.CalibratedFor(*r.Speculation) {
		basis := p.Basis
		if p.Calibrated {
			basis = p.Speculation[*r.Speculation].Basis
		}
		all = append(all, "Not calibrated: the times are not based on measurements of this profile with speculation "+string(*r.Speculation)+". "+strings.TrimSpace(basis))
	}
	if *r.MaxBatchSize > p.MaxSequences {
		all = append(all, fmt.Sprintf("The times of iterations with more than %d sequences are extrapolated: the profile's deployment runs no larger batches.", p.MaxSequences))
	}
	return all
}

// ahead counts the simulations that end before one, before a new one for nil.
func (d *Desk) ahead(of *simulation) (n int) {
	for _, s := range d.all {
		if s == of {
			break
		}
		if !s.state.Ended() {
			n++
		}
	}
	return n
}

// Simulation gives a simulation with what it has computed so far, and counts as
// following it. The error is an [api.ErrNotFound].
func (d *Desk) Simulation(id string) (api.SimulationResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.find(id)
	if err != nil {
		return api.SimulationResult{}, err
	}
	s.lastRead = time.Now()
	return d.result(s), nil
}

// CancelSimulation cancels a simulation that has not ended. The error is an
// [api.ErrNotFound].
func (d *Desk) CancelSimulation(id string) (api.SimulationResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.find(id)
	if err != nil {
		return api.SimulationResult{}, err
	}
	s.finish(api.SimulationCancelled, errAsked.Error())
	return d.result(s), nil
}

func (d *Desk) find(id string) (*simulation, error) {
	i := slices.IndexFunc(d.all, func(s *simulation) bool { return s.id == id })
	if i < 0 {
		return nil, fmt.Errorf("%w: no simulation %.40q; only the last %d are kept, and none survives a restart of the load generator", api.ErrNotFound, id, maxKept)
	}
	return d.all[i], nil
}

func (d *Desk) result(s *simulation) api.SimulationResult {
	r := api.SimulationResult{
		ID: s.id, Request: s.request, Runs: s.grid.Runs(), By: s.by, Asked: s.asked, Ended: when(s.end),
		Basis: api.BasisSimulated, Calibrated: s.calibrated, Notes: s.notes, Progress: d.progress(s), Error: s.problem, Explanation: s.explanation,
	}
	for _, p := range s.points {
		if p.version > 0 {
			r.Points = append(r.Points, p.SimulationPoint)
		}
	}
	return r
}

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (d *Desk) summary(s *simulation) api.SimulationSummary {
	return api.SimulationSummary{ID: s.id, State: s.state, By: s.by, Asked: s.asked, Ended: when(s.end), Done: s.done, Of: s.grid.Runs(), Request: s.request}
}

func (d *Desk) progress(s *simulation) api.SimulationProgress {
	p := api.SimulationProgress{State: s.state, Done: s.done, Of: s.grid.Runs()}
	switch s.state {
	case api.SimulationQueued:
		p.Ahead = d.ahead(s)
	case api.SimulationRunning:
		p.SecondsLeft = s.secondsLeft(time.Now())
	}
	return p
}

// secondsLeft estimates from the conversations of the runs so far, which say better
// than their number how much has been computed.
func (s *simulation) secondsLeft(now time.Time) *float64 {
	var done, all int
	for _, p := range s.points {
		done += p.Seeds * p.Concurrency
		all += len(s.grid.Seeds) * p.Concurrency
	}
	if done == 0 {
		return nil
	}
	return new(now.Sub(s.begun).Seconds() / float64(done) * float64(all-done))
}
