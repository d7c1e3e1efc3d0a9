package decide

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
)

// leastDegrees is the number of degrees of freedom beyond which the slope within blocks is fitted.
const leastDegrees = 4

// observation is one run's value on the scale of differences. The observations of a block are consecutive.
type observation struct {
	arm, block int
	at, y      float64
}

// model is the two-way fit: y = arm + block + slope · at + error.
type model struct {
	means     []float64 // of each arm, adjusted for blocks and slope
	inverse   *mat.SymDense
	moderated Variance // of a run
	own       Variance // from these blocks only
}

// Variance is an estimate of the variance of a run, on the scale of differences, with its degrees of freedom.
type Variance struct {
	Value float64 `json:"value"`
	DF    float64 `json:"df"`
}

// contradicted is the share of right priors that [Variance.With] drops.
const contradicted = .1

// With returns a variance together with what is known of it from before. That is dropped where the variance is larger
// by an F test at 10 %. The zero value is no knowledge.
func (v Variance) With(earlier Variance) (both Variance) {
	if !(earlier.DF > 0) ||
		v.DF > 0 && v.Value > earlier.Value*(distuv.F{D1: v.DF, D2: earlier.DF}).Quantile(1-contradicted) {
		return v
	}
	both.DF = v.DF + earlier.DF
	both.Value = (v.DF*v.Value + earlier.DF*earlier.Value) / both.DF
	return both
}

// fit fits the model by least squares. Block effects are removed by centering within blocks. All runs have one
// variance, double ones too: that holds where restarts scatter more than turns, and otherwise overstates the variance.
// The slope removes a steady change over a block, or the difference of two lanes. It is fitted if leastDegrees are left
// without it. Before that it inflates the variance, and the order within a block balances the estimates. places false
// leaves it out, where the order within each block is random.
func fit(all []observation, arms int, places bool, prior Variance) (m model, ok bool) {
	var blocks [][]observation
	for _, o := range all {
		if o.block == len(blocks) {
			blocks = append(blocks, nil)
		}
		blocks[o.block] = append(blocks[o.block], o)
	}
	df, slope := degrees(len(all), len(blocks), arms, places)
	columns := arms - 1
	if slope {
		columns++
	}
	if df < 1 || arms < 2 {
		return m, false
	}
	normalEquations := mat.NewSymDense(columns, nil)
	right := mat.NewVecDense(columns, nil)
	squares := 0.0
	for _, block := range blocks {
		rows, ys := centered(block, columns, arms)
		for i, row := range rows {
			squares += ys[i] * ys[i]
			right.AddScaledVec(right, ys[i], row)
			normalEquations.SymRankOne(normalEquations, 1, row)
		}
	}
	var cholesky mat.Cholesky
	if !cholesky.Factorize(normalEquations) {
		return m, false
	}
	var coefficients mat.VecDense
	m.inverse = mat.NewSymDense(columns, nil)
	if cholesky.SolveVecTo(&coefficients, right) != nil || cholesky.InverseTo(m.inverse) != nil {
		return m, false
	}
	m.means = adjustedMeans(blocks, &coefficients, arms)
	m.own = Variance{max(0, squares-mat.Dot(&coefficients, right)) / float64(df), float64(df)}
	m.moderated = m.own.With(prior)
	return m, true
}

// fitSome fits the model of some arms, ascending, by their observations. In the model, the others of so many arms have
// no values.
func fitSome(all []observation, some []int, arms int, places bool, prior Variance) (m model, ok bool) {
	blocks := map[int]int{}
	for i := range all {
		o := &all[i]
		if _, known := blocks[o.block]; !known {
			blocks[o.block] = len(blocks)
		}
		o.arm, o.block = slices.Index(some, o.arm), blocks[o.block]
	}
	if m, ok = fit(all, len(some), places, prior); !ok {
		return m, false
	}
	means, inverse := make([]float64, arms), mat.NewSymDense(arms-1, nil)
	for i, a := range some {
		means[a] = m.means[i]
		for j := 1; j <= i; j++ {
			inverse.SetSym(a-1, some[j]-1, m.inverse.At(i-1, j-1))
		}
	}
	m.means, m.inverse = means, inverse
	return m, true
}

