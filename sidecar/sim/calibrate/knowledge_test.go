package calibrate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// example returns knowledge of three constants: in every figure, the second has half of the effect of the first, and
// the third has no effect except noise.
func example(seeds int) knowledge {
	r := rand.New(rand.NewPCG(7, 0))
	const figures = 40
	w, residuals := make(weights, figures), make([]float64, figures)
	slopes := make([][][]float64, seeds)
	for s := range slopes {
		slopes[s] = make([][]float64, figures)
	}
	for i := range figures {
		effect := 30 * (1 + float64(i%5))
		residuals[i] = .2 * effect
		for s := range slopes {
			slopes[s][i] = []float64{effect + r.NormFloat64(), effect/2 + r.NormFloat64(), 8 * r.NormFloat64()}
		}
	}
	return newKnowledge(w, residuals, slopes, []float64{.5, .5, .5})
}

// TestKnowledgeOfRedundantConstants checks that only one of two constants with the same effect is moved, and none
// without an effect. In a plain square, noise would give the third a standard error of 3 %.
func TestKnowledgeOfRedundantConstants(t *testing.T) {
	k := example(3)
	assert.Zero(t, k.information.At(2, 2))
	assert.Equal(t, []int{0}, k.movable())
	errors := k.errors(1)
	assert.InEpsilon(t, .25, errors[0], .1, "half of the range of the second")
	assert.InEpsilon(t, 1, errors[1], .1)
	assert.Greater(t, errors[2], 100.)
	together, coupling := k.held([]int{0}, 1)
	assert.Less(t, together[0], .01)
	assert.InEpsilon(t, -.5, coupling[0][1], .02, "the second has half of the effect of the first")
	assert.InDelta(t, 0, coupling[0][2], .01)

	delta, largest := k.step([]int{0}, []float64{-1, -1, -1}, []float64{1, 1, 1}, []float64{0, .1, 0})
	assert.InEpsilon(t, -.25, delta[0], .02, "the effect of the second's change is taken into account")
	assert.InEpsilon(t, .25, largest, .02)
	delta, _ = k.step([]int{0}, []float64{-.1, -1, -1}, []float64{1, 1, 1}, []float64{0, 0, 0})
	assert.Equal(t, -.1, delta[0], "the change stops at the bound")
}

func TestInflationOfScatteredFigures(t *testing.T) {
	k := example(3)
	assert.InEpsilon(t, math.Sqrt(k.misfit()/39), k.inflation(1), 1e-9)
	for i := range k.residual.Len() {
		k.residual.SetVec(i, .1)
	}
	assert.Equal(t, 1.0, k.inflation(1), "small residuals do not reduce the errors")
}
