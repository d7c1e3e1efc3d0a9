package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/stats"
)

// The limits of a run's end: to cancel the turns in flight, to store those that have ended, and to read them back.
const (
	stopWithin  = 10 * time.Second
	storeWithin = 5 * time.Second
	readWithin  = time.Minute
)

// lookEvery is how often the end of a run is checked.
const lookEvery = 50 * time.Millisecond

// The reasons for which a run fails although the load generator worked.
var (
	errFailIf     = errors.New("the run failed: a --fail-if condition was met")
	errNotCertain = errors.New("the run failed: a --fail-if condition is not certain, and --not-certain is fail")
	errNotJudged  = errors.New("--gate: nothing could be compared: the two results have no common level, or no " +
		"figure has an interval")
	errNothing  = errors.New("nothing was measured: no turn completed or failed")
	errCutShort = errors.New("the run was cut short by a signal: its --fail-if conditions were judged on a part of it")
	errWarmUp   = errors.New("nothing was measured: the run ended during its warm-up (--warmup)")
	errUnknown  = errors.New("a --fail-if condition could not be evaluated: its metric was not measured, the result " +
		"of --against cannot be compared with it, or the load generator's own error could change the outcome; the summary " +
		"says which")
)

// endOf waits for the end of a run and reports its results.
type endOf struct {
	*generator
	conf    *config.Config
	outputs report.Outputs
	over    func() // called when the run is to end, before anything is stopped

	begun    time.Time // the workload, first
	warm     time.Time // the end of the warm-up, or begun without one; zero: it is not over
	started  time.Time // last; a change of mode and the end of the warm-up start it again
	restarts int
	client   report.Client
	lags     stats.Lag // at the last start
	lanes    []laneEnd // in the order of the status
	pairs    *api.Twin // of the last run; nil: there is one lane
	ended    time.Time // when the last turn had ended or was cut
}

// laneEnd is the collected state of one lane.
type laneEnd struct {
	*lane.Lane
	cluster report.Cluster
	before  *api.Comparison // of the last run
	limited *lane.Limited
	warmUp  int64 // number of turns sent in the warm-up

	failures onlyFailures
}

// run serves until the run ends by its own limits or by the end of ctx, and prints its results. cancel ends work, the
// context of everything that serves and measures.
func (e *endOf) run(ctx, work context.Context, cancel context.CancelFunc, l net.Listener, stdout io.Writer) error {
	for _, s := range e.sides {
		e.lanes = append(e.lanes, laneEnd{Lane: s.lane})
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	context.AfterFunc(work, stop) // a failure of the API ends the run
	var wg sync.WaitGroup
	var sum *report.Run
	var failed error
	wg.Go(func() {
		defer cancel()
		cause := e.wait(ctx)
		e.over()
		sum, failed = e.end(ctx, cause)
	})
	served := e.generator.run(work, cancel, l)
	wg.Wait()
	if sum != nil && (e.bounded() || sum.Measured()) {
		d := sum.Document()
		served = errors.Join(served, d.WriteText(stdout))
	}
	if broke := errors.Join(served, failed); broke != nil {
		return broke
	}
	return e.verdict(sum)
}

// bounded reports whether the run has a limit of its own, or conditions to check at its end.
func (e *endOf) bounded() bool {
	return e.conf.Ends() || len(e.conf.FailIf) > 0 || len(e.conf.Output) > 0
}

// wait returns when the run ends: by its duration, its number of requests, the end of its traffic, an operator, where
// it has one of these limits, or the end of ctx.
func (e *endOf) wait(ctx context.Context) report.Cause {
	look, second := time.NewTicker(lookEvery), time.NewTicker(time.Second)
	defer look.Stop()
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return report.BySignal
		case now := <-second.C:
			if state := e.lane.State(); state.Phase == api.PhaseRunning {
				e.notice(state)
				e.client.Add(e.view.Snapshot().Client)
				for i := range e.lanes {
					e.lanes[i].cluster.Add(now, e.lanes[i].Cluster())
				}
			}
		case now := <-look.C:
			if !e.conf.Ends() {
				continue
			}
			state := e.lane.State()
			e.notice(state)
			e.endWarmUp(now)
			switch {
			case e.conf.Duration > 0 && !e.warm.IsZero() && now.Sub(e.warm) >= e.conf.Duration:
				return report.ByDuration
			case e.conf.Requests > 0 && !e.warm.IsZero() && e.allSent():
				return report.ByRequests
			case e.aborted(now):
				return report.ByFailure
			case !e.begun.IsZero() && state.Phase == api.PhaseStopped && e.lane.TrafficEnded():
				return report.ByTraffic
			case !e.begun.IsZero() && state.Phase == api.PhaseStopped:
				return report.ByOperator
			}
		}
	}
}

