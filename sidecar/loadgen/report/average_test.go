package report

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// The mean of separate sweeps has every value that all of them have, and intervals over them.
func TestMeanBaseline(t *testing.T) {
	a := builtin(t, "h200x3-tp1-llama70b-fp8")
	b := a
	b.Name, b.Rows = "again", slices.Clone(a.Rows)
	b.Provenance.Runs = []api.Source{{File: "again.tsv"}}
	last := len(b.Rows) - 3 // kv at 170
	b.Rows[last].TTFT.P95, b.Rows[last].TTFT.P50 = new(1.2755), nil
	b.Rows[last].ClusterFigures = api.ClusterFigures{
		QueueLargest: new(2.), InflightSpreadMin: new(20.), QueueSkew: new(2.45),
	}
	mean, err := MeanBaseline([]api.Baseline{a, b})
	require.NoError(t, err)
	row := mean.Rows[last]
	assert.InDelta(t, 1.2655, *row.TTFT.P95, 1e-9)
	assert.InDelta(t, 1.2655+.01*12.706, row.Intervals.TTFT.P95[1], 1e-4, "Student's t of two")
	assert.Nil(t, row.TTFT.P50, "one of them has none")
	assert.Equal(t, []float64{2, 20, 2.5}, []float64{*row.QueueLargest, *row.InflightSpreadMin, *row.QueueSkew})
	assert.Equal(t, []api.Source{{File: a.Name}, {File: "again.tsv"}}, mean.Provenance.Runs)

	b.Rows[last].AtLeast = []string{"ttft_p50", "ttft_p95"}
	b.Rows[last].TTFT.P50 = new(.5)
	a.Rows[last].TTFT.P50 = nil
	mean, err = MeanBaseline([]api.Baseline{a, b})
	require.NoError(t, err)
	assert.Equal(t, []string{"ttft_p95"}, mean.Rows[last].AtLeast, "of the values that the mean has")

	b.Workload = new(*a.Workload)
	b.Workload.MaxTokens = 512
	_, err = MeanBaseline([]api.Baseline{a, b})
	refused(t, "max_tokens", err)
	b.Rows = b.Rows[2:]
	_, err = MeanBaseline([]api.Baseline{a, b})
	refused(t, "levels", err)
}
