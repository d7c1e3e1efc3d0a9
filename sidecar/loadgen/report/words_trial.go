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

// onPairs reports whether a stored trial was decided on pairs of spans, the method of earlier versions.
func onPairs(t *api.TrialState) bool { return t != nil && t.Method == api.TrialOnPairs }

// guardrails lists the metrics that the verdict reports as not worse for the better arm.
var guardrails = []proof.Metric{proof.TTFT95, proof.TPOT95, proof.Throughput}

// trialNames returns the names of arms A and B. For lanes that kept their modes, a name includes the target. For more
// than two arms it returns the names of the runner-up and the best.
func (r *Results) trialNames() (a, b string) {
	if k := r.ranking(); k != nil {
		return r.armName(k.Places[1].Arm), r.armName(k.Places[0].Arm)
	}
	names := proof.ModeNames(r.Sweep.Request.Modes)
	if len(names) != 2 {
		return "the first arm", "the second arm"
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
	case proof.Verdict(t.Verdict) == proof.Overloaded:
		return r.overloadWords(t)
	case t.Primary == nil && proof.Verdict(t.Verdict) == proof.TimeOver && t.Blocks == 1:
		return []string{fmt.Sprintf("Undecided: a trial decides after two whole blocks, and the first took %s of at most %s.",
			durationText(t.BlockSeconds), durationText(value64(run.Request.MaxSeconds)))}
	case t.Primary == nil:
		return r.findWords(t)
	}
	all := append([]string{r.verdictWords(t)}, r.otherWords(t)...)
	if t.Succeeded {
		all = append(all, "The mean TTFT is that of successful turns: the shares of failed turns do not certainly differ, "+
			"or by 1 point at most.")
	}
	if p := t.Prior; p != nil {
		text := "The intervals rest on the scatter of %s of these arms, too."
		if p.Contradicted {
			text = "The spans scatter more than in %s of these arms: only this trial's own scatter counts."
		}
		all = append(all, fmt.Sprintf(text, plural(p.Trials, "earlier trial")))
	}
	all = append(append(append(all, r.overloadWords(t)...), r.laneWords()...), r.concurrencyWords()...)
	if run.State == api.SweepRunning && run.Progress.Beyond {
		all = append(all, "At the current rate, it will run out of time undecided.")
	}
	return all
}

// findWords describes the difference that a trial can find, before its first look.
func (r *Results) findWords(t *api.TrialState) []string {
	if t.Detectable == nil || r.Sweep.State.Ended() {
		return nil
	}
	return []string{"It " + finds(&r.Sweep.Request, t.Detectable)}
}

// Outlook describes what a trial asks and what difference it can find, before it starts, what earlier trials of its
// arms bring, how many blocks fit into its time, and the time until its first look.
func Outlook(q *api.SweepRequest, t *api.TrialState, p *proof.Plan) []string {
	how := "Each span begins on cold caches."
	if q.Warm() {
		how = fmt.Sprintf("On warm caches that both arms share: the arm changes every %s or so within one run.",
			durationText(*q.Seconds))
	}
	d, prior := t.Detectable, t.Prior
	if d == nil {
		block, first := p.LeastSeconds()
		return []string{how, "What it can find is known after its first block: no such trial of these arms was run on this " +
			"target.", fmt.Sprintf("A block takes at least %s, so that at most %d fit into %s. The first look comes after "+
			"block %d, %s after the start at the earliest.", durationText(block), int(p.MaxTime/block), durationText(p.MaxTime),
			t.FirstLook, durationText(first))}
	}
	text := "It " + finds(q, d)
	if prior != nil {
		text += fmt.Sprintf(" The scatter of %s counts", plural(prior.Trials, "earlier trial"))
		if prior.Without != nil {
			unit := unitOf(proof.Metric(*q.Primary).Share())
			text += fmt.Sprintf("; without it, %s%s or more", tenths(100**prior.Without), unit)
		}
		text += "."
	}
	return []string{how, fmt.Sprintf("%s A block takes about %s, so that %d fit into %s, and the first look comes after "+
		"block %d, about %s after the start.", text, durationText(d.BlockSeconds), int(p.MaxTime/d.BlockSeconds),
		durationText(p.MaxTime), t.FirstLook, durationText(float64(t.FirstLook)*d.BlockSeconds))}
}

