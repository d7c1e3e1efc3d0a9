package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The parts of a TTFT add up to what was measured, and no router takes less than no time. One of other requests than
// the TTFT is left out.
func TestFirstTokenParts(t *testing.T) {
	totals := FirstTokenTotals{Engine: Sum{8, 100}, Queue: Sum{1.9, 95}, Prefill: Sum{1, 20}}
	parts := totals.Means()
	require.NotNil(t, parts)
	assert.Equal(t, FirstTokenParts{Engine: .08, Queue: new(.02)}, *parts)
	for measured, router := range map[float64]float64{.1: .02, .07: 0} {
		sum, split := 0., parts.Split(measured)
		for _, p := range split {
			sum += p.Seconds
		}
		assert.InDelta(t, measured, sum, 1e-12)
		assert.InDelta(t, router, split[0].Seconds, 1e-12)
	}
	assert.Nil(t, totals.Plus(totals, -1).Means())
}
