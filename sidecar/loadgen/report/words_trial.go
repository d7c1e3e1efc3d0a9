package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report/chart"
)

// onPairs says whether a trial was decided by the method of earlier versions, which is only read.
func onPairs(t *api.TrialState) bool { return t != nil && t.Method == api.TrialOnPairs }

// guards are the metrics that the sentence of the verdict says are not worse.
var guards = []proof.Metric{proof.TTFT95, proof.TPOT95, proof.Throughput}

// trialNames are those of the two arms, also before anything was measured: of their targets, too, where each kept its
// mode. Of more than two, they are the runner-up and the best.
func (r *Results) trialNames() (a, b string) {
	if k := r.ranking(); k != nil {
		return r.armName(k.Places[1].Arm), r.armName(k.Places[0].Arm)
	}
	names := proof.ModeNames(r.Sweep.Request.Modes)
	if len(names) != 2 {
		return "the first mode", "the second mode"
	}
	if t := r.Sweep.Trial; t != nil && t.KeepsLanes {
		for i, arm := range []proof.Arm{proof.ArmA, proof.ArmB} {
			at := slices.IndexFunc(r.Sweep.Spans, func(s api.SweepSpan) bool {
				return proof.Arm(s.Arm) == arm && s.Target != ""
			})
			if at >= 0 {
				names[i] = "target " + r.Sweep.Spans[at].Target + " with " + names[i]
			}
		}
	}
	if names[0] == names[1] {
		return names[0] + " (A)", names[1] + " (B)"
	}
	return names[0], names[1]
}

func (r *Results) trialWords() []string {
	t, run := r.Sweep.Trial, r.Sweep
	switch {
	case t == nil:
		return nil
	case t.Primary == nil && proof.Verdict(t.Verdict) == proof.TimeOver && t.Blocks == 1:
		return []string{fmt.Sprintf("Undecided: a trial decides after two whole blocks, and the first took %s of at most %s.",
			span(t.BlockSeconds), span(value64(run.Request.MaxSeconds)))}
	case t.Primary == nil:
		return r.findWords(t)
	}
	all := append([]string{r.verdictWords(t)}, r.otherWords(t)...)
	all = append(append(all, r.laneWords()...), r.missWords()...)
	if run.State == api.SweepRunning && run.Progress.Beyond {
		all = append(all, "At the current rate, it will run out of time undecided.")
	}
	return all
}

// findWords say what a trial can find that has not had its first look.
func (r *Results) findWords(t *api.TrialState) []string {
	if t.Detectable == nil || r.Sweep.State.Ended() {
		return nil
	}
	return []string{"It " + finds(&r.Sweep.Request, t.Detectable)}
}

// Outlook says before a trial starts what it can find, and when it can say something at all.
func Outlook(q *api.SweepRequest, d *api.TrialDetectable) string {
	if d == nil {
		return "What it can find is known after its first block: no such trial was run on this target."
	}
	return fmt.Sprintf("It %s A block takes about %s, and the first look comes after the second.",
		finds(q, d), span(d.BlockSeconds))
}

// finds says what a trial can find, as the rest of a sentence.
func finds(q *api.SweepRequest, d *api.TrialDetectable) string {
	by := "the first block"
	if d.Trial != "" {
		by = "the last such trial on this target"
	}
	unit := " %"
	if q.Primary != nil && proof.Metric(*q.Primary).Share() {
		unit = " points"
	}
	return fmt.Sprintf("finds a difference of %.1f%s or more in %s within %s in %.0f %% of trials, judged by %s.",
		100*d.Difference, unit, proof.Metric(*q.Primary).Name(), span(d.Seconds), 100*d.Power, by)
}

// missWords say that the concurrency asked for was not reached.
func (r *Results) missWords() []string {
	sum, n := 0., 0.
	for i := range r.Sweep.Spans {
		if s := &r.Sweep.Spans[i]; s.Spoiled == "" && s.Actual != nil {
			sum, n = sum+*s.Actual, n+1
		}
	}
	level := float64(slices.Max(append([]int{1}, r.Sweep.Request.Levels...)))
	if n == 0 || math.Abs(sum/n-level) <= .1*level {
		return nil
	}
	return []string{fmt.Sprintf("On average %.0f conversations were in progress, not %.0f; raise start_rate or "+
		"target_rps.",
		sum/n, level)}
}

