package sweep

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/stats"
)

// Store keeps sweeps. [kvbooth/sidecar/loadgen/store.Store] implements it.
type Store interface {
	SaveSweep(ctx context.Context, id string, data []byte, place int, seconds []byte) error
	Sweeps(ctx context.Context) ([]json.RawMessage, error)
	SweepSeconds(ctx context.Context, id string) ([]json.RawMessage, error)
	DeleteSweep(ctx context.Context, id string) error
	// Flush blocks until every turn saved before is committed or counted as lost.
	Flush(ctx context.Context) error
	LostTurns() int64
	// SaveRun adds a run to the history.
	SaveRun(ctx context.Context, r api.RunRecord) error
}

// Catalog holds settings and baselines. [lane.Catalog] implements it.
type Catalog interface {
	Settings() api.Settings
	Baseline(name string) (api.Baseline, error)
	SaveMeasured(ctx context.Context, by string, b api.Baseline) (api.Baseline, error)
}

// Options configure a [Desk].
type Options struct {
	Program string // version of the load generator
	Lane    *lane.Lane
	Twin    *lane.Lane // the second lane, controlled together with Lane; may be nil
	Catalog Catalog
	Store   Store
	// Lag returns how late the load generator was between two times; nil means that it is unknown.
	Lag func(from, to time.Time) (lag stats.Lag, known bool)
	Log *slog.Logger
	// Look returns what the routers of some arms do, in a sentence for each that it recognizes. It sends requests to them.
	// nil does not look.
	Look func(ctx context.Context, arms []api.ModeState) []string

	// Name and Labels are those of the sweeps in the history.
	Name   string
	Labels map[string]string
}

// Desk holds the sweeps of a load generator, and runs one at a time while [Desk.Run] runs. It is
// safe for concurrent use.
type Desk struct {
	opts Options
	wake chan struct{} // has a token while there may be a sweep to run

	mu   sync.Mutex
	all  []*sweep // oldest first
	life context.Context
}

// Open reads the sweeps in the store. The error means that the store cannot be read.
func Open(ctx context.Context, o Options) (*Desk, error) {
	kept, err := o.Store.Sweeps(ctx)
	if err != nil {
		return nil, err
	}
	d := &Desk{opts: o, wake: make(chan struct{}, 1)}
	for _, data := range kept {
		s, err := d.read(data)
		if err != nil {
			o.Log.Error("a sweep cannot be read and was skipped", "error", err)
			continue
		}
		d.all = append(d.all, s)
	}
	slices.SortFunc(d.all, func(a, b *sweep) int { return a.doc.Sweep.Asked.Compare(b.doc.Sweep.Asked) })
	return d, nil
}

// lag returns the load generator's own delays between two times; nil if they are not known.
func (d *Desk) lag(from, to time.Time) *stats.Lag {
	if d.opts.Lag == nil {
		return nil
	}
	if lag, known := d.opts.Lag(from, to); known {
		return &lag
	}
	return nil
}

// Run runs sweeps until ctx ends. A sweep in progress then continues with its next unfinished span
// when a desk is opened on the same store.
func (d *Desk) Run(ctx context.Context) {
	d.mu.Lock()
	d.life = ctx
	d.mu.Unlock()
	for ctx.Err() == nil {
		if s := d.due(); s != nil {
			s.run(ctx)
			continue
		}
		select {
		case <-ctx.Done():
		case <-d.wake:
		}
	}
}

// due returns the sweep to run, or after which the lane must be restored; nil where there is
// none.
func (d *Desk) due() *sweep {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.running(); s != nil {
		return s
	}
	return d.unrestored()
}

// unrestored returns a sweep that is over or paused and has not restored the lane. The lock is held.
func (d *Desk) unrestored() *sweep {
	i := slices.IndexFunc(d.all, func(s *sweep) bool {
		return s.doc.Sweep.State != api.SweepRunning && s.doc.Before != nil
	})
	if i < 0 {
		return nil
	}
	return d.all[i]
}