// endWarmUp makes the figures begin anew once the time of the warm-up is over.
func (e *endOf) endWarmUp(now time.Time) {
	if !e.warm.IsZero() || e.begun.IsZero() || now.Sub(e.begun) < e.conf.Warmup {
		return
	}
	state, err := e.lane.EndWarmUp("command line")
	if err != nil { // the mode changes, or the workload has stopped
		return
	}
	e.notice(state)
	e.warm, e.restarts = *state.Started, 0
	for i := range e.lanes {
		e.lanes[i].warmUp, _ = e.lanes[i].Sent()
	}
}

// warmUp returns the length of the warm-up, 0 while it is not over.
func (e *endOf) warmUp() time.Duration { return max(0, e.warm.Sub(e.begun)) }

// allSent reports whether every lane has sent the number of turns of the run. On members, whose turns are not limited,
// as many must have ended.
func (e *endOf) allSent() bool {
	return !slices.ContainsFunc(e.lanes, func(l laneEnd) bool {
		ok, failed := l.Finished()
		_, sent := l.Sent()
		return max(sent, ok+failed) < int64(e.conf.Requests)
	})
}

// onlyFailures is the time in which turns of a lane failed and none succeeded.
type onlyFailures struct {
	ok, failed int64     // at since
	since      time.Time // the last success, or the beginning; zero before
}

// lasts reports whether turns have failed and none has succeeded for a time. It is false right after another start of
// the workload, which counts turns anew.
func (f *onlyFailures) lasts(now time.Time, ok, failed int64, within time.Duration) bool {
	if f.since.IsZero() || ok != f.ok || failed < f.failed {
		*f = onlyFailures{ok, failed, now}
	}
	return failed > f.failed && now.Sub(f.since) >= within
}

// aborted reports whether a lane has only failures for the time of abort_after.
func (e *endOf) aborted(now time.Time) bool {
	if e.conf.AbortAfter == 0 || e.begun.IsZero() {
		return false
	}
	for i := range e.lanes {
		ok, failed := e.lanes[i].Finished()
		if e.lanes[i].failures.lasts(now, ok, failed, e.conf.AbortAfter) {
			return true
		}
	}
	return false
}

// notice records when the workload started, and when it started again.
func (e *endOf) notice(s api.State) {
	if s.Started == nil || s.Started.Equal(e.started) {
		return
	}
	if e.begun.IsZero() {
		e.begun = *s.Started
		if e.conf.Warmup == 0 {
			e.warm = e.begun
		}
	} else {
		e.restarts++
	}
	e.started, e.client, e.lags = *s.Started, report.Client{}, e.generator.lags()
	for i := range e.lanes {
		e.lanes[i].cluster = report.Started(e.lanes[i].Cluster())
	}
}

// end stops the workload and returns the report of its last run, which it also writes into the files. The report is nil
// where there was no run, or nothing after its warm-up.
func (e *endOf) end(ctx context.Context, cause report.Cause) (*report.Run, error) {
	status := e.view.Status()
	state := status.Lanes[0].State
	e.notice(state)
	if e.started.IsZero() {
		return nil, nil
	}
	if state.Phase == api.PhaseRunning {
		for i := range e.lanes {
			e.lanes[i].limited = e.lanes[i].Limited()
			if c, err := e.lanes[i].Comparison(""); err == nil {
				e.lanes[i].before = &c
			}
		}
		if e.twins != nil {
			if t, err := e.twins.Twin(); err == nil {
				e.pairs = &t
			}
		}
	}
	grace := e.conf.Grace
	if cause == report.BySignal || cause == report.ByFailure {
		grace = 0
	}
	if err := e.lane.Finish(ctx, "command line", grace, stopWithin); err != nil {
		e.log.Warn("some turns were still in flight when the run was summarized", "error", err)
	}
	if e.warm.IsZero() && cause != report.ByFailure {
		return nil, nil
	}
	e.ended = time.Now()
	e.readOnceMore(ctx, e.ended)
	for i, l := range e.view.Status().Lanes {
		status.Lanes[i].Totals = l.Totals
	}
	return e.report(cause, status)
}

