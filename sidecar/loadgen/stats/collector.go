package stats

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
)

// Gauges are the state of a lane for its metrics, beside its turns.
type Gauges struct {
	TargetConcurrency, ActiveConversations, InflightRequests int
	AwaitingFirstToken                                       int // of InflightRequests

	Running, Settling      bool
	Step                   int64
	Version, Target, Model string // of the load generator; the target's URL; its model
	Mode                   api.ModeState
	LostTurns              int64               // since the process began
	Followup               *api.FollowupStatus // nil where no model writes the follow-up questions
	Sweep                  *api.SweepSummary   // the sweep that uses the lane; nil: none
	Drafting               api.SpeculativeUse  // over the last 60 s, as the engines report it

	Baseline *api.Baseline     // the default one; nil: none
	InForce  []api.BaselineRow // its rows at the present concurrency, recorded or interpolated

	// OwnInForce are those rows of the lane's own results, [api.ThisTarget], where another baseline is the default. A
	// screen can then draw recorded and measured results together.
	OwnInForce []api.BaselineRow
}

// collector computes the metrics of one lane at the scrape.
type collector struct {
	rec    *Recorder
	gauges func() Gauges
	now    func() time.Time
}

// NewCollector returns the metrics of one lane, all with the label lane. It calls
// gauges once a scrape, from any goroutine.
func NewCollector(lane string, rec *Recorder, gauges func() Gauges) prometheus.Collector {
	return newCollector(lane, rec, gauges, time.Now)
}

func newCollector(lane string, rec *Recorder, gauges func() Gauges, now func() time.Time) prometheus.Collector {
	return prometheus.WrapCollectorWith(prometheus.Labels{"lane": lane}, &collector{rec: rec, gauges: gauges, now: now})
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descTimes = func() (all [numTimes]*prometheus.Desc) {
		for i, t := range times {
			all[i] = desc(t.summary, t.Help+" Of whole turns: quantiles over the last 60 s.")
		}
		return all
	}()

	descRequests      = desc("loadgen_requests_total", "Ended turns by status.", "status")
	descSLOMet        = desc("loadgen_requests_slo_met_total", "Whole turns within every objective.")
	descErrors        = desc("loadgen_errors_total", "Failed turns by class.", "class")
	descConversations = desc("loadgen_conversations_total", "Ended conversations by status.", "status")
	descInput         = desc("loadgen_input_tokens_total", "Prompt tokens of ended turns.")
	descCached        = desc("loadgen_cached_tokens_total",
		"Prompt tokens that came from a KV cache. Absent if no ended turn reported it.")
	descCacheReported = desc("loadgen_cache_reported_input_tokens_total",
		"Prompt tokens of ended turns that reported cached tokens: the denominator of the hit rate.")
	descOutput = desc("loadgen_output_tokens_total", "Output tokens of ended turns.")
	descLost   = desc("loadgen_store_lost_turns_total", "Ended turns that could not be stored.")

	descFollowup = desc("loadgen_followup_total",
		"Follow-up questions by who asked: the end user's model, or the built-in questioner in its place, and why.",
		"source", "cause")

	descTarget   = desc("loadgen_target_concurrency", "Conversations to keep in progress.")
	descActive   = desc("loadgen_active_conversations", "Conversations in progress.")
	descInflight = desc("loadgen_inflight_requests", "Turns in progress.")
	descAwaiting = desc("loadgen_awaiting_first_token_requests",
		"Turns in progress that were sent and still wait for their first token.")
	descRunning  = desc("loadgen_workload_running", "1 while the workload runs, else 0.")
	descSettling = desc("loadgen_settling", "1 until 60 s of counted turns exist in the step, else 0.")
	descStep     = desc("loadgen_step", "Number of the step in progress.")
	descInfo     = desc("loadgen_info", "Version, target, model, arm, mode and speculation of the run.",
		"version", "target", "model", "arm", "mode", "speculation")
	descSLO = desc("loadgen_slo_seconds", "Objective for the p95 of a metric.", "metric")

	descAcceptance = descReported("loadgen_acceptance_ratio", "acceptance_rate")
	descPerStep    = descReported("loadgen_tokens_per_step", "tokens_per_step")

	descSweep = desc("loadgen_sweep_running",
		"1 while a trial, a sweep of levels or a capacity search is in progress, else absent.", "id", "kind")
	descSpan = desc("loadgen_sweep_span_running",
		"1 while a span of a sweep warms up, counts or is stored, with its mode in force, else absent. Span is its number, "+
			"the same when it is repeated.", "id", "span", "arm", "mode", "speculation", "concurrency")
)

