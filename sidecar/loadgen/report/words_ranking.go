package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// ranking returns the ranking of a trial of more than two arms. It is nil for any other report.
func (r *Results) ranking() *api.TrialRanking {
	if r.Sweep == nil || r.Sweep.Trial == nil {
		return nil
	}
	return r.Sweep.Trial.Ranking
}

func (r *Results) armName(arm api.TrialArm) string {
	i := slices.Index(api.TrialArms, arm)
	if names := proof.ModeNames(r.Sweep.Request.Modes); i >= 0 && i < len(names) {
		return names[i]
	}
	return string(arm)
}

// placeNames returns the names of the arms for which has returns true, the best first.
func (r *Results) placeNames(has func(*api.TrialPlace) bool) (names []string) {
	places := r.served()
	for i := range places {
		if has(&places[i]) {
			names = append(names, r.armName(places[i].Arm))
		}
	}
	return names
}

// served returns the arms of a ranking that did not leave it for not serving.
func (r *Results) served() []api.TrialPlace {
	return slices.DeleteFunc(slices.Clone(r.ranking().Places), func(p api.TrialPlace) bool { return p.Gone != "" })
}

// goneWords names the arms that left the ranking, since they did not serve.
func (r *Results) goneWords() (all []string) {
	if r.ranking() == nil {
		return nil
	}
	for _, p := range r.ranking().Places {
		if p.Gone == "" {
			continue
		}
		when := "in the first block"
		if *p.LeftAfter > 0 {
			when = "after " + plural(*p.LeftAfter, "whole block")
		}
		all = append(all, fullStop(fmt.Sprintf("%s left the trial %s, and is last without a comparison: %s",
			r.armName(p.Arm), when, p.Gone)))
	}
	return all
}

// rankingWords describes the verdict on more than two arms in a sentence.
func (r *Results) rankingWords() string {
	t, k := r.Sweep.Trial, r.Sweep.Trial.Ranking
	at := fmt.Sprintf("at %s, on %s: ", api.LevelsInWords(r.Sweep.Request.Levels), plural(t.Blocks, "block"))
	best := r.armName(k.Places[0].Arm)
	lead := r.leadWords()
	under := "under " + best + ", " + lead
	var clauses []string
	var start string
	switch proof.Verdict(t.Verdict) {
	case proof.Best:
		start = fmt.Sprintf("%s is best of %d ", best, len(r.served()))
		clauses = append(clauses, lead+", the runner-up"+r.guardrailWords(t, api.TrialArmB))
	case proof.Order:
		start = fmt.Sprintf("The order of %d arms is decided ", len(r.served()))
		clauses = append(clauses, r.orderWords(), under)
	case proof.TradeOff:
		start = "A trade-off "
		clauses = append(clauses, r.tradeWords(), under)
	case proof.FailuresDiffer:
		start = r.moreWords() + " "
		clauses = append(clauses, under)
	case proof.NoDifference:
		left := r.placeNames(func(p *api.TrialPlace) bool { return p.Place[0] == 1 })
		start = fmt.Sprintf("No difference of %s or more between %s ", r.smallest(), join(left))
		if worse := r.placeNames(func(p *api.TrialPlace) bool { return p.Place[0] > 1 }); len(worse) > 0 {
			clauses = append(clauses, "shown to be worse than another: "+join(worse))
		}
	default:
		until := "so far "
		if proof.Verdict(t.Verdict) == proof.TimeOver {
			until = "after " + durationText(r.Sweep.Progress.SecondsUsed) + " "
		}
		start = "Undecided " + until
		leads := best + " leads: " + lead
		if t.Succeeded && proof.Metric(t.Primary.Metric) == proof.MeanTTFT {
			leads = "by " + succeeded + ", " + leads
		}
		clauses = append(clauses, leads)
		if decided := r.decidedWords(); decided != "" {
			start = decided + ": undecided " + until
		} else {
			may := r.placeNames(func(p *api.TrialPlace) bool { return p.MayBeBest })
			clauses = append(clauses, "may be the best: "+join(may))
		}
	}
	clauses = append(append(clauses, r.rankedFailures()), r.rankedGuards()...)
	if proof.Verdict(t.Verdict) != proof.NoDifference {
		clauses = append(clauses, r.groupWords()...)
	}
	return sentenceCase(start+at+strings.Join(clauses, "; ")) + "."
}

// leadWords compares the first place with the second one by the deciding metric.
func (r *Results) leadWords() string {
	t, than := r.Sweep.Trial, " than under "
	if verbOf(t.Primary.Difference) != " is " {
		than = " from that under "
	}
	return changeOf(t.Primary, true, "") + than + r.armName(t.Ranking.Places[1].Arm)
}