// lastReading is the longest wait for metrics that were read after the end.
const lastReading = 2500 * time.Millisecond

// readOnceMore waits until the events are stored and the cluster was read after the end, since an engine counts a
// request at its end.
func (e *endOf) readOnceMore(ctx context.Context, ended time.Time) {
	ctx, cancel := context.WithTimeout(ctx, lastReading)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for i := range e.lanes {
		l := &e.lanes[i]
		l.Settle(ctx)
		for c := l.Cluster(); c.Available && ctx.Err() == nil; c = l.Cluster() {
			if time.Since(ended).Seconds() > c.UpdatedSecond {
				l.cluster.Finish(c)
				break
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}
}

// report reads the turns of the lanes back.
func (e *endOf) report(cause report.Cause, status api.Status) (*report.Run, error) {
	within := readWithin
	if !e.bounded() {
		within = storeWithin // no limit or output was configured
	}
	ctx, cancel := context.WithTimeout(context.Background(), within+storeWithin)
	defer cancel()
	var notes []string
	stored, done := context.WithTimeout(ctx, storeWithin)
	defer done()
	if err := e.store.Flush(stored); err != nil {
		notes = append(notes, fmt.Sprintf("Some turns could not be stored (%s); they are missing from these figures.",
			cmp.Or(e.store.Status().Problem, err.Error())))
	}
	if e.restarts > 0 {
		notes = append(notes, "The workload was restarted during the run, for example by a mode change: the figures "+
			"cover the time since then.")
	}
	if e.warm.IsZero() {
		notes = append(notes, "The run was aborted during its warm-up, which these figures cover.")
	}
	var reports [2]*report.Run
	from := map[string]int64{}
	for i := range e.lanes {
		var err error
		if reports[i], err = e.reportLane(ctx, cause, status, i, notes); err != nil {
			return nil, err
		}
		from[reports[i].Data.Lane] = reports[i].Data.FirstStep
	}
	r := reports[0]
	r.Twin, r.Pairs = reports[1], e.pairs
	if e.bounded() && r.Measured() {
		e.remember(ctx, r)
	}
	return r, e.outputs.Write(func(w io.Writer, f api.ReportFormat) error {
		if f == report.CSV {
			return e.store.TurnsCSVFrom(ctx, w, from)
		}
		return report.Write(w, r, f)
	})
}

// reportLane reads the turns of the lane at an index of the status back. The conditions are checked on the first lane.
func (e *endOf) reportLane(ctx context.Context, cause report.Cause, status api.Status, place int,
	notes []string,
) (*report.Run, error) {
	l, of := &e.lanes[place], status.Lanes[place]
	steps, err := e.store.Steps(ctx, l.Name())
	if err != nil {
		return nil, err
	}
	started := e.started.Round(0) // stored times have no monotonic clock
	if at := of.State.Started; at != nil {
		started = at.Round(0)
	}
	steps = slices.DeleteFunc(steps, func(s api.StepRecord) bool { return s.Started.Before(started) })
	if len(steps) == 0 {
		return nil, fmt.Errorf("the database has no step of this run on lane %s: %s", l.Name(), e.store.Status().Problem)
	}
	events, err := e.store.Events(ctx, l.Name(), 1000)
	if err != nil {
		return nil, err
	}
	events = slices.DeleteFunc(events, func(v api.Event) bool { return v.Time.Before(e.begun.Round(0).Add(-time.Second)) })
	if i := slices.IndexFunc(events, e.beforeRun); i >= 0 { // newest first
		events = events[:i]
	}
	slices.Reverse(events)
	first, last := steps[0], steps[len(steps)-1]
	run := report.Ended{
		Program: api.Program(), Cause: cause, Started: started, Ended: e.ended, Status: of, SLO: status.Settings.SLO,
		Steps: steps, Before: l.before, Limited: l.limited, Opening: l.OpeningOf,
		Client: e.client, Lag: e.generator.lags().Since(e.lags), Cluster: l.cluster,
		Events: events, TokensPerChunk: l.TokensPerChunk(), Restart: e.restarts > 0,
		WarmUp: e.warmUp(), WarmUpTurns: l.warmUp,
		Data: report.Data{Database: status.Store.Path, Lane: l.Name(), FirstStep: first.ID, LastStep: last.ID},
	}
	var conditions []report.Condition
	if place == 0 {
		run.Data.Files, conditions, run.Against = e.outputs.Names(), e.conf.FailIf, e.accepted
		run.NotCertainFails = e.conf.NotCertain == config.NotCertainFails
	}
	if last.Ended != nil && cause != report.ByRequests { // whose turns are all of the run
		run.Ended = *last.Ended
	}
	b := report.NewBuilder(run)
	var failure error
	whole := l.Whole(run.Ended, func(yield func(*api.Turn) bool) {
		failure = e.store.TurnsFrom(ctx, l.Name(), first.ID, func(t *api.Turn) error {
			b.Add(t)
			yield(t) // Whole reads every turn
			return nil
		})
	})
	if failure != nil {
		notes = append(notes, fmt.Sprintf("Only some of the turns could be read (%v).", failure))
	}
	if damage := e.store.Status().Damage; damage != "" {
		notes = append(notes, "Some of the turns may be missing: "+damage+".")
	}
	totals := of.Totals
	if missing := totals.OK + totals.Errors - int64(whole.OK) - int64(whole.Errors); missing > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d finished turns are no longer stored and are missing from all "+
			"figures except ITL: the oldest were deleted because of store.max_conversations or store.max_bytes, or "+
			"the disk was full or too slow.",
			missing, totals.OK+totals.Errors))
	}
	return b.Run(whole, conditions, notes...), nil
}

