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
	if l.lease == nil { // a span is one step; that it is held, its owner sees
		l.hold(now)
	}
	if now.Sub(l.lastRow) >= settleSpan {
		l.keepRow(now, false)
	}
}

// counted is what a step measured.
func (l *Lane) counted(now time.Time, step int64) stats.Report {
	return l.record.CountedAsArrived(l.meter, now, step)
}

// keepRow adds the current step to the baseline "this target" if it has settled,
// if turns still end, and if the load generator was in time for what it measured. ends says
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
	row := report.Row()
	row.Concurrency, row.Mode, row.Speculation, row.Measured = at, l.mode.Mode, l.mode.Speculation, &now
	row.LagSeconds = l.process.lag(time.Duration(row.Seconds*float64(time.Second)), now)
	if reason := allowForLag(&row, report); reason != "" {
		l.drop(now, reason)
		return
	}
	if n := l.notKept; n != nil && n.Concurrency == row.Concurrency && n.Mode == row.Mode && n.Speculation == row.Speculation {
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
		Concurrency: levelOf(l.settings.Concurrency, step.Held), Mode: l.mode.Mode, Speculation: l.mode.Speculation, Time: now, Reason: reason,
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
	if l.lease == nil && l.phase == api.PhaseRunning && step.Settled != nil && wait > 0 && !sufficesAtEnd(now, step, wait) {
		l.drop(now, fmt.Sprintf("the step ended after %.0f s of counted turns; a row takes %.0f s, or %.0f s in a step that lasted %[2]g s",
			(settleSpan-wait).Seconds(), settleSpan.Seconds(), settleSpan.Seconds()/2))
	}
}

// tolerable is the share of a metric that the load generator's own lag may be, where
// the metric's interval is not wider.
const tolerable = .05

// allowForLag judges a row by how late the load generator was while it was measured.
// A time stamp is late, never early: so each latency may be lower by as much as the
// lag adds to it, which its interval then allows for. Where that is neither within
// the interval nor within 5 % of the value, it tells of the load generator and not of
// the target: the reason is why the row must not be kept, and inter-token latencies,
// which are the smallest, are left out of it alone.
func allowForLag(row *api.BaselineRow, r stats.Report) (reason string) {
	if row.LagSeconds == nil {
		return ""
	}
	lag, in := *row.LagSeconds, row.Intervals
	perToken := lag / max(1, float64(r.OutputTokens)/float64(r.OK)-1) // TPOT shares it among the gaps of a turn
	for _, m := range []struct {
		name   string
		value  *float64
		of     *[2]float64
		effect float64
	}{
		{"TTFT p50", row.TTFT.P50, in.TTFT.P50, lag},
		{"TTFT p95", row.TTFT.P95, in.TTFT.P95, lag},
		{"TPOT p50", row.TPOT.P50, in.TPOT.P50, perToken},
		{"TPOT p95", row.TPOT.P95, in.TPOT.P95, perToken},
		{"latency p50", row.Latency.P50, in.Latency.P50, lag},
		{"latency p95", row.Latency.P95, in.Latency.P95, lag},
	} {
		if m.value != nil && spoils(m.effect, *m.value, m.of) {
			return fmt.Sprintf("the load generator itself was %.1f ms late (p95 of these %.0f s), too much for a %s of %.1f ms; give it more CPU or fewer conversations",
				1000*lag, row.Seconds, m.name, 1000**m.value)
		}
		lower(m.of, m.effect)
	}
	if p50, p95 := row.ITL.P50, row.ITL.P95; p50 != nil && spoils(lag, *p50, in.ITL.P50) || p95 != nil && spoils(lag, *p95, in.ITL.P95) {
		row.ITL, in.ITL = api.Percentiles{}, api.PercentileIntervals{}
	}
	lower(in.ITL.P50, lag)
	lower(in.ITL.P95, lag)
	return ""
}

// spoils says whether a metric is off by more than what it is known to, and by more
// than a share of it that nobody minds.
func spoils(effect, value float64, in *[2]float64) bool {
	half := 0.0
	if in != nil {
		half = (in[1] - in[0]) / 2
	}
	return effect > max(half, tolerable*value)
}

// lower moves the lower end of an interval down.
func lower(in *[2]float64, by float64) {
	if in != nil {
		in[0] = max(0, in[0]-by)
	}
}
