package decide

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// failed is the metric of [Decision.Failures]: the share of turns that fail.
var failed = Metric{Name: "failed", Share: true, LessIsBetter: true}

// fewFailures is the difference between the shares of failed turns up to which means of times are those of successful
// turns.
const fewFailures = .01

// Failures counts the failed turns of a run among those that ended.
type Failures struct{ Failed, Ended float64 }

// share is NaN without turns.
func (f Failures) share() float64 { return f.Failed / f.Ended }

// runsOf returns the failures of every run of an arm.
func (s *state) runsOf(arm int) (runs []Failures) {
	for i := range s.blocks {
		for _, run := range s.blocks[i].Spans {
			if run.Arm == arm {
				runs = append(runs, Failures{float64(run.Failed), float64(run.Ended)})
			}
		}
	}
	return runs
}

// failures compares every pair of arms by the share of failed turns. A pair of which an arm has left keeps its earlier
// comparison.
func (s *state) failures(earlier []Comparison, left []int) (all []Comparison) {
	bounds := s.Known.at(s.pairAlpha(), s.looks)
	arms := s.all()
	for n, a := range arms {
		for _, b := range arms[n+1:] {
			if !slices.Contains(left, a) || !slices.Contains(left, b) {
				all = append(all, among(earlier, []int{a, b})...)
				continue
			}
			runsA, runsB := s.runsOf(a), s.runsOf(b)
			c := Comparison{Metric: failed, A: a, B: b, MeanA: sum(runsA).share(), MeanB: sum(runsB).share()}
			if c.Estimate, c.SE, c.DF = failMore(runsA, runsB); math.IsNaN(c.Estimate) || c.DF < 1 {
				continue
			}
			c.Blocks = len(s.blocks)
			c.Repeated = c.interval(toStudent(bounds[len(bounds)-1], c.DF))
			c.Narrow = c.interval(distuv.StudentsT{Sigma: 1, Nu: c.DF}.Quantile(.95))
			c.Shown = side(c.Repeated)
			all = append(all, c)
		}
	}
	return all
}

// FailsMore reports whether an arm with the runs a fails more often than one with the runs b, at 5 % on one side.
func FailsMore(a, b []Failures) bool {
	more, deviation, df := failMore(b, a)
	if df < 1 {
		return more > normal.Quantile(.95)*deviation
	}
	return more > distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(.95)*deviation
}

// failMore returns by how much the share of failed turns is larger under b than under a, with its standard error and
// degrees of freedom, by the score test. Failures come in clusters, one for each run. Therefore the binomial variance
// is multiplied by the excess scatter of the runs (Pearson's X² over its degrees of freedom, if that exceeds 1), and
// Student's t has these degrees of freedom (overdispersion: McCullagh and Nelder, second edition, 1989, section 4.5).
// One run of each arm shows no scatter, and counts as binomial. The variance takes one more turn that fails and one
// more that does not, so that arms without failures have an interval. The difference is NaN where an arm has no turns.
func failMore(a, b []Failures) (difference, deviation, df float64) {
	allA, allB := sum(a), sum(b)
	p := sum([]Failures{allA, allB, {1, 2}}).share()
	scatter, runs := 0.0, 0
	for _, arm := range [][]Failures{a, b} {
		share := sum(arm).share()
		for _, run := range arm {
			if run.Ended > 0 {
				d := run.Failed - run.Ended*share
				scatter += d * d / (run.Ended * p * (1 - p))
				runs++
			}
		}
	}
	excess := 1.0
	if df = float64(runs - 2); df >= 1 {
		excess = max(1, scatter/df)
	}
	return allB.share() - allA.share(), math.Sqrt(excess * p * (1 - p) * (1/allA.Ended + 1/allB.Ended)), df
}

func sum(runs []Failures) (all Failures) {
	for _, run := range runs {
		all.Failed += run.Failed
		all.Ended += run.Ended
	}
	return all
}

// alike reports whether turns failed, and as many in all arms: no two differ by more than [fewFailures] and certainly.
// Arms that fail alike differ by more than that by chance, in which case a rule by the estimate alone chooses what is
// more extreme: 8 % of switchbacks of equal arms that fail 10 % were decided wrongly. Each look applies one rule to all
// blocks so far.
func alike(failures []Comparison) bool {
	return every(failures, func(c *Comparison) bool { return c.Shown == 0 || math.Abs(c.Estimate) <= fewFailures }) &&
		!every(failures, func(c *Comparison) bool { return c.MeanA+c.MeanB == 0 })
}

// MoreFailures returns 1 where b certainly fails more turns than a, −1 where a does, and 0 otherwise.
func (d *Decision) MoreFailures(a, b int) int {
	found := among(d.Failures, []int{a, b})
	switch {
	case len(found) == 0:
		return 0
	case a > b:
		return -found[0].Shown
	}
	return found[0].Shown
}

// failuresDiffer reports whether an arm certainly fails more turns than another.
func (d *Decision) failuresDiffer(arms []int) bool {
	return !every(among(d.Failures, arms), func(c *Comparison) bool { return c.Shown == 0 })
}

// Suspects reports whether failures or guards keep a comparison open that is decided otherwise. Failures do that where
// they do not certainly differ over all looks, but the better arm fails more by the test at 5 % on one side, or by more
// than 1 point. Where neither arm is better, it is the one or the other by that test. Guards do that where one arm is
// better: see [Decision.seemUnlike].
func (d *Decision) Suspects(c *Comparison) bool {
	winner, _, ok := c.Better()
	if ok && d.seemUnlike(c) {
		return true
	}
	return !every(among(d.Failures, []int{c.A, c.B}), func(f *Comparison) bool {
		seems := side(f.Narrow) != 0
		if ok {
			seems = (seems || math.Abs(f.Estimate) > fewFailures) && (f.Estimate > 0) == (f.B == winner)
		}
		return f.Shown != 0 || !seems
	})
}
