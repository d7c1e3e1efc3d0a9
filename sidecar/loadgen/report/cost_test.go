package report

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// The picture of the recorded tables has a curve for each arm, by the GPUs that the tables name.
func TestParetoOfTheRecord(t *testing.T) {
	r := comparison(t)
	drawn := r.pareto(r.costed())
	require.Len(t, drawn, 1)
	html, err := drawn[0].HTML()
	require.NoError(t, err)
	golden(t, "pareto.html", string(html))

	// 3 GPUs, and 2,146.7 tokens/s at a TPOT p50 of 27.7 ms.
	assert.Equal(t, "Round-robin at 60: 716 tokens/s per GPU at 36.1", drawn[0].Marks[0].Title)

	r.Sides[0].Deployment.TensorParallel = 0
	unknown := r.pareto(r.costed())
	require.Len(t, unknown, 1)
	assert.Contains(t, unknown[0].Title, "the number of GPUs is not known")
	assert.Equal(t, "tokens/s of the cluster", unknown[0].Unit)
	assert.Equal(t, "Round-robin at 60: 2,147 tokens/s of the cluster at 36.1", unknown[0].Marks[0].Title)
}

// A table without throughput and TPOT has no costs.
func TestNoCosts(t *testing.T) {
	text := markdownOf(t, recorded(t, "h100x8-tp2-llama70b-fp8", proof.Question{SLO: slo}))
	assert.NotContains(t, text, costTitle)
}

func TestCostsOfASweep(t *testing.T) {
	s := spoiled()
	s.Deployment.GPUHour, s.Deployment.Workers, s.Deployment.TensorParallel = 3.5, 3, 2
	for i := range s.Rows {
		row := &s.Rows[i]
		row.JoulesPerMillionTokens, row.PowerSimulated = new(1.5e6), true
		row.Intervals = &api.RowIntervals{JoulesPerMillionTokens: &[2]float64{1.4e6, 1.6e6}}
	}
	text := markdownOf(t, OfSweep(s))
	assert.Contains(t, text, "- **Price of a GPU-hour**: 3.5 $\n")
	assert.Contains(t, text, "| KV-aware | 180 | 6 | 1.50 MJ (1.40 to 1.60) | 1.49 $ | 651.3 | 33.3 |")
	assert.Contains(t, text, "1.50 MJ (1.40 to 1.60)")
	assert.Contains(t, text, simulatedPower)
	assert.NotContains(t, text, "No power was read")
}

func TestCostsOfATrial(t *testing.T) {
	s := looked()
	s.Trial.Costs = []api.TrialDifference{
		difference(proof.Energy, .2, .15, .25, proof.Running),
		difference("dollars_per_good_turn", -.5, -.6, -.4, proof.Running),
	}
	s.Trial.Costs[0].A, s.Trial.Costs[0].B = 1.5e6, 1.8e6
	s.Trial.Costs[1].A, s.Trial.Costs[1].B = .002, .001
	s.Trial.PowerSimulated = true
	text := markdownOf(t, OfSweep(s))
	assert.Contains(t, text,
		"| Energy per million tokens | 1.50 MJ | 1.80 MJ | +20.0 % | +15.0 to +25.0 % | by this look alone |")
	assert.Contains(t, text, "| Price per turn within the SLOs | 0.00200 $ | 0.00100 $ |")
	assert.Contains(t, text, simulatedPower)
}