// otherWords say what the metrics show that do not decide: of the better mode, or of B where neither is.
func (r *Results) otherWords(t *api.TrialState) (all []string) {
	a, b := r.trialNames()
	ofB := proof.Verdict(t.Verdict) != proof.ABetter
	name := b
	if !ofB {
		name = a
	}
	decided := slices.Contains([]proof.Verdict{proof.ABetter, proof.BBetter, proof.Best}, proof.Verdict(t.Verdict))
	var better, worse, none, open []string
	evidence := false
	for i := range t.Others {
		d := &t.Others[i]
		said := decided && slices.Contains(guards, proof.Metric(d.Metric)) // in the verdict
		switch proof.Verdict(d.Outcome) {
		case proof.NoDifference:
			if !said {
				none = append(none, proof.Metric(d.Metric).Name())
			}
		case proof.BBetter, proof.ABetter:
			list := &worse
			if (proof.Verdict(d.Outcome) == proof.BBetter) == ofB {
				list = &better
			}
			*list = append(*list, changeOf(d, ofB))
			one, other := proof.Metric(d.Metric), proof.Metric(t.Primary.Metric)
			evidence = evidence || (one == proof.Throughput) != (other == proof.Throughput)
		default:
			if !said {
				open = append(open, proof.Metric(d.Metric).Name())
			}
		}
	}
	lead, also := "Worse under ", "Better under "
	if decided {
		lead, also = "Worse all the same under ", "Also better under "
	}
	add := func(lead string, list []string, text string) {
		if len(list) > 0 {
			all = append(all, lead+text+".")
		}
	}
	add(lead+name+": ", worse, strings.Join(worse, "; "))
	add(also+name+": ", better, strings.Join(better, "; "))
	add("No difference of interest in ", none, join(none))
	add("Not decided: ", open, join(open))
	if evidence {
		all = append(all, oneEvidence)
	}
	return all
}

// verdictWords are the sentence on failures, the primary metric and its guards.
func (r *Results) verdictWords(t *api.TrialState) string {
	if t.Ranking != nil {
		return r.rankingWords()
	}
	a, b := r.trialNames()
	at := "at " + numbers(r.Sweep.Request.Levels) + " conversations"
	on := "on " + plural(t.Blocks, "block")
	d := *t.Primary
	if t.Final != nil {
		d.Difference, d.Interval = t.Final.Difference, &t.Final.Interval
	}
	of := strings.Replace(changeOf(&d, true), " is ", " of "+b+" is ", 1)
	failed := r.failureWords(t, a, b)
	var text string
	switch proof.Verdict(t.Verdict) {
	case proof.BBetter:
		text = fmt.Sprintf("%s is better than %s %s, %s: %s; %s%s",
			b, a, at, on, failed, changeOf(&d, true), r.guardWords(t, api.TrialArmB))
	case proof.ABetter:
		text = fmt.Sprintf("%s is better than %s %s, %s: %s; %s%s",
			a, b, at, on, failed, of, r.guardWords(t, api.TrialArmA))
	case proof.TradeOff:
		text = fmt.Sprintf("A trade-off %s, %s, so neither is better: %s; %s", at, on, failed, of)
	case proof.NoDifference:
		text = fmt.Sprintf("No difference of %s or more between %s and %s %s, %s: %s; %s",
			r.smallest(), b, a, at, on, failed, of)
	case proof.TimeOver:
		text = fmt.Sprintf("Undecided after %s %s, %s: %s; %s", span(r.Sweep.Progress.SecondsUsed), at, on, failed, of)
	default:
		text = fmt.Sprintf("Undecided so far %s, %s: %s; %s", at, on, failed, of)
	}
	return sentenceCase(text) + "."
}

