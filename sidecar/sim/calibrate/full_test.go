//go:build verify

package calibrate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// TestFitRecoversAllConstants fits all constants at once, of a worker as fast as the recorded ones, to one and to two
// lengths of prompts. It takes minutes.
func TestFitRecoversAllConstants(t *testing.T) {
	start := sim.H200()
	start.Workers = 1
	truth := start
	for name, factor := range map[string]float64{
		"step.base": 1.25, "step.per_sequence": .7, "step.per_context_token": 1.5, "step.per_prefill_token": .8,
		"frontend.in": 1.3, "speculation.not_recorded.tokens_per_step": 1.08,
	} {
		set(&truth, name, factor)
	}
	levels := []int{2, 8, 14, 20, 28, 38, 50}
	one, two := recordedBy(t, truth, 8000, roundRobin, levels...), recordedBy(t, truth, 500, roundRobin, levels...)
	for _, baselines := range [][]api.Baseline{{one}, {one, two}} {
		r, err := Run(t.Context(), Options{Start: start, Baselines: baselines, Suggest: true})
		require.NoError(t, err)
		compare(t, r, truth)
	}
}
