//go:build unix

package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// The metrics on which dashboards and alerts are built, by their type and the labels of their series besides lane. "-"
// stands for no lane.
var wantMetrics = []struct {
	kind          dto.MetricType
	labels, names string
}{
	{dto.MetricType_SUMMARY, "", "ttft_all_seconds tpot_all_seconds itl_all_seconds latency_all_seconds"},
	{dto.MetricType_HISTOGRAM, "turn", "ttft_seconds tpot_seconds itl_seconds latency_seconds input_tokens output_tokens"},
	{dto.MetricType_COUNTER, "", "requests_slo_met_total input_tokens_total cached_tokens_total " +
		"cache_reported_input_tokens_total output_tokens_total store_lost_turns_total"},
	{dto.MetricType_GAUGE, "", "requests_per_second output_tokens_per_second kv_hit_ratio"},
	{dto.MetricType_COUNTER, "status", "requests_total conversations_total"},
	{dto.MetricType_COUNTER, "class", "errors_total"},
	{dto.MetricType_COUNTER, "- source", "implausible_values_total"},
	{dto.MetricType_GAUGE, "", "target_concurrency active_conversations inflight_requests workload_running settling " +
		"step awaiting_first_token_requests"},
	{dto.MetricType_GAUGE, "arm mode model speculation target version", "info"},
	{dto.MetricType_GAUGE, "metric", "slo_seconds client_error_seconds client_error_level"},
	{dto.MetricType_GAUGE, "arm baseline mode percentile speculation", "baseline_ttft_seconds baseline_tpot_seconds " +
		"baseline_latency_seconds"},
	{dto.MetricType_GAUGE, "arm baseline mode speculation", "baseline_output_tokens_per_second " +
		"baseline_requests_per_second baseline_kv_hit_ratio"},
	{dto.MetricType_GAUGE, "arm baseline concurrency mode percentile speculation", "baseline_level_ttft_seconds " +
		"baseline_level_tpot_seconds baseline_level_tpot_derived_seconds baseline_level_latency_seconds"},
	{dto.MetricType_GAUGE, "arm baseline concurrency mode speculation", "baseline_level_output_tokens_per_second " +
		"baseline_level_requests_per_second baseline_level_kv_hit_ratio"},
	{dto.MetricType_GAUGE, "simulated", "tokens_per_second_per_user tokens_per_second_per_gpu dollars_per_million_tokens"},
	{dto.MetricType_GAUGE, "-", "client_cpu_ratio client_lag_seconds"},
}

// The page of metrics has the metrics of the table, and Prometheus's linter reports nothing.
func TestMetrics(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	// The cap of 25 requests/s holds none of 60 conversations with turns of 3 s, so that the baseline has their level.
	server.gap.Store(int64(time.Second))
	p := start(t, server.URL, "--concurrency=60", "--default-baseline=h200x3-tp1-llama70b-fp8", "--start",
		"--start-rate=100", "--deployment-gpu-hour=3.5", "--deployment-workers=3", "--deployment-tensor-parallel=1")
	p.eventually("the self-check has a verdict", func() bool { return p.status().Client.Verdict != api.VerdictUnknown })
	p.eventually("turns have ended", p.serves(100))

	families := p.families()
	problems, err := promlint.NewWithMetricFamilies(slices.Collect(maps.Values(families))).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.NotNil(t, families["go_goroutines"])
	assert.NotNil(t, families["process_resident_memory_bytes"])
	known := map[string]bool{}
	for _, row := range wantMetrics {
		for name := range strings.FieldsSeq(row.names) {
			name = "loadgen_" + name
			known[name] = true
			if f := families[name]; assert.NotNil(t, f, name) && assert.Equal(t, row.kind, f.GetType(), name) {
				assert.Equal(t, row.labels, labelsOf(t, f), name)
			}
		}
	}
	for name := range families {
		assert.True(t, known[name] || !strings.HasPrefix(name, "loadgen_"), "%s is not in the table", name)
	}
	for _, q := range families["loadgen_ttft_all_seconds"].GetMetric()[0].GetSummary().GetQuantile() {
		assert.Positive(t, q.GetValue(), "quantile %v", q.GetQuantile())
	}
	assert.InDelta(t, 1, p.metric("loadgen_workload_running"), 0)
	assert.InDelta(t, 60, p.metric("loadgen_target_concurrency"), 0)
	assert.Positive(t, p.metric("loadgen_requests_total", "status", "ok"))
	assert.Len(t, families["loadgen_errors_total"].GetMetric(), len(api.ErrorClasses), "0 until there is one")
	assert.NotEmpty(t, p.nativeHistogram("loadgen_ttft_seconds").GetPositiveSpan())
	p.endsWell()
}

// nativeHistogram returns the histogram for a Prometheus that requests native ones.
func (p *program) nativeHistogram(name string) *dto.Histogram {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.address+"/metrics", nil)
	require.NoError(p.t, err)
	req.Header.Set("Accept", string(expfmt.NewFormat(expfmt.TypeProtoDelim)))
	res, err := p.http.Do(req)
	require.NoError(p.t, err)
	defer res.Body.Close()
	for decoder := expfmt.NewDecoder(res.Body, expfmt.ResponseFormat(res.Header)); ; {
		var f dto.MetricFamily
		require.NoError(p.t, decoder.Decode(&f), name)
		if f.GetName() == name {
			return f.GetMetric()[0].GetHistogram()
		}
	}
}

// labelsOf returns the names of the labels besides lane, the same in all series; "-" stands for no lane.
func labelsOf(t *testing.T, f *dto.MetricFamily) string {
	t.Helper()
	all := map[string]bool{}
	for _, m := range f.GetMetric() {
		names, lane := []string{}, false
		for _, l := range m.GetLabel() {
			if l.GetName() == "lane" {
				lane = true
				assert.Equal(t, api.DefaultLane, l.GetValue())
				continue
			}
			names = append(names, l.GetName())
		}
		if !lane {
			names = append(names, "-")
		}
		slices.Sort(names)
		all[strings.Join(names, " ")] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), "; ")
}