// sentenceCase begins a sentence.
func sentenceCase(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// failureWords say how many turns failed under either mode.
func (r *Results) failureWords(t *api.TrialState, a, b string) string {
	f := t.Failures
	if f == nil || f.A.Failed+f.B.Failed == 0 {
		return "no turn failed"
	}
	text := fmt.Sprintf("%s of turns failed under %s and %s under %s", failedShare(f.B), b, failedShare(f.A), a)
	switch f.More {
	case api.TrialArmA:
		return text + ", certainly more under " + a
	case api.TrialArmB:
		return text + ", certainly more under " + b
	}
	return text
}

func failedShare(f api.TrialFailed) string {
	return trimmed(math.Round(10000*float64(f.Failed)/float64(max(1, f.Ended)))/100) + " %"
}

// guardWords say in which of the guards the better mode is certainly not worse, and in which that is not excluded.
func (r *Results) guardWords(t *api.TrialState, better api.TrialArm) (text string) {
	var not, open []string
	for _, m := range guards {
		if string(m) == t.Primary.Metric {
			continue
		}
		at := slices.IndexFunc(t.Others, func(d api.TrialDifference) bool { return d.Metric == string(m) })
		if at >= 0 && slices.Contains(t.Others[at].NotWorse, better) {
			not = append(not, m.Name())
		} else {
			open = append(open, m.Name())
		}
	}
	by := trimmed(100*value64(r.Sweep.Request.Smallest)) + " %"
	if len(not) > 0 {
		text = ", and not worse by " + by + " or more in " + join(not)
	}
	if len(open) > 0 {
		text += "; not excluded: worse by " + by + " or more in " + join(open)
	}
	return text
}

// smallest is the smallest difference of interest.
func (r *Results) smallest() string {
	v := value64(r.Sweep.Request.Smallest)
	if p := r.Sweep.Request.Primary; p != nil && proof.Metric(*p).Share() {
		return trimmed(100*v) + " points"
	}
	return trimmed(100*v) + " %"
}

func value64(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// changeOf says by how much a metric differs: "TTFT p95 is 19.4 % lower (15.1 to 23.2 %)", of B against A, or the other
// way round in points or, for what is relative, of A against B.
func changeOf(d *api.TrialDifference, ofB bool) string {
	m := proof.Metric(d.Metric)
	turn := func(v float64) float64 { return v }
	switch {
	case ofB:
	case m.Share():
		turn = func(v float64) float64 { return -v }
	default:
		turn = func(v float64) float64 { return 1/(1+v) - 1 }
	}
	by := turn(d.Difference)
	if d.Interval == nil {
		return fmt.Sprintf("%s is %s (not bounded yet)", m.Name(), toward(by, m.Share()))
	}
	low, high := turn(d.Interval[0]), turn(d.Interval[1])
	return m.Name() + " is " + change(by, min(low, high), max(low, high), m.Share())
}

// toward writes a difference with its direction.
func toward(by float64, points bool) string {
	unit, direction := " %", "higher"
	if points {
		unit = " points"
	}
	if by < 0 {
		direction = "lower"
	}
	return fmt.Sprintf("%.1f%s %s", 100*math.Abs(by), unit, direction)
}

// change writes a difference with its interval: in the direction of the estimate where the interval has that one alone.
func change(by, low, high float64, points bool) string {
	unit := " %"
	if points {
		unit = " points"
	}
	amount := func(v float64) string { return fmt.Sprintf("%.1f", 100*math.Abs(v)) }
	text := toward(by, points)
	switch {
	case low > 0 && high > 0:
		return fmt.Sprintf("%s (%s to %s%s)", text, amount(low), amount(high), unit)
	case low < 0 && high < 0:
		return fmt.Sprintf("%s (%s to %s%s)", text, amount(high), amount(low), unit)
	}
	return fmt.Sprintf("%s (%s to %s)", text, toward(low, points), toward(high, points))
}

// trialSection is the verdict of a trial with all metrics.
func (r *Results) trialSection() []Section {
	if r.Sweep == nil || r.Sweep.Trial == nil || r.Sweep.Trial.Primary == nil {
		return nil
	}
	t := r.Sweep.Trial
	a, b := r.trialNames()
	name := proof.Metric(t.Primary.Metric).Name()
	head := []string{"Metric", a, b, "Difference", "95 % interval", "Conclusion"}
	s := Section{Title: "The verdict", Level: 3, Table: &Table{Words: []int{5}, Head: head}}
	if onPairs(t) {
		s.Text = []string{fmt.Sprintf("By the method of earlier versions, on %s of spans.", plural(t.Pairs, "pair"))}
	} else {
		unbiased := "at the stop, the unbiased estimate and its interval stand beside it"
		if t.Ranking != nil {
			s.Title = "The best mode and the runner-up"
			unbiased = "so does that of every pair"
		} else {
			s.Text = []string{r.verdictWords(t)}
		}
		s.Text = append(s.Text,
			fmt.Sprintf("The verdict stands on %s. The interval of %s, the deciding metric, stays valid over all "+
				"looks, one after each block from the second on; %s. No difference is concluded from two one-sided tests "+
				"at 5 %% each. The conclusions on the other metrics hold for all of them jointly. %s",
				plural(t.Blocks, "whole block"), name, unbiased, oneEvidence))
	}
	for i, d := range slices.Concat([]api.TrialDifference{*t.Primary}, t.Others) {
		s.Table.Rows = append(s.Table.Rows, r.differenceRow(&d, i == 0))
		if f := t.Final; i == 0 && f != nil {
			points := proof.Metric(d.Metric).Share()
			s.Table.Rows = append(s.Table.Rows, []string{
				sentenceCase(name) + ", unbiased", "", "", signed(f.Difference, points), between(&f.Interval, points), "",
			})
		}
	}
	if f := t.Failures; f != nil {
		says := map[api.TrialArm]string{api.TrialArmA: "more under " + a, api.TrialArmB: "more under " + b}[f.More]
		s.Table.Rows = append(s.Table.Rows, []string{"Failed turns", failedShare(f.A), failedShare(f.B), "", "", says})
	}
	return slices.Concat(r.rankingSections(), []Section{s}, r.looksSection(t))
}

func (r *Results) differenceRow(d *api.TrialDifference, decides bool) []string {
	a, b := r.trialNames()
	m := proof.Metric(d.Metric)
	name := sentenceCase(m.Name())
	if decides {
		name += " (decides)"
	}
	says := r.outcomeWords(d.Outcome, a, b)
	q := proof.Quantity(d.Metric)
	return []string{
		name, trialValue(q, d.A), trialValue(q, d.B), signed(d.Difference, m.Share()), between(d.Interval, m.Share()), says,
	}
}

// outcomeWords say what an interval of the difference of two modes shows.
func (r *Results) outcomeWords(outcome, a, b string) string {
	switch proof.Verdict(outcome) {
	case proof.BBetter:
		return b + " is better"
	case proof.ABetter:
		return a + " is better"
	case proof.NoDifference:
		return "no difference of interest"
	}
	if proof.Verdict(r.Sweep.Trial.Verdict).Over() {
		return "undecided"
	}
	return "nothing yet"
}

// looksSection is how the interval that decides came about, look by look.
func (r *Results) looksSection(t *api.TrialState) []Section {
	if len(t.Looks) == 0 {
		return nil
	}
	a, b := r.trialNames()
	name, points := proof.Metric(t.Primary.Metric).Name(), proof.Metric(t.Primary.Metric).Share()
	what := "block"
	if onPairs(t) {
		what = "pair"
	}
	pair := b + " compared with " + a
	if t.Ranking != nil {
		pair = "the mode that was best then compared with the runner-up"
	}
	s := Section{
		Title: sentenceCase(what) + " by " + what, Level: 3,
		Text: []string{fmt.Sprintf("The difference in %s and its 95 %% interval after each %s: %s. "+
			"A difference between %s and %s is of no interest.",
			name, what, pair, bare(signed(t.Boundaries[0], points)), signed(t.Boundaries[1], points))},
		Table: &Table{Head: []string{sentenceCase(what) + "s", "Difference", "95 % interval"}},
	}
	unit, series := "%", chart.Series{Name: pair}
	if points {
		unit = "points"
	}
	var words []string
	for _, l := range t.Looks {
		n := l.Blocks + l.Pairs // one of which is 0
		of := between(l.Interval, points)
		s.Table.Rows = append(s.Table.Rows, []string{strconv.Itoa(n), signed(l.Difference, points), of})
		title := fmt.Sprintf("after %s: %s (%s)", plural(n, what), signed(l.Difference, points), of)
		words = append(words, title)
		point := chart.Point{Level: n, Value: 100 * l.Difference, Title: title}
		if l.Interval != nil {
			point.Band = &[2]float64{100 * l.Interval[0], 100 * l.Interval[1]}
		}
		series.Points = append(series.Points, point)
	}
	drawn := chart.Looks("Difference in "+name, unit, [2]float64{100 * t.Boundaries[0], 100 * t.Boundaries[1]}, series)
	drawn.XName, drawn.Words = what+"s of spans", strings.Join(words, "; ")
	s.Charts = []chart.Chart{drawn}
	return []Section{s}
}

// between writes an interval of a difference.
func between(in *[2]float64, points bool) string {
	if in == nil {
		return "not bounded yet"
	}
	return bare(signed(in[0], points)) + " to " + signed(in[1], points)
}

// trialValue writes a metric's mean.
func trialValue(q proof.Quantity, v float64) string {
	if q == proof.QuantityThroughput {
		return tenths(v) + " tokens/s"
	}
	if d := describe(q); d != nil {
		return d.value(v)
	}
	if m := proof.Metric(q); m == proof.MeanTTFT || m == proof.LaterTTFT95 {
		return milliseconds(v)
	}
	return share100(v) // goodput, a share too
}

// signed writes a difference, which has no side that is better.
func signed(v float64, points bool) string {
	if points {
		return describe(proof.QuantityHitRate).advantage(v)
	}
	return describe(proof.QuantityThroughput).advantage(v)
}
