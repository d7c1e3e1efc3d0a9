package decide

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Gamma is the parameter of the spending function. Hwang, Shih and DeCani, "Group sequential designs using a family of
// type I error probability spending functions", Statistics in Medicine 9 (1990).
const Gamma = -2

// spent returns the share of the error that may be spent up to a share of the trial.
func spent(share float64) float64 { return math.Expm1(-Gamma*share) / math.Expm1(-Gamma) }

// Look is one analysis of a trial.
type Look struct {
	Blocks int     `json:"blocks"` // so far
	Share  float64 `json:"share"`  // of the blocks that fit into the time limit; 1 at the last look
	DF     float64 `json:"df"`     // of the variance, from these blocks only
}

// information grows in proportion to the blocks. The factor, found by simulation, accounts for Student's t: looks with
// few degrees of freedom depend on each other less than normal statistics do. Without it later looks spend a sixth more
// than their part, with it a twentieth, which [kept] covers.
func (l Look) information() float64 { return float64(l.Blocks) * l.DF / (l.DF + 3) }

// moderated returns looks whose degrees of freedom include those of a prior.
func moderated(looks []Look, prior Variance) []Look {
	looks = slices.Clone(looks)
	for i := range looks {
		looks[i].DF += prior.DF
	}
	return looks
}

// kept is the share of the error that boundaries spend.
const kept = .95

var normal = distuv.UnitNormal

// Boundaries computes critical values and caches them, since Decide needs the same ones after every block. The zero
// value is ready for use. It is not safe for concurrent use.
type Boundaries struct{ known map[string][]float64 }

// at returns [Boundary], cached unless b is nil.
func (b *Boundaries) at(alpha float64, looks []Look) []float64 {
	if b == nil {
		return Boundary(alpha, looks)
	}
	key := fmt.Sprint(alpha, looks)
	if found, ok := b.known[key]; ok {
		return found
	}
	if b.known == nil {
		b.known = map[string][]float64{}
	}
	b.known[key] = Boundary(alpha, looks)
	return b.known[key]
}

// Boundary returns the critical value of |Z| at each look of a symmetric two-sided test that spends alpha by the shares
// of the looks: Lan and DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70 (1983). It is +Inf
// at a look without error to spend.
func Boundary(alpha float64, looks []Look) []float64 {
	spend := make([]float64, len(looks))
	information := make([]float64, len(looks))
	for i, l := range looks {
		spend[i] = kept * alpha * spent(l.Share)
		information[i] = l.information()
	}
	return critical(spend, information)
}

// critical returns the critical values at which the error spent up to each look equals spend.
func critical(spend, information []float64) []float64 {
	bounds := make([]float64, len(spend))
	w := walk{}
	used := 0.0
	for i, s := range spend {
		bounds[i] = math.Inf(1)
		if more := s - used; more > 1e-12 {
			used = s
			bounds[i] = solve(0, farthest, func(c float64) float64 {
				return w.beyond(information[i], c, 1) + w.beyond(information[i], c, -1) - more
			})
		}
		if i+1 < len(spend) {
			w = w.next(information[i], -bounds[i], bounds[i], fine)
		}
	}
	return bounds
}

// The grids of the integration: fine for boundaries, with six digits; coarse for intervals, with four. farthest is the
// largest normal deviate.
const (
	fine     = 16
	coarse   = 6
	farthest = 12.0
)

// walk is the density of the statistic Z at a look, on a grid, for trials that have not stopped. It uses recursive
// integration after Armitage, McPherson and Rowe, "Repeated significance tests on accumulating data", JRSS A 132
// (1969), with the grid and the weights of Jennison and Turnbull, "Group Sequential Methods with Applications to
// Clinical Trials" (2000), chapter 19. The zero walk is the start of a trial.
type walk struct {
	information float64
	z, mass     []float64 // mass is density times weight
}

// beyond returns the probability, without a true difference, that a trial reaches the next look and Z is at least b
// there, or −Z where side is −1. information is that of the next look, and must exceed the walk's.
func (w walk) beyond(information, b, side float64) (p float64) {
	if w.z == nil {
		return normal.CDF(-b)
	}
	scale := 1 / math.Sqrt(information-w.information)
	to := math.Sqrt(information) * scale
	from := side * math.Sqrt(w.information) * scale
	for i, z := range w.z {
		p += w.mass[i] * normal.CDF(z*from-b*to)
	}
	return p
}

// next returns the walk after a look at which trials with Z outside (a, b) have stopped.
func (w walk) next(information, a, b float64, r int) walk {
	z, weights := grid(a, b, r)
	n := walk{information, z, weights}
	if w.z == nil {
		for i, v := range z {
			n.mass[i] *= normal.Prob(v)
		}
		return n
	}
	scale := 1 / math.Sqrt(information-w.information)
	to := math.Sqrt(information) * scale
	from := math.Sqrt(w.information) * scale
	for i, v := range z {
		density := 0.0
		for j, u := range w.z {
			d := v*to - u*from
			density += w.mass[j] * math.Exp(-d*d/2)
		}
		n.mass[i] *= density * to / math.Sqrt(2*math.Pi)
	}
	return n
}

