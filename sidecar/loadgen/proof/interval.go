package proof

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// alpha is the error probability of an interval.
const alpha = .05

// student returns the two-sided quantile of Student's t for the error probability alpha. The degrees of freedom may be
// fractional.
func student(alpha, df float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(1 - alpha/2)
}

// Simultaneous returns the factor by which a normal interval is wider if it is one of n that hold together
// (Bonferroni).
func Simultaneous(n int) float64 {
	normal := distuv.UnitNormal
	return normal.Quantile(1-alpha/2/float64(max(1, n))) / normal.Quantile(1-alpha/2)
}

// variance returns the variance of Whole, estimated from the scatter of the sections around it. It needs no model of
// the dependence between turns within a section. Sectioning: Asmussen and Glynn, "Stochastic Simulation" (2007),
// section III.5a; for quantiles Nakayama, "Confidence Intervals for Quantiles Using Sectioning When Applying
// Variance-Reduction Techniques", ACM TOMACS 24 (2014). The mean of the sections would have the bias of quantiles of
// few turns. Whole has almost none of it.
func (s Sectioned) variance() float64 {
	squares := 0.0
	for _, v := range s.Sections {
		squares += (v - s.Whole) * (v - s.Whole)
	}
	n := float64(len(s.Sections))
	return squares / (n - 1) / n
}

func (s Sectioned) df() float64 { return float64(len(s.Sections) - 1) }

// correlation returns the lag-1 autocorrelation of sections, pooled over several spans. It adds 1/n to correct the bias
// from centering each span on its own mean: Marriott and Pope, "Bias in the Estimation of Autocorrelations", Biometrika
// 41 (1954).
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

// inflation returns the factor by which the variance of the whole exceeds the estimate from dependent sections. It is
// (1 + r)/(1 − r), as for an autoregressive series, where the correlation r exceeds one standard error (1/√n: Bartlett
// 1946), and 1 otherwise. For a negative r the variance is overstated and is not corrected.
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
