package decide

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// scaleOfEffects is the weight of the prior in [Sequence], in batches. It makes the interval narrowest for differences
// of about three standard deviations of a batch.
const scaleOfEffects = .1

// allowance is the error of a window's mean due to a slow change, in standard deviations of the change.
const allowance = 2.5

// Sequence returns the interval of a mean that holds at all numbers of batches together, with an error of alpha. It can
// be observed continuously, and decisions can be made at any time. A batch must last at least as long as the system's
// memory, a few turns; correlated neighboring batches widen the interval. wander is the standard deviation of slow
// changes of speed that are not of interest, on the scale of the batches. A prior of the variance of a batch shortens
// the first intervals; a wrong prior makes more of them miss. The zero value is no prior. The interval is infinite
// while there are too few batches.
//
// The interval is the set of means that a scale-invariant mixture of likelihood ratios does not reject: Lai, "On
// confidence sequences", Annals of Statistics 4 (1976); Wang and Ramdas, "Anytime-valid t-tests and confidence
// sequences for Gaussian means with unknown variance", Sequential Analysis 44 (2025). With a prior, the mixture is over
// the variance too, by the scaled inverse χ² distribution: Gelman and others, "Bayesian Data Analysis" (2013), 3.3.
func Sequence(batches []float64, alpha, wander float64, prior Variance) (mean float64, interval [2]float64) {
	n := float64(len(batches))
	if n == 0 {
		return math.NaN(), [2]float64{math.Inf(-1), math.Inf(1)}
	}
	mean, half := stat.Mean(batches, nil), math.Inf(1)
	r := scaleOfEffects / (n + scaleOfEffects)
	if k := math.Pow(1/(alpha*math.Sqrt(r)), 2/(n+prior.DF)); k*r < 1 && n+prior.DF > 1 {
		squares := prior.DF*prior.Value + squaresOf(batches)*inflation(batches)
		half = math.Sqrt(squares/n*(k-1)/(1-k*r)) + allowance*wander
	}
	return mean, [2]float64{mean - half, mean + half}
}

// squaresOf returns the sum of the squared distances from the mean.
func squaresOf(batches []float64) (squares float64) {
	mean := stat.Mean(batches, nil)
	for _, v := range batches {
		squares += (v - mean) * (v - mean)
	}
	return squares
}

// inflation returns the factor by which correlated neighboring batches understate the variance of their mean:
// (1 + r)/(1 − r), that of an autoregressive series, for every positive lag-1 autocorrelation, with 1/n added for the
// bias of short series (Marriott and Pope, Biometrika 41, 1954).
func inflation(batches []float64) float64 {
	mean := stat.Mean(batches, nil)
	products, squares := 0., squaresOf(batches)
	for i, v := range batches {
		if i > 0 {
			products += (v - mean) * (batches[i-1] - mean)
		}
	}
	if squares == 0 {
		return 1
	}
	r := min(max(0, products/squares+1/float64(len(batches))), .9)
	return (1 + r) / (1 - r)
}
