package stats

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/chat/plausible"
)

func pair(p50, p95 float64) api.Percentiles { return api.Percentiles{P50: &p50, P95: &p95} }

func row(mode api.Mode, concurrency int) api.BaselineRow {
	return api.BaselineRow{
		Mode: mode, Speculation: api.SpeculationOff, Level: api.AtConversations(concurrency),
		TTFT: pair(.2, .5), TPOT: pair(.02, .03), ITL: pair(.01, .04), Latency: pair(20, 25),
		TPOTDerived: api.Percentiles{P95: new(.05)}, KVHitRatio: new(.7), AcceptanceRate: new(.6), TokensPerStep: new(2.5),
		OutputTokensPerSecond: new(5000.0), RequestsPerSecond: new(6.0), GPUMemoryBytes: new(70e9),
	}
}

func fullGauges() Gauges {
	return Gauges{
		TargetConcurrency: 180, ActiveConversations: 179, InflightRequests: 150, AwaitingFirstToken: 12, Running: true,
		Settling: true, Step: 7, Version: "v1.2.3", Target: "http://localhost:8000", Model: "m\xff", LostTurns: 2,
		Mode: api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff},
		Followup: &api.FollowupStatus{
			ByModel: 40, Fallbacks: map[api.FollowupCause]int64{api.FollowupTimeout: 3, api.FollowupPaused: 9},
		},
		InForce:  []api.BaselineRow{row(api.ModeKV, 180), row(api.ModeRoundRobin, 180)},
		Baseline: &api.Baseline{Name: "recorded", Rows: []api.BaselineRow{row(api.ModeKV, 60), row(api.ModeKV, 180)}},
		Sweep:    trial(api.SweepRunning, api.SpanCounting),
		Live: api.LaneSnapshot{
			KV:      api.KV{HitRatio: new(.9)},
			Cluster: api.Cluster{Speculation: api.SpeculativeUse{AcceptanceRatio: new(.65), TokensPerStep: new(2.6)}},
		},
	}
}

// trial returns a trial in its third span.
func trial(state api.SweepState, phase api.SweepPhase) *api.SweepSummary {
	now := api.SweepNow{
		Number: 2, Attempt: 1, Arm: "a", Phase: phase, Level: api.AtConversations(60),
		Mode: api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff},
	}
	return &api.SweepSummary{
		ID: "mih1x2", State: state, Request: api.SweepRequest{Kind: api.SweepTrial}, Progress: api.SweepProgress{Span: &now},
	}
}

// gather scrapes one lane with a pedantic registry, which finds every inconsistency, and requires that the linter finds
// nothing.
func gather(t *testing.T, r *Recorder, g Gauges, now time.Time) map[string]*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(newCollector("main", r, func() Gauges { return g }, func() time.Time { return now }))
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	assert.Empty(t, problems)
	families, err := reg.Gather()
	require.NoError(t, err)
	byName := map[string]*dto.MetricFamily{}
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName
}

// labels returns the labels of a series without its lane and without empty ones, as in a query.
func labels(m *dto.Metric) string {
	var all []string
	for _, l := range m.GetLabel() {
		if l.GetName() != "lane" && l.GetValue() != "" {
			all = append(all, l.GetName()+"="+l.GetValue())
		}
	}
	return strings.Join(all, ",")
}

// values returns the values of a family of counters or gauges by their labels.
func values(f *dto.MetricFamily) map[string]float64 {
	all := map[string]float64{}
	for _, m := range f.GetMetric() {
		all[labels(m)] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return all
}

// scrape returns the counters and gauges of a registry by their names and labels.
func scrape(t *testing.T, reg *prometheus.Registry) map[string]map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	all := map[string]map[string]float64{}
	for _, f := range families {
		all[f.GetName()] = values(f)
	}
	return all
}

// busy returns a recorder with turns of every kind.
func busy() *Recorder {
	r := NewRecorder(t0, slo)
	for _, s := range random(rand.New(rand.NewPCG(9, 10)), 2000) {
		s.ITL = []chat.Gap{{Seconds: .02, Tokens: 1}, {Seconds: .03, Tokens: 2.5}}
		r.add(s)
	}
	r.ConversationEnded(api.ConversationCompleted)
	return r
}