// Soonest names the setting at which a question is answered soonest.
func Soonest(s *api.TrialSoonest) string {
	return fmt.Sprintf("By earlier trials of these arms, the question is answered soonest at %s with a "+
		"span length of %s: after %s, as likely as not.", s.Level.InWords(), durationText(s.Seconds), durationText(s.After))
}

// finds describes the difference that a trial can find. The text continues a sentence that begins with "It".
func finds(q *api.SweepRequest, d *api.TrialDetectable) string {
	basis := "the first block"
	if d.Trial != "" {
		basis = "the last such trial of these arms"
	}
	primary := proof.Metric(*q.Primary)
	return fmt.Sprintf("finds a difference of %s%s or more in %s within %s in %s %% of trials, judged by %s.",
		tenths(100*d.Difference), unitOf(primary.Share()), primary.Name(), durationText(d.Seconds), whole(100*d.Power), basis)
}

// concurrencyWords returns a warning if the concurrency, as the mean over the spans that count, differs from the
// requested one by more than a tenth, and otherwise nil. A trial requests one level; of several, the highest counts.
// Failed turns end their conversations, which no limit of the load generator's settings does. It returns nil
// at a rate.
func (r *Results) concurrencyWords() []string {
	if atRate(&r.Sweep.Request) {
		return nil
	}
	sum, n, failed := 0., 0., 0
	for i := range r.Sweep.Spans {
		if s := &r.Sweep.Spans[i]; s.Spoiled == "" && s.Actual != nil {
			sum, n = sum+*s.Actual, n+1
			failed += s.Failed
		}
	}
	level := slices.MaxFunc(append(api.LevelsOf(1), r.Sweep.Request.Levels...), api.Level.Compare).Value
	if n == 0 || math.Abs(sum/n-level) <= .1*level {
		return nil
	}
	text := fmt.Sprintf("On average %s conversations were in progress, not %s", whole(sum/n), whole(level))
	switch {
	case sum/n < level && failed > 0:
		text += "; failed turns end their conversations"
	case sum/n < level:
		text += "; raise start_rate or target_rps"
	}
	return []string{text + "."}
}

