package decide

import "math"

// final computes the result of a comparison at the stop. The stage-wise ordering of outcomes gives a p-value for every
// possible true difference: the probability of stopping for B larger at an earlier look, or of as large a statistic at
// this one. The estimate has p = ½, the interval's ends α/2 on either side. Tsiatis, Rosner and Mehta, "Exact
// confidence intervals following a group sequential test", Biometrics 40 (1984). It equals Student's interval where the
// first look ends the trial.
func (s *state) final(c *Comparison) *Final {
	last := len(s.looks) - 1
	looks := moderated(s.looks, s.prior(c.key[0]))
	information := func(look int) float64 { return looks[look].information() }
	more := func(truth float64) (p float64) {
		w := walk{}
		for i := range last {
			deviation := c.SE * math.Sqrt(float64(looks[last].Blocks)/float64(looks[i].Blocks))
			bound := c.t[i] * c.deviation[i]
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
