package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The parts of a TTFT add up to what was measured. One of other requests than the TTFT is left out.
func TestFirstTokenParts(t *testing.T) {
	totals := FirstTokenTotals{Engine: Sum{8, 100}, Queue: Sum{1.9, 95}, Prefill: Sum{1, 20}}
	parts := totals.Means()
	require.NotNil(t, parts)
	assert.Equal(t, FirstTokenParts{Engine: .08, Queue: new(.02)}, *parts)
	sum := 0.
	for _, p := range parts.Split(.1) {
		sum += p.Seconds
	}
	assert.InDelta(t, .1, sum, 1e-12)
	assert.Nil(t, totals.Plus(totals, -1).Means())
}
