package decide

import "math"

// failureShare counts the failed turns of an arm.
type failureShare struct{ failed, ended int }

// share is NaN without turns.
func (f failureShare) share() float64 { return float64(f.failed) / float64(f.ended) }

// failsMore returns the pairs whose first arm fails more often than the second. More failures prevent a verdict and
// favor no arm, so they are tested at 5 % on one side at each look.
func (s *state) failsMore() (more [][2]int) {
	all := make([]failureShare, s.Arms)
	for i := range s.blocks {
		for _, run := range s.blocks[i].Spans {
			all[run.Arm].failed += run.Failed
			all[run.Arm].ended += run.Ended
		}
	}
	for a := range s.Arms {
		for b := range s.Arms {
			if a != b && s.failureScore(all, a, b) > normal.Quantile(.95) {
				more = append(more, [2]int{a, b})
			}
		}
	}
	return more
}

// failureScore returns the normal deviate of the score test that arm a fails more often than b. Failures come in
// clusters, one for each run. Therefore the binomial variance is multiplied by the excess scatter of the runs
// (Pearson's X² over its degrees of freedom, if that exceeds 1), and Student's t has these degrees of freedom
// (overdispersion: McCullagh and Nelder, second edition, 1989, section 4.5).
func (s *state) failureScore(all []failureShare, a, b int) float64 {
	both := failureShare{all[a].failed + all[b].failed, all[a].ended + all[b].ended}
	p := both.share()
	if !(p > 0 && p < 1) || all[a].ended == 0 || all[b].ended == 0 {
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
	variance := max(1, scatter/df) * p * (1 - p) * (1/float64(all[a].ended) + 1/float64(all[b].ended))
	return toNormal((all[a].share()-all[b].share())/math.Sqrt(variance), df)
}
