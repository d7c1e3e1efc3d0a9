package stats

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat/plausible"
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
	Live                   api.LaneSnapshot    // the last 60 s: its window, hit rate, cluster and costs

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
	descTimes = func() (all [api.NumTimes]*prometheus.Desc) {
		for i, t := range times {
			all[i] = desc(t.summary(), t.Help+" Of whole turns: quantiles over the last 60 s.")
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

	descLive = func() (all []*prometheus.Desc) {
		for _, f := range liveFigures {
			name, help := "loadgen_"+f.Metric, f.Help+" Over the last 60 s, as on every screen. Absent where it is not known."
			if f.Cost == nil {
				all = append(all, desc(name, help))
				continue
			}
			all = append(all, desc(name, help+" The label says whether the power is that of simulated GPUs.", "simulated"))
		}
		return all
	}()

	descSweep = desc("loadgen_sweep_running",
		"1 while a trial, a sweep of levels or a capacity search is in progress, else absent.", "id", "kind")
	descSpan = desc("loadgen_sweep_span_running",
		"1 while a span of a sweep warms up, counts or is stored, with its mode in force, else absent. Span is its number, "+
			"the same when it is repeated.", "id", "span", "arm", "mode", "speculation", "concurrency")
)

// liveFigures are the figures with one live value and a name among the metrics of recorded results, which is also the
// name of their own.
var liveFigures = slices.DeleteFunc(slices.Clone(api.Figures), func(f *api.Figure) bool {
	return f.Live == nil || f.Metric == ""
})

// laneDescs lists all of the above.
var laneDescs = slices.Concat(descTimes[:], descLive, []*prometheus.Desc{
	descRequests, descSLOMet, descErrors, descConversations, descInput, descCached, descCacheReported, descOutput,
	descLost,
	descFollowup,
	descTarget, descActive, descInflight, descAwaiting, descRunning, descSettling, descStep, descInfo, descSLO, descSweep,
	descSpan,
})

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
	for i, f := range liveFigures {
		switch v := f.Live(&g.Live); {
		case v == nil:
		case f.Cost == nil:
			e.gauge(descLive[i], *v)
		default:
			e.gauge(descLive[i], *v, strconv.FormatBool(g.Live.Cost.PowerSimulated))
		}
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
			string(n.Mode.Speculation), n.Level.String())
	}
}

// printable makes label values printable, since the name of a target's model may be any text.
func printable(labels []string) []string {
	for i, l := range labels {
		labels[i] = api.Printable(l)
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

var (
	descClientCPU = desc("loadgen_client_cpu_ratio", "Share of all cores that the load generator uses.")
	descClientLag = desc("loadgen_client_lag_seconds",
		"How late the load generator's own time stamps are, p95 of the last 10 s.")

	descClientError = desc("loadgen_client_error_seconds",
		"The most that the load generator itself may be wrong by in a latency of the last 60 s.", "lane", "metric")
	descClientLevel = desc("loadgen_client_error_level",
		"How large that is: 0 negligible, 1 noticeable, 2 too large.", "lane", "metric")

	descImplausible = desc("loadgen_implausible_values_total",
		"Implausible values from other programs that were ignored, by source.", "source")
)

type clientCollector func() api.ClientHealth

// NewClientCollector returns the metrics of the load generator's own health, which all
// lanes share, and of the values that [plausible] rejects. The lag is absent without a
// verdict. It calls health once a scrape, from any goroutine.
func NewClientCollector(health func() api.ClientHealth) prometheus.Collector {
	return clientCollector(health)
}

// Describe implements [prometheus.Collector].
func (c clientCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descClientCPU
	ch <- descClientLag
	ch <- descClientError
	ch <- descClientLevel
	ch <- descImplausible
}

// Collect implements [prometheus.Collector].
func (c clientCollector) Collect(ch chan<- prometheus.Metric) {
	h := c()
	e := emitter(ch)
	e.gauge(descClientCPU, h.CPURatio)
	if h.Verdict != api.VerdictUnknown {
		e.gauge(descClientLag, h.LagSeconds)
	}
	for _, m := range h.Metrics {
		e.gauge(descClientError, m.ErrorSeconds, m.Lane, m.Metric)
		e.gauge(descClientLevel, errorLevel(m.Level), m.Lane, m.Metric)
	}
	for source, n := range plausible.Rejected() {
		e.counter(descImplausible, n, string(source))
	}
}

func errorLevel(v api.Verdict) float64 {
	switch v {
	case api.VerdictNoticeable:
		return 1
	case api.VerdictBottleneck:
		return 2
	}
	return 0
}

var (
	descTwinPairs = desc("loadgen_twin_pairs",
		"Turns that succeeded on both lanes since the current settings took effect, at most the last hour.")
	descTwinDifference = desc("loadgen_twin_difference_seconds",
		"Lane twin less lane main over these turns (the mode of twin less that of main, of both halves, where the evidence "+
			"is swapped): of the mean TTFT, TPOT or latency, or of TTFT's 95th percentile. The bounds are those of the 95 % "+
			"interval.", "metric", "bound")
	descTwinHit = desc("loadgen_twin_kv_hit_ratio_difference",
		"Lane twin less lane main over these turns: cached tokens over prompt tokens. The bounds are those of the 95 % "+
			"interval.", "bound")
	descTwinVariance = desc("loadgen_twin_variance_ratio",
		"Variance of the paired difference divided by the variance without pairing.", "metric")
	descTwinInfo = desc("loadgen_twin_info",
		"1, labeled with the current arrangement and the strength of the evidence.", "arranged", "evidence")
	descTwinShowcase = desc("loadgen_showcase_running",
		"1 while a showcase is in progress, whose turns are in no other metric.")
)

type twinCollector func() (api.Twin, error)

// NewTwinCollector returns the metrics of two lanes that run the same conversations. A metric
// without a value is absent. It calls twin once a scrape, from any goroutine.
func NewTwinCollector(twin func() (api.Twin, error)) prometheus.Collector {
	return twinCollector(twin)
}

// Describe implements [prometheus.Collector].
func (c twinCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descTwinPairs, descTwinDifference, descTwinHit, descTwinVariance, descTwinInfo,
		descTwinShowcase,
	} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c twinCollector) Collect(ch chan<- prometheus.Metric) {
	t, err := c()
	if err != nil {
		return
	}
	e := emitter(ch)
	e.gauge(descTwinPairs, float64(t.Pairs))
	e.gauge(descTwinInfo, 1, string(t.Arranged), string(t.Evidence))
	showcase := 0.0
	if t.Showcase != nil && t.Showcase.State == api.ShowcaseRunning {
		showcase = 1
	}
	e.gauge(descTwinShowcase, showcase)
	for _, m := range t.Metrics {
		difference, labels := descTwinDifference, []string{m.Metric}
		if m.Metric == "kv_hit_ratio" {
			difference, labels = descTwinHit, nil
		}
		bounds := map[string]*float64{"estimate": m.Difference}
		if m.Interval != nil {
			bounds["lower"] = &m.Interval[0]
			bounds["upper"] = &m.Interval[1]
		}
		for bound, value := range bounds {
			if value != nil {
				e.gauge(difference, *value, append(labels, bound)...)
			}
		}
		if m.VarianceRatio != nil {
			e.gauge(descTwinVariance, *m.VarianceRatio, m.Metric)
		}
	}
}
