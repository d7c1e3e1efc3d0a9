package lane

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// State is the lane's run state.
func (l *Lane) State() api.State { return l.state(time.Now()) }

func (l *Lane) state(now time.Time) api.State {
	step, actual, wait := l.steps.view(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	s := api.State{
		Running: l.phase == api.PhaseRunning || l.phase == api.PhaseDraining, Phase: l.phase,
		Concurrency: api.Concurrency{Target: l.settings.Concurrency, Actual: actual},
		Step:        step, Settling: wait > 0 && l.phase == api.PhaseRunning,
		Mode: l.mode.Mode, Speculation: l.mode.Speculation,
		Driver: l.opts.Driver.Name(), Modes: notNil(l.opts.Driver.Offers()), Started: l.started,
		Shape: l.shape(), StartRate: l.settings.StartRate, TargetRPS: l.settings.TargetRPS,
	}
	if d, ok := l.opts.Driver.(workload.Simulator); ok {
		s.Simulation = d.Simulation()
	}
	if l.change != nil {
		c := l.change.ModeChange
		s.ModeChange = &c
	}
	return s
}

// shape is what of the workload changes its results. The lock is held.
func (l *Lane) shape() api.WorkloadShape {
	return api.WorkloadShape{
		Turns: l.settings.Turns, MaxTokens: l.settings.MaxTokens, OutputTokens: l.settings.Output,
		Corpus: l.corpus.Name, Followup: l.opts.Questioner.Name(),
	}
}

// concurrency is what runs, 0 where nothing does.
func (l *Lane) concurrency() int {
	if s := l.State(); s.Phase != api.PhaseStopped {
		return s.Concurrency.Target
	}
	return 0
}

func (l *Lane) snapshot(now time.Time) api.LaneSnapshot {
	state, cluster := l.state(now), l.cluster()
	report := l.record.Report(now)
	report.Window.OutputTokensPerSecond = l.meter.Rate(now)
	report.Window.Awaiting = l.awaiting(now)
	if !state.Running { // nothing is sent: the last figures are no live ones
		report = stats.Report{Window: api.Window{Errors: map[api.ErrorClass]int{}}}
	}
	return api.LaneSnapshot{
		Name: l.opts.Name, Target: l.describe(cluster), State: state, Window: report.Window,
		Totals: l.totals(), TTFTByTurn: notNil(report.TTFTByTurn),
		KV:      l.kv(&report, cluster),
		Cluster: cluster, Baseline: l.compare(now, state, cluster),
	}
}

func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func (l *Lane) status(now time.Time) api.LaneStatus {
	extensions := l.opts.Client.Extensions()
	if extensions == nil {
		extensions = map[string]bool{}
	}
	return api.LaneStatus{
		Name: l.opts.Name, Target: l.describe(l.cluster()), State: l.state(now), Totals: l.totals(),
		Extensions: extensions, Seed: l.opts.Seed,
		Corpus: l.corpusStatus(), Followup: l.followup(),
	}
}

// corpusStatus is what was read, with what is in use.
func (l *Lane) corpusStatus() api.CorpusStatus {
	var s api.CorpusStatus
	if l.opts.CorpusStatus != nil {
		s = l.opts.CorpusStatus()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Name, s.Starters, s.Followup = l.corpus.Name, len(l.corpus.Starters), l.opts.Questioner.Name()
	return s
}

// followup says who asks the follow-up questions.
func (l *Lane) followup() api.FollowupStatus {
	if r, ok := l.opts.Questioner.(corpus.Reporter); ok {
		return r.Report()
	}
	return api.FollowupStatus{Name: l.opts.Questioner.Name()}
}

func (l *Lane) totals() api.Totals {
	t := l.record.Totals()
	t.LostTurns = l.store.LostTurns()
	return t
}

// describe is the target with what configuration and cluster know of it.
func (l *Lane) describe(c api.Cluster) api.Target {
	problem := l.target.state()
	var endpoint string
	if c, ok := l.opts.Client.(Turned); ok {
		endpoint = c.Endpoint()
	}
	return api.Target{
		URL: l.opts.Client.Root(), Endpoint: endpoint, Model: l.opts.Client.Model(), Deployment: l.deployment(c),
		Reachable: problem == "", Problem: problem,
	}
}

// cluster is what is known of it, with lists that are never nil.
func (l *Lane) cluster() api.Cluster {
	c := l.opts.Cluster()
	c.Workers = notNil(c.Workers)
	return c
}

// deployment fills with the cluster's own words what the configuration leaves
// open. The client's model comes first, because the cluster's is gone whenever
// its metrics are, and the model decides which rows belong together.
func (l *Lane) deployment(c api.Cluster) api.Deployment {
	d := l.opts.Deployment
	fill(&d.Engine, c.Engine)
	fill(&d.Model, l.opts.Client.Model())
	fill(&d.Model, c.Model)
	fill(&d.GPU, c.GPU)
	fill(&d.Workers, len(c.Workers))
	l.mu.Lock()
	d.Speculation = l.mode.Speculation
	l.mu.Unlock()
	return d
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// kv is the hit rate as the clients saw it, or as the frontend reports it where
// the answers tell no cached tokens.
func (l *Lane) kv(r *stats.Report, c api.Cluster) api.KV {
	kv := api.KV{HitRatio: r.HitRatio, Source: "usage", PredictedRatio: c.KV.PredictedRatio, AchievableRatio: c.KV.AchievableRatio}
	if kv.HitRatio == nil {
		kv.HitRatio, kv.Source = c.KV.HitRatio, c.KV.Source
	}
	return kv
}

// awaiting counts the turns that still wait for their first token.
func (l *Lane) awaiting(now time.Time) api.Awaiting {
	var a api.Awaiting
	for _, t := range l.turns() {
		sent, _, waiting := t.Live.First()
		if !waiting || sent.IsZero() {
			continue
		}
		a.N++
		a.OldestSeconds = max(a.OldestSeconds, now.Sub(sent).Seconds())
	}
	return a
}

// turns are those under way.
func (l *Lane) turns() []*workload.Turn {
	l.mu.Lock()
	r := l.run
	l.mu.Unlock()
	if r == nil {
		return nil
	}
	var all []*workload.Turn
	for _, c := range r.workload.Conversations() {
		if t := c.Turn(); t != nil {
			all = append(all, t)
		}
	}
	return all
}

// live is the turn under way of a conversation, nil where there is none.
func (l *Lane) live(id string) *api.LiveTurn {
	for _, t := range l.turns() {
		if t.Conversation.ID != id {
			continue
		}
		live := &api.LiveTurn{Number: t.Number, Started: t.Began, UserMessage: t.UserMessage, AssistantMessage: t.Live.Text()}
		if _, ttft, waiting := t.Live.First(); !waiting {
			live.TTFT = new(ttft.Seconds())
		}
		if w := t.Live.Worker(); w != 0 {
			live.Worker = strconv.FormatUint(w, 10)
		}
		return live
	}
	return nil
}

// Comparison puts the current step's counted turns beside the baseline of that
// name, beside the default one where the name is empty. The error is an
// [api.ErrNotFound].
func (l *Lane) Comparison(name string) (api.Comparison, error) {
	now := time.Now()
	state, cluster := l.state(now), l.cluster()
	if name == "" {
		return l.compare(now, state, cluster), nil
	}
	deployment := l.deployment(cluster)
	b, ok := l.named(name, deployment, state.Shape)
	if !ok {
		return api.Comparison{}, fmt.Errorf("%w: there is no baseline %q", api.ErrNotFound, name)
	}
	return l.compareWith(b, now, state, deployment), nil
}

// compare puts the current step's counted turns beside the default baseline.
func (l *Lane) compare(now time.Time, state api.State, c api.Cluster) api.Comparison {
	deployment := l.deployment(c)
	return l.compareWith(l.baseline(deployment, state.Shape), now, state, deployment)
}

func (l *Lane) compareWith(b api.Baseline, now time.Time, state api.State, deployment api.Deployment) api.Comparison {
	live := baseline.Live{
		Settling: state.Settling, Deployment: deployment, Shape: state.Shape,
		Mode: state.Mode, Speculation: state.Speculation,
	}
	if state.Settling {
		_, _, wait := l.steps.view(now)
		live.SettlingFor = wait.Seconds()
	}
	if state.Phase == api.PhaseRunning { // else there is no step under way
		l.fillLive(&live, l.record.Counted(now, state.Step.ID))
	}
	comparison := baseline.Compare(live, b, state.Concurrency.Target)
	if len(b.Rows) == 0 { // there is nothing yet to differ from
		comparison.Differences = []api.Difference{}
	}
	return comparison
}

// baseline is the default one to compare with.
func (l *Lane) baseline(deployment api.Deployment, shape api.WorkloadShape) api.Baseline {
	name := baseline.DefaultFor(deployment, l.hub.allBaselines(), l.hub.Settings().DefaultBaseline)
	b, _ := l.named(name, deployment, shape)
	return b
}

// named finds a baseline. [api.ThisTarget] always is: without rows where nothing
// was measured against this target, whatever another one left. It is also what
// comes where there is none of the name, with false.
func (l *Lane) named(name string, deployment api.Deployment, shape api.WorkloadShape) (api.Baseline, bool) {
	all, own := l.hub.allBaselines(), measured(l.opts.Client.Root(), deployment, shape)
	if i := indexOf(all, name); i >= 0 && (name != api.ThisTarget || sameTarget(all[i], own)) {
		return all[i], true
	}
	return own, name == api.ThisTarget
}

func (l *Lane) fillLive(live *baseline.Live, r stats.Report) {
	live.Metrics, live.N, live.KVHitRatio = r.Window.Metrics, r.OK, r.HitRatio
	if r.OK > 0 && r.Window.Seconds > 0 {
		live.OutputTokensPerSecond = new(r.Window.OutputTokensPerSecond)
		live.RequestsPerSecond = new(r.Window.RequestsPerSecond)
	}
}

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
	if now.Sub(l.kept) >= settleSpan {
		l.keep(now)
	}
}

// isUniform says whether every conversation in progress has the shape in force.
// The lock is held.
func (l *Lane) isUniform() bool {
	return !slices.ContainsFunc(l.run.workload.Conversations(), func(c *workload.Conversation) bool {
		return c.Started.Before(l.reshaped)
	})
}

// keep adds the current step to the baseline "this target" if it has settled,
// if turns still end, and if the client can be believed. The lock is held.
func (l *Lane) keep(now time.Time) {
	step, _, wait := l.steps.view(now)
	if wait > 0 {
		return
	}
	l.kept = now
	if h := l.hub.opts.Health(now); h.Verdict == api.VerdictBottleneck {
		l.opts.Log.Warn("a measured row was not kept: the client was the bottleneck", "step", step.ID, "reason", h.Reason)
		return
	}
	report, shape := l.record.Counted(now, step.ID), l.shape()
	if report.OK == 0 {
		return
	}
	row := newRow(now, l.settings.Concurrency, l.mode, report)
	l.later(func(ctx context.Context) {
		l.hub.keepRow(ctx, measured(l.opts.Client.Root(), l.deployment(l.cluster()), shape), row)
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

// Collector gives the lane's metrics.
func (l *Lane) Collector() prometheus.Collector {
	return stats.NewCollector(l.opts.Name, l.record, l.gauges)
}

// gauges are what the lane's metrics tell beyond its window.
func (l *Lane) gauges() stats.Gauges {
	now := time.Now()
	state := l.state(now)
	b := l.baseline(l.deployment(l.cluster()), state.Shape)
	var asker *api.FollowupStatus
	if f := l.followup(); f.URL != "" {
		asker = &f
	}
	return stats.Gauges{
		TargetConcurrency: state.Concurrency.Target, ActiveConversations: state.Concurrency.Actual,
		InflightRequests: len(l.turns()), Running: state.Running, Settling: state.Settling, Step: state.Step.ID,
		Version: l.opts.Version, Target: l.opts.Client.Root(), Model: l.opts.Client.Model(),
		Mode: state.Mode, Speculation: state.Speculation,
		BaselineName: b.Name, Columns: baseline.Columns(b, state.Concurrency.Target), Levels: &b,
		LostTurns: l.store.LostTurns(), Followup: asker,
	}
}
