package calibrate

import (
	"math"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/closedloop"
)

// statistic is a figure that the fit uses.
type statistic struct {
	name      string
	recorded  func(*api.BaselineRow) *float64
	interval  func(*api.RowIntervals) *[2]float64
	simulated closedloop.Field
}

// statistics are the figures whose logarithms are fitted. The hit rate is not among them: it depends on the router and
// the workload, but hardly on any time.
var statistics = []statistic{
	{
		"TTFT p50", func(r *api.BaselineRow) *float64 { return r.TTFT.P50 },
		func(i *api.RowIntervals) *[2]float64 { return i.TTFT.P50 },
		closedloop.TTFT50,
	},
	{
		"TTFT p95", func(r *api.BaselineRow) *float64 { return r.TTFT.P95 },
		func(i *api.RowIntervals) *[2]float64 { return i.TTFT.P95 },
		closedloop.TTFT95,
	},
	throughput, tpot,
}

var (
	throughput = statistic{
		"throughput", func(r *api.BaselineRow) *float64 { return r.OutputTokensPerSecond },
		func(i *api.RowIntervals) *[2]float64 { return i.OutputTokensPerSecond },
		closedloop.Tokens,
	}
	tpot = statistic{
		"TPOT p50", func(r *api.BaselineRow) *float64 { return r.TPOT.P50 },
		func(i *api.RowIntervals) *[2]float64 { return i.TPOT.P50 },
		closedloop.TPOT50,
	}
)

const (
	// precision is the best relative accuracy of the model. No figure counts as known more precisely than that.
	precision = .01
	// normal is the 97.5 % quantile of the normal distribution.
	normal = 1.960
)

// figure is one recorded value of a fitted row.
type figure struct {
	cell, statistic int     // indices of the row and of [statistics]
	log             float64 // logarithm of the recorded value
	sigma           float64 // standard deviation of its difference from the simulated one, in logarithms
}

// weights are the recorded figures of some rows with their standard deviations.
type weights []figure

// weigh computes the weights of the figures. The noise of a recorded figure is derived from its interval if it has
// one, otherwise from the scatter of the simulated runs. The uncertainty of the simulated mean is added. Throughput
// times TPOT is about the number of conversations, so these two count as one figure.
//
// A few seeds that agree by chance would give a figure more weight than all others. Therefore the variance of a row's
// runs is averaged with the mean over all rows, as moderated variances are
// (Smyth 2004, https://doi.org/10.2202/1544-6115.1027).
func weigh(cells []cell, runs samples) weights {
	scatters := make([]float64, len(statistics))
	for k, s := range statistics {
		for i := range cells {
			scatters[k] += scatter(runs[i], s) / float64(len(cells))
		}
	}
	var list weights
	for i, c := range cells {
		both := positive(throughput.recorded(c.row)) && positive(tpot.recorded(c.row))
		for k, s := range statistics {
			v := s.recorded(c.row)
			if !positive(v) || !(meanOf(runs[i], s) > 0) {
				continue
			}
			own := math.Sqrt((scatter(runs[i], s) + scatters[k]) / 2)
			noise := own
			if c.row.Intervals != nil {
				if interval := s.interval(c.row.Intervals); interval != nil {
					noise = (interval[1] - interval[0]) / (2 * normal) / *v
				}
			}
			variance := max(noise*noise, precision*precision) + own*own/float64(len(runs[i]))
			if both && (s.name == throughput.name || s.name == tpot.name) {
				variance *= 2
			}
			list = append(list, figure{cell: i, statistic: k, log: math.Log(*v), sigma: math.Sqrt(variance)})
		}
	}
	return list
}

// positive reports whether a figure was recorded. A time or rate of 0 counts as not recorded.
func positive(v *float64) bool { return v != nil && *v > 0 }

// scatter returns the variance of a figure over the seeds, as a share of its squared mean.
func scatter(runs []closedloop.Figures, s statistic) float64 {
	mean := meanOf(runs, s)
	sum := 0.0
	for i := range runs {
		d := *s.simulated.Of(&runs[i])/mean - 1
		sum += d * d
	}
	return sum / float64(len(runs)-1)
}

func meanOf(runs []closedloop.Figures, s statistic) float64 {
	sum := 0.0
	for i := range runs {
		sum += *s.simulated.Of(&runs[i])
	}
	return sum / float64(len(runs))
}

// residuals returns the differences between simulated and recorded figures, in standard deviations.
func (w weights) residuals(runs samples) []float64 {
	out := make([]float64, len(w))
	for i, f := range w {
		out[i] = (math.Log(meanOf(runs[f.cell], statistics[f.statistic])) - f.log) / f.sigma
	}
	return out
}

// misfit returns the sum of the squared residuals, or infinity if a run has no figure.
func (w weights) misfit(runs samples) float64 {
	sum := 0.0
	for _, r := range w.residuals(runs) {
		sum += r * r
	}
	if math.IsNaN(sum) {
		return math.Inf(1)
	}
	return sum
}

// slopes returns the derivatives of the weighted figures by the constants, one matrix for each seed, indexed
// [seed][figure][constant].
func slopes(w weights, apart []float64, runs []samples) [][][]float64 {
	seeds := len(runs[0][0])
	out := make([][][]float64, seeds)
	for s := range out {
		out[s] = make([][]float64, len(w))
		for i, f := range w {
			simulated := statistics[f.statistic].simulated.Of
			row := make([]float64, len(apart))
			for k := range apart {
				low, high := &runs[2*k][f.cell][s], &runs[2*k+1][f.cell][s]
				d := math.Log(*simulated(high) / *simulated(low)) / apart[k] / f.sigma
				if !math.IsNaN(d) && !math.IsInf(d, 0) { // otherwise one of the runs has no figure
					row[k] = d
				}
			}
			out[s][i] = row
		}
	}
	return out
}