// checkFree gives an error while no sweep can begin or continue. The lock is held.
func (d *Desk) checkFree() error {
	if s := d.running(); s != nil {
		return fmt.Errorf("%w: a %s is in progress; pause or cancel it first", api.ErrConflict,
			s.doc.Sweep.Request.Kind.Noun())
	}
	if s := d.unrestored(); s != nil {
		return fmt.Errorf("%w: the lane is being restored to its state before a %s; try again in a moment",
			api.ErrConflict, s.doc.Sweep.Request.Kind.Noun())
	}
	return nil
}

// checkRoom gives an error where no more sweeps can be kept. The lock is held.
func (d *Desk) checkRoom() error {
	if len(d.all) < api.MaxSweeps {
		return nil
	}
	return fmt.Errorf("%w: %d trials, sweeps and searches are kept, which is the limit; delete one first",
		api.ErrConflict, len(d.all))
}

// running returns the sweep in progress, nil where there is none. The lock is held.
func (d *Desk) running() *sweep {
	i := slices.IndexFunc(d.all, func(s *sweep) bool { return s.doc.Sweep.State == api.SweepRunning })
	if i < 0 {
		return nil
	}
	return d.all[i]
}

func (d *Desk) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Sweeps lists the sweeps, newest first, with the limits and defaults of requests.
func (d *Desk) Sweeps(context.Context) api.SweepList {
	state, settings := d.opts.Lane.State(), d.opts.Catalog.Settings()
	list := api.SweepList{
		Sweeps: []api.SweepSummary{}, Limits: map[string]api.SimulationLimit{}, Defaults: []api.SweepRequest{},
		Modes: slices.Concat([]api.ModeState{}, state.Modes), Metrics: api.SweepMetrics,
	}
	for name, l := range api.SweepLimits {
		list.Limits[name] = api.SimulationLimit{Min: l.Min, Max: l.Max, Above: l.Above}
	}
	for _, k := range api.SweepKinds {
		r := api.SweepRequest{Kind: k, Modes: arms(state.Modes)}
		r.Modes = r.Modes[:min(len(r.Modes), k.MostModes())]
		if r, err := complete(r, state, d.twin(), settings); err == nil {
			list.Defaults = append(list.Defaults, r)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range slices.Backward(d.all) {
		list.Sweeps = append(list.Sweeps, s.summary())
	}
	return list
}

// StartSweep begins a sweep on a lane. The error is an [api.FieldError] for an invalid request, an
// [api.ErrConflict] while one is in progress or the lane is not free, an [api.ErrNotFound] for
// another lane, and an [api.ErrUnavailable] where the cluster has not reported its modes, an arm does
// not answer, the store fails, or the load generator is starting or shutting down.
func (d *Desk) StartSweep(ctx context.Context, by, name string, req api.SweepRequest) (api.Sweep, error) {
	state := d.opts.Lane.State()
	if name != api.DefaultLane {
		return api.Sweep{}, fmt.Errorf("%w: no lane %q", api.ErrNotFound, name)
	}
	r, err := complete(req, state, d.twin(), d.opts.Catalog.Settings())
	if err != nil {
		return api.Sweep{}, err
	}
	if err := cmp.Or(d.checkLevels(r.Levels), d.opts.Lane.CheckModes(ctx, r.Modes), d.resolveCaches(&r)); err != nil {
		return api.Sweep{}, err
	}
	r.Seed = orDefault(r.Seed, uint64(rand.Uint32()))
	d.mu.Lock()
	defer d.mu.Unlock()
	m, err := d.newMachine(r)
	if err != nil {
		return api.Sweep{}, err
	}
	if err := d.checkFree(); err != nil {
		return api.Sweep{}, err
	}
	if err := d.checkRoom(); err != nil {
		return api.Sweep{}, err
	}
	s := &sweep{desk: d, lane: d.opts.Lane, machine: m}
	now := time.Now()
	s.doc.Sweep = api.Sweep{
		SweepSummary: api.SweepSummary{
			ID: d.newID(now), Lane: name, State: api.SweepRunning, By: by, Asked: now, Request: r, Words: []string{},
		},
		Program: d.opts.Program, Spans: []api.SweepSpan{}, Rows: []api.BaselineRow{},
	}
	s.doc.Sweep.Workload, s.doc.Sweep.Target, s.doc.Sweep.Deployment = d.opts.Lane.Describe(r.Levels[0])
	if r.Kind == api.SweepTrial {
		s.doc.Routes = d.routes(r)
	}
	s.refresh()
	if err := s.takeLane(); err != nil {
		return api.Sweep{}, err
	}
	if err := s.save(ctx, 0, nil); err != nil {
		s.returnLane()
		return api.Sweep{}, err
	}
	d.all = append(d.all, s)
	s.lane.Note(by, "began "+s.title())
	d.nudge()
	return s.view(), nil
}

// checkLevels refuses levels that the lane cannot run at.
func (d *Desk) checkLevels(levels []api.Level) error {
	for _, level := range levels {
		if err := d.opts.Lane.CheckLevel(level); err != nil {
			return err
		}
	}
	return nil
}

// SweepOutlook returns what a sweep that has not begun can find. Its errors are those of [Desk.StartSweep], but it
// does not require the lane to be free.
func (d *Desk) SweepOutlook(_ context.Context, name string, req api.SweepRequest) (api.SweepOutlook, error) {
	if name != api.DefaultLane {
		return api.SweepOutlook{}, fmt.Errorf("%w: no lane %q", api.ErrNotFound, name)
	}
	r, err := complete(req, d.opts.Lane.State(), d.twin(), d.opts.Catalog.Settings())
	if err != nil {
		return api.SweepOutlook{}, err
	}
	o := api.SweepOutlook{Request: r, Words: []string{}}
	if r.Kind != api.SweepTrial {
		return o, nil
	}
	if err := d.resolveCaches(&r); err != nil {
		return api.SweepOutlook{}, err
	}
	o.Request = r
	r.Seed = orDefault(r.Seed, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	m, err := d.newMachine(r)
	if err != nil {
		return api.SweepOutlook{}, err
	}
	trial := m.(*proof.Trial)
	state := trial.State()
	o.Detectable, o.Prior, o.Soonest = state.Detectable, state.Prior, d.soonest(r, trial.Plan)
	o.Words = append(o.Words, report.Outlook(&r, &state, &trial.Plan)...)
	if o.Soonest != nil {
		o.Words = append(o.Words, report.Soonest(o.Soonest))
	}
	return o, nil
}

// twin returns the state of the other lane, nil where there is none.
func (d *Desk) twin() *api.State {
	if d.opts.Twin == nil {
		return nil
	}
	return new(d.opts.Twin.State())
}

// lanesFixed reports whether each of the two lanes keeps its mode.
func (d *Desk) lanesFixed() bool { return lanesFixed(d.opts.Lane.State(), *d.twin()) }

// keepsLanes reports whether a request runs on two lanes, each of which keeps its mode.
func (d *Desk) keepsLanes(r api.SweepRequest) bool {
	return r.Together != nil && *r.Together && d.lanesFixed()
}

// newID returns an unused id. Ids sort by time. The lock is held.
func (d *Desk) newID(now time.Time) string {
	for n := now.UnixMilli(); ; n++ {
		id := strconv.FormatInt(n, 36)
		if !slices.ContainsFunc(d.all, func(s *sweep) bool { return s.doc.Sweep.ID == id }) {
			return id
		}
	}
}

// find returns a sweep by its id. The lock is held.
func (d *Desk) find(id string) (*sweep, error) {
	i := slices.IndexFunc(d.all, func(s *sweep) bool { return s.doc.Sweep.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w: no sweep %q", api.ErrNotFound, id)
	}
	return d.all[i], nil
}

// Sweep returns a sweep with its results so far; the error is an [api.ErrNotFound].
func (d *Desk) Sweep(_ context.Context, id string) (api.Sweep, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.find(id)
	if err != nil {
		return api.Sweep{}, err
	}
	return s.view(), nil
}

// PatchSweep pauses, resumes or cancels a sweep. A pause abandons the span in progress, which is
// measured again afterwards. The error is an [api.FieldError] for another state, an
// [api.ErrConflict] where the change is not possible now, [api.ErrNotFound], or [api.ErrUnavailable].
func (d *Desk) PatchSweep(ctx context.Context, by, id string, p api.SweepPatch) (api.Sweep, error) {
	states := []api.SweepState{api.SweepPaused, api.SweepRunning, api.SweepCancelled}
	if err := api.OneOf("state", p.State, states); err != nil {
		return api.Sweep{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.find(id)
	if err != nil {
		return api.Sweep{}, err
	}
	switch {
	case s.doc.Sweep.State == p.State:
	case s.doc.Sweep.State.Ended():
		return api.Sweep{}, fmt.Errorf("%w: it has ended: %s", api.ErrConflict, s.doc.Sweep.State)
	case p.State == api.SweepRunning:
		err = s.resume(ctx, by)
	default:
		err = s.interrupt(ctx, by, p.State)
	}
	if err != nil {
		return api.Sweep{}, err
	}
	return s.view(), nil
}

// DeleteSweep deletes a sweep that has ended or is paused, and returns the others. Its turns, and a
// baseline made from it, are kept.
func (d *Desk) DeleteSweep(ctx context.Context, by, id string) (api.SweepList, error) {
	if err := d.remove(ctx, by, id); err != nil {
		return api.SweepList{}, err
	}
	return d.Sweeps(ctx), nil
}

func (d *Desk) remove(ctx context.Context, by, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.find(id)
	switch {
	case err != nil:
		return err
	case s.doc.Sweep.State == api.SweepRunning:
		return fmt.Errorf("%w: it is in progress; cancel it first", api.ErrConflict)
	}
	if err := d.opts.Store.DeleteSweep(ctx, id); err != nil {
		return err
	}
	d.all = slices.DeleteFunc(d.all, func(o *sweep) bool { return o == s })
	s.lane.Note(by, "deleted "+s.title())
	return nil
}

// SweepBaseline makes a baseline from a sweep's rows. The error is an [api.FieldError], an
// [api.ErrConflict] where there are no rows yet or a built-in baseline has the name,
// [api.ErrNotFound], or [api.ErrUnavailable].
func (d *Desk) SweepBaseline(ctx context.Context, by, id string, req api.SweepBaselineRequest) (api.Baseline, error) {
	v, err := d.Sweep(ctx, id)
	if err != nil {
		return api.Baseline{}, err
	}
	if len(v.Rows) == 0 {
		return api.Baseline{}, fmt.Errorf("%w: no span of it counts yet", api.ErrConflict)
	}
	b := toBaseline(v, req)
	saved, err := d.opts.Catalog.SaveMeasured(ctx, by, b)
	if err != nil {
		return api.Baseline{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, _ := d.find(id); s != nil { // the sweep may have been deleted; the baseline is saved
		s.doc.Sweep.Baseline = saved.Name
		err = s.save(ctx, 0, nil)
	}
	return saved, err
}

func toBaseline(v api.Sweep, req api.SweepBaselineRequest) api.Baseline {
	deployment := v.Deployment
	deployment.Speculation = "" // rows have their own
	title := name(v)
	if req.Title != nil {
		title = *req.Title
	}
	target := v.Target.URL
	if v.Request.Together != nil && *v.Request.Together {
		target += " and the target of lane " + api.TwinLane + " at the same time"
	}
	return api.Baseline{
		Name: req.Name, Title: title, Kind: baseline.KindMeasured,
		Notes:  "Measured against " + target + " by " + name(v),
		Target: &v.Target, Deployment: deployment, Workload: &v.Workload, Rows: v.Rows,
		Provenance: api.Provenance{Runs: []api.Source{proof.SourceOf(&v)}},
	}
}

// record returns a sweep that has ended as a run of the history.
func (d *Desk) record(v api.Sweep) api.RunRecord {
	r := api.RunRecord{
		ID: v.ID, Kind: string(v.Request.Kind), Labels: d.opts.Labels, Started: v.Asked, Ended: *v.Ended,
		Program: d.opts.Program, Result: toBaseline(v, api.SweepBaselineRequest{Name: d.opts.Name}),
	}
	for i := range v.Spans {
		r.Router = cmp.Or(r.Router, v.Spans[i].Router)
	}
	if len(v.Words) > 0 {
		r.Verdict = v.Words[0]
	}
	return r
}

// name returns a sweep's title, or a description of its request.
func name(v api.Sweep) string {
	if v.Request.Title != nil && *v.Request.Title != "" {
		return *v.Request.Title
	}
	return describe(v.Request) + ", " + v.Asked.UTC().Format("2006-01-02 15:04")
}

func describe(r api.SweepRequest) string {
	var modes []string
	for _, m := range r.Modes {
		modes = append(modes, m.Name())
	}
	switch levels := api.LevelsInWords(r.Levels); {
	case r.Kind == api.SweepTrial && len(modes) == 2:
		return fmt.Sprintf("trial of %s against %s at %s", modes[1], modes[0], levels)
	case r.Kind == api.SweepCapacity && r.ByRate():
		return "capacity search by rate of " + join(modes)
	case r.Kind == api.SweepCapacity:
		return "capacity search of " + join(modes)
	default:
		return fmt.Sprintf("%s of %s at %s", r.Kind, join(modes), levels)
	}
}

// WriteSeconds writes the cluster's figures in each second of each counted span, as CSV with a
// header. Errors are [api.ErrNotFound], [api.ErrUnavailable], and those of w.
func (d *Desk) WriteSeconds(ctx context.Context, w io.Writer, id string) error {
	if _, err := d.Sweep(ctx, id); err != nil {
		return err
	}
	spans, err := d.opts.Store.SweepSeconds(ctx, id)
	if err != nil {
		return err
	}
	return writeSeconds(w, spans)
}

// Causes of the early end of a span.
var (
	errPaused    = errors.New("it was paused")
	errCancelled = errors.New("it was cancelled")
)

// WriteSweepReport writes the report of a sweep, which need not have ended. Errors are
// [api.ErrNotFound], an [api.FieldError] for another format, and those of w.
func (d *Desk) WriteSweepReport(ctx context.Context, w io.Writer, id string, f api.ReportFormat) error {
	v, err := d.Sweep(ctx, id)
	if err != nil {
		return err
	}
	return report.Write(w, report.OfSweep(v), f)
}

// WriteReport writes the report on any two results: b compared with a, at some levels, or at all levels where levels is
// empty. The error is an [api.FieldError] for an invalid side, level or format, [api.ErrNotFound] for an unknown
// baseline, or that of w.
func (d *Desk) WriteReport(
	_ context.Context, w io.Writer, a, b api.ReportSide, levels []api.LevelRange, f api.ReportFormat,
) error {
	first, err := d.opts.Catalog.Baseline(a.Baseline)
	if err != nil {
		return err
	}
	other, err := d.opts.Catalog.Baseline(b.Baseline)
	if err != nil {
		return err
	}
	q := proof.Question{A: a, B: b, Levels: levels, SLO: d.opts.Catalog.Settings().SLO}
	r, err := report.Compare(first, other, q)
	if err != nil {
		return err
	}
	return report.Write(w, r, f)
}
