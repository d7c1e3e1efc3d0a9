package baseline

import (
	"math"
	"slices"

	"kvbooth/sidecar/api"
)

// Where a table's own scatter is known, and how small it is taken to be at least: rounded values on a straight line
// would have none.
const (
	leastDifferences = 10 // of all modes together
	leastOfMode      = 5
	leastScatter     = .005
)

// normal is the 97.5 % quantile of the normal distribution.
const normal = 1.960

// value is one that a row, its intervals and a column of a comparison have. Its scatter is by how much it differs from
// what another run would have recorded: one standard deviation, as a share of the value, or of the value itself.
//
// No recorded table says it, so it is estimated, and everything that rests on it says so: from the second differences
// over the table's levels, which are 0 on a straight line, so that what is left is mostly scatter (Gasser, Sroka and
// Jennen-Steinmetz, Biometrika 73, 1986). The median of their sizes, over .6745, is not misled by the few levels at
// which the curve does bend. A mode that scatters more than the table as a whole has its own scatter. A table of few
// levels has that of h200x3-tp1-llama70b-fp8, rounded up.
type value struct {
	name     string // in a report, such as ttft_p95
	of       func(*api.Column) *api.LookedUp
	row      func(*api.BaselineRow) *float64
	interval func(*api.RowIntervals) **[2]float64
	absolute bool
	assumed  float64 // scatter where a table has too few levels; 0: it is estimated for no table
}

// values are all of them; ITL and what is optional are recorded nowhere.
var values = slices.Concat(
	percentiles("ttft", func(c *api.Column) *api.LookedUpPair { return &c.TTFT },
		func(r *api.BaselineRow) *api.Percentiles { return &r.TTFT },
		func(in *api.RowIntervals) *api.PercentileIntervals { return &in.TTFT }, .02, .05),
	percentiles("tpot", func(c *api.Column) *api.LookedUpPair { return &c.TPOT },
		func(r *api.BaselineRow) *api.Percentiles { return &r.TPOT },
		func(in *api.RowIntervals) *api.PercentileIntervals { return &in.TPOT }, .015, .015),
	percentiles("itl", func(c *api.Column) *api.LookedUpPair { return &c.ITL },
		func(r *api.BaselineRow) *api.Percentiles { return &r.ITL },
		func(in *api.RowIntervals) *api.PercentileIntervals { return &in.ITL }, 0, 0),
	percentiles("latency", func(c *api.Column) *api.LookedUpPair { return &c.Latency },
		func(r *api.BaselineRow) *api.Percentiles { return &r.Latency },
		func(in *api.RowIntervals) *api.PercentileIntervals { return &in.Latency }, .03, .02),
	[]value{
		{
			"output_tokens_per_second", func(c *api.Column) *api.LookedUp { return &c.OutputTokensPerSecond },
			func(r *api.BaselineRow) *float64 { return r.OutputTokensPerSecond },
			func(in *api.RowIntervals) **[2]float64 { return &in.OutputTokensPerSecond }, false, .015,
		},
		{
			"requests_per_second", func(c *api.Column) *api.LookedUp { return &c.RequestsPerSecond },
			func(r *api.BaselineRow) *float64 { return r.RequestsPerSecond },
			func(in *api.RowIntervals) **[2]float64 { return &in.RequestsPerSecond }, false, .035,
		},
		{
			"kv_hit_ratio", func(c *api.Column) *api.LookedUp { return &c.KVHitRatio },
			func(r *api.BaselineRow) *float64 { return r.KVHitRatio },
			func(in *api.RowIntervals) **[2]float64 { return &in.KVHitRatio }, true, .02,
		},
	},
	optional,
)

const memoryOfGPU = "gpu_memory_bytes"

// optional are those that a column has only where a row of its mode has them.
var optional = []value{
	{
		"acceptance_rate", func(c *api.Column) *api.LookedUp { return &c.AcceptanceRate },
		func(r *api.BaselineRow) *float64 { return r.AcceptanceRate },
		func(in *api.RowIntervals) **[2]float64 { return &in.AcceptanceRate }, true, 0,
	},
	{
		"tokens_per_step", func(c *api.Column) *api.LookedUp { return &c.TokensPerStep },
		func(r *api.BaselineRow) *float64 { return r.TokensPerStep },
		func(in *api.RowIntervals) **[2]float64 { return &in.TokensPerStep }, false, 0,
	},
	{
		memoryOfGPU, func(c *api.Column) *api.LookedUp { return &c.GPUMemoryBytes },
		func(r *api.BaselineRow) *float64 { return r.GPUMemoryBytes },
		func(in *api.RowIntervals) **[2]float64 { return &in.GPUMemoryBytes }, false, 0,
	},
}

// percentiles are the two of a latency, with their assumed scatters.
func percentiles(
	name string, column func(*api.Column) *api.LookedUpPair, row func(*api.BaselineRow) *api.Percentiles,
	intervals func(*api.RowIntervals) *api.PercentileIntervals, p50, p95 float64,
) []value {
	return []value{
		{
			name + "_p50", func(c *api.Column) *api.LookedUp { return &column(c).P50 },
			func(r *api.BaselineRow) *float64 { return row(r).P50 },
			func(in *api.RowIntervals) **[2]float64 { return &intervals(in).P50 }, false, p50,
		},
		{
			name + "_p95", func(c *api.Column) *api.LookedUp { return &column(c).P95 },
			func(r *api.BaselineRow) *float64 { return row(r).P95 },
			func(in *api.RowIntervals) **[2]float64 { return &intervals(in).P95 }, false, p95,
		},
	}
}

// differences are the second differences over adjacent levels of one mode, each scaled so that its size is that of one
// value's scatter.
func (s *value) differences(rows []api.BaselineRow) (sizes []float64) {
	var low, middle *api.BaselineRow
	for i := range rows {
		high := &rows[i]
		if s.row(high) == nil {
			continue
		}
		if low != nil && (s.absolute || *s.row(middle) != 0) {
			share := float64(middle.Concurrency-low.Concurrency) / float64(high.Concurrency-low.Concurrency)
			d := *s.row(middle) - between(*s.row(low), *s.row(high), share)
			if !s.absolute {
				d /= *s.row(middle)
			}
			sizes = append(sizes, math.Abs(d)/math.Sqrt(1+share*share+(1-share)*(1-share)))
		}
		low, middle = middle, high
	}
	return sizes
}

// scatters are those of [values], in their order, for each mode of a table.
func scatters(modes [][]api.BaselineRow) [][]float64 {
	found := make([][]float64, len(modes))
	for i := range values {
		s := &values[i]
		var all []float64
		own := make([][]float64, len(modes))
		for mode, rows := range modes {
			own[mode] = s.differences(rows)
			all = append(all, own[mode]...)
		}
		whole := s.assumed
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

// deviationOf is a standard deviation by the median of sizes, which it sorts.
func deviationOf(sizes []float64) float64 {
	slices.Sort(sizes)
	n := len(sizes)
	return (sizes[(n-1)/2] + sizes[n/2]) / 2 / .6745
}

// estimate gives the values of a column that were recorded without an interval the one that they are estimated to have,
// by the scatters of its mode.
func estimate(c *api.Column, scatters []float64) {
	for i := range values {
		s := &values[i]
		if l := s.of(c); s.assumed > 0 && l.Value != nil && l.Interval == nil {
			half := normal * scatters[i]
			if !s.absolute {
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
		for i := range values {
			*values[i].interval(r.Intervals) = values[i].of(&c).Interval
		}
	}
	return b
}
