package calibrate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// knowledge is the information that figures give on the constants near one point. Constants are in units of [scale],
// figures in standard deviations.
type knowledge struct {
	weights  weights
	slope    *mat.Dense    // of each figure by each constant, the mean over the seeds
	residual *mat.VecDense // of each figure
	// information is JᵀJ without the contribution of chance. Its inverse is the covariance of the constants, if
	// the weights describe the figures' scatter correctly.
	information *mat.SymDense
	prior       []float64 // standard deviation of each constant by its bounds alone
}

// newKnowledge estimates JᵀJ from the products of different seeds' slopes. The noise of finite differences has the
// mean 0 in these products; in the square of the mean slope it would make every constant look determined. The
// information on a constant is reduced by twice the standard error of the estimate, so that chance alone determines
// nothing.
func newKnowledge(w weights, residuals []float64, slopes [][][]float64, prior []float64) knowledge {
	seeds, constants := float64(len(slopes)), len(prior)
	k := knowledge{
		weights: w, prior: prior, slope: mat.NewDense(len(w), constants, nil),
		residual:    mat.NewVecDense(len(w), residuals),
		information: mat.NewSymDense(constants, nil),
	}
	for _, matrix := range slopes {
		for i, row := range matrix {
			for a, v := range row {
				k.slope.Set(i, a, k.slope.At(i, a)+v/seeds)
			}
		}
	}
	certain := make([]float64, constants) // square root of the share of each constant's information that is not chance
	for a := range constants {
		for b := range a + 1 {
			products, chance := k.products(slopes, a, b)
			if a == b {
				certain[a] = math.Sqrt(max(1-2*chance/max(products, math.SmallestNonzeroFloat64), 0))
			}
			k.information.SetSym(a, b, products)
		}
	}
	for a := range constants {
		for b := range a + 1 {
			k.information.SetSym(a, b, certain[a]*certain[b]*k.information.At(a, b))
		}
	}
	k.information = spectrum(k.information, func(v float64) float64 { return max(v, 0) })
	return k
}

// products returns the sum over the figures of the products of the slopes by two constants, each from another seed.
// For equal constants, chance is the standard error of the sum.
func (k *knowledge) products(slopes [][][]float64, a, b int) (sum, chance float64) {
	seeds := float64(len(slopes))
	for i := range k.weights {
		mean := k.slope.At(i, a) * k.slope.At(i, b)
		same, variance := 0.0, 0.0 // products within a seed; variance of a's slope over the seeds
		for s := range slopes {
			same += slopes[s][i][a] * slopes[s][i][b]
			d := slopes[s][i][a] - k.slope.At(i, a)
			variance += d * d / (seeds - 1)
		}
		sum += (seeds*seeds*mean - same) / (seeds * (seeds - 1))
		chance += 2*variance*variance/(seeds*(seeds-1)) + 4*variance*max(mean-variance/seeds, 0)/seeds
	}
	return sum, math.Sqrt(chance)
}

// misfit returns the sum of the squared residuals.
func (k *knowledge) misfit() float64 { return mat.Dot(k.residual, k.residual) }

// inflation returns the factor, at least 1, by which the residuals exceed the figures' noise. The standard errors grow
// by it, because the model does not reproduce the figures to within that noise.
func (k *knowledge) inflation(moved int) float64 {
	free := max(len(k.weights)-moved, 1)
	return math.Sqrt(max(k.misfit()/float64(free), 1))
}

// enough is the standard error below which the search moves a constant, given the constants that it already moves.
const enough = .1

// movable returns the constants that the data determine together. It selects them by pivoted Cholesky decomposition,
// the one with the largest effect first, as columns of a Jacobian are chosen when its singular values show
// redundancy.
func (k *knowledge) movable() []int {
	n := len(k.prior)
	left := mat.NewSymDense(n, nil)
	left.CopySym(k.information)
	var list []int
	for len(list) < n {
		best := -1
		for a := range n {
			if !slices.Contains(list, a) && (best < 0 || left.At(a, a) > left.At(best, best)) {
				best = a
			}
		}
		if !(left.At(best, best) > 1/(enough*enough)) {
			break
		}
		next := mat.NewSymDense(n, nil)
		for a := range n {
			for b := a; b < n; b++ {
				next.SetSym(a, b, left.At(a, b)-left.At(a, best)*left.At(best, b)/left.At(best, best))
			}
		}
		left, list = next, append(list, best)
	}
	slices.Sort(list)
	return list
}