// otherWords returns sentences on the metrics other than the primary one: in which of them the better arm is better or
// worse, which show no difference, and which are not decided. If neither arm is better, it describes B. If one is,
// guardrails appear only if they differ, since the verdict names the others.
func (r *Results) otherWords(t *api.TrialState) (all []string) {
	name, other := r.trialNames()
	ofB := proof.Verdict(t.Verdict) != proof.ABetter
	if ofB {
		name = other
	}
	decided := slices.Contains([]proof.Verdict{proof.ABetter, proof.BBetter, proof.Best}, proof.Verdict(t.Verdict))
	var better, worse, none, open, traded []string
	evidence := false
	for i := range t.Others {
		d := &t.Others[i]
		inVerdict := decided && slices.Contains(guardrails, proof.Metric(d.Metric))
		switch proof.Verdict(d.Outcome) {
		case proof.NoDifference:
			if !inVerdict {
				none = append(none, proof.Metric(d.Metric).Name())
			}
		case proof.TradeOff:
			traded = append(traded, proof.Metric(d.Metric).Name())
		case proof.BBetter, proof.ABetter:
			list := &worse
			if (proof.Verdict(d.Outcome) == proof.BBetter) == ofB {
				list = &better
			}
			*list = append(*list, changeOf(d, ofB, ""))
			one, other := proof.Metric(d.Metric), proof.Metric(t.Primary.Metric)
			evidence = evidence || (one == proof.Throughput) != (other == proof.Throughput)
		default:
			if !inVerdict {
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
	add("Neither is better in ", traded, join(traded))
	add("No difference of interest in ", none, join(none))
	add("Not decided: ", open, join(open))
	if evidence && !atRate(&r.Sweep.Request) {
		all = append(all, oneEvidence)
	}
	return all
}

// verdictWords describes the verdict in a sentence, with failures, the primary metric and the guardrails.
func (r *Results) verdictWords(t *api.TrialState) string {
	if t.Ranking != nil {
		return r.rankingWords()
	}
	a, b := r.trialNames()
	on := fmt.Sprintf("at %s, on %s%s", api.LevelsInWords(r.Sweep.Request.Levels), plural(t.Blocks, "block"),
		cachesWords(&r.Sweep.Request, t.Blocks))
	changeOfB := changeOf(t.Primary, true, " of "+b)
	var start string
	switch proof.Verdict(t.Verdict) {
	case proof.BBetter:
		start = b + " is better than " + a
		changeOfB = changeOf(t.Primary, true, "") + r.guardrailWords(t, api.TrialArmB)
	case proof.ABetter:
		start = a + " is better than " + b
		changeOfB += r.guardrailWords(t, api.TrialArmA)
	case proof.TradeOff:
		start = "A trade-off"
		on += ", so neither is better"
	case proof.BFailsMore, proof.AFailsMore:
		start = failsMoreWords(t, a, b)
		if proof.Verdict(t.Primary.Outcome) == proof.NoDifference {
			changeOfB += ", no difference of " + r.smallest() + " or more"
		} else {
			changeOfB += ", which is not decided"
		}
	case proof.NoDifference:
		start = fmt.Sprintf("No difference of %s or more between %s and %s", r.smallest(), b, a)
	case proof.TimeOver:
		start = "Undecided after " + durationText(r.Sweep.Progress.SecondsUsed)
	default:
		start = "Undecided so far"
	}
	clauses := []string{changeOfB, r.failureWords(t, a, b)}
	if failsMoreWords(t, a, b) != "" {
		slices.Reverse(clauses)
	}
	clauses = append(clauses, guardWords(t.Guards, a, b)...)
	if len(t.Worse) > 0 {
		clauses = append(clauses, r.worseWords(t.Worse, b))
	}
	return sentenceCase(fmt.Sprintf("%s %s: %s.", start, on, strings.Join(clauses, "; ")))
}

// worseWords names the figures in which the better one of two arms is certainly worse, in a clause about b.
func (r *Results) worseWords(worse []api.TrialDifference, b string) string {
	margin := r.smallest()
	if proof.Metric(*r.Sweep.Request.Primary).Share() {
		margin = "5 %"
	}
	var all []string
	for i := range worse {
		all = append(all, changeOf(&worse[i], true, " of "+b))
	}
	return join(all) + ", where the better one is certainly worse by more than " + margin
}

// cachesWords says, as a clause, which question a trial asks: of caches that both arms share, or of cold ones. It is
// empty for a trial of an earlier version.
func cachesWords(q *api.SweepRequest, blocks int) string {
	switch c := q.Caches; {
	case c == nil:
		return ""
	case *c == api.TrialCachesWarm:
		return fmt.Sprintf(" (warm, switched %d times)", 2*blocks)
	}
	return " (each on cold caches)"
}

func sentenceCase(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// failureWords describes the shares of failed turns of both arms.
func (r *Results) failureWords(t *api.TrialState, a, b string) string {
	f := t.Failures
	if f == nil || f.A.Failed+f.B.Failed == 0 {
		return "no turn failed"
	}
	text := fmt.Sprintf("%s of turns failed under %s and %s under %s", failedShare(f.B), b, failedShare(f.A), a)
	if f.More == "" {
		return text
	}
	if failsMoreWords(t, a, b) == "" { // which is before this text, where it is the verdict
		text += ", certainly more under " + nameOf(f.More, a, b)
	}
	if in := f.Interval; in != nil {
		low, high := math.Abs(in[0]), math.Abs(in[1])
		text += fmt.Sprintf(" (%s to %s points more)", tenths(100*min(low, high)), tenths(100*max(low, high)))
	}
	return text
}

// nameOf returns the name of one of two arms.
func nameOf(arm api.TrialArm, a, b string) string {
	if arm == api.TrialArmA {
		return a
	}
	return b
}

// failsMoreWords names the arm that fails more turns, where that is the verdict; empty where it is not.
func failsMoreWords(t *api.TrialState, a, b string) string {
	switch proof.Verdict(t.Verdict) {
	case proof.BFailsMore:
		return b + " fails more turns than " + a
	case proof.AFailsMore:
		return a + " fails more turns than " + b
	}
	return ""
}

func failedShare(f api.TrialFailed) string {
	return api.Plain(math.Round(10000*float64(f.Failed)/float64(max(1, f.Ended)))/100) + " %"
}

// guardrailWords names the guardrails, except the primary metric, in which the better arm is certainly not worse, and
// those in which it may be. The text continues a sentence and begins with a comma or a semicolon.
func (r *Results) guardrailWords(t *api.TrialState, better api.TrialArm) (text string) {
	var not, open []string
	for _, m := range guardrails {
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
	margin := api.Plain(100*value64(r.Sweep.Request.Smallest)) + " %"
	if len(not) > 0 {
		text = ", and not worse by " + margin + " or more in " + join(not)
	}
	if len(open) > 0 {
		text += "; not excluded: worse by " + margin + " or more in " + join(open)
	}
	return text
}

// smallest formats the smallest difference of interest of a trial.
func (r *Results) smallest() string {
	q := &r.Sweep.Request
	return api.Plain(100*value64(q.Smallest)) + unitOf(q.Primary != nil && proof.Metric(*q.Primary).Share())
}

// unitOf returns the unit of a difference, after a blank. points selects percentage points.
func unitOf(points bool) string {
	if points {
		return " points"
	}
	return " %"
}

func value64(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// changeOf describes the difference of a metric, such as "TTFT p95 is 19.4 % lower (15.1 to 23.2 %)". The difference is
// that of B against A if ofB is true, else that of A against B. of names an arm after the metric, such as " of kv".
func changeOf(d *api.TrialDifference, ofB bool, of string) string {
	m := proof.Metric(d.Metric)
	orient := func(v float64) float64 { return v }
	switch {
	case ofB:
	case m.Share():
		orient = func(v float64) float64 { return -v }
	default:
		orient = func(v float64) float64 { return 1/(1+v) - 1 }
	}
	difference := orient(d.Difference)
	if d.Interval == nil {
		return fmt.Sprintf("%s%s%s%s (not bounded yet)", m.Name(), of, verbOf(difference), directed(difference, m))
	}
	low, high := orient(d.Interval[0]), orient(d.Interval[1])
	return m.Name() + of + verbOf(difference) + change(difference, min(low, high), max(low, high), m)
}

// verbOf returns the verb before [directed], which has no direction for a difference that rounds to 0.
func verbOf(difference float64) string {
	if api.IsZero(tenths(100 * math.Abs(difference))) {
		return " differs by "
	}
	return " is "
}

// directed formats a difference of a metric with its direction, such as "19.4 % lower" or "2.3 times as long".
func directed(difference float64, m proof.Metric) string {
	size := tenths(100 * math.Abs(difference))
	switch {
	case api.IsZero(size):
		return size + unitOf(m.Share())
	case difference > 1 && m.Time():
		return timesAsLong(difference)
	case difference > 1 && !m.Share():
		return tenths(1+difference) + " times as high"
	}
	direction := "higher"
	if difference < 0 {
		direction = "lower"
	}
	return size + unitOf(m.Share()) + " " + direction
}

// change formats a difference with its interval. The ends of an interval that contains 0 have directions of their own.
func change(difference, low, high float64, m proof.Metric) string {
	text, points := directed(difference, m), m.Share()
	if low < 0 && high < 0 {
		low, high = -high, -low
	}
	switch {
	case low > 1 && !points:
		return fmt.Sprintf("%s (%s to %s times)", text, tenths(1+low), tenths(1+high))
	case low > 0 && high > 0 && (points || max(high, difference) <= 1):
		return fmt.Sprintf("%s (%s to %s%s)", text, tenths(100*low), tenths(100*high), unitOf(points))
	}
	return fmt.Sprintf("%s (%s to %s)", text, directed(low, m), directed(high, m))
}

// verdictSections returns the outcome of a trial by the deciding metric first: all metrics of two arms, or the places
// of more. It returns nothing before the first look.
func (r *Results) verdictSections() []Section {
	switch {
	case r.Sweep == nil || r.Sweep.Trial == nil || r.Sweep.Trial.Primary == nil:
		return nil
	case r.ranking() == nil:
		return []Section{r.metricsSection("The verdict")}
	case len(r.ranking().Pairs) == 0:
		return nil
	}
	return []Section{r.placesSection()}
}

// trialSections returns the comparisons of a trial that its verdict does not show. It returns nothing before the first
// look.
func (r *Results) trialSections() (all []Section) {
	if r.Sweep == nil || r.Sweep.Trial == nil || r.Sweep.Trial.Primary == nil {
		return nil
	}
	if r.ranking() != nil {
		all = append(all, r.pairsSection(), r.metricsSection("The best arm and the runner-up"))
	}
	return append(all, r.looksSection(r.Sweep.Trial))
}

// howDecided explains on what the verdict of a trial stands. It is empty before the first look.
func (r *Results) howDecided() []string {
	t := r.Sweep.Trial
	switch {
	case t == nil || t.Primary == nil:
		return nil
	case onPairs(t):
		return []string{fmt.Sprintf("By the method of earlier versions, on %s of spans.", plural(t.Pairs, "pair"))}
	}
	pairs, evidence := "", oneEvidence
	if atRate(&r.Sweep.Request) {
		evidence = "At a rate, throughput is what arrives, unless a queue grows without end."
	}
	if t.Ranking != nil {
		pairs = ", and so does that of every pair"
	}
	all := []string{fmt.Sprintf("The verdict stands on %s. The interval of %s, the deciding metric, stays valid over all "+
		"looks, one after each block%s%s. Where it shows no difference, it is one of 90 %%, of two one-sided tests at 5 %% "+
		"each. The conclusions on the other metrics hold for all of them jointly. %s", plural(t.Blocks, "whole block"),
		proof.Metric(t.Primary.Metric).Name(), firstLook(t), pairs, evidence)}
	if t.PowerSimulated {
		all = append(all, simulatedPower)
	}
	return all
}

// metricsSection returns the comparison of two arms in all metrics, the deciding one first.
func (r *Results) metricsSection(title string) Section {
	t := r.Sweep.Trial
	a, b := r.trialNames()
	head := []string{"Metric", a, b, "Difference", "95 % interval", "Conclusion"}
	s := Section{Title: title, Level: 3, Table: &Table{Words: []int{5}, Head: head}}
	for i, d := range slices.Concat([]api.TrialDifference{*t.Primary}, t.Others) {
		row := differenceRow(&d, r.outcomeWords(d.Outcome, a, b))
		if proof.Metric(d.Metric) == proof.MeanTTFT && t.Succeeded {
			row[0] += ", " + succeeded
		}
		if i == 0 {
			row[0] += " (decides)"
		}
		if f := t.Final; i == 0 && f != nil {
			row[3] += fmt.Sprintf(" (%s corrected for the early stop)", signed(f.Difference, proof.Metric(d.Metric).Share()))
		}
		s.Table.add(row...)
	}
	if f := t.Failures; f != nil {
		conclusion, difference, interval := "", "", ""
		if f.More != "" {
			conclusion = "more under " + nameOf(f.More, a, b)
		}
		if f.Interval != nil {
			difference, interval = signed(f.Difference, true), intervalText(f.Interval, true)
		}
		s.Table.add("Failed turns", failedShare(f.A), failedShare(f.B), difference, interval, conclusion)
	}
	for i := range t.Guards {
		s.Table.add(differenceRow(&t.Guards[i], guardConclusion(&t.Guards[i]))...)
	}
	for i := range t.Costs {
		s.Table.add(differenceRow(&t.Costs[i], "by this look alone")...)
	}
	return s
}

// differenceRow formats a difference: its metric, both values, the difference and its interval, with a conclusion.
func differenceRow(d *api.TrialDifference, conclusion string) []string {
	m := proof.Metric(d.Metric)
	return []string{
		sentenceCase(m.Name()), trialValue(m, d.A), trialValue(m, d.B), signed(d.Difference, m.Share()),
		intervalText(d.Interval, m.Share()), conclusion,
	}
}

// outcomeWords describes the outcome of the comparison of arms a and b.
func (r *Results) outcomeWords(outcome, a, b string) string {
	switch proof.Verdict(outcome) {
	case proof.BBetter:
		return b + " is better"
	case proof.ABetter:
		return a + " is better"
	case proof.NoDifference:
		return "no difference of interest"
	case proof.TradeOff:
		return "neither is better"
	}
	if proof.Verdict(r.Sweep.Trial.Verdict).Over() {
		return "undecided"
	}
	return "nothing yet"
}

// looksSection returns the deciding difference and its interval at each look.
func (r *Results) looksSection(t *api.TrialState) Section {
	if len(t.Looks) == 0 {
		return Section{}
	}
	a, b := r.trialNames()
	name, points := proof.Metric(t.Primary.Metric).Name(), proof.Metric(t.Primary.Metric).Share()
	what := "block"
	if onPairs(t) {
		what = "pair"
	}
	pair := b + " compared with " + a
	if t.Ranking != nil {
		pair = "the arm that was best then compared with the runner-up"
	}
	s := Section{
		Title: sentenceCase(what) + " by " + what, Level: 3,
		Text: []string{fmt.Sprintf("The difference in %s and its 95 %% interval after each %s: %s. "+
			"A difference between %s and %s is of no interest.",
			name, what, pair, withoutUnit(signed(t.Boundaries[0], points)), signed(t.Boundaries[1], points))},
		Table: &Table{Head: []string{sentenceCase(what) + "s", "Difference", "95 % interval"}},
	}
	unit, series := "%", chart.Series{Name: pair}
	if points {
		unit = "points"
	}
	for _, l := range t.Looks {
		n := l.Blocks + l.Pairs // one of which is 0
		interval := intervalText(l.Interval, points)
		s.Table.add(strconv.Itoa(n), signed(l.Difference, points), interval)
		title := fmt.Sprintf("after %s: %s (%s)", plural(n, what), signed(l.Difference, points), interval)
		point := chart.Point{Level: float64(n), Value: 100 * l.Difference, Title: title}
		if l.Interval != nil {
			point.Band = &[2]float64{100 * l.Interval[0], 100 * l.Interval[1]}
		}
		series.Points = append(series.Points, point)
	}
	drawn := chart.Looks("Difference in "+name, unit, [2]float64{100 * t.Boundaries[0], 100 * t.Boundaries[1]}, series)
	drawn.XName = what + "s of spans"
	s.Charts = []chart.Chart{drawn}
	return s
}

// intervalText formats the interval of a difference. A nil interval is not bounded yet.
func intervalText(in *[2]float64, points bool) string {
	if in == nil {
		return "not bounded yet"
	}
	return withoutUnit(signed(in[0], points)) + " to " + signed(in[1], points)
}

func trialValue(m proof.Metric, v float64) string {
	switch m {
	case proof.Throughput:
		return whole(v) + " tokens/s"
	case proof.HitRate, proof.Goodput, proof.StopShare, proof.LengthShare:
		return api.Percent(v)
	case proof.AnswerTokens:
		return tenths(v)
	}
	if i := slices.IndexFunc(costQuantities, func(q *quantity) bool { return q.Name == string(m) }); i >= 0 {
		return costQuantities[i].value(v)
	}
	return api.Milliseconds(v)
}
