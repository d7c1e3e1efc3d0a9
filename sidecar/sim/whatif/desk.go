package whatif

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
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

// Limits of a [Desk].
const (
	maxKept   = 8 // simulations, including those that have not ended
	maxQueued = 4
)

// followTimeout is how long a simulation continues without a follower.
const followTimeout = 15 * time.Second

const defaultMemory = 512 << 20

// Options configure a [Desk].
type Options struct {
	CPUs     int             // cores that a simulation may use; 0 disables simulations
	Memory   int64           // bytes of heap that a simulation may use; 0 means 512 MiB
	Profiles string          // folder of profile files; may be empty
	Trace    string          // describes the trace that simulations may take; "": there is none
	Spec     json.RawMessage // of which an [Opener] opens the trace
	Log      *slog.Logger    // nil disables the log
}

// Desk queues simulations and computes them one at a time, while [Desk.Run] runs. It is safe
// for concurrent use.
type Desk struct {
	opts    Options
	environ []string      // environment of the processes, besides their limits
	wake    chan struct{} // signals a queued simulation, or the end of Run

	mu    sync.Mutex
	all   []*simulation // oldest first
	ended time.Time     // end of the last computation
}

// simulation is a simulation of a desk, guarded by the desk's lock.
type simulation struct {
	id, by, user string
	request      api.SimulationRequest // with all defaults
	grid         study.Grid
	calibrated   bool
	notes        []string
	requested    time.Time

	state       api.SimulationState
	problem     string
	explanation []string
	begun       time.Time // start of the computation
	end         time.Time
	stop        context.CancelFunc // cancels the computation; nil while there is none

	points   []point // in the order of levels, then modes
	done     int     // completed runs
	changed  chan struct{}
	readers  int
	lastRead time.Time
}

// point is a point with the number of its changes, 0 for an empty one.
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

// Reasons for canceling a simulation.
var (
	errRequested  = errors.New("it was cancelled")
	errReplaced   = errors.New("the same user started a newer simulation")
	errUnfollowed = errors.New("no page was following it any more")
	errEnding     = errors.New("the load generator is shutting down")
)

// Run computes queued simulations until ctx ends. No process of the desk is left when it returns.
func (d *Desk) Run(ctx context.Context) {
	defer d.cancelAll(errEnding)
	defer context.AfterFunc(ctx, d.nudge)()
	var wg sync.WaitGroup
	wg.Go(func() { d.watchFollowers(ctx) })
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

// next starts the oldest queued simulation, and returns it with the context of its computation.
func (d *Desk) next(ctx context.Context) (*simulation, context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.all, func(s *simulation) bool { return s.state == api.SimulationQueued })
	if i < 0 {
		return nil, nil
	}
	s := d.all[i]
	s.state = api.SimulationRunning
	s.begun = time.Now()
	work, stop := context.WithCancel(ctx)
	s.stop = stop
	s.notify()
	return s, work
}

// compute computes a simulation in a process, and waits for the end of the process.
func (d *Desk) compute(ctx context.Context, s *simulation) {
	explanation, err := d.process(ctx, s)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = time.Now()
	canceled := ctx.Err() != nil
	s.stop()
	s.stop = nil
	switch {
	case canceled:
		s.finish(api.SimulationCancelled, errEnding.Error()) // has no effect if it was canceled for another reason
	case err != nil:
		d.opts.Log.Warn("a simulation failed", "id", s.id, "error", err)
		s.finish(api.SimulationFailed, err.Error())
	default:
		s.explanation = explanation
		s.finish(api.SimulationDone, "")
	}
}

// finish ends a simulation that has not ended.
func (s *simulation) finish(state api.SimulationState, problem string) {
	if s.state.Ended() {
		return
	}
	s.state = state
	s.problem = problem
	s.end = time.Now()
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

// update replaces a point after one more run.
func (d *Desk) update(s *simulation, p api.SimulationPoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(s.points, func(old point) bool {
		return old.Level == p.Level && old.Mode == p.Mode
	})
	if i < 0 || s.state.Ended() {
		return
	}
	s.points[i] = point{p, s.points[i].version + 1}
	s.done++
	s.notify()
}

// watchFollowers cancels simulations without a follower until ctx ends.
func (d *Desk) watchFollowers(ctx context.Context) {
	tick := time.NewTicker(followTimeout / 10)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			d.cancelUnfollowed(now)
		}
	}
}

