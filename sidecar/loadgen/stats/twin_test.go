package stats

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

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