// adjustedMeans returns the means that the arms would have over all blocks at the middle of each.
func adjustedMeans(blocks [][]observation, coefficients *mat.VecDense, arms int) []float64 {
	effect := append([]float64{0}, coefficients.RawVector().Data[:arms-1]...)
	slope := 0.0
	if coefficients.Len() == arms {
		slope = coefficients.AtVec(arms - 1)
	}
	base := 0.0
	for _, block := range blocks {
		for _, o := range block {
			base += (o.y - effect[o.arm] - slope*o.at) / float64(len(block)*len(blocks))
		}
	}
	for i := range effect {
		effect[i] += base
	}
	return effect
}

// degrees returns the degrees of freedom that runs leave for the variance, and whether the slope is fitted, which
// requires that places within a block matter.
func degrees(runs, blocks, arms int, places bool) (df int, slope bool) {
	df = runs - blocks - (arms - 1)
	if places && df > leastDegrees {
		return df - 1, true
	}
	return df, false
}

// centered returns the rows of the design matrix of a block and its values, both without their means.
func centered(block []observation, columns, arms int) (rows []*mat.VecDense, ys []float64) {
	n := float64(len(block))
	means := mat.NewVecDense(columns, nil)
	mean := 0.0
	for _, o := range block {
		row := mat.NewVecDense(columns, nil)
		if o.arm > 0 {
			row.SetVec(o.arm-1, 1)
		}
		if columns == arms {
			row.SetVec(columns-1, o.at)
		}
		means.AddScaledVec(means, 1/n, row)
		mean += o.y / n
		rows = append(rows, row)
		ys = append(ys, o.y)
	}
	for i := range rows {
		rows[i].SubVec(rows[i], means)
		ys[i] -= mean
	}
	return rows, ys
}

// difference returns the effect of arm b minus that of arm a, with its standard error.
func (m model) difference(a, b int) (estimate, deviation float64) {
	at := func(i, j int) float64 {
		if i == 0 || j == 0 {
			return 0
		}
		return m.inverse.At(i-1, j-1)
	}
	return m.means[b] - m.means[a], math.Sqrt(m.moderated.Value * (at(a, a) + at(b, b) - 2*at(a, b)))
}

// Variances returns the variances of a run by the metrics and guards of a plan, from these blocks alone, for [Moderate]
// and [Detectable]. succeeded is [Decision.Succeeded]. A metric that a run lacks has none.
func Variances(p Plan, blocks []Block, succeeded bool) map[string]Variance {
	s, all := state{Plan: p, blocks: blocks, succeeded: succeeded}, map[string]Variance{}
	for _, metric := range slices.Concat(p.Metrics, p.Guards) {
		if m, ok := s.fit(metric); ok {
			all[metric.Name] = m.own
		}
	}
	return all
}

// Moderate returns the variance that earlier trials of the same arms suggest: the mean by degrees of freedom, which is
// also right for trials that stopped early because their variance seemed small. The more the trials' variances differ
// beyond chance, the fewer degrees of freedom it has. It is zero for fewer than three trials. Smyth, "Linear models and
// empirical Bayes methods for assessing differential expression in microarray experiments", Statistical Applications in
// Genetics and Molecular Biology 3 (2004), section 6.2.
func Moderate(trials []Variance) Variance {
	var n, sum, squares, chance, total, value float64
	for _, v := range trials {
		if !(v.Value > 0 && v.DF > 0) {
			continue
		}
		e := math.Log(v.Value) - mathext.Digamma(v.DF/2) + math.Log(v.DF/2)
		n++
		sum += e
		squares += e * e
		chance += trigamma(v.DF / 2)
		total += v.DF
		value += v.DF * v.Value
	}
	if n < 3 {
		return Variance{}
	}
	mean := sum / n
	df := total
	if beyond := (squares-n*mean*mean)/(n-1) - chance/n; beyond > 0 {
		df = min(total, 2*solve(1e-3, 1e6, func(x float64) float64 { return trigamma(x) - beyond }))
	}
	return Variance{value / total, df}
}

// trigamma is the derivative of the digamma function: the recurrence, then the asymptotic series (Abramowitz and
// Stegun, 6.4.6 and 6.4.12).
func trigamma(x float64) (y float64) {
	for ; x < 10; x++ {
		y += 1 / (x * x)
	}
	q := 1 / (x * x)
	return y + 1/x + q/2 + q/x*(1./6-q*(1./30-q*(1./42-q/30)))
}