// The metrics have exactly these names, types and labels beside lane.
func TestMetricNames(t *testing.T) {
	const baseline, level = "GAUGE arm baseline mode", "GAUGE arm baseline concurrency mode"
	want := map[string]string{
		"loadgen_input_tokens": "HISTOGRAM turn", "loadgen_output_tokens": "HISTOGRAM turn",
		"loadgen_requests_total": "COUNTER status", "loadgen_requests_slo_met_total": "COUNTER",
		"loadgen_errors_total": "COUNTER class", "loadgen_conversations_total": "COUNTER status",
		"loadgen_input_tokens_total": "COUNTER", "loadgen_cached_tokens_total": "COUNTER",
		"loadgen_cache_reported_input_tokens_total": "COUNTER", "loadgen_output_tokens_total": "COUNTER",
		"loadgen_store_lost_turns_total": "COUNTER", "loadgen_followup_total": "COUNTER cause source",
		"loadgen_target_concurrency": "GAUGE", "loadgen_active_conversations": "GAUGE",
		"loadgen_inflight_requests": "GAUGE", "loadgen_awaiting_first_token_requests": "GAUGE",
		"loadgen_workload_running": "GAUGE", "loadgen_settling": "GAUGE", "loadgen_step": "GAUGE",
		"loadgen_info": "GAUGE arm mode model speculation target version", "loadgen_slo_seconds": "GAUGE metric",
		"loadgen_sweep_running": "GAUGE id kind", "loadgen_acceptance_ratio": "GAUGE", "loadgen_tokens_per_step": "GAUGE",
		"loadgen_requests_per_second": "GAUGE", "loadgen_output_tokens_per_second": "GAUGE", "loadgen_kv_hit_ratio": "GAUGE",
		"loadgen_sweep_span_running":                  "GAUGE arm concurrency id mode span speculation",
		"loadgen_baseline_level_tpot_derived_seconds": level + " percentile speculation",
	}
	for _, m := range []string{"ttft", "tpot", "itl", "latency"} {
		want["loadgen_"+m+"_all_seconds"], want["loadgen_"+m+"_seconds"] = "SUMMARY", "HISTOGRAM turn"
		want["loadgen_baseline_"+m+"_seconds"] = baseline + " percentile speculation"
		want["loadgen_baseline_level_"+m+"_seconds"] = level + " percentile speculation"
	}
	for _, m := range []string{
		"output_tokens_per_second", "requests_per_second", "kv_hit_ratio", "acceptance_ratio", "tokens_per_step",
		"gpu_memory_bytes",
	} {
		want["loadgen_baseline_"+m], want["loadgen_baseline_level_"+m] = baseline+" speculation", level+" speculation"
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

// A rate requires its series before the first event.
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
	assert.Equal(t, zero("class", "connect", "timeout", "stall", "rate_limited", "busy", "http_4xx", "http_5xx",
		"stream_error", "truncated", "malformed", "overrun", "empty"), values(f["loadgen_errors_total"]))
	var turns []string
	for _, m := range f["loadgen_itl_seconds"].GetMetric() {
		turns = append(turns, labels(m))
	}
	assert.Equal(t, []string{"turn=1", "turn=2", "turn=3", "turn=4", "turn=5", "turn=6+"}, turns)
	assert.True(t, math.IsNaN(f["loadgen_ttft_all_seconds"].GetMetric()[0].GetSummary().GetQuantile()[0].GetValue()))
}

// The scrape agrees with the snapshot.
func TestScrapeAgreesWithReport(t *testing.T) {
	r, now := busy(), at(101)
	f, rep := gather(t, r, fullGauges(), now), r.Report(now)
	for name, q := range map[string]api.Quantiles{
		"ttft": rep.Window.Metrics.TTFT, "tpot": rep.Window.Metrics.TPOT, "itl": rep.Window.Metrics.ITL,
		"latency": rep.Window.Metrics.Latency,
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
		assert.Equal(t, n, s.GetSampleCount(), "%s: histogram and summary have the same count", name)
		assert.InEpsilon(t, total, s.GetSampleSum(), 1e-9, name)
	}
	totals := r.Totals()
	assert.Contains(t, fmt.Sprint(values(f["loadgen_info"])), `model=m\xff,`, "no model's name may fail the scrape")
	assert.Equal(t, map[string]float64{
		"status=ok": float64(totals.OK), "status=error": float64(totals.Errors),
		"status=cancelled": float64(totals.Cancelled),
	}, values(f["loadgen_requests_total"]))
	assert.Equal(t, float64(totals.OutputTokens), values(f["loadgen_output_tokens_total"])[""])
	assert.Equal(t, map[string]float64{"metric=ttft": .6, "metric=tpot": .06}, values(f["loadgen_slo_seconds"]))
	assert.Equal(t, 180.0, values(f["loadgen_target_concurrency"])[""])
	assert.Equal(t, 2.0, values(f["loadgen_store_lost_turns_total"])[""])
	assert.Equal(t, map[string]float64{
		"source=model": 40, "cause=timeout,source=built_in": 3, "cause=paused,source=built_in": 9,
		"cause=connect,source=built_in": 0, "cause=rate_limited,source=built_in": 0,
		"cause=http_4xx,source=built_in": 0, "cause=http_5xx,source=built_in": 0,
		"cause=empty,source=built_in": 0, "cause=malformed,source=built_in": 0, "cause=repeated,source=built_in": 0,
	}, values(f["loadgen_followup_total"]))
	assert.NotContains(t, gather(t, NewRecorder(t0, slo), Gauges{}, t0), "loadgen_followup_total", "no model asks")
}

// Count and sum of a summary never fall, although its window shrinks.
func TestSummaryIsCumulative(t *testing.T) {
	r := NewRecorder(t0, slo)
	r.add(whole(1))
	r.Reset(at(2))
	r.add(whole(3))
	s := gather(t, r, Gauges{}, at(300))["loadgen_ttft_all_seconds"].GetMetric()[0].GetSummary()
	assert.Equal(t, uint64(2), s.GetSampleCount())
	assert.InDelta(t, .6, s.GetSampleSum(), 1e-9)
	assert.True(t, math.IsNaN(s.GetQuantile()[0].GetValue()), "nothing in the window")
}

// Fractions of a token add up, in classic and in native buckets.
func TestITLHistogram(t *testing.T) {
	r := NewRecorder(t0, slo)
	s := whole(1)
	s.Number = 2
	for range 100 {
		s.ITL = append(s.ITL, chat.Gap{Seconds: .02, Tokens: 1.25})
	}
	s.ITL = append(s.ITL, chat.Gap{Seconds: .5, Tokens: 1e12}) // an impossible number of tokens is bounded
	r.add(s)
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

// A value that is not recorded, or outside the range, is absent and not zero. Results measured on this target are
// beside the default baseline at the present concurrency, and not in the table of all levels. The later of two rows for
// one level is used, since both would fail the scrape.
func TestBaselineGauges(t *testing.T) {
	g := fullGauges()
	own, again := row(api.ModeKV, 180), row(api.ModeKV, 180)
	own.Speculation, own.ITL = api.SpeculationDraft, pair(.006, .012)
	again.TTFT, again.ITL, again.KVHitRatio = api.Percentiles{}, api.Percentiles{}, nil
	again.RequestsPerSecond = new(8.0)
	g.OwnInForce, g.InForce = []api.BaselineRow{own}, append(g.InForce, again)
	g.Baseline.Rows[0].TPOT.P95 = nil
	g.Baseline.Rows = append(g.Baseline.Rows, again)
	f := gather(t, NewRecorder(t0, slo), g, t0)
	const level, rr = "baseline=recorded,concurrency=", "baseline=recorded,mode=round_robin,"
	const draft = "baseline=this target,mode=kv,"
	for name, want := range map[string]map[string]float64{
		"ttft_seconds": {
			rr + "percentile=50,speculation=off": .2, rr + "percentile=95,speculation=off": .5,
			draft + "percentile=50,speculation=draft": .2, draft + "percentile=95,speculation=draft": .5,
		},
		"itl_seconds": {
			rr + "percentile=50,speculation=off": .01, rr + "percentile=95,speculation=off": .04,
			draft + "percentile=50,speculation=draft": .006, draft + "percentile=95,speculation=draft": .012,
		},
		"kv_hit_ratio": {rr + "speculation=off": .7, draft + "speculation=draft": .7},
		"level_ttft_seconds": {
			level + "60,mode=kv,percentile=50,speculation=off": .2, level + "60,mode=kv,percentile=95,speculation=off": .5,
		},
		"level_tpot_seconds": {
			level + "60,mode=kv,percentile=50,speculation=off":  .02,
			level + "180,mode=kv,percentile=50,speculation=off": .02, level + "180,mode=kv,percentile=95,speculation=off": .03,
		},
		"level_tpot_derived_seconds": {
			level + "60,mode=kv,percentile=95,speculation=off":  .05,
			level + "180,mode=kv,percentile=95,speculation=off": .05,
		},
		"level_requests_per_second": {level + "60,mode=kv,speculation=off": 6, level + "180,mode=kv,speculation=off": 8},
	} {
		assert.Equal(t, want, values(f["loadgen_baseline_"+name]), name)
	}
	for name := range gather(t, NewRecorder(t0, slo), Gauges{}, t0) {
		assert.NotContains(t, name, "baseline", "none without a baseline")
	}
}

func TestClientCollector(t *testing.T) {
	health := api.ClientHealth{Verdict: api.VerdictUnknown, CPURatio: .25}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(NewClientCollector(func() api.ClientHealth { return health }))
	before := plausible.Rejected()[plausible.Metrics]
	plausible.Ratio.Has(plausible.Metrics, "cache_use", 55)
	want := map[string]map[string]float64{
		"loadgen_client_cpu_ratio": {"": .25},
		"loadgen_implausible_values_total": {
			"source=metrics": float64(before + 1), "source=prometheus": 0, "source=target": 0,
		},
	}
	assert.Equal(t, want, scrape(t, reg), "no lag before there is a verdict")
	health.Verdict, health.LagSeconds = api.VerdictFine, .001
	health.Metrics = []api.ClientError{
		{Lane: "main", Metric: "ttft", Level: api.VerdictNoticeable, ErrorSeconds: .008},
		{Lane: "main", Metric: "itl", Level: api.VerdictBottleneck, ErrorSeconds: .02},
		{Lane: "main", Metric: "latency", Level: api.VerdictFine, ErrorSeconds: .001},
	}
	want["loadgen_client_lag_seconds"] = map[string]float64{"": .001}
	want["loadgen_client_error_seconds"] = map[string]float64{
		"metric=ttft": .008, "metric=itl": .02, "metric=latency": .001,
	}
	want["loadgen_client_error_level"] = map[string]float64{
		"metric=ttft": 1, "metric=itl": 2, "metric=latency": 0,
	}
	assert.Equal(t, want, scrape(t, reg))
}

// Scrapes, reports and turns run concurrently, for the race detector, and no turn is lost.
func TestScrapeWhileTurnsEnd(t *testing.T) {
	r := NewRecorder(t0, slo)
	var writers sync.WaitGroup
	for step := range int64(2) {
		writers.Go(func() {
			for i := range 500 {
				s := counted(whole(float64(i)*.1), step)
				s.ITL = []chat.Gap{{Seconds: .02, Tokens: 1}}
				r.add(s)
				r.ConversationEnded(api.ConversationCompleted)
			}
		})
	}
	for range 5 {
		gather(t, r, fullGauges(), at(50))
		r.Totals()
		r.SetSLO(slo)
		r.Counted(at(50), 1)
	}
	writers.Wait()
	assert.Equal(t, int64(1000), r.Totals().OK)
	assert.Equal(t, 1000, r.Report(at(50)).Window.Metrics.ITL.N)
	assert.Equal(t, 500, r.Counted(at(50), 1).OK)
}

// If no turn reports cached tokens, their count is absent, and the denominator of the hit
// rate stays zero. Before the first turn both are zero.
func TestUnreportedCachedTokensAreAbsent(t *testing.T) {
	const cached, reported = "loadgen_cached_tokens_total", "loadgen_cache_reported_input_tokens_total"
	r := NewRecorder(t0, slo)
	families := gather(t, r, Gauges{}, at(1))
	assert.Equal(t, map[string]float64{"": 0}, values(families[cached]))
	silent := whole(1)
	silent.CachedTokens = nil
	r.add(silent)
	prompts := func() (n uint64) {
		for _, m := range gather(t, r, Gauges{}, at(2))["loadgen_input_tokens"].GetMetric() {
			n += m.GetHistogram().GetSampleCount()
		}
		return n
	}
	assert.EqualValues(t, 1, prompts())
	uncounted := whole(1)
	uncounted.PromptTokens = nil
	uncounted.CachedTokens = nil
	r.add(uncounted)
	assert.EqualValues(t, 1, prompts(), "a prompt without a count is not one of 0 tokens")
	assert.Nil(t, r.Report(at(2)).HitRatio)
	families = gather(t, r, Gauges{}, at(2))
	assert.NotContains(t, families, cached)
	assert.Equal(t, map[string]float64{"": 0}, values(families[reported]))
	assert.Positive(t, values(families["loadgen_input_tokens_total"])[""])
	r.add(whole(3))
	families = gather(t, r, Gauges{}, at(4))
	assert.Equal(t, map[string]float64{"": 1000}, values(families[cached]))
	assert.Equal(t, map[string]float64{"": 4000}, values(families[reported]),
		"only of the turn that reported, not of both")
	assert.Equal(t, .25, *r.Report(at(4)).HitRatio)
}

// A sweep is reported while it is in progress, and a span while its mode is in force, so that both are regions on a
// time series. At other times the metrics are absent.
func TestSweepReportedWhileInProgress(t *testing.T) {
	between := trial(api.SweepRunning, "")
	between.Progress.Span = nil
	sweep := map[string]float64{"id=mih1x2,kind=trial": 1}
	span := map[string]float64{"concurrency=60,id=mih1x2,mode=round_robin,span=2,speculation=off": 1}
	none := map[string]float64{}
	for name, c := range map[string]struct {
		of          *api.SweepSummary
		sweep, span map[string]float64
	}{
		"none":                 {nil, none, none},
		"between spans":        {between, sweep, none},
		"the mode changes":     {trial(api.SweepRunning, api.SpanSwitching), sweep, none},
		"a span warms up":      {trial(api.SweepRunning, api.SpanWarmingUp), sweep, span},
		"a span counts":        {trial(api.SweepRunning, api.SpanCounting), sweep, span},
		"a span is stored":     {trial(api.SweepRunning, api.SpanStoring), sweep, span},
		"it is paused":         {trial(api.SweepPaused, api.SpanCounting), none, none},
		"the lane is restored": {trial(api.SweepDone, api.SpanCounting), none, none},
	} {
		got := gather(t, NewRecorder(t0, slo), Gauges{Sweep: c.of}, t0)
		assert.Equal(t, c.sweep, values(got["loadgen_sweep_running"]), name)
		assert.Equal(t, c.span, values(got["loadgen_sweep_span_running"]), name)
	}
}

// The known figures of two lanes are reported as gauges.
func TestTwinMetrics(t *testing.T) {
	twin := api.Twin{
		Arranged: api.TwinApart, Evidence: api.EvidenceNone, Pairs: 12, Showcase: &api.Showcase{State: api.ShowcaseRunning},
		Metrics: []api.PairedMetric{
			{Metric: "ttft", N: 12, Difference: new(.05), Interval: &[2]float64{.04, .06}, VarianceRatio: new(.9)},
			{Metric: "ttft_p95", N: 12, Difference: new(.2)},
			{Metric: "tpot"},
			{Metric: "kv_hit_ratio", N: 12, Difference: new(-.1), Interval: &[2]float64{-.12, -.08}},
		},
	}
	var err error
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewTwinCollector(func() (api.Twin, error) { return twin, err }))
	problems, lintErr := testutil.GatherAndLint(reg)
	require.NoError(t, lintErr)
	assert.Empty(t, problems)
	assert.Equal(t, map[string]map[string]float64{
		"loadgen_showcase_running": {"": 1},
		"loadgen_twin_info":        {"arranged=apart,evidence=none": 1},
		"loadgen_twin_pairs":       {"": 12},
		"loadgen_twin_difference_seconds": {
			"bound=estimate,metric=ttft": .05, "bound=lower,metric=ttft": .04, "bound=upper,metric=ttft": .06,
			"bound=estimate,metric=ttft_p95": .2,
		},
		"loadgen_twin_kv_hit_ratio_difference": {"bound=estimate": -.1, "bound=lower": -.12, "bound=upper": -.08},
		"loadgen_twin_variance_ratio":          {"metric=ttft": .9},
	}, scrape(t, reg))

	err = errors.New("there is one lane")
	assert.Empty(t, scrape(t, reg))
}
