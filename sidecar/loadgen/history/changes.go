package history

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The search for changes. With minRuns on either side a change is found three runs later. The false marks of a series
// without a change are counted by a test.
const (
	minRuns      = 3
	permutations = 999
	significance = .005
)

// Changes returns the indexes at which the level of a series changes, ascending: the first value after each change. It
// is E-Divisive, the divisive estimation of change points by energy statistics with α = 1 and tests by permutation:
// Matteson and James, "A Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", Journal of
// the American Statistical Association 109 (2014). The same values give the same result.
func Changes(values []float64) (found []int) {
	random := rand.New(rand.NewPCG(1, 1))
	var divide func(from, to int)
	divide = func(from, to int) {
		at, energy := split(values[from:to])
		if at == 0 {
			return
		}
		shuffled, larger := slices.Clone(values[from:to]), 1
		for range permutations {
			random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if _, e := split(shuffled); e >= energy {
				larger++
			}
		}
		if float64(larger) > significance*(permutations+1) {
			return
		}
		divide(from, from+at)
		found = append(found, from+at)
		divide(from+at, to)
	}
	divide(0, len(values))
	return found
}

// split returns where a series is best divided in two, and the energy statistic there: Q of formula 6. It returns 0
// where the series is too short, or all values are equal.
func split(values []float64) (at int, most float64) {
	n := len(values)
	if n < 2*minRuns {
		return 0, 0
	}
	var left, right, between float64 // sums of distances within and between the two parts
	for i := range n {
		for j := range i {
			right += math.Abs(values[i] - values[j])
		}
	}
	for i := 1; i <= n-minRuns; i++ {
		for j, v := range values { // values[i-1] moves to the left part
			switch d := math.Abs(values[i-1] - v); {
			case j < i-1:
				left += d
				between -= d
			case j >= i:
				right -= d
				between += d
			}
		}
		if i < minRuns {
			continue
		}
		a, b := float64(i), float64(n-i)
		q := a * b / (a + b) * (2*between/(a*b) - left/(a*(a-1)/2) - right/(b*(b-1)/2))
		if q > most {
			at, most = i, q
		}
	}
	return at, most
}