// decidedWords describes what an undecided trial has decided: the arms that may be the best, and those that are worse.
// It is empty if each arm may be the best. The text continues with what is not decided.
func (r *Results) decidedWords() string {
	var may, rest []api.TrialArm
	for _, p := range r.served() {
		if p.MayBeBest {
			may = append(may, p.Arm)
		} else {
			rest = append(rest, p.Arm)
		}
	}
	if len(rest) == 0 {
		return ""
	}
	for _, winner := range may {
		for _, loser := range rest {
			if !r.beats(winner, loser) {
				return r.armNames(rest) + are(rest) + "worse than another arm; between the others"
			}
		}
	}
	between := "between the " + strconv.Itoa(len(may))
	switch len(may) {
	case 1:
		between = "between the others"
	case 2:
		between = "between the two"
	}
	return r.armNames(may) + are(may) + "better than " + r.armNames(rest) + "; " + between
}

func are(arms []api.TrialArm) string {
	if len(arms) == 1 {
		return " is "
	}
	return " are "
}

// beats reports whether an arm is shown to be better than another one.
func (r *Results) beats(winner, loser api.TrialArm) bool {
	return slices.ContainsFunc(r.ranking().Pairs, func(p api.TrialPair) bool {
		outcome := proof.Verdict(p.Primary.Outcome)
		return p.B == winner && p.A == loser && outcome == proof.BBetter ||
			p.A == winner && p.B == loser && outcome == proof.ABetter
	})
}

func (r *Results) armNames(arms []api.TrialArm) string {
	names := make([]string, len(arms))
	for i, arm := range arms {
		names[i] = r.armName(arm)
	}
	return join(names)
}

// rankedFailures lists the share of failed turns of each arm.
func (r *Results) rankedFailures() string {
	var parts []string
	for _, p := range r.ranking().Places {
		if p.Failures.Failed > 0 {
			parts = append(parts, failedShare(p.Failures)+" under "+r.armName(p.Arm))
		}
	}
	if len(parts) == 0 {
		return "no turn failed"
	}
	return "turns failed: " + join(parts)
}

// orderWords lists the arms with their places.
func (r *Results) orderWords() string {
	var parts []string
	for _, p := range r.ranking().Places {
		parts = append(parts, r.armName(p.Arm)+" "+placeOf(p.Place))
	}
	return "places: " + strings.Join(parts, ", ")
}

func placeOf(place [2]int) string {
	if place[0] == place[1] {
		return strconv.Itoa(place[0])
	}
	return fmt.Sprintf("%d to %d", place[0], place[1])
}

// moreWords lists the pairs of which one arm certainly fails more turns.
func (r *Results) moreWords() string {
	var parts []string
	for _, p := range r.ranking().Pairs {
		switch more := r.armName(p.More) + " fails more turns than "; p.More {
		case p.A:
			parts = append(parts, more+r.armName(p.B))
		case p.B:
			parts = append(parts, more+r.armName(p.A))
		}
	}
	return strings.Join(parts, ", ")
}

// tradeWords lists the pairs whose better arm fails more turns or is worse in another figure, or whose answers differ.
func (r *Results) tradeWords() string {
	var parts []string
	for _, p := range r.ranking().Pairs {
		if proof.Verdict(p.Primary.Outcome) == proof.TradeOff {
			m := proof.Metric(p.Primary.Metric)
			winner, other := p.B, p.A
			if (p.Primary.Difference < 0) != m.LessIsBetter() {
				winner, other = p.A, p.B
			}
			reason := "and their answers differ"
			switch {
			case p.More == winner:
				reason = "and fails more turns"
			case len(p.Worse) > 0 && !unlike(p.Guards):
				reason = "but its " + changeOf(&p.Worse[0], winner == p.B, "")
			}
			parts = append(parts, fmt.Sprintf("%s has a better %s than %s %s", r.armName(winner), m.Name(),
				r.armName(other), reason))
		}
	}
	return strings.Join(parts, ", ")
}

// groupWords lists the groups of arms that are not different.
func (r *Results) groupWords() (all []string) {
	for _, g := range r.ranking().Groups {
		var names []string
		for _, arm := range g.Arms {
			names = append(names, r.armName(arm))
		}
		all = append(all, fmt.Sprintf("%s are not different (less than %s)", join(names), r.smallest()))
	}
	return all
}

