package proof

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// alpha is the share of intervals that may miss: 5 %.
const alpha = .05

// student is the quantile of Student's t that leaves a share of alpha outside, on both
// sides together. Degrees of freedom need not be whole.
func student(alpha, df float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(1 - alpha/2)
}

// variance is that of the whole's value: from how far the sections lie from it, which
// needs no model of what turns have to do with each other within a section.
// Sectioning: Asmussen and Glynn, "Stochastic Simulation" (2007), section III.5a; for quantiles
// Nakayama, "Confidence Intervals for Quantiles Using Sectioning When Applying
// Variance-Reduction Techniques", ACM TOMACS 24 (2014). Unlike the mean of the sections, the
// whole has next to none of the bias that quantiles of few turns have.
func (s Sectioned) variance() float64 {
	squares := 0.0
	for _, v := range s.Sections {
		squares += (v - s.Whole) * (v - s.Whole)
	}
	n := float64(len(s.Sections))
	return squares / (n - 1) / n
}

// df is how many degrees of freedom the variance has.
func (s Sectioned) df() float64 { return float64(len(s.Sections) - 1) }

// correlation is the lag-1 autocorrelation of sections, over several spans together,
// with what their own mean takes from it given back: 1/n, Marriott and Pope, "Bias in the
// Estimation of Autocorrelations", Biometrika 41 (1954).
func correlation(spans []Sectioned) float64 {
	var products, squares, lost, weight float64
	for _, s := range spans {
		mean := stat.Mean(s.Sections, nil)
		n := float64(len(s.Sections))
		for i, v := range s.Sections {
			squares += (v - mean) * (v - mean)
			if i > 0 {
				products += (v - mean) * (s.Sections[i-1] - mean)
			}
		}
		lost, weight = lost+1, weight+n
	}
	if squares == 0 {
		return 0
	}
	return products/squares + lost/weight
}

// inflation is by how much sections that depend on their neighbors understate the
// variance of the whole: (1 + r)/(1 − r), that of an autoregressive series, where r is larger
// than chance makes it (one standard error, 1/√n: Bartlett 1946). Where neighbors make up
// for each other, the variance is overstated, and stays so.
func inflation(spans []Sectioned) float64 {
	n := 0
	for _, s := range spans {
		n += len(s.Sections)
	}
	r := correlation(spans)
	if r <= 1/math.Sqrt(float64(n)) {
		return 1
	}
	r = min(r, .9)
	return (1 + r) / (1 - r)
}
