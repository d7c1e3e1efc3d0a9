package proof

import (
	"math"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/decide"
)

// guard replaces outcomes in favor of a side that certainly fails more turns at that level, all outcomes where the
// answers certainly differ in length, and those by latency where a side does not keep up with the rate, which have no
// advantage either.
func (c *Comparison) guard(p *Pair) {
	for i := range p.Levels {
		l := &p.Levels[i]
		a, b := c.failures(&c.Sides[p.A], l.Level), c.failures(&c.Sides[p.B], l.Level)
		l.Answers = c.answers(p, l.Level)
		for _, side := range []int{p.A, p.B} {
			if o := c.overload(side, l.Level); o.Spans > 0 {
				l.Overloaded = append(l.Overloaded, o)
			}
		}
		switch {
		case decide.FailsMore(b, a):
			l.FailsMore = &p.B
		case decide.FailsMore(a, b):
			l.FailsMore = &p.A
		}
		for q, f := range l.Figures {
			forB, forA := f.Outcome == api.OutcomeBetter, f.Outcome == api.OutcomeWorse
			late := len(l.Overloaded) > 0 && q.Kind == baseline.Time
			if (late || l.Answers != nil) && (forA || forB) || l.FailsMore == &p.B && forB || l.FailsMore == &p.A && forA {
				f.Outcome = api.OutcomeTradeOff
			}
			if late { // a value says how long the spans took
				f.Advantage, f.Interval = nil, nil
			}
			l.Figures[q] = f
		}
	}
}

// Overload is how often a side, an index of [Comparison.Sides], did not keep up with a rate: in how many of the spans
// that count.
type Overload struct {
	Side  int `json:"side"`
	Spans int `json:"spans"`
	Of    int `json:"of"`
}

// overload returns how often a side did not keep up with a level.
func (c *Comparison) overload(side int, level api.Level) Overload {
	o := Overload{Side: side}
	if c.Sweep == nil {
		return o
	}
	for i := range c.Sweep.Spans {
		span := &c.Sweep.Spans[i]
		if span.Spoiled == "" && span.Mode == c.Sides[side].Mode && span.Level == level {
			o.Of++
			if span.Overloaded != "" {
				o.Spans++
			}
		}
	}
	return o
}

// failures returns the failed turns of a side at a level: of each span of a sweep, else of its row.
func (c *Comparison) failures(s *Side, level api.Level) (all []decide.Failures) {
	if c.Sweep != nil {
		for i := range c.Sweep.Spans {
			if span := &c.Sweep.Spans[i]; span.Spoiled == "" && span.Mode == s.Mode && span.Level == level {
				all = append(all, decide.Failures{Failed: float64(span.Failed), Ended: float64(span.Turns + span.Failed)})
			}
		}
		return all
	}
	row := s.Row(level)
	if row.ErrorRatio == nil || *row.ErrorRatio >= 1 {
		return nil
	}
	ended := float64(row.N) / (1 - *row.ErrorRatio) // N are those that succeeded
	return []decide.Failures{{Failed: ended - float64(row.N), Ended: ended}}
}

// fewFailures is the share of failed turns up to which rates give the length of answers: tokens of failed turns count
// in the throughput, and the turns do not.
const fewFailures = .02

// answers returns the certain difference in output tokens per answer at a level, by throughput and requests and their
// intervals; nil without one.
func (c *Comparison) answers(p *Pair, level api.Level) *AnswerDifference {
	estimate, squares := 0.0, 0.0
	for i, side := range []*Side{&c.Sides[p.A], &c.Sides[p.B]} {
		column, _ := side.table.At(side.Mode, level)
		if failed := side.Row(level).ErrorRatio; failed != nil && *failed > fewFailures {
			return nil
		}
		for j, q := range []Quantity{QuantityThroughput, QuantityRequests} {
			l := q.LookedUpIn(&column)
			if l.Value == nil || l.Interval == nil || !(*l.Value > 0) {
				return nil
			}
			half := math.Log(l.Interval[1] / *l.Value)
			squares += half * half
			estimate += math.Log(*l.Value) * float64(2*i-1) * float64(1-2*j)
		}
	}
	half := math.Sqrt(squares)
	d := AnswerDifference{math.Expm1(estimate), [2]float64{math.Expm1(estimate - half), math.Expm1(estimate + half)}}
	if d.Interval[0] > decide.GuardMargin || d.Interval[1] < -decide.GuardMargin {
		return &d
	}
	return nil
}
