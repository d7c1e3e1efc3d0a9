package decide

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The critical values are from the literature, two-sided at 5 % (the last one-sided at 2.5 %).
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
		{"Pocock type, Lan and DeMets", even, func(t float64) float64 {
			return .05 * math.Log1p((math.E-1)*t)
		}, []float64{2.438, 2.427, 2.410, 2.397, 2.386}},
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

// A single look spends the whole error. With few degrees of freedom later looks need more than normal statistics do.
func TestBoundaryOfStudentsT(t *testing.T) {
	assert.InDelta(t, normal.Quantile(1-kept*.05/2), Boundary(.05, []Look{{2, 1, 3}})[0], 1e-6)
	few := Boundary(.05, []Look{{2, 1. / 3, 3}, {3, .5, 4}, {6, 1, 10}})
	many := Boundary(.05, []Look{{2, 1. / 3, 1e9}, {3, .5, 1e9}, {6, 1, 1e9}})
	assert.InDelta(t, many[0], few[0], 1e-9)
	assert.Greater(t, few[1], many[1]+.01)
	assert.Greater(t, few[2], many[2]+.01)
	assert.True(t, math.IsInf(Boundary(.05, []Look{{2, .5, 3}, {3, .5, 4}})[1], 1), "nothing left to spend")
	for _, df := range []float64{3, 10, 100} {
		assert.InDelta(t, 2.5, toNormal(toStudent(2.5, df), df), 1e-6)
		assert.InDelta(t, -2.5, toNormal(toStudent(-2.5, df), df), 1e-6)
	}
}
