package decide

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Power is the share of trials in which [Detectable] finds the difference that it returns.
const Power = .8

// Detectable returns the smallest difference of the first metric, on the scale of differences, that a trial of two arms
// finds in 80 % of cases, if its runs scatter by a variance, as a pilot or the last trial showed, and a block takes so
// many seconds. More than two arms are decided pair by pair with a smaller error. It is NaN where fewer than
// [LeastBlocks] fit into the time.
func Detectable(p Plan, variance, blockSeconds float64) float64 {
	blocks := int(p.MaxSeconds / blockSeconds * (1 + 1e-9))
	if blocks < LeastBlocks || !(blockSeconds > 0 && variance >= 0) {
		return math.NaN()
	}
	per, runs := 2., p.Arms // variance of a difference in one block, in those of a run
	if p.Arms == 2 {
		per, runs = 1.5, 3
	}
	var looks []Look
	for n := LeastBlocks; n <= blocks; n++ {
		df, _ := degrees(n*runs, n, p.Arms)
		looks = append(looks, Look{n, float64(n) / float64(blocks), float64(df) + p.Prior.DF})
	}
	s := state{Plan: p}
	t := slices.Clone(p.Known.at(s.pairAlpha(), looks))
	for i, z := range t {
		t[i] = toStudent(z, looks[i].DF)
	}
	chi := distuv.ChiSquared{K: looks[len(looks)/2].DF}
	one := math.Sqrt(variance * per)
	return solve(0, 60*one, func(difference float64) float64 {
		found := 0.
		for i := range nodes {
			s := math.Sqrt(chi.Quantile((float64(i)+.5)/nodes) / chi.K) // by what the standard error is over or under its truth
			found += crossing(looks, t, s, difference/one) / nodes
		}
		return Power - found
	})
}

// nodes is over how many estimates of the variance the power is averaged.
const nodes = 8

// crossing returns the probability that a drift leads over the upper boundary.
func crossing(looks []Look, t []float64, s, drift float64) (p float64) {
	w := walk{}
	for i, l := range looks {
		information := float64(l.Blocks)
		upper, lower := s*t[i]-drift*math.Sqrt(information), -s*t[i]-drift*math.Sqrt(information)
		p += w.beyond(information, upper, 1)
		w = w.next(information, lower, upper, coarse)
	}
	return p
}