// cancelUnfollowed cancels simulations without a follower for followTimeout.
func (d *Desk) cancelUnfollowed(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.all {
		if s.readers == 0 && now.Sub(s.lastRead) > followTimeout {
			s.finish(api.SimulationCancelled, errUnfollowed.Error())
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

// Ran reports whether a simulation has computed since a moment.
func (d *Desk) Ran(since time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended.After(since) || slices.ContainsFunc(d.all, func(s *simulation) bool { return s.stop != nil })
}

// disabled is the message while simulations are disabled.
const disabled = "what-if simulations are disabled: the configuration sets whatif.cpus to 0"

// StartSimulation queues a simulation. by is the author that other users see. user identifies
// the author; an unfinished simulation of the same user is canceled. The error is an
// [api.FieldError] or an [api.ErrUnavailable].
func (d *Desk) StartSimulation(by, user string, req api.SimulationRequest) (api.SimulationResult, error) {
	if d.opts.CPUs == 0 {
		return api.SimulationResult{}, fmt.Errorf("%w: %s", api.ErrUnavailable, disabled)
	}
	s, err := d.read(req)
	if err != nil {
		return api.SimulationResult{}, err
	}
	s.by = by
	s.user = user
	s.requested = time.Now()
	s.lastRead = s.requested
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, other := range d.all {
		if other.user == user {
			other.finish(api.SimulationCancelled, errReplaced.Error())
		}
	}
	if n := d.ahead(nil); n > maxQueued {
		return api.SimulationResult{}, fmt.Errorf("%w: %d simulations are ahead of this one; try again when one has ended",
			api.ErrUnavailable, n)
	}
	if len(d.all) >= maxKept { // at most maxQueued+1 of them have not ended
		oldest := slices.IndexFunc(d.all, func(s *simulation) bool { return s.state.Ended() })
		d.all = slices.Delete(d.all, oldest, oldest+1)
	}
	d.all = append(d.all, s)
	d.nudge()
	return d.result(s), nil
}

// read makes a simulation of a request.
func (d *Desk) read(req api.SimulationRequest) (*simulation, error) {
	if err := cmp.Or(api.CheckLimits(req), study.Request(req).CheckTraffic(req.Trace != nil && *req.Trace)); err != nil {
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
	if *full.Trace && d.opts.Trace == "" {
		return nil, api.Refuse("trace", true, "false: the load generator was started without a trace (--trace)")
	}
	s := &simulation{
		id: strings.ToLower(rand.Text()[:13]), request: full, state: api.SimulationQueued, changed: make(chan struct{}),
		calibrated: p.CalibratedFor(*full.Speculation), notes: notes(p, full),
	}
	if *full.Trace {
		s.notes = append(s.notes, "The conversations are those of "+d.opts.Trace+", which begins anew at its end.")
	}
	if s.grid, err = study.Request(full).GridOn(p); err != nil {
		return nil, err
	}
	for _, level := range full.Levels {
		for _, mode := range full.Modes {
			s.points = append(s.points, point{SimulationPoint: api.SimulationPoint{Level: level, Mode: mode}})
		}
	}
	return s, nil
}

// notes returns the caveats of the figures.
func notes(p sim.Profile, r api.SimulationRequest) []string {
	all := []string{"Simulated on the profile " + p.Name + ": none of these figures was measured."}
	if !p.CalibratedFor(*r.Speculation) {
		basis := p.Basis
		if p.Calibrated {
			basis = p.Speculation[*r.Speculation].Basis
		}
		all = append(all, "Not calibrated: the times are not based on measurements of this profile with speculation "+
			string(*r.Speculation)+". "+strings.TrimSpace(basis))
	}
	if *r.MaxBatchSize > p.MaxSequences {
		all = append(all, fmt.Sprintf("The times of iterations with more than %d sequences are extrapolated: the profile's "+
			"deployment runs no larger batches.", p.MaxSequences))
	}
	return all
}

// ahead counts the unfinished simulations before one; nil stands for a new one.
func (d *Desk) ahead(before *simulation) (n int) {
	for _, s := range d.all {
		if s == before {
			break
		}
		if !s.state.Ended() {
			n++
		}
	}
	return n
}

// Simulation returns a simulation with its results so far. A call counts as following it. The
// error is an [api.ErrNotFound].
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
	s.finish(api.SimulationCancelled, errRequested.Error())
	return d.result(s), nil
}

func (d *Desk) find(id string) (*simulation, error) {
	i := slices.IndexFunc(d.all, func(s *simulation) bool { return s.id == id })
	if i < 0 {
		return nil, fmt.Errorf("%w: no simulation %.40q; only the last %d are kept, and none survives a restart of the load "+
			"generator", api.ErrNotFound, id, maxKept)
	}
	return d.all[i], nil
}

func (d *Desk) result(s *simulation) api.SimulationResult {
	r := api.SimulationResult{
		ID: s.id, Request: s.request, Runs: s.grid.Runs(), By: s.by, Asked: s.requested, Ended: timeOrNil(s.end),
		Basis: api.BasisSimulated, Calibrated: s.calibrated, Notes: s.notes, Progress: d.progress(s), Error: s.problem,
		Explanation: s.explanation,
	}
	for _, p := range s.points {
		if p.version > 0 {
			r.Points = append(r.Points, p.SimulationPoint)
		}
	}
	return r
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (d *Desk) summary(s *simulation) api.SimulationSummary {
	return api.SimulationSummary{
		ID: s.id, State: s.state, By: s.by, Asked: s.requested, Ended: timeOrNil(s.end),
		Done: s.done, Of: s.grid.Runs(), Request: s.request,
	}
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

// secondsLeft estimates from the conversations of the completed runs, which represent the work
// better than the number of runs.
func (s *simulation) secondsLeft(now time.Time) *float64 {
	var done, all int
	for _, p := range s.points {
		done += p.Seeds * p.Level.Conversations()
		all += len(s.grid.Seeds) * p.Level.Conversations()
	}
	if done == 0 {
		return nil
	}
	return new(now.Sub(s.begun).Seconds() / float64(done) * float64(all-done))
}
