package decide

import (
	"math"
)

// FailureShare counts the failed turns of an arm.
type FailureShare struct {
	Failed int `json:"failed"`
	Ended  int `json:"ended"`
}

// share is NaN without turns.
func (f FailureShare) share() float64 { return float64(f.Failed) / float64(f.Ended) }

// failures returns the arms' shares, and the pairs whose first arm fails more often than the second. More failures
// prevent a verdict and favor no arm, so they are tested at 5 % on one side at each look.
func (s *state) failures() (all []FailureShare, more [][2]int) {
	all = make([]FailureShare, s.Arms)
	for i := range s.blocks {
		for _, run := range s.blocks[i].Spans {
			all[run.Arm].Failed += run.Failed
			all[run.Arm].Ended += run.Ended
		}
	}
	for a := range s.Arms {
		for b := range s.Arms {
			if a != b && s.failureScore(all, a, b) > normal.Quantile(.95) {
				more = append(more, [2]int{a, b})
			}
		}
	}
	return all, more
}

// failureScore returns the normal deviate of the score test that arm a fails more often than b. Failures come in
// clusters, one for each run. Therefore the binomial variance is multiplied by the excess scatter of the runs
// (Pearson's X² over its degrees of freedom, if that exceeds 1), and Student's t has these degrees of freedom
// (overdispersion: McCullagh and Nelder, second edition, 1989, section 4.5).
func (s *state) failureScore(all []FailureShare, a, b int) float64 {
	both := FailureShare{all[a].Failed + all[b].Failed, all[a].Ended + all[b].Ended}
	p := both.share()
	if !(p > 0 && p < 1) || all[a].Ended == 0 || all[b].Ended == 0 {
		return 0
	}
	scatter, runs := 0.0, 0
	for i := range s.blocks {
		for _, run := range s.blocks[i].Spans {
			if n := float64(run.Ended); n > 0 && (run.Arm == a || run.Arm == b) {
				d := float64(run.Failed) - n*all[run.Arm].share()
				scatter += d * d / (n * p * (1 - p))
				runs++
			}
		}
	}
	df := float64(runs - 2)
	if df < 1 {
		return 0
	}
	variance := max(1, scatter/df) * p * (1 - p) * (1/float64(all[a].Ended) + 1/float64(all[b].Ended))
	return toNormal((all[a].share()-all[b].share())/math.Sqrt(variance), df)
}