// step returns the change of each constant that minimizes the residuals of a linear model. Moved constants stay within
// their room; the others change as given. The second result is the largest change.
func (k *knowledge) step(moved []int, low, high, others []float64) (delta []float64, largest float64) {
	delta = slices.Clone(others)
	free := slices.Clone(moved)
	for len(free) > 0 {
		found := k.solve(free, delta)
		beyond := -1
		for i, a := range free {
			if d := found[i]; d < low[a] || d > high[a] {
				beyond = i
				delta[a] = min(max(d, low[a]), high[a])
				break
			}
		}
		if beyond < 0 {
			for i, a := range free {
				delta[a] = found[i]
			}
			break
		}
		free = slices.Delete(free, beyond, beyond+1) // the constant stays at its bound, the others are solved again
	}
	for _, d := range delta {
		largest = max(largest, math.Abs(d))
	}
	return delta, largest
}

// damping limits the changes of nearly redundant constants, as in the method of Levenberg and Marquardt.
const damping = 1e-3

// solve returns the least-squares change of the free constants, where the others change as given.
func (k *knowledge) solve(free []int, given []float64) []float64 {
	rows, n := len(k.weights), len(free)
	others := slices.Clone(given)
	for _, a := range free {
		others[a] = 0
	}
	var residual mat.VecDense
	residual.MulVec(k.slope, mat.NewVecDense(len(others), others))
	residual.AddVec(&residual, k.residual)
	system, right := mat.NewDense(rows+n, n, nil), mat.NewVecDense(rows+n, nil)
	for j, a := range free {
		length := 0.0
		for i := range rows {
			v := k.slope.At(i, a)
			system.Set(i, j, v)
			length += v * v
		}
		system.Set(rows+j, j, math.Sqrt(damping*length))
	}
	for i := range rows {
		right.SetVec(i, -residual.AtVec(i))
	}
	var found mat.VecDense
	if err := found.SolveVec(system, right); err != nil && found.Len() == 0 {
		return make([]float64, n)
	}
	return found.RawVector().Data
}

// plus returns the knowledge with the information of further figures added.
func (k *knowledge) plus(information *mat.SymDense) knowledge {
	both := *k
	both.information = mat.NewSymDense(len(k.prior), nil)
	both.information.AddSym(k.information, information)
	return both
}

// errors returns the standard errors of all constants. For each, the others are free within their bounds, which enter
// as priors; its own prior does not count. inflated is the factor by which the figures' noise is underestimated.
func (k *knowledge) errors(inflated float64) []float64 {
	out := make([]float64, len(k.prior))
	for a := range out {
		covariance := k.covariance(inflated, func(b int) bool { return b != a })
		out[a] = math.Sqrt(covariance.At(a, a))
	}
	return out
}

// held returns the standard error of each moved constant while the other constants are fixed, and the change of each
// moved constant per change of each fixed one, in units of [scale].
func (k *knowledge) held(moved []int, inflated float64) (errors []float64, coupling [][]float64) {
	n := len(moved)
	if n == 0 {
		return nil, nil
	}
	inner := mat.NewSymDense(n, nil)
	for i, a := range moved {
		for j, b := range moved[i:] {
			inner.SetSym(i, i+j, k.information.At(a, b))
		}
	}
	inverse := pseudoInverse(inner)
	errors, coupling = make([]float64, n), make([][]float64, n)
	for i := range moved {
		errors[i] = inflated * math.Sqrt(inverse.At(i, i))
		coupling[i] = make([]float64, len(k.prior))
		for h := range k.prior {
			if slices.Contains(moved, h) {
				continue
			}
			for j, b := range moved {
				coupling[i][h] -= inverse.At(i, j) * k.information.At(b, h)
			}
		}
	}
	return errors, coupling
}

// covariance returns the inverse of the information, with the priors of the known constants added.
func (k *knowledge) covariance(inflated float64, known func(int) bool) *mat.SymDense {
	n := len(k.prior)
	sum := mat.NewSymDense(n, nil)
	for a := range n {
		for b := a; b < n; b++ {
			v := k.information.At(a, b) / (inflated * inflated)
			if a == b && known(a) {
				v += 1 / (k.prior[a] * k.prior[a])
			}
			sum.SetSym(a, b, v)
		}
	}
	return pseudoInverse(sum)
}

// nothing is the information of an undetermined direction: a standard error of a thousand times the constant.
const nothing = 1e-6

// pseudoInverse inverts a symmetric matrix; see [nothing].
func pseudoInverse(m *mat.SymDense) *mat.SymDense {
	return spectrum(m, func(v float64) float64 { return 1 / max(v, nothing) })
}

// spectrum changes the eigenvalues of a symmetric matrix, which are the squares of the Jacobian's singular values. By
// chance some may be negative; those carry no information.
func spectrum(m *mat.SymDense, change func(float64) float64) *mat.SymDense {
	n := m.SymmetricDim()
	out := mat.NewSymDense(n, nil)
	var eigen mat.EigenSym
	if !eigen.Factorize(m, true) {
		return out
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	for i, v := range eigen.Values(nil) {
		out.SymRankOne(out, change(v), vectors.ColView(i))
	}
	return out
}