// takeAccepted reads what relative conditions compare with. It refuses a result that a run at the present level and in
// the present mode, as far as it is known, cannot be compared with.
func (g *generator) takeAccepted(ctx context.Context, conf *config.Config) error {
	a, err := acceptedOf(ctx, conf)
	if a == nil || err != nil {
		return err
	}
	g.accepted = a
	g.lane.DetectMode(ctx)
	status := g.view.Status().Lanes[0]
	row := api.BaselineRow{
		Level: status.State.Concurrency.Target, Arm: status.State.Arm, Mode: status.State.Mode,
		Speculation: status.State.Speculation,
	}
	for _, r := range a.Result.Rows {
		if row.Mode == api.ModeUnknown && r.Level == row.Level { // the router's metrics may show it once turns run
			row.Arm, row.Mode, row.Speculation = r.Arm, r.Mode, r.Speculation
		}
	}
	_, _, err = a.Changes(api.Baseline{
		Name: "run", Kind: baseline.KindMeasured, Deployment: status.Target.Deployment, Workload: &status.State.Shape,
		Rows: []api.BaselineRow{row},
	})
	return err
}

// beforeRun reports whether an event is the stop of an earlier run.
func (e *endOf) beforeRun(v api.Event) bool {
	return v.Kind == api.EventStop && v.Time.Before(e.begun.Round(0))
}

// verdict returns the error that a run with this report ends with. It is nil if the run succeeded or
// if no end or output was configured.
func (e *endOf) verdict(r *report.Run) error {
	switch {
	case !e.bounded():
		return nil
	case r == nil && !e.begun.IsZero():
		return errWarmUp
	case r == nil || !r.Measured():
		return errNothing
	case r.Failed():
		return errFailIf
	case r.Aborted() != "":
		return errors.New(r.Aborted())
	case r.MostFailed() != "":
		return errors.New(r.MostFailed())
	case r.Twin != nil && !r.Twin.Measured():
		return fmt.Errorf("lane %s: %w", r.Twin.Data.Lane, errNothing)
	case r.Twin != nil && r.Twin.MostFailed() != "":
		return fmt.Errorf("lane %s: %s", r.Twin.Data.Lane, r.Twin.MostFailed())
	case r.Uncertain() && e.conf.NotCertain == config.NotCertainFails:
		return errNotCertain
	case r.Undecided():
		return errUnknown
	case r.Cause == report.BySignal && len(r.Conditions) > 0 && e.conf.Ends():
		return errCutShort
	}
	return nil
}
