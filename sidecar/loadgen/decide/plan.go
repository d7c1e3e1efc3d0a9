package decide

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Power is the probability with which [Detectable] requires a difference to be found.
const Power = .8

// Detectable returns the smallest difference of the first metric, on the scale of differences, that a trial of two arms
// finds with probability [Power]. variance is that of a run, from a pilot or the last trial, and a block takes
// blockSeconds. More than two arms are decided pair by pair with a smaller error. It is NaN where fewer than
// [Plan.LeastBlocks] fit into the time.
func Detectable(p Plan, variance, blockSeconds float64) float64 {
	s, looks, t := p.ahead(blockSeconds)
	if looks == nil || !(variance >= 0) {
		return math.NaN()
	}
	chi := distuv.ChiSquared{K: looks[len(looks)/2].DF}
	one := math.Sqrt(variance * s.perBlock())
	return solve(0, 60*one, func(difference float64) float64 {
		found := 0.
		for i := range nodes {
			scale := math.Sqrt(chi.Quantile((float64(i)+.5)/nodes) / chi.K) // estimated over true standard error
			found += crossing(looks, t, scale, difference/one) / nodes
		}
		return Power - found
	})
}

// Expected returns the median number of blocks after which a trial of two arms is over, if the estimate of a comparison
// after so many blocks is the truth: once the interval excludes 0, or is within the margin. It is 0 where the time
// limit comes first.
func Expected(p Plan, c *Comparison, blocks int, blockSeconds float64) int {
	_, looks, t := p.ahead(blockSeconds)
	within := p.Metrics[0].Margin(p.Margin) - math.Abs(c.Estimate)
	narrow := p.Known.at(equivalence, looks)
	for i, l := range looks {
		se := c.SE * math.Sqrt(float64(blocks)/float64(l.Blocks))
		if t[i]*se < math.Abs(c.Estimate) || toStudent(narrow[i], l.DF)*se < within {
			return l.Blocks
		}
	}
	return 0
}

// Answer returns the median time in seconds after which a trial of two arms is over, if the first metric differs by so
// much on the scale of differences, runs have that variance, and a block takes blockSeconds; 0 where the time limit
// comes first.
func Answer(p Plan, variance, difference, blockSeconds float64) float64 {
	c := Comparison{Estimate: difference, SE: math.Sqrt(variance * (&state{Plan: p}).perBlock())}
	return blockSeconds * float64(Expected(p, &c, 1, blockSeconds))
}

// ahead returns the looks of a trial whose blocks take blockSeconds, with the critical values of Student's t; none
// where fewer than [Plan.LeastBlocks] fit into the time.
func (p Plan) ahead(blockSeconds float64) (s state, looks []Look, t []float64) {
	s = state{Plan: p}
	blocks := int(p.MaxSeconds / blockSeconds * (1 + 1e-9))
	if blocks < p.LeastBlocks() || !(blockSeconds > 0) {
		return s, nil, nil
	}
	for n := p.LeastBlocks(); n <= blocks; n++ {
		if !due(n) && n < blocks {
			continue
		}
		df, _ := degrees(n*s.runs(), n, p.Arms, !p.Switchback)
		looks = append(looks, Look{n, float64(n) / float64(blocks), float64(df) + s.prior(0).DF})
	}
	t = slices.Clone(p.Known.at(s.pairAlpha(), looks))
	for i, z := range t {
		t[i] = toStudent(z, looks[i].DF)
	}
	return s, looks, t
}

func (s *state) runs() int {
	switch {
	case s.Arms != 2:
		return s.Arms
	case s.SideBySide:
		return 4
	case s.inPairs():
		return 2
	}
	return 3
}

// perBlock returns the variance of a difference in one block, in units of the variance of a run.
func (s *state) perBlock() float64 {
	switch {
	case s.Arms != 2, s.inPairs():
		return 2
	case s.SideBySide:
		return 1
	}
	return 1.5
}

// nodes is the number of estimates of the variance over which the power is averaged.
const nodes = 8

// crossing returns the probability that a drift leads across the upper boundary.
func crossing(looks []Look, t []float64, s, drift float64) (p float64) {
	w := walk{}
	for i, l := range looks {
		information := float64(l.Blocks)
		drifted := drift * math.Sqrt(information)
		upper, lower := s*t[i]-drifted, -s*t[i]-drifted
		p += w.beyond(information, upper, 1)
		w = w.next(information, lower, upper, coarse)
	}
	return p
}