// placesSection returns the table of places, by the deciding metric.
func (r *Results) placesSection() Section {
	k, m := r.ranking(), proof.Metric(r.Sweep.Trial.Primary.Metric)
	s := Section{
		Title: "The verdict", Level: 3,
		Text: []string{"An arm may have each of the places in its row: another one is ahead of it where that is shown to " +
			"be better. The value is over all blocks. Of an arm that left the trial, it is what is estimated for the blocks " +
			"without it, or none where it did not serve."},
		Table: &Table{Words: []int{1}, Head: []string{"Place", "Arm", sentenceCase(m.Name()) + " (decides)"}},
	}
	beside := describe(proof.QuantityTTFT95)
	p95 := m == proof.MeanTTFT
	if p95 {
		s.Table.Head = append(s.Table.Head, beside.title)
	}
	s.Table.Words = append(s.Table.Words, len(s.Table.Head))
	s.Table.Head = append(s.Table.Head, "Took part", "May be the best", "Failed turns", "Tokens per answer")
	for _, p := range k.Places {
		part, may, mean := "to the end", "no", ""
		if !proof.Verdict(r.Sweep.Trial.Verdict).Over() {
			part = "takes part"
		}
		if p.LeftAfter != nil {
			part = plural(*p.LeftAfter, "block")
		}
		if p.Gone != "" {
			part += ", then did not serve"
		}
		if p.MayBeBest {
			may = "yes"
		}
		if p.Mean != nil {
			mean = trialValue(m, *p.Mean)
		}
		row := []string{placeOf(p.Place), r.armName(p.Arm), mean}
		if p95 {
			cell := ""
			if of := r.rowOf(p.Mode); of != nil && of.TTFT.P95 != nil {
				cell = beside.value(*of.TTFT.P95)
			}
			row = append(row, cell)
		}
		s.Table.add(append(row, part, may, failedShare(p.Failures), r.answerTokens(p.Arm))...)
	}
	return s
}

// rowOf returns what a trial measured of a mode at its level; nil where nothing counts yet.
func (r *Results) rowOf(m api.ModeState) *api.BaselineRow {
	for i := range r.Sides {
		if s := &r.Sides[i]; s.Mode == m && len(s.Rows) > 0 {
			return &s.Rows[0]
		}
	}
	return nil
}

// pairsSection returns the comparison of every pair of arms by the deciding metric.
func (r *Results) pairsSection() Section {
	k, m := r.ranking(), proof.Metric(r.Sweep.Trial.Primary.Metric)
	s := Section{
		Title: "Every pair", Level: 3,
		Text: []string{fmt.Sprintf("The difference in %s, by the last look at which "+
			"both took part. The intervals hold for all pairs and looks together.", m.Name())},
		Table: &Table{Words: []int{0, 1, 5}, Head: []string{
			"Arm", "Compared with", "Blocks", "Difference", "95 % interval", "Conclusion",
		}},
	}
	for i := range k.Pairs {
		p := &k.Pairs[i]
		s.Table.add(
			r.armName(p.B), r.armName(p.A), strconv.Itoa(p.Blocks), signed(p.Primary.Difference, m.Share()),
			intervalText(p.Primary.Interval, m.Share()), r.pairConclusion(p),
		)
	}
	for _, text := range r.groupWords() {
		s.Text = append(s.Text, sentenceCase(text)+".")
	}
	return s
}

// answerTokens returns the output tokens per answer of an arm; empty where they are not known.
func (r *Results) answerTokens(arm api.TrialArm) string {
	for _, p := range r.ranking().Pairs {
		for _, g := range p.Guards {
			switch m := proof.Metric(g.Metric); {
			case m != proof.AnswerTokens:
			case p.A == arm:
				return trialValue(m, g.A)
			case p.B == arm:
				return trialValue(m, g.B)
			}
		}
	}
	return ""
}

// turned returns the difference of a pair's first arm from its second one, which the pair has the other way round.
func turned(p *api.TrialDifference, m proof.Metric) (d api.TrialDifference) {
	turn := func(v float64) float64 {
		if m.Share() {
			return -v
		}
		return 1/(1+v) - 1
	}
	if p.Interval != nil {
		d.Interval = &[2]float64{turn(p.Interval[1]), turn(p.Interval[0])}
	}
	d.Difference = turn(p.Difference)
	return d
}

func (r *Results) pairConclusion(p *api.TrialPair) string {
	text := r.outcomeWords(p.Primary.Outcome, r.armName(p.A), r.armName(p.B))
	if p.More != "" {
		text += ", " + r.armName(p.More) + " fails more turns"
	}
	if unlike(p.Guards) {
		text += ", their answers differ"
	}
	for i := range p.Worse {
		text += ", " + changeOf(&p.Worse[i], true, "") + " under " + r.armName(p.B)
	}
	return text
}
