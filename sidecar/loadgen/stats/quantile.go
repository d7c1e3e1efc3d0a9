package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
)

// Percentile returns the p-quantile (p from 0 to 1) of ascending values, with linear
// interpolation between the two nearest: definition 7 of Hyndman and Fan, "Sample
// Quantiles in Statistical Packages", The American Statistician 50 (1996), which NumPy
// and common benchmarks use. It returns NaN for no values.
func Percentile(sorted []float64, p float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	h := p * float64(n-1)
	i := int(h)
	if i+1 >= n {
		return sorted[n-1]
	}
	return sorted[i] + (h-float64(i))*(sorted[i+1]-sorted[i])
}

// Summarize returns the percentiles of values, without their intervals. It sorts the values, which must not be NaN.
func Summarize(values []float64) api.Quantiles {
	slices.Sort(values)
	q := api.Quantiles{N: len(values)}
	if q.N > 0 {
		q.P50 = new(Percentile(values, .5))
		q.P95 = new(Percentile(values, .95))
		q.P99 = new(Percentile(values, .99))
		q.Shape = &api.Shape{Least: values[0], Mean: stat.Mean(values, nil), Range: *q.P95 - Percentile(values, .05)}
	}
	return q
}

// outside is the probability with which a 95 % interval may miss on either side.
const outside = .025

// lowerRank returns the largest l with P(B < l) ≤ 2.5 % for a binomial (n, p) B. X(l) is the lower end of the
// distribution-free 95 % interval of the p-quantile of n independent values; see David and Nagaraja, "Order
// Statistics", 3rd edition (2003), chapter 7. It is 0 if n is too small.
func lowerRank(n int, p float64) int {
	size := float64(n)
	// The probability more than ten standard deviations below the mean is negligible.
	k := max(0, math.Floor(size*p-10*math.Sqrt(size*p*(1-p))))
	term := math.Exp(logChoose(size, k) + k*math.Log(p) + (size-k)*math.Log1p(-p))
	for below := term; below <= outside && k < size; below += term {
		term *= (size - k) / (k + 1) * p / (1 - p)
		k++
	}
	return int(k)
}

// logChoose returns the logarithm of the binomial coefficient.
func logChoose(n, k float64) float64 {
	a, _ := math.Lgamma(n + 1)
	b, _ := math.Lgamma(k + 1)
	c, _ := math.Lgamma(n - k + 1)
	return a - b - c
}
