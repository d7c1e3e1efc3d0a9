package calibrate

import (
	"math"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/closedloop"
)

// statistic is a figure that is fitted.
type statistic struct {
	name      string
	recorded  func(*api.BaselineRow) *float64
	interval  func(*api.RowIntervals) *[2]float64
	simulated func(*closedloop.Figures) float64
}

// statistics are those whose logarithms are fitted. The hit rate is not among them: it
// hangs on the router and the workload, hardly on any time.
var statistics = []statistic{
	{
		"TTFT p50", func(r *api.BaselineRow) *float64 { return r.TTFT.P50 },
		func(i *api.RowIntervals) *[2]float64 { return i.TTFT.P50 }, func(f *closedloop.Figures) float64 { return f.TTFT50 },
	},
	{
		"TTFT p95", func(r *api.BaselineRow) *float64 { return r.TTFT.P95 },
		func(i *api.RowIntervals) *[2]float64 { return i.TTFT.P95 }, func(f *closedloop.Figures) float64 { return f.TTFT95 },
	},
	throughput, tpot,
}

var (
	throughput = statistic{
		"throughput", func(r *api.BaselineRow) *float64 { return r.OutputTokensPerSecond },
		func(i *api.RowIntervals) *[2]float64 { return i.OutputTokensPerSecond }, func(f *closedloop.Figures) float64 { return f.TokensPerSecond },
	}
	tpot = statistic{
		"TPOT p50", func(r *api.BaselineRow) *float64 { return r.TPOT.P50 },
		func(i *api.RowIntervals) *[2]float64 { return i.TPOT.P50 }, func(f *closedloop.Figures) float64 { return f.TPOT50 },
	}
)

const (
	// precision is how well the model could give any figure at best, as a share. No
	// figure counts as better known than that.
	precision = .01
	// normal is the 97.5 % quantile of the normal distribution.
	normal = 1.960
)

// figure is one recorded value of a row that is fitted.
type figure struct {
	cell, of int     // indices of the row and of [statistics]
	log      float64 // of the recorded value
	sigma    float64 // standard deviation of its difference from the simulated one, in logarithms
}

// weights are the recorded figures of some rows, and how much each of them counts.
type weights []figure

// weigh takes the noise of a recorded figure from its interval where it has one, else it
// takes that of one simulated run for it; what the simulated mean is known to is added.
// Throughput times TPOT is about the number of conversations, so these two count as one.
//
// A few seeds that happen to agree would make a figure count for all others. The variance of a
// row's runs is therefore averaged with the mean over all rows, as moderated variances are
// (Smyth 2004, https://doi.org/10.2202/1544-6115.1027).
func weigh(cells []cell, runs samples) weights {
	scatters := make([]float64, len(statistics))
	for k, of := range statistics {
		for i := range cells {
			scatters[k] += scatter(runs[i], of) / float64(len(cells))
		}
	}
	var list weights
	for i, c := range cells {
		both := positive(throughput.recorded(c.row)) && positive(tpot.recorded(c.row))
		for k, of := range statistics {
			v := of.recorded(c.row)
			if !positive(v) || !(meanOf(runs[i], of) > 0) {
				continue
			}
			own := math.Sqrt((scatter(runs[i], of) + scatters[k]) / 2)
			noise := own
			if c.row.Intervals != nil {
				if in := of.interval(c.row.Intervals); in != nil {
					noise = (in[1] - in[0]) / (2 * normal) / *v
				}
			}
			variance := max(noise*noise, precision*precision) + own*own/float64(len(runs[i]))
			if both && (of.name == throughput.name || of.name == tpot.name) {
				variance *= 2
			}
			list = append(list, figure{cell: i, of: k, log: math.Log(*v), sigma: math.Sqrt(variance)})
		}
	}
	return list
}

// positive says whether a figure was recorded, and can be: a time or rate of 0 is none.
func positive(v *float64) bool { return v != nil && *v > 0 }

// scatter is the variance of a figure over the seeds, as a share of its squared mean.
func scatter(runs []closedloop.Figures, of statistic) float64 {
	mean := meanOf(runs, of)
	sum := 0.0
	for i := range runs {
		d := of.simulated(&runs[i])/mean - 1
		sum += d * d
	}
	return sum / float64(len(runs)-1)
}

func meanOf(runs []closedloop.Figures, of statistic) float64 {
	sum := 0.0
	for i := range runs {
		sum += of.simulated(&runs[i])
	}
	return sum / float64(len(runs))
}

// residuals are how far the simulated figures are above the recorded ones, in standard
// deviations.
func (w weights) residuals(runs samples) []float64 {
	out := make([]float64, len(w))
	for i, f := range w {
		out[i] = (math.Log(meanOf(runs[f.cell], statistics[f.of])) - f.log) / f.sigma
	}
	return out
}

// misfit is the sum of the squared residuals; infinite where a run gave no figure.
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

// slopes are the derivatives of the weighted figures by the constants, one matrix for
// each seed: [seed][figure][constant].
func slopes(w weights, apart []float64, runs []samples) [][][]float64 {
	seeds := len(runs[0][0])
	out := make([][][]float64, seeds)
	for s := range out {
		out[s] = make([][]float64, len(w))
		for i, f := range w {
			of := statistics[f.of].simulated
			row := make([]float64, len(apart))
			for k := range apart {
				low, high := &runs[2*k][f.cell][s], &runs[2*k+1][f.cell][s]
				if d := math.Log(of(high)/of(low)) / apart[k] / f.sigma; !math.IsNaN(d) && !math.IsInf(d, 0) { // else one of them gave no figure
					row[k] = d
				}
			}
			out[s][i] = row
		}
	}
	return out
}
