package baseline

import (
	"math"
	"slices"

	"kvbooth/sidecar/api"
)

// The least data from which a table's own scatter is estimated, and its lower bound: rounded values on a straight line
// would have no scatter.
const (
	leastDifferences = 10 // of all modes together
	leastOfMode      = 5
	leastScatter     = .005
)

// normal is the 97.5 % quantile of the normal distribution.
const normal = 1.960

// No recorded table says by how much a value differs from what another run would have recorded, so that is estimated,
// and everything that rests on it says so. Such a scatter is one standard deviation, as a share of the value, or of
// shares in points. It comes from the second differences over the table's levels, which are 0 on a straight line, so
// that what is left is mostly scatter (Gasser, Sroka and Jennen-Steinmetz, Biometrika 73, 1986). The median of their
// sizes, over 0.6745, is not misled by the few levels at which the curve does bend. A mode that scatters more than the
// table as a whole has its own scatter. A table of few levels has that of h200x3-tp1-llama70b-fp8, rounded up.

// differences returns the second differences over adjacent levels of one mode, each scaled to the size of one value's
// scatter.
func (q *Quantity) differences(rows []api.BaselineRow) (sizes []float64) {
	var low, middle *api.BaselineRow
	for i := range rows {
		high := &rows[i]
		if *q.In(high) == nil {
			continue
		}
		if low != nil && (q.Kind == Share || **q.In(middle) != 0) {
			share := (middle.Level.Value - low.Level.Value) / (high.Level.Value - low.Level.Value)
			d := **q.In(middle) - between(**q.In(low), **q.In(high), share)
			if q.Kind != Share {
				d /= **q.In(middle)
			}
			sizes = append(sizes, math.Abs(d)/math.Sqrt(1+share*share+(1-share)*(1-share)))
		}
		low, middle = middle, high
	}
	return sizes
}

// scatters returns the scatter of each of [values], in their order, for each mode of a table.
func scatters(modes [][]api.BaselineRow) [][]float64 {
	found := make([][]float64, len(modes))
	for _, q := range values {
		var all []float64
		own := make([][]float64, len(modes))
		for mode, rows := range modes {
			own[mode] = q.differences(rows)
			all = append(all, own[mode]...)
		}
		whole := q.assumed
		if len(all) >= leastDifferences {
			whole = max(leastScatter, deviationOf(all))
		}
		for mode := range modes {
			scatter := whole
			if len(all) >= leastDifferences && len(own[mode]) >= leastOfMode {
				scatter = max(scatter, deviationOf(own[mode]))
			}
			found[mode] = append(found[mode], scatter)
		}
	}
	return found
}

// deviationOf returns a standard deviation, by the median of sizes, which it sorts.
func deviationOf(sizes []float64) float64 {
	slices.Sort(sizes)
	n := len(sizes)
	return (sizes[(n-1)/2] + sizes[n/2]) / 2 / .6745
}

// estimate adds an estimated interval to the values of a column that were recorded without one, by the scatters of its
// mode.
func estimate(c *api.Column, scatters []float64) {
	for i, q := range values {
		if l := q.LookedUpIn(c); q.assumed > 0 && l.Value != nil && l.Interval == nil {
			half := normal * scatters[i]
			if q.Kind != Share {
				half *= *l.Value
			}
			l.Interval, l.Estimated = &[2]float64{*l.Value - half, *l.Value + half}, true
		}
	}
}

// WithIntervals gives a copy of a baseline in which every row that was recorded without intervals
// has those that its values are estimated to have, where [At] estimates them.
func WithIntervals(b api.Baseline) api.Baseline {
	t := NewTable(b)
	b.Rows = slices.Clone(b.Rows)
	for i := range b.Rows {
		r := &b.Rows[i]
		if r.Intervals != nil {
			continue
		}
		c := t.exactly(r)
		r.Intervals = &api.RowIntervals{}
		for _, q := range values {
			*q.IntervalIn(r.Intervals) = q.LookedUpIn(&c).Interval
		}
	}
	return b
}
