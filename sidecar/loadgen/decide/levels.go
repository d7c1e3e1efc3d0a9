package decide

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// LevelDifference is the difference of two arms at a level: B minus A, on the scale of the values.
type LevelDifference struct {
	Estimate, SE, DF float64
	P                float64 // two-sided; for [Holm]
}

// Levels compares two arms at several levels by the values of their repeats. All levels share one variance, since a few
// repeats of one level determine it poorly. A level that lacks an arm has NaN. The results are unknown where no arm has
// two values at any level.
func Levels(levels [][2][]float64) []LevelDifference {
	var groups [][]float64
	for _, arms := range levels {
		groups = append(groups, arms[:]...)
	}
	v := Pooled(groups)
	all := make([]LevelDifference, len(levels))
	for i, arms := range levels {
		a, b := float64(len(arms[0])), float64(len(arms[1]))
		d := LevelDifference{Estimate: stat.Mean(arms[1], nil) - stat.Mean(arms[0], nil), DF: v.DF}
		d.SE = math.Sqrt(v.Value * (1/a + 1/b))
		d.P = math.NaN()
		if v.DF > 0 && a > 0 && b > 0 {
			d.P = 2 * distuv.StudentsT{Sigma: 1, Nu: v.DF}.CDF(-math.Abs(d.Estimate)/d.SE)
		}
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
