package lane

import (
	"context"
	"fmt"
	"math"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

// tick does what is due every second. A row of the step in progress is due once
// a minute, so that a crash loses no more.
func (l *Lane) tick(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != api.PhaseRunning {
		return
	}
	if l.steps.isMixed() && l.run.workload.Uniform() {
		l.steps.unmix(now)
	}
	l.brake.add(now, l.run.workload.Pace())
	l.addEngines(now)
	l.record.AdvanceLive(l.meter, now)
	if l.lease == nil { // a span is one step; that it is held, its owner sees
		l.hold(now)
	}
	if now.Sub(l.lastRow) >= settleSpan {
		l.keepRow(now, false)
	}
}

// addEngines takes in what the engines report while turns of the step in progress count. The lock is held.
func (l *Lane) addEngines(now time.Time) {
	if step, _, _ := l.steps.view(now); step.ID != l.enginesOf || step.Counted == 0 {
		l.engines, l.enginesOf = stats.EngineRecord{Keep: int(stats.StepSpan / time.Second)}, step.ID
	}
	l.engines.Add(l.Cluster().Engines)
}

// counted is what a step measured.
func (l *Lane) counted(now time.Time, step int64) stats.Report {
	return l.record.CountedAsArrived(l.meter, now, step)
}

// keepRow adds the current step to the baseline "this target" if it has settled,
// if turns still end, and if the load generator was in time enough for what it measured. ends says
// that this is the step's end. The lock is held.
func (l *Lane) keepRow(now time.Time, ends bool) {
	step, _, wait := l.steps.view(now)
	if wait > 0 && !(ends && sufficesAtEnd(now, step, wait)) {
		return
	}
	l.lastRow = now
	at := levelOf(l.settings.Concurrency, step.Held)
	if mean := l.brake.mean(); !math.IsNaN(mean) && !isNear(mean, at) {
		l.drop(now, fmt.Sprintf("%.0f conversations were in progress on average, not %d", mean, at))
		return
	}
	if reason := l.disturbed(); reason != "" {
		l.drop(now, reason)
		return
	}
	report, shape := l.counted(now, step.ID), l.shape()
	if report.OK == 0 {
		l.drop(now, "no turn of the step succeeded")
		return
	}
	lag := l.process.allow(&report, now)
	row := report.Row()
	row.LagSeconds = lag
	if l.enginesOf == step.ID {
		l.engines.Fill(&row, report.Batched)
	}
	row.Concurrency, row.Mode, row.Speculation, row.Measured = at, l.mode.Mode, l.mode.Speculation, &now
	if reason := unjudgeable(&row); reason != "" {
		l.drop(now, reason)
		return
	}
	if n := l.notKept; n != nil && n.Concurrency == row.Concurrency && n.Mode == row.Mode &&
		n.Speculation == row.Speculation {
		l.notKept = nil
	}
	l.enqueue(func(ctx context.Context) {
		l.catalogue.keepRow(ctx, measured(l.opts.Name, l.opts.Client.Root(), l.deployment(l.Cluster()), shape), row)
	})
}

// drop says why the step in progress becomes no row. The lock is held.
func (l *Lane) drop(now time.Time, reason string) {
	step := l.steps.current()
	l.process.Log.Warn("a measured row was dropped", "step", step.ID, "reason", reason)
	l.notKept = &api.NotKept{
		Concurrency: levelOf(l.settings.Concurrency, step.Held), Mode: l.mode.Mode, Speculation: l.mode.Speculation,
		Time: now, Reason: reason,
	}
}

// latestNotKept is the latest row that was not kept, nil where there is none.
func (l *Lane) latestNotKept() *api.NotKept {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.notKept
}

// sufficesAtEnd says whether a step that ends leaves a row although its counted turns do not reach
// back far enough for a comparison: it lasted as long as they would have to, as a run with
// --duration 60s does, and they reach back half of that. The row's intervals are as wide as so
// few turns make them.
func sufficesAtEnd(now time.Time, step api.Step, wait time.Duration) bool {
	return now.Sub(step.Started) >= settleSpan && settleSpan-wait >= settleSpan/2
}

// dropUnsettled says so if the step in progress ends before it can become a row, unless it
// is a span, whose owner keeps what it measured. The lock is held.
func (l *Lane) dropUnsettled(now time.Time) {
	step, _, wait := l.steps.view(now)
	if l.lease == nil && l.phase == api.PhaseRunning && step.Settled != nil && wait > 0 &&
		!sufficesAtEnd(now, step, wait) {
		l.drop(now, fmt.Sprintf("the step ended after %.0f s of counted turns; a row takes %.0f s, or %.0f s in a step "+
			"that lasted %[2]g s",
			(settleSpan-wait).Seconds(), settleSpan.Seconds(), settleSpan.Seconds()/2))
	}
}

// unjudgeable names the first metric of which more than half may be the load generator's own
// error: that tells of it and not of the target, and must not be kept. Inter-token latencies,
// which are the smallest, are left out of the row alone.
func unjudgeable(row *api.BaselineRow) (reason string) {
	e := row.Errors
	if e == nil {
		return ""
	}
	if tooLarge(row.ITL.P50, e.ITL.P95) {
		row.ITL, row.Errors.ITL, row.Intervals.ITL = api.Percentiles{}, api.Percentiles{}, api.PercentileIntervals{}
	}
	for _, m := range []struct {
		name           string
		figures, error api.Percentiles
	}{{"TTFT", row.TTFT, e.TTFT}, {"TPOT", row.TPOT, e.TPOT}, {"latency", row.Latency, e.Latency}} {
		if tooLarge(m.figures.P50, m.error.P95) {
			return fmt.Sprintf("%s cannot be judged: up to %.1f ms of its %.1f ms (p50) may be the load generator's own; %s",
				m.name, 1000**m.error.P95, 1000**m.figures.P50, remedy)
		}
	}
	return ""
}
