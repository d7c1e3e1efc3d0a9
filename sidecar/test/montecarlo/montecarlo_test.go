package montecarlo

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestResults(t *testing.T) {
	r := &Results{}
	for i := range 20 {
		c := r.Cell("TTFT")
		c.Count("wrong", i == 3)
		c.Sample("minutes", float64(20-i))
		r.Cell("TPOT").Mean("estimate", float64(i%2))
	}
	c := r.Cell("TTFT")
	assert.Equal(t, "TTFT (20): wrong 5.0 %, minutes 10 (median; 5 to 95 %: 1 to 19; nine of ten by 18); "+
		"TPOT (20): estimate 0.5 ± 0.11", r.String())
	assert.Equal(t, []float64{1, .05, 18}, []float64{c.Total("wrong"), c.Average("wrong"), c.Quantile("minutes", .9)})
	assert.Zero(t, c.Total("never added"))
	assert.True(t, math.IsNaN(c.Quantile("never added", .5)))
	assert.Equal(t, 71, Most(1000))
}
