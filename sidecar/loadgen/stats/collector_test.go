package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/plausible"
)

func pair(p50, p95 float64) api.Percentiles { return api.Percentiles{P50: &p50, P95: &p95} }

func row(mode api.Mode, concurrency int) api.BaselineRow {
	return api.BaselineRow{
		Mode: mode, Speculation: api.SpeculationOff, Concurrency: concurrency,
		TTFT: pair(.2, .5), TPOT: pair(.02, .03), ITL: pair(.01, .04), Latency: pair(20, 25), TPOTDerived: api.Percentiles{P95: new(.05)},
		OutputTokensPerSecond: new(5000.0), RequestsPerSecond: new(6.0), KVHitRatio: new(.7),
	}
}

func fullGauges() Gauges {
	return Gauges{
		TargetConcurrency: 180, ActiveConversations: 179, InflightRequests: 150, AwaitingFirstToken: 12, Running: true, Settling: true, Step: 7,
		Version: "v1.2.3", Target: "http://localhost:8000", Model: "m", Mode: api.ModeKV, Speculation: api.SpeculationOff,
		LostTurns: 2,
		Followup:  &api.FollowupStatus{ByModel: 40, Fallbacks: map[api.FollowupCause]int64{api.FollowupTimeout: 3, api.FollowupPaused: 9}},
		InForce:   []api.BaselineRow{row(api.ModeKV, 180), row(api.ModeRoundRobin, 180)},
		Baseline:  &api.Baseline{Name: "recorded", Rows: []api.BaselineRow{row(api.ModeKV, 60), row(api.ModeKV, 180)}},
		Sweep:     trial(api.SweepRunning, api.SpanCounting),
	}
}

// trial is one in its third span.
func trial(state api.SweepState, phase api.SweepPhase) *api.SweepSummary {
	now := api.SweepNow{
		Number: 2, Attempt: 1, Arm: "a", Phase: phase, Concurrency: 60,
		Mode: api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff},
	}
	return &api.SweepSummary{
		ID: "mih1x2", State: state, Request: api.SweepRequest{Kind: api.SweepTrial}, Progress: api.SweepProgress{Span: &now},
	}
}

// gather scrapes one lane at a time, the way that finds every inconsistency.
func gather(t *testing.T, r *Recorder, g Gauges, now time.Time) map[string]*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(newCollector("main", r, func() Gauges { return g }, func() time.Time { return now }))
	families, err := reg.Gather()
	require.NoError(t, err)
	byName := map[string]*dto.MetricFamily{}
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName
}

// labels of a series but its lane, as in a query.
func labels(m *dto.Metric) string {
	var all []string
	for _, l := range m.GetLabel() {
		if l.GetName() != "lane" {
			all = append(all, l.GetName()+"="+l.GetValue())
		}
	}
	return strings.Join(all, ",")
}

