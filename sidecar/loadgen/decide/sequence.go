package decide

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// scaleOfEffects is the weight of the prior in [Contrast], in batches. It makes the interval narrowest for differences
// of about three standard deviations of a batch.
const scaleOfEffects = .1

// allowance is the error of a window's mean due to a slow change, in standard deviations of the change.
const allowance = 2.5

// Mean is an estimated mean of batches.
type Mean struct {
	Value float64
	Batch Variance // of one batch
	N     float64  // number of batches; infinite for a value that is known exactly
}

// variance returns that of the mean.
func (m Mean) variance() float64 { return m.Batch.Value / m.N }

// Batched returns the mean of batches. A batch must last at least as long as the system's memory, a few turns;
// correlated neighboring batches increase the variance. earlier is what is known of the variance of a batch before; it
// is used together with the batches' own variance, and dropped where that is larger by a test at 10 %. The zero value
// is no knowledge. The mean of no batches is NaN.
func Batched(batches []float64, earlier Variance) Mean {
	n := float64(len(batches))
	m := Mean{Value: stat.Mean(batches, nil), N: n}
	own := Variance{DF: max(0, n-1)}
	if own.DF > 0 {
		own.Value = squaresOf(batches) * inflation(batches) / own.DF
	}
	m.Batch = own.With(earlier)
	return m
}

// Within returns the variance of a batch within several series of batches of one setting. Correlated neighbors increase
// it, by the correlation over all series, and leave fewer degrees of freedom. There are none where no series has two
// batches.
func Within(series ...[]float64) (v Variance) {
	squares, products, n, all := 0., 0., 0., 0.
	for _, s := range series {
		if len(s) < 2 {
			continue
		}
		v.DF += float64(len(s) - 1)
		squares += squaresOf(s)
		products += productsOf(s)
		n++
		all += float64(len(s))
	}
	if v.DF > 0 {
		factor := inflatedBy(products, squares, all/n)
		v.Value = squares / v.DF * factor
		v.DF /= factor
	}
	return v
}

// Contrast returns half the length of the interval of x − y that holds at all numbers of batches of x together, with an
// error of alpha; y is known from before. It can be observed continuously, and decisions can be made at any time.
// wander is the standard deviation of slow changes of speed that are not of interest, on the scale of the batches. It
// is infinite while there are too few batches.
//
// The interval is the set of differences that a scale-invariant mixture of likelihood ratios does not reject: Lai, "On
// confidence sequences", Annals of Statistics 4 (1976); Wang and Ramdas, "Anytime-valid t-tests and confidence
// sequences for Gaussian means with unknown variance", Sequential Analysis 44 (2025). Knowledge of the variance makes
// the mixture one over the variance too, by the scaled inverse χ² distribution: Gelman and others, "Bayesian Data
// Analysis" (2013), 3.3. The error of y is part of the likelihood of all batches of x, which keeps their order
// irrelevant; the degrees of freedom of two variances are Satterthwaite's (Biometrics Bulletin 2, 1946).
func Contrast(x, y Mean, alpha, wander float64) (half float64) {
	vx, vy := x.variance(), y.variance()
	v, df := vx+vy, x.Batch.DF
	if vy > 0 {
		df = v * v / (vx*vx/x.Batch.DF + vy*vy/y.Batch.DF)
	}
	r := v / (v + x.Batch.Value/scaleOfEffects)
	if x.Batch.Value == 0 {
		r = scaleOfEffects / (x.N + scaleOfEffects)
	}
	if !(df > 0) {
		return math.Inf(1)
	}
	k := math.Pow(1/(alpha*math.Sqrt(r)), 2/(df+1))
	if k*r >= 1 {
		return math.Inf(1)
	}
	return math.Sqrt(v*df*(k-1)/(1-k*r)) + allowance*wander
}

// Sequence returns the interval of a mean by [Contrast] with zero.
func Sequence(batches []float64, alpha, wander float64, earlier Variance) (mean float64, interval [2]float64) {
	if len(batches) == 0 {
		return math.NaN(), [2]float64{math.Inf(-1), math.Inf(1)}
	}
	m := Batched(batches, earlier)
	half := Contrast(m, Mean{N: math.Inf(1)}, alpha, wander)
	return m.Value, [2]float64{m.Value - half, m.Value + half}
}

// Discounted returns the mean with the degrees of freedom that are left of its batches where neighbors are correlated:
// as many as that many independent batches have. Without it, the error of the estimated correlation has no part in an
// interval.
func (m Mean) Discounted(batches []float64) Mean {
	own := max(0, float64(len(batches))-1)
	m.Batch.DF -= own * (1 - 1/inflation(batches))
	return m
}

// squaresOf returns the sum of the squared distances from the mean.
func squaresOf(batches []float64) (squares float64) {
	mean := stat.Mean(batches, nil)
	for _, v := range batches {
		squares += (v - mean) * (v - mean)
	}
	return squares
}

// productsOf returns the sum of the products of neighboring distances from the mean.
func productsOf(batches []float64) (products float64) {
	mean := stat.Mean(batches, nil)
	for i := 1; i < len(batches); i++ {
		products += (batches[i] - mean) * (batches[i-1] - mean)
	}
	return products
}

// inflation returns the factor by which correlated neighboring batches understate the variance of their mean.
func inflation(batches []float64) float64 {
	return inflatedBy(productsOf(batches), squaresOf(batches), float64(len(batches)))
}

// inflatedBy returns (1 + r)/(1 − r), the factor of an autoregressive series, for every positive lag-1
// autocorrelation r, with 1/n added for the bias of series of n batches (Marriott and Pope, Biometrika 41, 1954).
func inflatedBy(products, squares, n float64) float64 {
	if squares == 0 {
		return 1
	}
	r := min(max(0, products/squares+1/n), .9)
	return (1 + r) / (1 - r)
}
