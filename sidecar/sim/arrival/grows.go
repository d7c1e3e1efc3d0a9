package arrival

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Grows reports whether a queue grows without end, by the number of conversations or turns in progress at equal
// intervals of a span at one rate.
//
// Where a cluster serves exactly what arrives, the number in progress is a random walk without a drift: its steps over
// equal times are independent and their mean is 0. Below that, the number returns to its mean, and its steps sum to
// less than those of such a walk. Above that, they have a positive mean. Grows is therefore Student's one-sided t-test
// at 1 % of the steps between 21 moments of the last half of the span: of loads that the cluster sustains, at most one
// in a hundred is reported. The first half is not used, since a load fills up in it. Where that takes longer than half
// of the span, the filling is reported as growth.
//
// A few percent above what the cluster sustains, a span often ends before the growth differs from chance. For fewer
// than 14 samples, Grows reports false.
func Grows(inProgress []float64) bool {
	half := inProgress[len(inProgress)/2:]
	n := min(growthSteps, len(half)-1)
	if n < leastSteps {
		return false
	}
	steps := make([]float64, n)
	for i := range steps {
		steps[i] = half[(i+1)*(len(half)-1)/n] - half[i*(len(half)-1)/n]
	}
	mean, deviation := stat.MeanStdDev(steps, nil)
	t := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(growthConfidence)
	return mean > t*deviation/math.Sqrt(float64(n))
}

const (
	growthSteps      = 20
	leastSteps       = 6
	growthConfidence = .99
)
