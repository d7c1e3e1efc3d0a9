package report

import (
	"fmt"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// guardWords names the certain differences between the answers of two arms, in clauses: in their length, else in their
// finish reasons.
func guardWords(guards []api.TrialDifference, a, b string) (all []string) {
	for i := range guards {
		d := &guards[i]
		m := proof.Metric(d.Metric)
		switch {
		case proof.Verdict(d.Outcome) != proof.Unlike:
		case m == proof.AnswerTokens:
			return []string{answerWords(a, b, d.Difference, *d.Interval)}
		default:
			all = append(all, fmt.Sprintf("the share of %s under %s is %s than under %s", m.Name(), b,
				change(d.Difference, d.Interval[0], d.Interval[1], m), a))
		}
	}
	return all
}

// answerWords describes how much shorter or longer the answers of b are.
func answerWords(a, b string, difference float64, in [2]float64) string {
	if difference > 1 {
		return fmt.Sprintf("answers under %s are %s (%s to %s times) as under %s", b, timesAsLong(difference),
			tenths(1+in[0]), tenths(1+in[1]), a)
	}
	word, low, high := "longer", in[0], in[1]
	if difference < 0 {
		word, low, high = "shorter", -in[1], -in[0]
		difference = -difference
	}
	return fmt.Sprintf("answers under %s are %s %% %s (%s to %s %%) than under %s", b, tenths(100*difference), word,
		tenths(100*low), tenths(100*high), a)
}

// guardSentences names the levels of a pair at which one side fails more turns, or at which answers differ in length.
func (r *Results) guardSentences(p *proof.Pair) (all []string) {
	a, b := r.Sides[p.A].Name, r.Sides[p.B].Name
	for _, side := range []int{p.A, p.B} {
		var levels []api.Level
		for _, l := range p.Levels {
			if l.FailsMore != nil && *l.FailsMore == side {
				levels = append(levels, l.Level)
			}
		}
		if len(levels) > 0 {
			all = append(all, fmt.Sprintf("%s certainly fails more turns at %s, and is better in nothing there.",
				r.Sides[side].Name, numbers(levels)))
		}
	}
	for _, l := range p.Levels {
		for _, o := range l.Overloaded {
			how := "does not keep up with"
			if o.Spans < o.Of {
				how = fmt.Sprintf("did not keep up in %d of %d spans with", o.Spans, o.Of)
			}
			all = append(all, fmt.Sprintf("%s %s %v, where latencies are not compared.", r.Sides[o.Side].Name, how, l.Level))
		}
		if d := l.Answers; d != nil {
			all = append(all, fmt.Sprintf("At %v, %s, so neither is better there.", l.Level,
				answerWords(a, b, d.Difference, d.Interval)))
		}
	}
	return all
}

// rankedGuards names the differences between answers of all pairs, in clauses.
func (r *Results) rankedGuards() (all []string) {
	for _, p := range r.ranking().Pairs {
		all = append(all, guardWords(p.Guards, r.armName(p.A), r.armName(p.B))...)
	}
	return all
}

// guardConclusion says whether the answers of two arms certainly differ.
func guardConclusion(d *api.TrialDifference) string {
	most := "more than 5" + unitOf(proof.Metric(d.Metric).Share())
	if proof.Verdict(d.Outcome) == proof.Unlike {
		return "certainly different by " + most
	}
	return "no certain difference of " + most
}

// unlike reports whether the answers of two arms certainly differ.
func unlike(guards []api.TrialDifference) bool {
	return slices.ContainsFunc(guards, func(d api.TrialDifference) bool {
		return proof.Verdict(d.Outcome) == proof.Unlike
	})
}
