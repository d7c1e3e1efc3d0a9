package decide

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// GuardMargin is the displayed difference in a guard up to which arms are comparable.
const GuardMargin = .05

// Once compares every pair of arms by metrics, with intervals of 95 % that hold for one look alone.
func Once(p Plan, blocks []Block, metrics ...Metric) []Comparison {
	p.Guards = metrics
	return (&state{Plan: p, blocks: blocks}).guards()
}

// guards compares every pair of arms by the guards.
func (s *state) guards() []Comparison {
	return s.compareBy(s.Guards, GuardMargin, func(_ Metric, df float64) float64 {
		return distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(.975)
	})
}

// secondary compares every pair of arms by the secondary metrics.
func (s *state) secondary() []Comparison {
	margin := s.Margin
	if s.Metrics[0].Share { // in points
		margin = GuardMargin
	}
	n := len(s.Secondary) * s.Arms * (s.Arms - 1) / 2
	return s.compareBy(s.Secondary, margin, func(metric Metric, df float64) float64 {
		bounds := s.Known.at(s.Alpha/float64(n), moderated(s.looks, s.Priors[metric.Name]))
		return toStudent(bounds[len(bounds)-1], df)
	})
}

// compareBy compares every pair of arms by metrics. critical returns the critical value of Student's t. Shown says that
// a difference certainly exceeds the margin, as displayed.
func (s *state) compareBy(metrics []Metric, margin float64, critical func(Metric, float64) float64) (all []Comparison) {
	arms := s.all()
	for _, metric := range metrics {
		m, ok := s.fit(metric)
		if !ok {
			continue
		}
		t := critical(metric, m.moderated.DF)
		for n, a := range arms {
			for _, b := range arms[n+1:] {
				c := Comparison{Metric: metric, A: a, B: b, MeanA: m.means[a], MeanB: m.means[b], DF: m.moderated.DF}
				c.Estimate, c.SE = m.difference(a, b)
				c.lateA, c.lateB = s.lateness(metric, a, b)
				c.Repeated, c.Blocks = c.interval(t), len(s.blocks)
				c.Narrow = c.Repeated
				switch {
				case metric.Shown(c.Repeated[0]) > margin:
					c.Shown = 1
				case metric.Shown(c.Repeated[1]) < -margin:
					c.Shown = -1
				}
				all = append(all, c)
			}
		}
	}
	return all
}

// Worse returns the comparisons of the secondary metrics in which the better arm of a comparison is certainly worse
// than the other one, by more than the margin.
func (d *Decision) Worse(c *Comparison) (all []Comparison) {
	winner, _, ok := c.Better()
	for _, g := range among(d.Secondary, []int{c.A, c.B}) {
		if _, loser, certain := g.Better(); ok && certain && loser == winner {
			all = append(all, g)
		}
	}
	return all
}

// seemUnlike reports whether two arms certainly differ in a guard, by more than [GuardMargin] as estimated, and it is
// not yet certain that they differ by so much.
func (d *Decision) seemUnlike(c *Comparison) bool {
	return !every(among(d.Guards, []int{c.A, c.B}), func(g *Comparison) bool {
		return g.Shown != 0 || side(g.Repeated) == 0 || math.Abs(g.Metric.Shown(g.Estimate)) <= GuardMargin
	})
}
