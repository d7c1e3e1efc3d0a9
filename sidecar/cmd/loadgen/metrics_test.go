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

// The metrics on which dashboards and alerts are built, with the labels of their series besides lane.
var wantMetrics = map[dto.MetricType]map[string]string{
	dto.MetricType_SUMMARY: {
		"loadgen_ttft_all_seconds": "", "loadgen_tpot_all_seconds": "", "loadgen_itl_all_seconds": "",
		"loadgen_latency_all_seconds": "",
	},
	dto.MetricType_HISTOGRAM: {
		"loadgen_ttft_seconds": "turn", "loadgen_tpot_seconds": "turn", "loadgen_itl_seconds": "turn",
		"loadgen_latency_seconds": "turn",
		"loadgen_input_tokens":    "turn", "loadgen_output_tokens": "turn",
	},
	dto.MetricType_COUNTER: {
		"loadgen_requests_total": "status", "loadgen_requests_slo_met_total": "", "loadgen_errors_total": "class",
		"loadgen_conversations_total": "status", "loadgen_input_tokens_total": "", "loadgen_cached_tokens_total": "",
		"loadgen_cache_reported_input_tokens_total": "",
		"loadgen_output_tokens_total":               "", "loadgen_store_lost_turns_total": "",
		"loadgen_implausible_values_total": "- source",
	},
	dto.MetricType_GAUGE: {
		"loadgen_target_concurrency": "", "loadgen_active_conversations": "", "loadgen_inflight_requests": "",
		"loadgen_awaiting_first_token_requests": "", "loadgen_workload_running": "",
		"loadgen_settling": "", "loadgen_step": "", "loadgen_info": "arm mode model speculation target version",
		"loadgen_slo_seconds":                             "metric",
		"loadgen_baseline_ttft_seconds":                   "arm baseline mode percentile speculation",
		"loadgen_baseline_tpot_seconds":                   "arm baseline mode percentile speculation",
		"loadgen_baseline_latency_seconds":                "arm baseline mode percentile speculation",
		"loadgen_baseline_output_tokens_per_second":       "arm baseline mode speculation",
		"loadgen_baseline_requests_per_second":            "arm baseline mode speculation",
		"loadgen_baseline_kv_hit_ratio":                   "arm baseline mode speculation",
		"loadgen_baseline_level_ttft_seconds":             "arm baseline concurrency mode percentile speculation",
		"loadgen_baseline_level_tpot_seconds":             "arm baseline concurrency mode percentile speculation",
		"loadgen_baseline_level_tpot_derived_seconds":     "arm baseline concurrency mode percentile speculation",
		"loadgen_baseline_level_latency_seconds":          "arm baseline concurrency mode percentile speculation",
		"loadgen_baseline_level_output_tokens_per_second": "arm baseline concurrency mode speculation",
		"loadgen_baseline_level_requests_per_second":      "arm baseline concurrency mode speculation",
		"loadgen_baseline_level_kv_hit_ratio":             "arm baseline concurrency mode speculation",
		"loadgen_client_cpu_ratio":                        "-", // not a lane's
		"loadgen_client_lag_seconds":                      "-",
		"loadgen_client_error_seconds":                    "metric",
		"loadgen_client_error_level":                      "metric",
		"go_goroutines":                                   "-",
		"process_resident_memory_bytes":                   "-",
	},
}

// The page of metrics has the metrics of the table, and Prometheus's linter reports nothing.
func TestMetrics(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	server.gap.Store(int64(20 * time.Millisecond))
	p := start(t, server.URL, "--concurrency=60", "--baseline-default=h200x3-tp1-llama70b-fp8", "--start",
		"--start-rate=100")
	p.eventually("the self-check has a verdict", func() bool { return p.status().Client.Verdict != api.VerdictUnknown })
	p.eventually("turns have ended", p.serves(100))

	families := p.families()
	problems, err := promlint.NewWithMetricFamilies(slices.Collect(maps.Values(families))).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	for kind, names := range wantMetrics {
		for name, labels := range names {
			f := families[name]
			if assert.NotNil(t, f, name) && assert.Equal(t, kind, f.GetType(), name) {
				assert.Equal(t, labels, labelsOf(t, f), name)
			}
		}
	}
	for name := range families {
		known := false
		for _, names := range wantMetrics {
			_, found := names[name]
			known = known || found
		}
		assert.True(t, known || !strings.HasPrefix(name, "loadgen_"), "%s is not in the table", name)
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
