package stats

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// What two lanes have in common is told as gauges, as far as it is known.
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
	assert.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP loadgen_showcase_running 1 while a showcase is in progress, whose turns are in no other metric.
# TYPE loadgen_showcase_running gauge
loadgen_showcase_running 1
# HELP loadgen_twin_info 1, labelled with the current arrangement and the strength of the evidence.
# TYPE loadgen_twin_info gauge
loadgen_twin_info{arranged="apart",evidence="none"} 1
# HELP loadgen_twin_pairs Turns that succeeded on both lanes since the current settings took effect, at most the last hour.
# TYPE loadgen_twin_pairs gauge
loadgen_twin_pairs 12
# HELP loadgen_twin_variance_ratio Variance of the paired difference divided by the variance without pairing.
# TYPE loadgen_twin_variance_ratio gauge
loadgen_twin_variance_ratio{metric="ttft"} 0.9
`), "loadgen_showcase_running", "loadgen_twin_info", "loadgen_twin_pairs", "loadgen_twin_variance_ratio"))
	values := map[string]float64{}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			values[name] = m.GetGauge().GetValue()
		}
	}
	assert.InDelta(t, .04, values["loadgen_twin_difference_seconds lower ttft"], 1e-9)
	assert.InDelta(t, .2, values["loadgen_twin_difference_seconds estimate ttft_p95"], 1e-9)
	assert.InDelta(t, -.08, values["loadgen_twin_kv_hit_ratio_difference upper"], 1e-9)
	assert.NotContains(t, values, "loadgen_twin_difference_seconds upper ttft_p95")
	assert.NotContains(t, values, "loadgen_twin_difference_seconds estimate tpot")

	err = errors.New("there is one lane")
	families, gather := reg.Gather()
	require.NoError(t, gather)
	assert.Empty(t, families)
}
