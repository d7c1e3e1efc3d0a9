package proof

import (
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
)

// guard replaces outcomes in favor of a side that certainly fails more turns at that level.
func (c *Comparison) guard(p *Pair) {
	for i := range p.Levels {
		l := &p.Levels[i]
		a, b := c.failures(&c.Sides[p.A], l.Concurrency), c.failures(&c.Sides[p.B], l.Concurrency)
		traded := map[api.Outcome]bool{
			api.OutcomeBetter: decide.FailsMore(b, a), api.OutcomeWorse: decide.FailsMore(a, b),
		}
		for q, f := range l.Figures {
			if traded[f.Outcome] {
				f.Outcome = api.OutcomeTradeOff
				l.Figures[q] = f
			}
		}
	}
}

// failures returns the failed turns of a side at a level: of each span of a sweep, else of its row.
func (c *Comparison) failures(s *Side, level int) (all []decide.Failures) {
	if c.Sweep != nil {
		for i := range c.Sweep.Spans {
			if span := &c.Sweep.Spans[i]; span.Spoiled == "" && span.Mode == s.Mode && span.Concurrency == level {
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
