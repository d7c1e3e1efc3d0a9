package lane

import (
	"context"
	"fmt"
	"math"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

// tick does what is due every second. A row of the step in progress is stored once a minute, so
// that a crash loses no more than that.
func (l *Lane) tick(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != api.PhaseRunning {
		return
	}
	if l.steps.isMixed() && l.run.workload.Uniform() {
		l.steps.unmix(now)
	}
	l.holds.add(now, l.run.workload.Pace())
	l.addEngines(now)
	if l.steps.countFrom(now, l.meanTurn(now)) {
		l.record.CountFrom(now)
	}
	l.record.AdvanceLive(l.meter, now)
	if l.lease == nil { // a span is one step; its owner detects that it is held
		l.settleHeld(now)
	}
	if now.Sub(l.lastRow) >= settleSpan {
		l.keepRow(now, false)
	}
}

// meanTurn returns the mean latency of a turn; 0 before half of as many turns as there are conversations have ended, of
// which the first are the short ones. It is also 0 once first tokens count, since nothing waits for turns from then on.
func (l *Lane) meanTurn(now time.Time) time.Duration {
	if l.steps.isCounting() {
		return 0
	}
	turn, n := l.record.MeanTurn(now)
	if _, actual, _ := l.steps.view(now); 2*n < actual {
		return 0
	}
	return turn
}

// addEngines adds what the engines report, while turns of the step in progress count. The lock is
// held.
func (l *Lane) addEngines(now time.Time) {
	if step, _, _ := l.steps.view(now); step.ID != l.enginesStep || step.Counted == 0 {
		l.engines, l.enginesStep = stats.EngineRecord{Keep: int(stats.StepSpan / time.Second)}, step.ID
	}
	engines := l.Cluster().Engines
	l.engines.Add(engines)
	l.latest.Add(engines)
}

// counted returns the report of a step's counted turns.
func (l *Lane) counted(now time.Time, step int64) stats.Report {
	return l.record.CountedAsArrived(l.meter, now, step)
}

// keepRow adds the current step to the baseline "this target" if it has settled, turns still
// succeed, and the load generator's own error is small enough. ends is true at the step's end. The
// lock is held.
func (l *Lane) keepRow(now time.Time, ends bool) {
	step, _, wait := l.steps.view(now)
	if wait > 0 && !(ends && sufficesAtEnd(now, step, wait)) {
		return
	}
	l.lastRow = now
	level := effectiveLevel(l.settings.Level, step.Held)
	if mean := l.holds.mean(); !math.IsNaN(mean) && !isNear(mean, level) {
		l.drop(now, fmt.Sprintf("%.0f conversations were in progress on average, not %v", mean, level))
		return
	}
	if reason := l.disturbed(); reason != "" {
		l.drop(now, reason)
		return
	}
	report, shape, deployment := l.counted(now, step.ID), l.shape(), l.deployment(l.Cluster())
	if report.OK == 0 {
		l.drop(now, "no turn of the step succeeded")
		return
	}
	lag := l.process.allow(&report, now)
	row := report.Row()
	row.LagSeconds = lag
	engines := &stats.EngineRecord{}
	if l.enginesStep == step.ID {
		engines = &l.engines
	}
	engines.Fill(&row, report.Batched, deployment)
	row.Level = level
	row.Arm, row.Mode, row.Speculation = l.mode.Arm, l.mode.Mode, l.mode.Speculation
	row.Measured = &now
	if reason := withoutUnjudgeable(&row); reason != "" {
		l.drop(now, reason)
		return
	}
	if n := l.notKept; n != nil && n.Level == row.Level &&
		(api.ModeState{Arm: n.Arm, Mode: n.Mode, Speculation: n.Speculation}) == row.InMode() {
		l.notKept = nil
	}
	l.enqueue(func(ctx context.Context) {
		l.catalog.keepRow(ctx, measured(l.opts.Name, l.opts.Client.Root(), deployment, shape), row)
	})
}

// drop records why the step in progress is not kept as a row, and warns of it. The lock is held.
func (l *Lane) drop(now time.Time, reason string) {
	l.process.Log.Warn("a measured row was dropped", "step", l.steps.current().ID, "reason", reason)
	l.noteDropped(now, reason)
}

// noteDropped records why the step in progress is not kept as a row. The lock is held.
func (l *Lane) noteDropped(now time.Time, reason string) {
	step := l.steps.current()
	l.notKept = &api.NotKept{
		Level: effectiveLevel(l.settings.Level, step.Held),
		Arm:   l.mode.Arm, Mode: l.mode.Mode, Speculation: l.mode.Speculation, Time: now, Reason: reason,
	}
}

// latestNotKept returns the latest row that was not kept, nil if there is none.
func (l *Lane) latestNotKept() *api.NotKept {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.notKept
}

// sufficesAtEnd reports whether a step that ends is kept as a row although its turns do not count
// for long enough for a comparison: it lasted settleSpan, as a run with --duration 60s does, and
// its turns count for half of that. The intervals of the row show that it has few turns.
func sufficesAtEnd(now time.Time, step api.Step, wait time.Duration) bool {
	return now.Sub(step.Started) >= settleSpan && settleSpan-wait >= settleSpan/2
}

// dropUnsettled records that the step in progress ends too early to be kept as a row. The steps of
// spans are left to the owner of the lease. The lock is held.
func (l *Lane) dropUnsettled(now time.Time) {
	step, _, wait := l.steps.view(now)
	if l.lease == nil && l.phase == api.PhaseRunning && step.Settled != nil && wait > 0 &&
		!sufficesAtEnd(now, step, wait) {
		l.noteDropped(now, fmt.Sprintf("the step ended after %.0f s of counted turns; a row takes %.0f s, or %.0f s in a "+
			"step that lasted %[2]g s",
			(settleSpan-wait).Seconds(), settleSpan.Seconds(), settleSpan.Seconds()/2))
	}
}

// withoutUnjudgeable returns a reason to drop a row: the first metric of which more than half may be the
// load generator's own error. Inter-token latencies, which are the smallest, do not drop the row;
// they are removed from it.
func withoutUnjudgeable(row *api.BaselineRow) (reason string) {
	e := row.Errors
	if e == nil {
		return ""
	}
	if tooLarge(row.ITL.P50, e.ITL.P95) {
		row.ITL = api.Percentiles{}
		row.Errors.ITL = api.Percentiles{}
		row.Intervals.ITL = api.PercentileIntervals{}
	}
	for _, f := range api.Times {
		if reason = Unjudgeable(f, row); reason != "" {
			return reason
		}
	}
	return ""
}