// values of a family of counters or gauges by their labels.
func values(f *dto.MetricFamily) map[string]float64 {
	all := map[string]float64{}
	for _, m := range f.GetMetric() {
		all[labels(m)] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return all
}

// busy is a recorder with turns of every kind.
func busy() *Recorder {
	r := NewRecorder(t0, slo)
	for _, s := range random(rand.New(rand.NewPCG(9, 10)), 2000) {
		s.ITL = []Gap{{.02, 1}, {.03, 2.5}}
		r.Add(s)
	}
	r.ConversationEnded(api.ConversationCompleted)
	return r
}

func TestLint(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	for _, lane := range []string{"main", "twin"} {
		reg.MustRegister(NewCollector(lane, busy(), fullGauges))
	}
	reg.MustRegister(NewClientCollector(func() api.ClientHealth { return api.ClientHealth{Verdict: api.VerdictFine} }))
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// The contract: every name, its type and its labels beside lane, and no other.
func TestNames(t *testing.T) {
	want := map[string]string{
		"loadgen_ttft_all_seconds": "SUMMARY", "loadgen_tpot_all_seconds": "SUMMARY",
		"loadgen_itl_all_seconds": "SUMMARY", "loadgen_latency_all_seconds": "SUMMARY",
		"loadgen_ttft_seconds": "HISTOGRAM turn", "loadgen_tpot_seconds": "HISTOGRAM turn",
		"loadgen_itl_seconds": "HISTOGRAM turn", "loadgen_latency_seconds": "HISTOGRAM turn",
		"loadgen_input_tokens": "HISTOGRAM turn", "loadgen_output_tokens": "HISTOGRAM turn",
		"loadgen_requests_total": "COUNTER status", "loadgen_requests_slo_met_total": "COUNTER",
		"loadgen_errors_total": "COUNTER class", "loadgen_conversations_total": "COUNTER status",
		"loadgen_input_tokens_total": "COUNTER", "loadgen_cached_tokens_total": "COUNTER", "loadgen_cache_reported_input_tokens_total": "COUNTER", "loadgen_output_tokens_total": "COUNTER",
		"loadgen_store_lost_turns_total": "COUNTER",
		"loadgen_followup_total":         "COUNTER cause source",
		"loadgen_target_concurrency":     "GAUGE", "loadgen_active_conversations": "GAUGE", "loadgen_inflight_requests": "GAUGE", "loadgen_awaiting_first_token_requests": "GAUGE",
		"loadgen_workload_running": "GAUGE", "loadgen_settling": "GAUGE", "loadgen_step": "GAUGE",
		"loadgen_info": "GAUGE mode model speculation target version", "loadgen_slo_seconds": "GAUGE metric",
		"loadgen_sweep_running": "GAUGE id kind", "loadgen_sweep_span_running": "GAUGE concurrency id mode span speculation",
	}
	for _, m := range []string{"ttft_seconds", "tpot_seconds", "itl_seconds", "latency_seconds"} {
		want["loadgen_baseline_"+m] = "GAUGE baseline mode percentile speculation"
		want["loadgen_baseline_level_"+m] = "GAUGE baseline concurrency mode percentile speculation"
	}
	want["loadgen_baseline_level_tpot_derived_seconds"] = "GAUGE baseline concurrency mode percentile speculation"
	for _, m := range []string{"output_tokens_per_second", "requests_per_second", "kv_hit_ratio"} {
		want["loadgen_baseline_"+m] = "GAUGE baseline mode speculation"
		want["loadgen_baseline_level_"+m] = "GAUGE baseline concurrency mode speculation"
	}
	got := map[string]string{}
	for name, f := range gather(t, busy(), fullGauges(), at(100)) {
		for _, m := range f.GetMetric() {
			words, lane := []string{f.GetType().String()}, ""
			for _, l := range m.GetLabel() {
				if l.GetName() == "lane" {
					lane = l.GetValue()
				} else {
					words = append(words, l.GetName())
				}
			}
			require.Equal(t, "main", lane, name)
			got[name] = strings.Join(words, " ")
		}
	}
	assert.Equal(t, want, got)
}

// A rate needs its series before the first event.
func TestCountersExistFromTheStart(t *testing.T) {
	f := gather(t, NewRecorder(t0, slo), Gauges{}, t0)
	zero := func(label string, names ...string) map[string]float64 {
		all := map[string]float64{}
		for _, n := range names {
			all[label+"="+n] = 0
		}
		return all
	}
	assert.Equal(t, zero("status", "ok", "error", "cancelled"), values(f["loadgen_requests_total"]))
	assert.Equal(t, zero("status", "completed", "retired", "cancelled", "error"), values(f["loadgen_conversations_total"]))
	assert.Equal(t, zero("class", "connect", "timeout", "stall", "rate_limited", "http_4xx", "http_5xx", "stream_error", "truncated", "malformed", "overrun"), values(f["loadgen_errors_total"]))
	var turns []string
	for _, m := range f["loadgen_itl_seconds"].GetMetric() {
		turns = append(turns, labels(m))
	}
	assert.Equal(t, []string{"turn=1", "turn=2", "turn=3", "turn=4", "turn=5", "turn=6+"}, turns)
	assert.True(t, math.IsNaN(f["loadgen_ttft_all_seconds"].GetMetric()[0].GetSummary().GetQuantile()[0].GetValue()))
}

// The scrape says what the snapshot says.
func TestScrapeAgreesWithReport(t *testing.T) {
	r, now := busy(), at(101)
	f, rep := gather(t, r, fullGauges(), now), r.Report(now)
	for name, q := range map[string]api.Quantiles{
		"ttft": rep.Window.Metrics.TTFT, "tpot": rep.Window.Metrics.TPOT, "itl": rep.Window.Metrics.ITL, "latency": rep.Window.Metrics.Latency,
	} {
		s := f["loadgen_"+name+"_all_seconds"].GetMetric()[0].GetSummary()
		require.Len(t, s.GetQuantile(), 3)
		for i, want := range []struct{ quantile, value float64 }{{.5, *q.P50}, {.95, *q.P95}, {.99, *q.P99}} {
			assert.Equal(t, want.quantile, s.GetQuantile()[i].GetQuantile())
			assert.Equal(t, want.value, s.GetQuantile()[i].GetValue(), name)
		}
		var n uint64
		var total float64
		for _, m := range f["loadgen_"+name+"_seconds"].GetMetric() {
			n += m.GetHistogram().GetSampleCount()
			total += m.GetHistogram().GetSampleSum()
		}
		assert.Equal(t, n, s.GetSampleCount(), "%s: the histogram has seen as much as the summary", name)
		assert.InEpsilon(t, total, s.GetSampleSum(), 1e-9, name)
	}
	totals := r.Totals()
	assert.Equal(t, map[string]float64{"status=ok": float64(totals.OK), "status=error": float64(totals.Errors), "status=cancelled": float64(totals.Cancelled)}, values(f["loadgen_requests_total"]))
	assert.Equal(t, float64(totals.OutputTokens), values(f["loadgen_output_tokens_total"])[""])
	assert.Equal(t, map[string]float64{"metric=ttft": .6, "metric=tpot": .06}, values(f["loadgen_slo_seconds"]))
	assert.Equal(t, 180.0, values(f["loadgen_target_concurrency"])[""])
	assert.Equal(t, 2.0, values(f["loadgen_store_lost_turns_total"])[""])
	assert.Equal(t, map[string]float64{
		"cause=,source=model": 40, "cause=timeout,source=built_in": 3, "cause=paused,source=built_in": 9, "cause=connect,source=built_in": 0,
		"cause=rate_limited,source=built_in": 0, "cause=http_4xx,source=built_in": 0, "cause=http_5xx,source=built_in": 0,
		"cause=empty,source=built_in": 0, "cause=malformed,source=built_in": 0, "cause=repeated,source=built_in": 0,
	}, values(f["loadgen_followup_total"]))
	assert.NotContains(t, gather(t, NewRecorder(t0, slo), Gauges{}, t0), "loadgen_followup_total", "no model asks")
}

// Count and sum of a summary never fall, though its window does.
func TestSummaryIsCumulative(t *testing.T) {
	r := NewRecorder(t0, slo)
	r.Add(whole(1))
	r.Reset(at(2))
	r.Add(whole(3))
	s := gather(t, r, Gauges{}, at(300))["loadgen_ttft_all_seconds"].GetMetric()[0].GetSummary()
	assert.Equal(t, uint64(2), s.GetSampleCount())
	assert.InDelta(t, .6, s.GetSampleSum(), 1e-9)
	assert.True(t, math.IsNaN(s.GetQuantile()[0].GetValue()), "nothing in the window")
}

// Fractions of a token add up; classic and native buckets both stand there.
func TestITLHistogram(t *testing.T) {
	r := NewRecorder(t0, slo)
	s := whole(1)
	s.Turn = 2
	for range 100 {
		s.ITL = append(s.ITL, Gap{.02, 1.25})
	}
	s.ITL = append(s.ITL, Gap{.5, 1e12}) // nonsense is bounded
	r.Add(s)
	for _, m := range gather(t, r, Gauges{}, at(2))["loadgen_itl_seconds"].GetMetric() {
		if labels(m) != "turn=2" {
			assert.Zero(t, m.GetHistogram().GetSampleCount())
			continue
		}
		h := m.GetHistogram()
		assert.Equal(t, uint64(125+maxTokensPerGap), h.GetSampleCount())
		i := slices.Index(gapBuckets, .02)
		assert.Equal(t, uint64(125), h.GetBucket()[i].GetCumulativeCount(), "a bound belongs to its bucket")
		assert.Zero(t, h.GetBucket()[i-1].GetCumulativeCount())
		assert.Equal(t, int32(3), h.GetSchema())
		assert.NotEmpty(t, h.GetPositiveSpan())
	}
}

// What is not recorded, or outside the range, is absent and not zero.
func TestBaselineGauges(t *testing.T) {
	g := fullGauges()
	g.InForce[0].TTFT, g.InForce[0].KVHitRatio = api.Percentiles{}, nil
	g.Baseline.Rows[0].TPOT.P95 = nil
	f := gather(t, NewRecorder(t0, slo), g, t0)
	assert.Equal(t, map[string]float64{
		"baseline=recorded,mode=round_robin,percentile=50,speculation=off": .2,
		"baseline=recorded,mode=round_robin,percentile=95,speculation=off": .5,
	}, values(f["loadgen_baseline_ttft_seconds"]))
	assert.Equal(t, map[string]float64{"baseline=recorded,mode=round_robin,speculation=off": .7}, values(f["loadgen_baseline_kv_hit_ratio"]))
	assert.Equal(t, map[string]float64{
		"baseline=recorded,concurrency=60,mode=kv,percentile=50,speculation=off":  .02,
		"baseline=recorded,concurrency=180,mode=kv,percentile=50,speculation=off": .02,
		"baseline=recorded,concurrency=180,mode=kv,percentile=95,speculation=off": .03,
	}, values(f["loadgen_baseline_level_tpot_seconds"]))
	assert.Equal(t, map[string]float64{
		"baseline=recorded,concurrency=60,mode=kv,percentile=95,speculation=off":  .05,
		"baseline=recorded,concurrency=180,mode=kv,percentile=95,speculation=off": .05,
	}, values(f["loadgen_baseline_level_tpot_derived_seconds"]))
	for name := range gather(t, NewRecorder(t0, slo), Gauges{}, t0) {
		assert.NotContains(t, name, "baseline", "none without a baseline")
	}
}

// What was recorded and what was measured here stand side by side at the concurrency
// in force; the table of all levels stays the default baseline's.
func TestOwnRowsBesideTheDefaultBaseline(t *testing.T) {
	g := fullGauges()
	own := row(api.ModeKV, 180)
	own.Speculation, own.ITL = api.SpeculationDraft, pair(.006, .012)
	g.OwnInForce = []api.BaselineRow{own}
	g.InForce[0].ITL = api.Percentiles{} // as in the recorded tables
	f := gather(t, NewRecorder(t0, slo), g, t0)
	assert.Equal(t, map[string]float64{
		"baseline=recorded,mode=round_robin,percentile=50,speculation=off": .01,
		"baseline=recorded,mode=round_robin,percentile=95,speculation=off": .04,
		"baseline=this target,mode=kv,percentile=50,speculation=draft":     .006,
		"baseline=this target,mode=kv,percentile=95,speculation=draft":     .012,
	}, values(f["loadgen_baseline_itl_seconds"]))
	for series := range values(f["loadgen_baseline_level_ttft_seconds"]) {
		assert.Contains(t, series, "baseline=recorded")
	}
}

// No input may fail the scrape as a whole.
func TestScrapeSurvivesOddInput(t *testing.T) {
	g := fullGauges()
	g.Model = "m\xff"
	again := row(api.ModeKV, 180) // the same level, measured later
	again.RequestsPerSecond = new(8.0)
	g.Baseline.Rows = append(g.Baseline.Rows, again)
	g.InForce = append(g.InForce, again)
	f := gather(t, NewRecorder(t0, slo), g, t0)
	assert.Contains(t, fmt.Sprint(values(f["loadgen_info"])), "model=m�,")
	assert.Equal(t, 8.0, values(f["loadgen_baseline_level_requests_per_second"])["baseline=recorded,concurrency=180,mode=kv,speculation=off"])
}

func TestClientCollector(t *testing.T) {
	health := api.ClientHealth{Verdict: api.VerdictUnknown, CPURatio: .25}
	c := NewClientCollector(func() api.ClientHealth { return health })
	assert.Equal(t, 1+3, testutil.CollectAndCount(c), "no lag before there is a verdict")
	plausible.Ratio.Has(plausible.Metrics, "cache_use", 55)
	health.Verdict, health.LagSeconds = api.VerdictFine, .001
	assert.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP loadgen_client_cpu_ratio Share of all cores that the load generator uses.
# TYPE loadgen_client_cpu_ratio gauge
loadgen_client_cpu_ratio 0.25
# HELP loadgen_client_lag_seconds How late the load generator's own time stamps are, p95 of the last 10 s.
# TYPE loadgen_client_lag_seconds gauge
loadgen_client_lag_seconds 0.001
# HELP loadgen_implausible_values_total Implausible values from other programs that were ignored, by source.
# TYPE loadgen_implausible_values_total counter
loadgen_implausible_values_total{source="metrics"} 1
loadgen_implausible_values_total{source="prometheus"} 0
loadgen_implausible_values_total{source="target"} 0
`)))
}

// Scrapes, reports and turns at the same time, for the race detector.
func TestScrapeWhileTurnsEnd(t *testing.T) {
	r, done := NewRecorder(t0, slo), make(chan struct{})
	go func() {
		defer close(done)
		for i := range 500 {
			s := counted(whole(float64(i)*.1), 1)
			s.ITL = []Gap{{.02, 1}}
			r.Add(s)
			r.ConversationEnded(api.ConversationCompleted)
		}
	}()
	for range 5 {
		gather(t, r, fullGauges(), at(50))
		r.Totals()
		r.SetSLO(slo)
		r.Counted(at(50), 1)
	}
	<-done
	assert.Equal(t, int64(500), r.Totals().OK)
}

// A count of cached tokens that no turn told is no count: it is absent, and what a
// hit rate divides by stays zero. Before the first turn both start from zero.
func TestCachedTokensThatNobodyTold(t *testing.T) {
	const cached, told = "loadgen_cached_tokens_total", "loadgen_cache_reported_input_tokens_total"
	r := NewRecorder(t0, slo)
	families := gather(t, r, Gauges{}, at(1))
	assert.Equal(t, map[string]float64{"": 0}, values(families[cached]))
	silent := whole(1)
	silent.HasCached, silent.CachedTokens = false, 0
	r.Add(silent)
	families = gather(t, r, Gauges{}, at(2))
	assert.NotContains(t, families, cached)
	assert.Equal(t, map[string]float64{"": 0}, values(families[told]))
	assert.Positive(t, values(families["loadgen_input_tokens_total"])[""])
	r.Add(whole(3))
	families = gather(t, r, Gauges{}, at(4))
	assert.Equal(t, map[string]float64{"": 1000}, values(families[cached]))
	assert.Equal(t, map[string]float64{"": 4000}, values(families[told]), "of the turn that told, not of both")
}

// A sweep is told while it is in progress, and a span of it while its mode is in force, so
// that both are regions on a time series; at any other time there is nothing.
func TestSweepInProgress(t *testing.T) {
	const sweep, span = "id=mih1x2,kind=trial", "concurrency=60,id=mih1x2,mode=round_robin,span=2,speculation=off"
	none := trial(api.SweepRunning, "")
	none.Progress.Span = nil
	for name, c := range map[string]struct {
		of        *api.SweepSummary
		sweep     bool
		spanShown bool
	}{
		"none":                 {nil, false, false},
		"between spans":        {none, true, false},
		"the mode changes":     {trial(api.SweepRunning, api.SpanSwitching), true, false},
		"a span warms up":      {trial(api.SweepRunning, api.SpanWarmingUp), true, true},
		"a span counts":        {trial(api.SweepRunning, api.SpanCounting), true, true},
		"a span is stored":     {trial(api.SweepRunning, api.SpanStoring), true, true},
		"it is paused":         {trial(api.SweepPaused, api.SpanCounting), false, false},
		"the lane is restored": {trial(api.SweepDone, api.SpanCounting), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := fullGauges()
			g.Sweep = c.of
			got := gather(t, busy(), g, at(100))
			want := func(shown bool, labels string) map[string]float64 {
				if shown {
					return map[string]float64{labels: 1}
				}
				return map[string]float64{}
			}
			assert.Equal(t, want(c.sweep, sweep), values(got["loadgen_sweep_running"]))
			assert.Equal(t, want(c.spanShown, span), values(got["loadgen_sweep_span_running"]))
		})
	}
}
