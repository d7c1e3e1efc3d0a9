package decide

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Critical values from the literature, two-sided at 5 % (the last one-sided at 2.5 %).
func TestBoundaryMatchesPublishedValues(t *testing.T) {
	even := []float64{.2, .4, .6, .8, 1}
	for _, test := range []struct {
		name  string
		share []float64
		spent func(t float64) float64
		want  []float64
	}{
		{"O'Brien-Fleming type, Lan and DeMets", even, func(t float64) float64 {
			return 4 * normal.Survival(normal.Quantile(1-.05/4)/math.Sqrt(t))
		}, []float64{4.877, 3.357, 2.680, 2.290, 2.031}},
		{
			"Pocock type, Lan and DeMets", even, func(t float64) float64 { return .05 * math.Log1p((math.E-1)*t) },
			[]float64{2.438, 2.427, 2.410, 2.397, 2.386},
		},
		{"Hwang-Shih-DeCani, gamma -4, gsDesign", []float64{1. / 3, 2. / 3, 1}, func(t float64) float64 {
			return .05 * math.Expm1(4*t) / math.Expm1(4)
		}, []float64{3.011, 2.547, 1.999}},
	} {
		var spend []float64
		for _, share := range test.share {
			spend = append(spend, test.spent(share))
		}
		assert.InDeltaSlice(t, test.want, critical(spend, test.share), 1e-3, test.name)
	}
}