// descReported describes a figure that the engines report.
func descReported(name, key string) *prometheus.Desc {
	return desc(name, api.FigureOf(key).Help+" Over the last 60 s, by the engines' metrics. Absent where none reports it.")
}

// laneDescs lists all of the above.
var laneDescs = append(descTimes[:],
	descRequests, descSLOMet, descErrors, descConversations, descInput, descCached, descCacheReported, descOutput,
	descLost,
	descFollowup,
	descTarget, descActive, descInflight, descAwaiting, descRunning, descSettling, descStep, descInfo, descSLO, descSweep,
	descSpan,
	descAcceptance, descPerStep,
)

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range laneDescs {
		ch <- d
	}
	for _, r := range slices.Concat(inForce, everyLevel) {
		ch <- r.desc
	}
	for _, h := range c.rec.hist.all() {
		h.Describe(ch)
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	e := emitter(ch)
	counts, sums := c.rec.cumulative()
	m, slo := c.rec.Report(c.now()).Window.Metrics, c.rec.objectives()
	for i := range times {
		e.summary(descTimes[i], sums[i], times[i].Quantiles(&m))
		if objective := times[i].Objective; objective != nil {
			e.gauge(descSLO, objective(slo), times[i].Key)
		}
	}
	e.counts(&counts)
	g := c.gauges()
	e.state(&g)
	e.baseline(&g)
	for _, h := range c.rec.hist.all() {
		h.Collect(ch)
	}
}

// emitter sends metrics to a scrape.
type emitter chan<- prometheus.Metric

func (e emitter) gauge(d *prometheus.Desc, v float64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, printable(labels)...)
}

func (e emitter) counter(d *prometheus.Desc, v int64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), printable(labels)...)
}

// summary combines the window's quantiles, NaN where it is empty, with the count and sum
// since the process began, which are counters and must never fall.
func (e emitter) summary(d *prometheus.Desc, s sum, q *api.Quantiles) {
	quantiles := map[float64]float64{.5: orNaN(q.P50), .95: orNaN(q.P95), .99: orNaN(q.P99)}
	e <- prometheus.MustNewConstSummary(d, s.n, s.total, quantiles)
}

func (e emitter) counts(c *counts) {
	for status, n := range c.turns {
		e.counter(descRequests, n, string(status))
	}
	for class, n := range c.errors {
		e.counter(descErrors, n, string(class))
	}
	for status, n := range c.conversations {
		e.counter(descConversations, n, string(status))
	}
	e.counter(descSLOMet, c.sloMet)
	e.counter(descInput, c.input)
	if c.reportsCached() {
		e.counter(descCached, c.cached)
	}
	e.counter(descCacheReported, c.cacheReportedInput)
	e.counter(descOutput, c.output)
}

func (e emitter) state(g *Gauges) {
	e.counter(descLost, g.LostTurns)
	if f := g.Followup; f != nil {
		e.counter(descFollowup, f.ByModel, "model", "")
		for _, cause := range api.FollowupCauses {
			e.counter(descFollowup, f.Fallbacks[cause], "built_in", string(cause))
		}
	}
	e.gauge(descTarget, float64(g.TargetConcurrency))
	e.gauge(descActive, float64(g.ActiveConversations))
	e.gauge(descInflight, float64(g.InflightRequests))
	e.gauge(descAwaiting, float64(g.AwaitingFirstToken))
	e.gauge(descRunning, oneIf(g.Running))
	e.gauge(descSettling, oneIf(g.Settling))
	e.gauge(descStep, float64(g.Step))
	e.gauge(descInfo, 1, g.Version, g.Target, g.Model, g.Mode.Arm, string(g.Mode.Mode), string(g.Mode.Speculation))
	if v := g.Drafting.AcceptanceRatio; v != nil {
		e.gauge(descAcceptance, *v)
	}
	if v := g.Drafting.TokensPerStep; v != nil {
		e.gauge(descPerStep, *v)
	}
	e.sweep(g.Sweep)
}

// sweep emits the sweep in progress. A sweep that is paused or over uses the lane until the
// lane's settings are restored.
func (e emitter) sweep(s *api.SweepSummary) {
	if s == nil || s.State != api.SweepRunning {
		return
	}
	e.gauge(descSweep, 1, s.ID, string(s.Request.Kind))
	if n := s.Progress.Span; n != nil && n.Phase != api.SpanSwitching {
		e.gauge(descSpan, 1, s.ID, strconv.Itoa(n.Number), n.Mode.Arm, string(n.Mode.Mode),
			string(n.Mode.Speculation), strconv.Itoa(n.Concurrency))
	}
}

// printable replaces invalid UTF-8 in label values, since the name of a target's model may
// be any text.
func printable(labels []string) []string {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "�")
	}
	return labels
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
