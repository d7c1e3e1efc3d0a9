package lane

import (
	"cmp"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// reading is one lane at one moment: the state of its state machine, its catalog and its cluster.
// All documents on a lane are functions of a reading and of the lane's measurements.
type reading struct {
	*Lane
	now        time.Time
	state      api.State
	settling   time.Duration // the time until the step has settled for long enough
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

// report returns the last 60 s, without figures while nothing is sent: the last ones are out of date.
func (r *reading) report() stats.Report {
	if !r.state.Running {
		return stats.Report{Window: api.Window{Errors: map[api.ErrorClass]int{}}}
	}
	report := r.record.Report(r.now)
	r.process.allow(&report, r.now)
	r.addTheory(&report)
	report.Window.OutputTokensPerSecond = r.meter.Rate(r.now)
	report.Window.Awaiting = r.underway.Awaiting
	return report
}

func (r *reading) snapshot() api.LaneSnapshot {
	report := r.report()
	comparison := r.compare(r.defaultBaseline())
	comparison.Headline = r.headline(&comparison)
	return api.LaneSnapshot{
		Cost: r.cost(&report.Window),
		Name: r.opts.Name, Target: r.shownTarget(), State: r.state, Window: report.Window,
		Totals: r.totals(), TTFTByTurn: notNil(report.TTFTByTurn),
		KV: r.kv(&report), Cluster: r.cluster, Baseline: comparison, SharedWorkers: r.SharedWorkers(),
	}
}

// cost returns the costs of the last 60 s, none while nothing runs.
func (r *reading) cost(w *api.Window) api.Cost {
	if !r.state.Running {
		return api.Cost{}
	}
	r.mu.Lock()
	b := r.latest.CostBasis(r.deployment)
	r.mu.Unlock()
	b.Tokens, b.TPOT = &w.OutputTokensPerSecond, w.Metrics.TPOT.P50
	return b.Cost()
}

// notNil returns an empty slice for nil, which JSON encodes as [].
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

// corpusStatus returns the result of the last reading of the corpus, and the corpus in use.
func (r *reading) corpusStatus() api.CorpusStatus {
	var s api.CorpusStatus
	if r.opts.CorpusStatus != nil {
		s = r.opts.CorpusStatus()
	}
	c := r.corpusInUse()
	s.Name, s.Starters, s.Followup = c.Name, len(c.Starters), c.Asker(r.opts.Questioner)
	return s
}

// followup returns the state of the source of follow-up questions.
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

// shownTarget returns the target with what configuration and cluster report of it.
func (r *reading) shownTarget() api.Target {
	problem, status := r.target.state()
	t := api.Target{
		Kind:          cmp.Or(r.opts.Target, api.TargetUnknown),
		URL:           r.opts.Client.Root(),
		Model:         api.Printable(r.opts.Client.Model()),
		Deployment:    r.deployment,
		Reachable:     problem == "",
		Problem:       problem,
		ProblemStatus: status,
		Probes:        r.opts.Client.Probes(),
	}
	found := r.opts.Client.Recognized()
	t.Notices = append(r.target.notices(r.process.lag(r.now)), found.Remarks...)
	doubt := r.doubt.text()
	if doubt != "" {
		t.Notices = append(t.Notices, doubt)
	}
	if found.Named && len(found.Remarks) == 0 {
		t.Notices = append(t.Notices, cluster.RouterRemarks(found.Router, r.cluster)...)
	}
	t.Router, t.WorkerSource, t.CachedSource = cmp.Or(found.Router, r.cluster.Router), found.Worker, r.cluster.KV.Source
	switch {
	case doubt != "":
		t.CachedSource = ""
	case found.Cached:
		t.CachedSource = "usage"
	}
	d := r.opts.Driver.Abilities()
	if d.Simulation != nil {
		t.Kind = api.TargetSimulated
	}
	if d.Features != nil {
		t.Features = d.Features()
	}
	if c, ok := r.opts.Client.(Redirected); ok {
		t.Endpoint = c.Endpoint()
	}
	return t
}

// kv returns the hit ratio by the answers' usage, or as the frontend or the engines report it where
// the answers do not. Where turns have ended and no source reports it, or two sources contradict each other, kv sets
// the reason.
func (r *reading) kv(report *stats.Report) api.KV {
	kv := r.cluster.KV
	switch doubt := r.doubt.text(); {
	case doubt != "":
		kv.HitRatio, kv.Source, kv.NotReported = nil, "", doubt
	case report.HitRatio != nil:
		kv.HitRatio, kv.Source = report.HitRatio, "usage"
	case kv.HitRatio == nil && report.OK > 0:
		kv.NotReported = cacheNotReported(r.cluster)
	}
	kv.AchievedShare, kv.AchievedUnknown = r.shadow.AchievedShare(r.now)
	return kv
}

// cacheNotReported returns the reason why no source reports cached tokens although turns have
// ended: the answers do not, and the metrics are either not read or do not contain them.
func cacheNotReported(c api.Cluster) string {
	const answers = "the answers do not report cached tokens, and "
	switch {
	case !c.Available:
		return answers + "the cluster's metrics are unavailable"
	case c.Unread.Workers != "":
		return answers + c.Unread.Workers
	}
	return "the engine does not report cached tokens"
}

// Comparison compares the current step's counted turns with the baseline of the name, or with the
// default baseline if the name is empty. The error is an [api.ErrNotFound].
func (l *Lane) Comparison(name string) (api.Comparison, error) {
	r := l.read(time.Now())
	if name == "" {
		c := r.compare(r.defaultBaseline())
		c.Headline = r.headline(&c)
		return c, nil
	}
	b, ok := r.baseline(name)
	if !ok {
		return api.Comparison{}, errNoBaseline(name)
	}
	return r.compare(b), nil
}

// compare compares the current step's counted turns with a baseline.
func (r *reading) compare(b api.Baseline) api.Comparison {
	var live baseline.Live
	if r.state.Phase == api.PhaseRunning { // else there is no step
		counted := r.record.Live(r.meter, r.now, r.state.Step.ID)
		r.process.allow(&counted, r.now)
		live = Compared(&counted)
	}
	live.Settling, live.Deployment, live.Shape = r.state.Settling, r.deployment, r.state.Shape
	live.Mode = r.state.InMode()
	if live.Settling {
		live.SettlingFor = r.settling.Seconds()
	}
	live.Withheld = r.disturbed()
	comparison := baseline.Compare(live, b, r.level())
	if b.Name == api.ThisTarget {
		comparison.NotKept = r.notKept
	}
	if len(b.Rows) == 0 { // there are no rows to differ from
		comparison.Differences = []api.Difference{}
	}
	return comparison
}

// Compared returns the figures of a report in the form that a baseline is compared with. It leaves
// out the setting that they belong to.
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

// level returns the level that the figures apply to: less than the target where the step is held.
func (r *reading) level() api.Level {
	if r.state.Phase != api.PhaseRunning {
		return r.state.Concurrency.Target
	}
	return effectiveLevel(r.state.Concurrency.Target, r.state.Step.Held)
}

// defaultBaseline returns the baseline to compare with where none is chosen.
func (r *reading) defaultBaseline() api.Baseline {
	b, _ := r.baseline(baseline.DefaultFor(r.deployment, r.catalog.Baselines(), r.catalog.Settings().DefaultBaseline))
	return b
}

// baseline returns the baseline with the name. The lane's own results always exist, and have the
// name [api.ThisTarget] here, whichever of their names is asked for. They have no rows where
// nothing was measured against this target. They are also returned, with false, for an unknown
// name.
func (r *reading) baseline(name string) (api.Baseline, bool) {
	own := measured(r.opts.Name, r.opts.Client.Root(), r.deployment, r.state.Shape)
	if name == api.ThisTarget {
		name = own.Name
	}
	b, err := r.catalog.Baseline(name)
	switch {
	case err == nil && name != own.Name:
		return b, true
	case err == nil && isOfTarget(b, *own.Target):
		own = b
	}
	own.Name, own.Title = api.ThisTarget, ownTitle
	return own, name == api.OwnBaseline(r.opts.Name)
}

// Finished returns the numbers of turns that ended well and that failed since the lane's last start.
func (l *Lane) Finished() (ok, failed int64) {
	t := l.record.Totals()
	return t.OK, t.Errors
}

// Sent returns the numbers of turns that the run under way has sent in its warm-up and after it.
func (l *Lane) Sent() (warmUp, after int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == nil {
		return 0, 0
	}
	warmUp = l.run.warmUp.Sent
	return warmUp, l.run.workload.Pace().Sent - warmUp
}

// Whole returns the report of the run since the lane's last start; see [stats.Recorder.Whole].
func (l *Lane) Whole(ended time.Time, turns iter.Seq[*api.Turn]) stats.Report {
	report := l.record.Whole(ended, turns)
	l.addTheory(&report)
	return report
}

// addTheory adds to a report what is known of the traffic without running it.
func (l *Lane) addTheory(r *stats.Report) {
	if f := r.Window.Fidelity; f != nil && l.opts.Plan != nil {
		f.TheoreticalHitRatio = l.opts.Plan.HitRatio
	}
}

// TokensPerChunk returns the mean tokens of a chunk since the lane's last start; see
// [stats.Recorder.TokensPerChunk].
func (l *Lane) TokensPerChunk() float64 { return l.record.TokensPerChunk() }

// Collector returns the lane's metrics.
func (l *Lane) Collector() prometheus.Collector {
	return stats.NewCollector(l.opts.Name, l.record, func() stats.Gauges { return l.read(time.Now()).gauges() })
}

// gauges returns the values of the lane's metrics that are not computed from its window.
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
	report := r.report()
	live := api.LaneSnapshot{
		Window: report.Window, KV: r.kv(&report), Cluster: r.cluster, Cost: r.cost(&report.Window),
	}
	return stats.Gauges{
		TargetConcurrency: r.state.Concurrency.Target.Conversations(), ActiveConversations: r.state.Concurrency.Actual,
		InflightRequests: r.underway.Turns, AwaitingFirstToken: r.underway.Awaiting.N, Running: r.state.Running,
		Settling: r.state.Settling, Step: r.state.Step.ID,
		Version: r.process.Version, Target: r.opts.Client.Root(), Model: r.opts.Client.Model(),
		Mode:     r.state.InMode(),
		Baseline: &b, InForce: baseline.RowsAt(b, r.level()), OwnInForce: own,
		LostTurns: r.process.Store.LostTurns(), Followup: asker, Sweep: r.state.Sweep,
		Live: live,
	}
}
