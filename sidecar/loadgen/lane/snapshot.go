package lane

import (
	"cmp"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// reading is one lane at one moment: what its state machine, its catalogue and
// its cluster said then. All that is shown of a lane is a function of it and of
// the lane's measurements.
type reading struct {
	*Lane
	now        time.Time
	state      api.State
	settling   time.Duration // that is still missing
	cluster    api.Cluster
	deployment api.Deployment
	underway   workload.Underway
	notKept    *api.NotKept
}

func (l *Lane) read(now time.Time) *reading {
	r := &reading{Lane: l, now: now, cluster: l.Cluster(), underway: l.underway(now)}
	r.state, r.settling = l.stateAt(now)
	r.notKept = l.latestNotKept()
	r.deployment = l.deployment(r.cluster)
	r.deployment.Speculation = r.state.Speculation
	return r
}

func (r *reading) snapshot() api.LaneSnapshot {
	report := r.record.Report(r.now)
	r.process.allow(&report, r.now)
	report.Window.OutputTokensPerSecond = r.meter.Rate(r.now)
	report.Window.Awaiting = r.underway.Awaiting
	if !r.state.Running { // nothing is sent: the last figures are no live ones
		report = stats.Report{Window: api.Window{Errors: map[api.ErrorClass]int{}}}
	}
	return api.LaneSnapshot{
		Name: r.opts.Name, Target: r.shownTarget(), State: r.state, Window: report.Window,
		Totals: r.totals(), TTFTByTurn: notNil(report.TTFTByTurn),
		KV: r.kv(&report), Cluster: r.cluster, Baseline: r.compare(r.defaultBaseline()), SharedWorkers: r.sharedWorkers(),
	}
}

func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func (r *reading) status() api.LaneStatus {
	extensions := r.opts.Client.Extensions()
	if extensions == nil {
		extensions = map[string]bool{}
	}
	return api.LaneStatus{
		Name: r.opts.Name, Target: r.shownTarget(), State: r.state, Totals: r.totals(),
		Extensions: extensions, Seed: r.opts.Seed,
		Corpus: r.corpusStatus(), Followup: r.followup(),
	}
}

// corpusStatus is what was read, with what is in use.
func (r *reading) corpusStatus() api.CorpusStatus {
	var s api.CorpusStatus
	if r.opts.CorpusStatus != nil {
		s = r.opts.CorpusStatus()
	}
	c := r.corpusInUse()
	s.Name, s.Starters, s.Followup = c.Name, len(c.Starters), c.Asker(r.opts.Questioner)
	return s
}

// followup says who asks the follow-up questions.
func (r *reading) followup() api.FollowupStatus {
	c := r.corpusInUse()
	if q, ok := r.opts.Questioner.(corpus.Reporter); ok && !c.Scripted() {
		return q.Report()
	}
	return api.FollowupStatus{Name: c.Asker(r.opts.Questioner)}
}

func (r *reading) totals() api.Totals {
	t := r.record.Totals()
	t.LostTurns = r.process.Store.LostTurns()
	return t
}

// shownTarget is the target with what configuration and cluster know of it.
func (r *reading) shownTarget() api.Target {
	problem, status := r.target.state()
	t := api.Target{
		Kind: cmp.Or(r.opts.Target, api.TargetUnknown), URL: r.opts.Client.Root(), Model: r.opts.Client.Model(),
		Deployment: r.deployment,
		Reachable:  problem == "", Problem: problem, ProblemStatus: status, Notices: r.target.notices(), Probes: r.opts.Client.Probes() +
			r.probesElsewhere.Load(),
	}
	if _, ok := r.opts.Driver.(workload.Simulator); ok {
		t.Kind = api.TargetSimulated
	}
	if d, ok := r.opts.Driver.(workload.Describer); ok {
		t.Features = d.Features()
	}
	if c, ok := r.opts.Client.(Redirected); ok {
		t.Endpoint = c.Endpoint()
	}
	return t
}

// kv is the hit rate as the clients saw it, or as the frontend or the engines
// report it where the answers tell no cached tokens. Where turns have ended and
// nobody tells, it says so.
func (r *reading) kv(report *stats.Report) api.KV {
	kv := r.cluster.KV
	switch {
	case report.HitRatio != nil:
		kv.HitRatio, kv.Source = report.HitRatio, "usage"
	case kv.HitRatio == nil && report.OK > 0:
		kv.NotReported = silentCache(r.cluster)
	}
	return kv
}

// silentCache says why nobody tells cached tokens although turns have ended: the
// answers do not, and of the metrics that might, either they are not read or the
// engine has none.
func silentCache(c api.Cluster) string {
	const answers = "the answers do not report cached tokens, and "
	switch {
	case !c.Available:
		return answers + "the cluster's metrics are unavailable"
	case c.Unread.Workers != "":
		return answers + c.Unread.Workers
	}
	return "the engine does not report cached tokens"
}

// Comparison puts the current step's counted turns beside the baseline of that
// name, beside the default one where the name is empty. The error is an
// [api.ErrNotFound].
func (l *Lane) Comparison(name string) (api.Comparison, error) {
	r := l.read(time.Now())
	if name == "" {
		return r.compare(r.defaultBaseline()), nil
	}
	b, ok := r.baseline(name)
	if !ok {
		return api.Comparison{}, errNoBaseline(name)
	}
	return r.compare(b), nil
}

// compare puts the current step's counted turns beside a baseline.
func (r *reading) compare(b api.Baseline) api.Comparison {
	var live baseline.Live
	if r.state.Phase == api.PhaseRunning { // else there is no step under way
		counted := r.record.Live(r.meter, r.now, r.state.Step.ID)
		r.process.allow(&counted, r.now)
		live = Compared(&counted)
	}
	live.Settling, live.Deployment, live.Shape = r.state.Settling, r.deployment, r.state.Shape
	live.Mode, live.Speculation = r.state.Mode, r.state.Speculation
	if live.Settling {
		live.SettlingFor = r.settling.Seconds()
	}
	live.Withheld = r.disturbed()
	comparison := baseline.Compare(live, b, r.level())
	if b.Name == api.ThisTarget {
		comparison.NotKept = r.notKept
	}
	if len(b.Rows) == 0 { // there is nothing yet to differ from
		comparison.Differences = []api.Difference{}
	}
	return comparison
}

// Compared gives the figures of a report as a baseline is compared with them, without the setting that they are of.
func Compared(r *stats.Report) baseline.Live {
	live := baseline.Live{
		Metrics: r.Window.Metrics, N: r.OK, Seconds: r.Window.Seconds,
		KVHitRatio: r.HitRatio, HitInterval: r.HitInterval,
	}
	if r.OK > 0 && r.Window.Seconds > 0 {
		live.OutputTokensPerSecond, live.OutputInterval = &r.Window.OutputTokensPerSecond, r.OutputInterval
		live.RequestsPerSecond, live.RequestsInterval = &r.Window.RequestsPerSecond, r.RequestsInterval
	}
	return live
}

// level is the concurrency that the figures are those of: less than was asked for where
// the step is held.
func (r *reading) level() int {
	if r.state.Phase != api.PhaseRunning {
		return r.state.Concurrency.Target
	}
	return levelOf(r.state.Concurrency.Target, r.state.Step.Held)
}

// defaultBaseline is the one to compare with where none is chosen.
func (r *reading) defaultBaseline() api.Baseline {
	b, _ := r.baseline(baseline.DefaultFor(r.deployment, r.catalogue.Baselines(), r.catalogue.Settings().DefaultBaseline))
	return b
}

// baseline finds one by its name. The lane's own results are [api.ThisTarget] here, under
// whichever of their names they are asked for, and always there: without rows
// where nothing was measured against this target, whatever another one left. They are
// also what comes where there is none of the name, with false.
func (r *reading) baseline(name string) (api.Baseline, bool) {
	own := measured(r.opts.Name, r.opts.Client.Root(), r.deployment, r.state.Shape)
	if name == api.ThisTarget {
		name = own.Name
	}
	b, err := r.catalogue.Baseline(name)
	switch {
	case err == nil && name != own.Name:
		return b, true
	case err == nil && ofTarget(b, *own.Target):
		own = b
	}
	own.Name, own.Title = api.ThisTarget, ownTitle
	return own, name == api.OwnBaseline(r.opts.Name)
}

// Finished counts the turns that ended well or failed since the lane's last start.
func (l *Lane) Finished() int64 {
	t := l.record.Totals()
	return t.OK + t.Errors
}

// Whole is [stats.Recorder.Whole] of the run since the lane's last start.
func (l *Lane) Whole(ended time.Time, turns iter.Seq[*api.Turn]) stats.Report {
	return l.record.Whole(ended, turns)
}

// TokensPerChunk is [stats.Recorder.TokensPerChunk] of that run.
func (l *Lane) TokensPerChunk() float64 { return l.record.TokensPerChunk() }

// Collector gives the lane's metrics.
func (l *Lane) Collector() prometheus.Collector {
	return stats.NewCollector(l.opts.Name, l.record, func() stats.Gauges { return l.read(time.Now()).gauges() })
}

// gauges are what the lane's metrics tell beyond its window.
func (r *reading) gauges() stats.Gauges {
	b := r.defaultBaseline()
	var own []api.BaselineRow
	if b.Name != api.ThisTarget {
		measuredHere, _ := r.baseline(api.ThisTarget)
		own = baseline.RowsAt(measuredHere, r.level())
	}
	var asker *api.FollowupStatus
	if r.state.Questioner == api.QuestionerModel {
		asker = new(r.followup())
	}
	return stats.Gauges{
		TargetConcurrency: r.state.Concurrency.Target, ActiveConversations: r.state.Concurrency.Actual,
		InflightRequests: r.underway.Turns, AwaitingFirstToken: r.underway.Awaiting.N, Running: r.state.Running,
		Settling: r.state.Settling, Step: r.state.Step.ID,
		Version: r.process.Version, Target: r.opts.Client.Root(), Model: r.opts.Client.Model(),
		Mode: r.state.Mode, Speculation: r.state.Speculation,
		Baseline: &b, InForce: baseline.RowsAt(b, r.level()), OwnInForce: own,
		LostTurns: r.process.Store.LostTurns(), Followup: asker, Sweep: r.state.Sweep,
		Drafting: r.cluster.Speculation,
	}
}
