package decide

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Scatter holds what the spans of several levels show of the variance at each of them. A few spans determine the
// variance of one level poorly, and one variance for all levels is wrong where the scatter changes with the load.
// Scatter therefore averages over shapes: the variance is constant, or its logarithm changes evenly with a function of
// the level. The weight of a shape is its posterior probability, given the variances that were observed. Their common
// size has Jeffreys' prior and is integrated out, so that the mean of a level follows Student's t for each shape; Box
// and Tiao, "Bayesian Inference in Statistical Analysis" (1973), 2.4. The zero value has no degrees of freedom.
type Scatter struct {
	df     float64
	shapes []shape
}

// shape holds the variance of a span at each level, and the weight of that.
type shape struct {
	weight float64
	values []float64
}

// axes lists the functions of the level that the log variance may be linear in. They describe a scatter that grows
// early, evenly or only close to saturation.
var axes = []func(level float64) float64{
	math.Log,
	func(level float64) float64 { return level },
	func(level float64) float64 { return math.Pow(level, 4) },
}

const (
	steepest = 6 // the largest change of the log variance over all levels, a factor of 20 on the standard deviation
	constant = 5 // the prior weight of a constant variance on each axis, where every other slope has 1
)

// NewScatter returns the scatter at ascending levels above 0 from the variance observed at each. A level without
// degrees of freedom has none.
func NewScatter(levels []float64, own []Variance) (s Scatter) {
	squares := func(values func(level int) float64) (sum float64) {
		for i, v := range own {
			if v.DF > 0 {
				sum += v.DF * v.Value / values(i)
			}
		}
		return sum
	}
	for _, v := range own {
		s.df += v.DF
	}
	if s.df == 0 {
		return s
	}
	pooled, best := squares(func(int) float64 { return 1 }), 0.
	for _, axis := range axes {
		for slope := -steepest; slope <= steepest; slope++ {
			values := growth(levels, own, s.df, axis, float64(slope))
			sum := squares(func(i int) float64 { return values[i] })
			for i := range values {
				values[i] *= sum / s.df
			}
			weight := 0. // its logarithm
			if slope == 0 {
				weight = math.Log(constant)
			}
			if pooled > 0 {
				weight += s.df / 2 * math.Log(pooled/sum)
			}
			s.shapes, best = append(s.shapes, shape{weight, values}), max(best, weight)
		}
	}
	total := 0.
	for i := range s.shapes {
		s.shapes[i].weight = math.Exp(s.shapes[i].weight - best)
		total += s.shapes[i].weight
	}
	for i := range s.shapes {
		s.shapes[i].weight /= total
	}
	s.df /= s.dispersion(own)
	return s
}

// growth returns the variances of a shape relative to each other. The mean of their logarithms by degrees of freedom is
// 0, so that shapes have likelihoods that differ by the sum of squares alone.
func growth(levels []float64, own []Variance, df float64, axis func(float64) float64, slope float64) []float64 {
	first, last := axis(levels[0]), axis(levels[len(levels)-1])
	values, center := make([]float64, len(levels)), 0.
	for i, level := range levels {
		if last > first {
			values[i] = slope * (axis(level) - first) / (last - first)
		}
		center += values[i] * own[i].DF / df
	}
	for i := range values {
		values[i] = math.Exp(values[i] - center)
	}
	return values
}

// dispersion returns Pearson's measure of how much more the observed variances differ than their shapes say, at least
// 1. It exceeds 1 where single spans lie far off or no shape fits, and then leaves fewer degrees of freedom: McCullagh
// and Nelder, "Generalized Linear Models" (1989), 8.3.
func (s Scatter) dispersion(own []Variance) float64 {
	sum, n := 0., -1.
	for i, v := range own {
		if v.DF > 0 && v.Value > 0 {
			expected := 0.
			for _, shape := range s.shapes {
				expected += shape.weight * shape.values[i]
			}
			off := v.Value/expected - 1
			sum += v.DF / 2 * off * off
			n++
		}
	}
	if n < 1 {
		return 1
	}
	return max(1, sum/n)
}

// At returns the variance of a span at a level: the geometric mean over the shapes, with the degrees of freedom of all
// levels.
func (s Scatter) At(level int) Variance {
	if s.df == 0 {
		return Variance{Value: math.NaN()}
	}
	mean := 0.
	for _, shape := range s.shapes {
		mean += shape.weight * math.Log(shape.values[level])
	}
	return Variance{math.Exp(mean), s.df}
}

// p returns the two-sided p-value of a mean of so many spans at a level, by its distance from zero. Shapes with next to
// no weight are left out.
func (s Scatter) p(level int, distance, spans float64) (p float64) {
	if s.df == 0 {
		return math.NaN()
	}
	t := distuv.StudentsT{Sigma: 1, Nu: s.df}
	for _, shape := range s.shapes {
		if shape.weight > 1e-3 {
			p += shape.weight * 2 * t.CDF(-distance/math.Sqrt(shape.values[level]/spans))
		}
	}
	return p
}
