package decide

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Failures counts the failed turns of a run among those that ended.
type Failures struct{ Failed, Ended float64 }

// share is NaN without turns.
func (f Failures) share() float64 { return f.Failed / f.Ended }

// failsMore returns the pairs whose first arm fails more often than the second.
func (s *state) failsMore() (more [][2]int) {
	runs := make([][]Failures, s.Arms)
	for i := range s.blocks {
		for _, run := range s.blocks[i].Spans {
			runs[run.Arm] = append(runs[run.Arm], Failures{float64(run.Failed), float64(run.Ended)})
		}
	}
	for a := range s.Arms {
		for b := range s.Arms {
			if a != b && FailsMore(runs[a], runs[b]) {
				more = append(more, [2]int{a, b})
			}
		}
	}
	return more
}

// FailsMore reports whether an arm with the runs a fails more often than one with the runs b, by the score test at 5 %
// on one side: more failures prevent a verdict and favor no arm. Failures come in clusters, one for each run. Therefore
// the binomial variance is multiplied by the excess scatter of the runs (Pearson's X² over its degrees of freedom, if
// that exceeds 1), and Student's t has these degrees of freedom (overdispersion: McCullagh and Nelder, second edition,
// 1989, section 4.5). One run of each arm shows no scatter, and counts as binomial.
func FailsMore(a, b []Failures) bool {
	allA, allB := sum(a), sum(b)
	p := sum([]Failures{allA, allB}).share()
	if !(p > 0 && p < 1) || allA.Ended == 0 || allB.Ended == 0 {
		return false
	}
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
	excess, limit := 1.0, normal.Quantile(.95)
	if df := float64(runs - 2); df >= 1 {
		excess = max(1, scatter/df)
		limit = distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(.95)
	}
	deviation := math.Sqrt(excess * p * (1 - p) * (1/allA.Ended + 1/allB.Ended))
	return allA.share()-allB.share() > limit*deviation
}

func sum(runs []Failures) (all Failures) {
	for _, run := range runs {
		all.Failed += run.Failed
		all.Ended += run.Ended
	}
	return all
}
