package decide

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// LevelDifference is the difference of two arms at a level: B minus A, on the scale of the values.
type LevelDifference struct {
	Estimate, SE, DF float64

	scatter Scatter
	level   int
	spans   float64 // half the harmonic mean of the arms' spans
}

// P returns the two-sided p-value for [Holm] of what the difference has beyond an allowance. It is NaN where an arm is
// missing or no variance is known.
func (d LevelDifference) P(allowance float64) float64 {
	return d.scatter.p(d.level, max(0, math.Abs(d.Estimate)-allowance), d.spans)
}

// Levels compares two arms at several ascending levels by the values of their repeats, with the variances of a
// [Scatter]. A level that lacks an arm has NaN. The results are unknown where no arm has two values at any level.
func Levels(at []float64, repeats [][2][]float64) []LevelDifference {
	var own []Variance
	for _, arms := range repeats {
		own = append(own, Pooled(arms[:]))
	}
	scatter := NewScatter(at, own)
	all := make([]LevelDifference, len(repeats))
	for i, arms := range repeats {
		a, b := float64(len(arms[0])), float64(len(arms[1]))
		v := scatter.At(i)
		d := LevelDifference{
			Estimate: stat.Mean(arms[1], nil) - stat.Mean(arms[0], nil), DF: v.DF,
			scatter: scatter, level: i, spans: 1 / (1/a + 1/b),
		}
		d.SE = math.Sqrt(v.Value / d.spans)
		all[i] = d
	}
	return all
}

// Pooled returns one variance for groups of values, each around its own mean. It is NaN, with no degrees of freedom,
// where no group has two values.
func Pooled(groups [][]float64) (v Variance) {
	squares := 0.
	for _, values := range groups {
		if n := float64(len(values)); n > 1 {
			squares += stat.Variance(values, nil) * (n - 1)
			v.DF += n - 1
		}
	}
	v.Value = squares / v.DF
	return v
}

// Holm reports which of several p-values are significant, with an error of alpha for all together: Holm, "A simple
// sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979). NaN is not significant
// and does not count.
func Holm(p []float64, alpha float64) []bool {
	var order []int
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	shown := make([]bool, len(p))
	for rank, i := range order {
		if p[i] > alpha/float64(len(order)-rank) {
			break
		}
		shown[i] = true
	}
	return shown
}