// grid returns points between a and b, dense near 0, with the weights of Simpson's rule.
func grid(a, b float64, r int) (z, weights []float64) {
	var knots []float64
	for i := 1; i < 6*r; i++ {
		v := -3 + 3*float64(i-r)/(2*float64(r))
		switch {
		case i < r:
			v = -3 - 4*math.Log(float64(r)/float64(i))
		case i > 5*r:
			v = 3 + 4*math.Log(float64(r)/float64(6*r-i))
		}
		knots = append(knots, v)
	}
	low, high := max(a, knots[0]), min(b, knots[len(knots)-1])
	if low >= high {
		return []float64{0}, []float64{0}
	}
	knots = slices.DeleteFunc(knots, func(v float64) bool { return v <= low || v >= high })
	knots = append(append([]float64{low}, knots...), high)
	z = make([]float64, 2*len(knots)-1)
	weights = make([]float64, 2*len(knots)-1)
	for i := range len(knots) - 1 {
		width := knots[i+1] - knots[i]
		z[2*i] = knots[i]
		z[2*i+1] = knots[i] + width/2
		weights[2*i] += width / 6
		weights[2*i+1] += width * 4 / 6
		weights[2*i+2] += width / 6
	}
	z[len(z)-1] = high
	return z, weights
}

// solve returns the root of a decreasing function between two values, or the nearer end where there is none. Ridders,
// "A new algorithm for computing a single root of a real continuous function", IEEE Transactions on Circuits and
// Systems 26 (1979).
func solve(low, high float64, f func(float64) float64) float64 {
	above, below := f(low), f(high)
	switch {
	case !(above > 0):
		return low
	case !(below < 0):
		return high
	}
	root := low
	for range 60 {
		middle := (low + high) / 2
		at := f(middle)
		before := root
		root = middle + (middle-low)*at/math.Sqrt(at*at-above*below)
		if math.Abs(root-before) < 1e-9*max(1, math.Abs(root)) {
			break
		}
		for _, point := range [][2]float64{{middle, at}, {root, f(root)}} {
			switch x, y := point[0], point[1]; {
			case y > 0 && x > low:
				low, above = x, y
			case y <= 0 && x < high:
				high, below = x, y
			}
		}
	}
	return root
}

// toNormal converts a value of Student's t to the normal deviate with the same p-value.
func toNormal(t, df float64) float64 {
	z := -normal.Quantile(max(distuv.StudentsT{Sigma: 1, Nu: df}.CDF(-math.Abs(t)), 1e-300))
	return math.Copysign(min(z, farthest), t)
}

// toStudent is the inverse of toNormal.
func toStudent(z, df float64) float64 {
	if math.Abs(z) > 8 { // larger than any boundary of a trial
		return math.Copysign(math.Inf(1), z)
	}
	return math.Copysign(-distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(normal.CDF(-math.Abs(z))), z)
}

// final computes the result of a comparison at the stop. The stage-wise ordering of outcomes gives a p-value for every
// possible true difference: the probability of stopping for B larger at an earlier look, or of as large a statistic at
// this one. The estimate has p = ½, the interval's ends α/2 on either side. Tsiatis, Rosner and Mehta, "Exact
// confidence intervals following a group sequential test", Biometrics 40 (1984). It equals Student's interval where the
// first look ends the trial.
func (s *state) final(c *Comparison) *Final {
	if c.SE == 0 {
		return &Final{c.Estimate, c.interval(0)}
	}
	last := len(s.looks) - 1
	looks := moderated(s.looks, s.prior(c.key[0]))
	information := func(look int) float64 { return looks[look].information() }
	var stopped []float64 // estimates at which the trial would have stopped at the earlier looks
	for i, z := range s.bounds(s.pairAlpha(), c.key[0])[:last] {
		stopped = append(stopped, toStudent(z, looks[i].DF)*c.deviation[i])
	}
	more := func(truth float64) (p float64) {
		w := walk{}
		for i, bound := range stopped {
			deviation := c.SE * math.Sqrt(float64(looks[last].Blocks)/float64(looks[i].Blocks))
			upper := toNormal((bound-truth)/deviation, c.DF)
			lower := toNormal((-bound-truth)/deviation, c.DF)
			p += w.beyond(information(i), upper, 1)
			w = w.next(information(i), lower, upper, coarse)
		}
		return p + w.beyond(information(last), toNormal((c.Estimate-truth)/c.SE, c.DF), 1)
	}
	at := func(p float64) float64 {
		reach := 2*math.Abs(c.Estimate) + toStudent(5, c.DF)*c.SE
		return solve(c.Estimate-reach, c.Estimate+reach, func(truth float64) float64 { return p - more(truth) })
	}
	return &Final{at(.5), [2]float64{at(s.Alpha/2) - c.lateB, at(1-s.Alpha/2) + c.lateA}}
}
