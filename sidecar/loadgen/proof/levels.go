package proof

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
)

// Named are the quantities that the sentences on a sweep speak of.
var Named = []Quantity{QuantityTTFT95, QuantityThroughput, QuantityHitRate}

// levelTest is one figure of a level of a sweep, with its p-values without and with the load generator's own error.
type levelTest struct {
	figure     map[Quantity]Figure
	quantity   Quantity
	better     bool
	p, allowed float64
}

// judgeLevels judges the levels of a sweep: one variance for all levels of a quantity, since a few repeats of one level
// say little of it, and Holm's procedure over all that is [Named]: a report on equal modes names a level in 5 % of
// cases. The other quantities of the tables are judged in the same way, by themselves. A sweep of one repeat has its
// spans' parts in the place of repeats.
func (c *Comparison) judgeLevels() {
	for _, family := range []bool{true, false} {
		var tests []levelTest
		for i := range c.Pairs {
			for _, q := range quantities {
				if c.Pairs[i].Withheld == "" && slices.Contains(Named, q) == family {
					tests = append(tests, c.testLevels(&c.Pairs[i], q)...)
				}
			}
		}
		var plain, allowed []float64
		for i := range tests {
			plain, allowed = append(plain, tests[i].p), append(allowed, tests[i].allowed)
		}
		shown, certain := decide.Holm(plain, alpha), decide.Holm(allowed, alpha)
		for i := range tests {
			t := &tests[i]
			f := t.figure[t.quantity]
			switch {
			case !shown[i]:
				f.Outcome = api.OutcomeNoDifference
			case !certain[i]:
				f.Outcome = api.OutcomeWithheld
			case t.better:
				f.Outcome = api.OutcomeBetter
			default:
				f.Outcome = api.OutcomeWorse
			}
			t.figure[t.quantity] = f
		}
	}
}

// testLevels tests one quantity at the levels of a pair, and sets the intervals of its advantages.
func (c *Comparison) testLevels(p *Pair, q Quantity) (tests []levelTest) {
	a, b := &c.Sides[p.A], &c.Sides[p.B]
	repeats := make([][2][]float64, len(p.Levels))
	for i := range p.Levels {
		repeats[i] = [2][]float64{c.repeats(q, a, p.Levels[i].Concurrency), c.repeats(q, b, p.Levels[i].Concurrency)}
	}
	for i, d := range decide.Levels(repeats) {
		f := p.Levels[i].Figures[q]
		if f.Advantage == nil {
			continue
		}
		t := levelTest{figure: p.Levels[i].Figures, quantity: q, better: *f.Advantage > 0}
		switch {
		case !math.IsNaN(d.P):
			lateA, lateB := q.late(a, p.Levels[i].Concurrency), q.late(b, p.Levels[i].Concurrency)
			t.better = d.Estimate > 0 != q.kind().lessIsBetter()
			t.p, t.allowed = d.P, pValue((math.Abs(d.Estimate)-max(lateA[0]+lateB[1], lateA[1]+lateB[0]))/d.SE, d.DF)
			half := student(alpha, d.DF) * d.SE
			f.Interval = q.kind().advantages(d.Estimate-half-lateA[1]-lateB[0], d.Estimate+half+lateA[0]+lateB[1])
			t.figure[q] = f
		case f.Interval != nil && f.Outcome != api.OutcomeTooVariable:
			half := *f.Advantage - f.Interval[0]
			if *f.Advantage < 0 {
				half = f.Interval[1] - *f.Advantage
			}
			t.p = pValue(student(alpha, runSections-1)*math.Abs(*f.Advantage)/half, runSections-1)
			if t.allowed = t.p; f.Outcome == api.OutcomeWithheld {
				t.p = 0
			}
		default:
			continue
		}
		tests = append(tests, t)
	}
	return tests
}

// repeats are the values of a quantity in the spans of a level and mode that count, on the scale of differences.
func (c *Comparison) repeats(q Quantity, s *Side, level int) (all []float64) {
	for i := range c.Sweep.Spans {
		span := &c.Sweep.Spans[i]
		if span.Spoiled != "" || span.Row == nil || span.Mode != s.Mode || span.Concurrency != level {
			continue
		}
		if v := q.kind().scaled(value(q, span.Row)); finite(v) {
			all = append(all, v)
		}
	}
	return all
}

// late is by how much a side's value may be too large, and too small, for the load generator's own error, on the scale
// of differences.
func (q Quantity) late(s *Side, level int) (by [2]float64) {
	column, _ := s.table.At(s.Mode, level)
	of := q.lookedUpIn(&column)
	if of.Error == nil || of.Value == nil || q.kind() != duration {
		return by
	}
	by[0] = *of.Error / *of.Value
	if q == QuantityTPOT50 || q == QuantityTPOT95 {
		by[1] = by[0]
	}
	return by
}

// pValue is the two-sided one of a Student's t; 1 below 0.
func pValue(t, df float64) float64 {
	return 2 * distuv.StudentsT{Sigma: 1, Nu: df}.CDF(-max(0, t))
}

// advantages brings an interval of B minus A from the scale of differences to that of advantages.
func (k kind) advantages(low, high float64) *[2]float64 {
	switch k {
	case duration, amount:
		return &[2]float64{-math.Expm1(high), -math.Expm1(low)}
	case rate:
		return &[2]float64{math.Expm1(low), math.Expm1(high)}
	}
	return &[2]float64{low, high}
}
