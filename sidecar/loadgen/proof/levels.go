package proof

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/decide"
)

// Named lists the quantities in the sentences of a sweep's report.
var Named = []Quantity{QuantityTTFT95, QuantityThroughput, QuantityHitRate}

// levelTest is the test of one figure at a level of a sweep. p is the p-value without the load generator's own error,
// allowed the p-value with it.
type levelTest struct {
	figure     map[Quantity]Figure
	quantity   Quantity
	better     bool
	p, allowed float64
}

// judgeLevels sets the outcomes of a sweep of levels. A few repeats of one level do not determine its variance, so that
// of every level comes from all levels of a quantity; see [decide.Scatter]. Holm's procedure covers all quantities in
// [Named] together, so that a report on equal modes names a level in 5 % of cases. It covers the other quantities
// separately. A sweep with one repeat uses the intervals from the parts of its spans.
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

// testLevels tests one quantity at the levels of a pair, and sets the intervals of its advantages. Levels without an
// interval are left out.
func (c *Comparison) testLevels(p *Pair, q Quantity) (tests []levelTest) {
	a, b := &c.Sides[p.A], &c.Sides[p.B]
	at, repeats := make([]float64, len(p.Levels)), make([][2][]float64, len(p.Levels))
	for i := range p.Levels {
		at[i] = p.Levels[i].Level.Value
		repeats[i] = [2][]float64{c.repeats(q, a, p.Levels[i].Level), c.repeats(q, b, p.Levels[i].Level)}
	}
	for i, d := range decide.Levels(at, repeats) {
		f := p.Levels[i].Figures[q]
		if f.Advantage == nil {
			continue
		}
		t := levelTest{figure: p.Levels[i].Figures, quantity: q, better: *f.Advantage > 0}
		switch {
		case !math.IsNaN(d.P(0)):
			lateA, lateB := late(q, a, p.Levels[i].Level), late(q, b, p.Levels[i].Level)
			t.better = d.Estimate > 0 != q.Kind.LessIsBetter()
			t.p, t.allowed = d.P(0), d.P(max(lateA[0]+lateB[1], lateA[1]+lateB[0]))
			half := student(alpha, d.DF) * d.SE
			f.Interval = advantages(q.Kind, d.Estimate-half-lateA[1]-lateB[0], d.Estimate+half+lateA[0]+lateB[1])
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

// repeats returns the values of a quantity in the spans of a level that count, on the scale of differences.
func (c *Comparison) repeats(q Quantity, s *Side, level api.Level) (all []float64) {
	for i := range c.Sweep.Spans {
		span := &c.Sweep.Spans[i]
		if span.Spoiled != "" || span.Overloaded != "" || span.Row == nil || span.Mode != s.Mode || span.Level != level {
			continue
		}
		if v := scaled(q.Kind, value(q, span.Row)); finite(v) {
			all = append(all, v)
		}
	}
	return all
}

// late returns the amounts by which the load generator's own error may make a side's value too large and too small, on
// the scale of differences.
func late(q Quantity, s *Side, level api.Level) (bounds [2]float64) {
	column, _ := s.table.At(s.Mode, level)
	figure := q.LookedUpIn(&column)
	if figure.Error == nil || figure.Value == nil || q.Kind != baseline.Time {
		return bounds
	}
	bounds[0] = *figure.Error / *figure.Value
	if q.BothWays {
		bounds[1] = bounds[0]
	}
	return bounds
}

// pValue returns the two-sided p-value of a Student's t.
func pValue(t, df float64) float64 {
	return 2 * distuv.StudentsT{Sigma: 1, Nu: df}.CDF(-t)
}

// advantages converts an interval of B − A on the scale of differences to an interval of the advantage.
func advantages(k baseline.Kind, low, high float64) *[2]float64 {
	switch k {
	case baseline.Time, baseline.Amount:
		return &[2]float64{-math.Expm1(high), -math.Expm1(low)}
	case baseline.Rate:
		return &[2]float64{math.Expm1(low), math.Expm1(high)}
	}
	return &[2]float64{low, high}
}
