package lane

import (
	"context"
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// tick does what is due every second. A row of the step in progress is due once
// a minute, so that a crash loses no more.
func (l *Lane) tick(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != api.PhaseRunning {
		return
	}
	if l.steps.isMixed() && l.isUniform() {
		l.steps.unmix(now)
	}
	l.brake.add(now, l.run.workload.Pace())
	l.hold(now)
	if now.Sub(l.lastRow) >= settleSpan {
		l.keepRow(now)
	}
}

// isUniform says whether every conversation in progress has the shape in force.
// The lock is held.
func (l *Lane) isUniform() bool {
	return !slices.ContainsFunc(l.run.workload.Conversations(), func(c *workload.Conversation) bool {
		return c.Started.Before(l.reshaped)
	})
}

// keepRow adds the current step to the baseline "this target" if it has settled,
// if turns still end, and if the client can be believed. The lock is held.
func (l *Lane) keepRow(now time.Time) {
	step, _, wait := l.steps.view(now)
	if wait > 0 {
		return
	}
	l.lastRow = now
	if h := l.process.Health(now); h.Verdict == api.VerdictBottleneck {
		l.process.Log.Warn("a measured row was not kept: the client was the bottleneck", "step", step.ID, "reason", h.Reason)
		return
	}
	at := levelOf(l.settings.Concurrency, step.Held)
	if mean := l.brake.mean(); !math.IsNaN(mean) && !isNear(mean, at) {
		l.process.Log.Warn("a measured row was not kept: the number of conversations in progress was another", "step", step.ID, "concurrency", at, "in_progress", math.Round(mean))
		return
	}
	report, shape := l.record.Counted(now, step.ID), l.shape()
	if report.OK == 0 {
		return
	}
	row := newRow(now, at, l.mode, report)
	l.enqueue(func(ctx context.Context) {
		l.catalogue.keepRow(ctx, measured(l.opts.Client.Root(), l.deployment(l.Cluster()), shape), row)
	})
}

// newRow is a step's counted turns as a row of a baseline.
func newRow(now time.Time, concurrency int, mode api.ModeState, r stats.Report) api.BaselineRow {
	m := r.Window.Metrics
	return api.BaselineRow{
		Concurrency: concurrency, Mode: mode.Mode, Speculation: mode.Speculation,
		TTFT: both(m.TTFT), TPOT: both(m.TPOT), ITL: both(m.ITL), Latency: both(m.Latency),
		OutputTokensPerSecond: new(r.Window.OutputTokensPerSecond), RequestsPerSecond: new(r.Window.RequestsPerSecond),
		KVHitRatio: r.HitRatio, N: r.OK, Measured: &now,
	}
}

func both(q api.Quantiles) api.Percentiles { return api.Percentiles{P50: q.P50, P95: q.P95} }
