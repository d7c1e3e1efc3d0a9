package baseline

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// Every level that both modes have is judged, by the rule of every comparison.
func TestAdvantages(t *testing.T) {
	all := Advantages(h100())
	require.Len(t, all, 9)
	assert.Equal(t, []int{20, 50, 120}, []int{all[0].Concurrency, all[3].Concurrency, all[8].Concurrency})
	assert.Len(t, all[0].Of, 3, "TTFT p50 and p95, and the hit ratio were recorded")
	assert.Equal(t, api.OutcomeBetter, all[3].Of["ttft_p95"].Outcome, "9.7 %")
	assert.Equal(t, api.OutcomeNoDifference, all[8].Of["ttft_p95"].Outcome)

	one := h100()
	one.Rows = rowsOf(one, api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationNotRecorded})
	assert.Empty(t, Advantages(one), "there is nothing to compare with")
}
