package decide

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Excess is the amount by which a level exceeds its limit, as the logarithm of their ratio: the mean over its spans,
// and the weight of that. Weights are proportional to the number of spans over the variance of one.
type Excess struct {
	Level, Mean, Weight float64
}

// Sustained is the level up to which a limit is met. An infinite or zero end of the interval lies beyond the measured
// levels.
type Sustained struct {
	Level    float64
	Interval [2]float64
}

// crossingRatio is the 95 % quantile of the limit distribution of the likelihood ratio statistic for the point where a
// monotone function crosses a value.
const crossingRatio = 2.28

// Capacity estimates the level at which a limit begins to be missed, from one level or more in ascending order and the
// variance of a mean of weight 1. More load does not make a target faster, so the excess rises with the level. The
// estimate uses isotonic regression (Barlow, Bartholomew, Bremner and Brunk, "Statistical Inference under Order
// Restrictions", 1972), interpolated between levels. The interval holds the points that the likelihood ratio test does
// not reject: Banerjee and Wellner, "Likelihood ratio tests for monotone functions", Annals of Statistics 29 (2001),
// with their quantile increased by the ratio of Student's t to the normal quantile.
func Capacity(levels []Excess, variance Variance) Sustained {
	n := len(levels)
	fitted := isotonic(levels)
	t := distuv.StudentsT{Sigma: 1, Nu: variance.DF}.Quantile(.975) / normal.Quantile(.975)
	enough := crossingRatio * t * t * variance.Value
	s := Sustained{crossingOf(levels, fitted), [2]float64{math.Inf(1), 0}}
	free := misfit(levels, fitted)
	for below := range n + 1 { // below is the number of levels that meet the limit
		bound := append(isotonic(levels[:below]), isotonic(levels[below:])...)
		for i := range bound {
			if i < below {
				bound[i] = min(bound[i], 0)
			} else {
				bound[i] = max(bound[i], 0)
			}
		}
		if misfit(levels, bound)-free > enough {
			continue
		}
		low, high := 0., math.Inf(1)
		if below > 0 {
			low = levels[below-1].Level
		}
		if below < n {
			high = levels[below].Level
		}
		s.Interval = [2]float64{min(s.Interval[0], low), max(s.Interval[1], high)}
	}
	return s
}

// isotonic returns the ascending values closest to those of the levels, by pooling neighbors that are out of order.
func isotonic(levels []Excess) (fitted []float64) {
	var pools []Excess
	var sizes []int
	for _, l := range levels {
		pools = append(pools, l)
		sizes = append(sizes, 1)
		for i := len(pools) - 1; i > 0 && pools[i-1].Mean >= pools[i].Mean; i-- {
			a, b := pools[i-1], pools[i]
			a.Mean = (a.Mean*a.Weight + b.Mean*b.Weight) / (a.Weight + b.Weight)
			a.Weight += b.Weight
			sizes[i-1] += sizes[i]
			pools = append(pools[:i-1], a)
			sizes = sizes[:i]
		}
	}
	for i, p := range pools {
		for range sizes[i] {
			fitted = append(fitted, p.Mean)
		}
	}
	return fitted
}

// crossingOf interpolates the level at which fitted values cross zero: 0 if all are above, the highest level if none
// is.
func crossingOf(levels []Excess, fitted []float64) float64 {
	for i, v := range fitted {
		if v <= 0 {
			continue
		}
		if i == 0 {
			return 0
		}
		share := -fitted[i-1] / (v - fitted[i-1])
		return levels[i-1].Level + share*(levels[i].Level-levels[i-1].Level)
	}
	return levels[len(levels)-1].Level
}

// misfit returns the sum of squares of the levels' means around fitted values, each with its weight.
func misfit(levels []Excess, fitted []float64) (sum float64) {
	for i, l := range levels {
		sum += l.Weight * (l.Mean - fitted[i]) * (l.Mean - fitted[i])
	}
	return sum
}
