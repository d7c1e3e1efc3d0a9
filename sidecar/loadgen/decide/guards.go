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
func (s *state) guards() (all []Comparison) {
	arms := s.all()
	for _, metric := range s.Guards {
		m, ok := s.fit(metric)
		if !ok {
			continue
		}
		t := distuv.StudentsT{Sigma: 1, Nu: m.moderated.DF}.Quantile(.975)
		for n, a := range arms {
			for _, b := range arms[n+1:] {
				c := Comparison{Metric: metric, A: a, B: b, MeanA: m.means[a], MeanB: m.means[b], DF: m.moderated.DF}
				c.Estimate, c.SE = m.difference(a, b)
				c.Repeated, c.Blocks = c.interval(t), len(s.blocks)
				c.Narrow = c.Repeated
				switch {
				case metric.Shown(c.Repeated[0]) > GuardMargin:
					c.Shown = 1
				case metric.Shown(c.Repeated[1]) < -GuardMargin:
					c.Shown = -1
				}
				all = append(all, c)
			}
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
