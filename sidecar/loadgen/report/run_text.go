package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// Formats implements [Readable].
func (r *Run) Formats() Formats { return RunFormats }

// Records implements [Readable]. It returns nil: the table of a run holds its turns, which the report does not contain.
func (r *Run) Records() [][]string { return nil }

// Document implements [Readable].
func (r *Run) Document() Document {
	d := Document{
		Title: r.title(), Sections: r.sections(),
		Foot: "Written by the load generator, " + r.Program + ". Intervals hold the true value in 95 of 100 runs; they " +
			"come from four batches of the run, since turns that share a worker depend on each other. A curve's point is " +
			"of a span of its own.",
	}
	if r.Client.Verdict == "bottleneck" {
		d.Sections[0].Warning = sentenceCase(r.clientLine())
	}
	if r.Twin != nil {
		twin := r.Twin.sections()
		twin[0].Title, twin[0].Level = "Lane twin: "+r.Twin.title(), 1
		d.Sections = append(append(d.Sections, twin...), r.pairs())
	}
	return d
}

// sections returns the sections of one lane.
func (r *Run) sections() []Section {
	latencies := Section{Title: "Latencies of the turns that ended well, in milliseconds", Table: r.latencies()}
	return filled([]Section{
		{Text: []string{r.summary()}, Figures: r.figures()}, latencies, {Charts: r.charts()}, r.details(),
	})
}

// title names the target and the length of the run.
func (r *Run) title() string {
	return fmt.Sprintf("Run of %s against %s%s", elapsed(r.Seconds), api.Printable(r.Target.URL), model(r.Target.Model))
}

func model(name string) string {
	if name == "" {
		return ""
	}
	return " (" + api.Printable(name) + ")"
}

// summary states the time, the settings and the cause of the end in one line.
func (r *Run) summary() string {
	cause := map[Cause]string{
		ByDuration: "ended by --duration", ByRequests: "ended by --requests",
		ByTraffic: "ended with the trace",
		BySignal:  "ended by a signal", ByOperator: "stopped by an operator",
		ByFailure: "aborted by --abort-after",
	}[r.Cause]
	text := fmt.Sprintf("%s to %s · %s · %s · %s", r.Started, r.Ended, r.levels(), cmp.Or(r.Arm, string(r.Mode)), cause)
	if kind := notReal[r.Target.Kind]; kind != "" {
		text = kind + " · " + text
	}
	if r.WarmUpSeconds > 0 {
		text += fmt.Sprintf(" · warm-up of %s, %s, not counted", elapsed(r.WarmUpSeconds), plural(int(r.WarmUpTurns), "turn"))
	}
	if n := len(r.Steps); n > 1 {
		text += fmt.Sprintf(" · %d steps with different settings, all included in these figures", n)
	}
	return text
}

// Aborted says why a run was aborted, or "" for any other run.
func (r *Run) Aborted() string {
	if r.Cause != ByFailure {
		return ""
	}
	text := "the run was aborted, since no turn succeeded for the time of --abort-after"
	if len(r.Errors) > 0 {
		text += fmt.Sprintf("; most failed as %s: %s", r.Errors[0].Class, r.Errors[0].Message)
	}
	return text
}

// levels names the levels of the steps in their order, or the only one.
func (r *Run) levels() string {
	all := []api.Level{}
	for _, s := range r.Steps {
		if len(all) == 0 || all[len(all)-1] != s.Level {
			all = append(all, s.Level)
		}
	}
	if len(all) < 2 || slices.ContainsFunc(all, func(l api.Level) bool { return l.Kind != all[0].Kind }) {
		return r.Level.InWords()
	}
	return api.LevelsInWords(all)
}

// latencies returns the table of times. It is nil if no turn ended well.
func (r *Run) latencies() *Table {
	if r.Turns.OK == 0 {
		return nil
	}
	t := &Table{Head: []string{"ms", "mean", "min", "p50", "p90", "p95", "p99", "max", "95 % of p50", "95 % of p95", "n"}}
	add := func(name string, q *api.Quantiles) {
		if q.Estimated {
			name += " (estimated)"
		}
		cells := []string{name}
		for _, figure := range []struct {
			name  string
			value *float64
		}{
			{"mean", q.Mean}, {"min", q.Min}, {"p50", q.P50}, {"p90", q.P90}, {"p95", q.P95}, {"p99", q.P99}, {"max", q.Max},
		} {
			cells = append(cells, atLeast(q, figure.name)+ms(figure.value))
		}
		t.add(append(cells, msInterval(q.P50Interval), msInterval(q.P95Interval), api.Count(q.N))...)
	}
	for _, f := range api.Times {
		add(sentenceCase(f.Short()), f.Quantiles(&r.Metrics))
		if f.Key == "ttft" && r.FirstAnswer != nil {
			add("First answer", r.FirstAnswer)
		}
	}
	return t
}

// atLeast marks a figure that depends on turns that were cut.
func atLeast(q *api.Quantiles, figure string) string {
	if slices.Contains(q.AtLeast, figure) {
		return "≥"
	}
	return ""
}

// cutLine says how turns that were cut are counted. It returns nil without any.
func (r *Run) cutLine() []string {
	if r.Turns.Cancelled == 0 {
		return nil
	}
	return []string{plural(r.Turns.Cancelled, "turn") + " had not ended; TTFT and latency count each as at least as " +
		"long as it took so far, and ≥ marks the figures that depend on it"}
}

// arrivalLines describes how the arrivals at a rate were kept to.
func (r *Run) arrivalLines() (lines []string) {
	if r.Workload.Arrivals != "" {
		lines = append(lines, r.Workload.Arrivals)
	}
	if l := r.Late; l != nil {
		lines = append(lines, fmt.Sprintf("turns were sent %s after their intended moment (p50; p99 %s), %s of them more "+
			"than 50 ms; TTFT and latency contain it", api.Milliseconds(l.P50), api.Milliseconds(l.P99), api.Percent(l.Above)))
	}
	if r.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("%s arrivals and further turns were dropped, since max_inflight turns were in "+
			"flight: the target cannot keep up with this rate", api.Count(r.Dropped)))
	}
	return lines
}

// fidelityLines describes how the turns agree with the trace that they replay, or with the plan of their shape.
func (r *Run) fidelityLines() (lines []string) {
	if r.Workload.Traffic != "" {
		lines = append(lines, r.Workload.Traffic)
	}
	f := r.Fidelity
	if f == nil {
		return lines
	}
	if b := f.Behind; b != nil {
		lines = append(lines, fmt.Sprintf("turns with a planned time were sent %s after it (p50; p99 %s), including the "+
			"wait for the turn before", api.Milliseconds(b.P50), api.Milliseconds(b.P99)))
	}
	if f.Input != nil {
		lines = append(lines, api.Percent(*f.Input)+" of the planned input tokens")
	}
	if f.Output != nil {
		lines = append(lines, api.Percent(*f.Output)+" of the planned output tokens")
	}
	if f.TheoreticalHitRatio != nil {
		lines = append(lines, fmt.Sprintf("one unlimited cache for all requests would have a hit rate of %s",
			api.Percent(*f.TheoreticalHitRatio)))
	}
	return lines
}

// details returns the list below the latencies.
func (r *Run) details() (s Section) {
	n := r.Turns
	s.add("Turns", fmt.Sprintf("%s completed, %s failed, %s cut at the end", api.Count(n.OK), api.Count(n.Failed),
		api.Count(n.Cancelled)))
	s.add("Cut", r.cutLine()...)
	if l := r.Limited; l != nil {
		s.add("Load", fmt.Sprintf("%s held it down for %s of the time; raise %s for more", l.Text,
			api.Percent(l.Share), l.By))
	}
	s.add("Arrivals", r.arrivalLines()...)
	s.add("Traffic", r.fidelityLines()...)
	if r.Turns.OK > 0 {
		s.add("Caches", r.cacheLine())
		s.add("Cached tokens", r.cachedLines()...)
		s.add("Tokens", r.tokenLine())
		s.add("By turn", r.turnLines()...)
		s.add("Unknown", r.unknownLines()...)
	}
	s.add("Error classes", r.errorLines()...)
	s.add("Answers", r.answerLines()...)
	s.add("Router", r.routerLines()...)
	r.Cluster.describe(&s, r.Routing, r.Metrics.TTFT.Mean)
	s.add("Cost", costWords(&r.Cost))
	s.add("Load generator", r.clientLine())
	s.add("Baseline", r.baselineLines()...)
	s.add("--fail-if", r.conditionLines()...)
	s.add("Events", r.eventLines()...)
	s.add("Note", r.Notes...)
	data := []string{fmt.Sprintf("%s, lane %s, %s", r.Data.Database, r.Data.Lane, r.Data.steps())}
	if r.Data.Run != "" {
		data = append(data, "run "+r.Data.Run+" of loadgen history")
	}
	s.add("Data", append(data, r.Data.Files...)...)
	return s
}

// turnLines returns a line for each turn number. It returns nil if conversations have one turn.
func (r *Run) turnLines() (lines []string) {
	tokens := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return api.Number(*v, 0)
	}
	for _, t := range r.TTFTByTurn {
		lines = append(lines, fmt.Sprintf("turn %s: TTFT p50 %s ms, p95 %s ms; %s input tokens (p95 %s), %s output; "+
			"latency p50 %s ms; n %s",
			t.Turn, ms(t.P50), ms(t.P95), tokens(t.InputMean), tokens(t.InputP95), tokens(t.OutputMean), ms(t.LatencyP50),
			api.Count(t.N)))
		if t.Cut > 0 {
			lines[len(lines)-1] += fmt.Sprintf(", of which %d cut: TTFT is at least that", t.Cut)
		}
	}
	if len(lines) < 2 {
		return nil
	}
	return lines
}

// tokenLine formats the sums of [Run.Tokens] in one line. A sum that no successful turn reported is "not reported"; one
// that only some reported is the sum of those, and unknownLines counts the others.
func (r *Run) tokenLine() string {
	n := r.Tokens
	parts := []string{"input not reported", "cached not reported", api.Count(n.Output) + " output"}
	if n.InputUnknown < r.Turns.OK {
		parts[0] = api.Count(n.Input) + " input"
		if n.InputP95 != nil {
			parts[0] += " (p95 of a turn " + api.Number(*n.InputP95, 0) + ")"
		}
	}
	if n.CachedUnknown < r.Turns.OK {
		parts[1] = api.Count(n.Cached) + " cached"
	}
	if n.Estimated > 0 {
		parts[2] += " (estimated from the chunks of " + plural(n.Estimated, "turn") + ")"
	}
	return strings.Join(parts, ", ")
}

// unknownLines counts the successful turns that lack a figure, by the reason.
func (r *Run) unknownLines() (lines []string) {
	for _, m := range []struct {
		what string
		n    int
	}{
		{"TTFT and latency of %s: no token was seen", r.Metrics.TTFT.Unknown},
		{"TPOT and ITL of %s: " + r.tpotUnknown(), r.Metrics.TPOT.Unknown},
		{"input tokens of %s: not reported or unclear", r.Tokens.InputUnknown},
		{"cached tokens of %s: not reported or unclear", r.Tokens.CachedUnknown},
	} {
		if m.n > 0 {
			lines = append(lines, fmt.Sprintf(m.what, api.Count(m.n)+" of "+plural(r.Turns.OK, "turn")))
		}
	}
	return lines
}

// tpotUnknown returns why turns have no TPOT.
func (r *Run) tpotUnknown() string {
	if r.Turns.InBursts == 0 {
		return "the number of tokens is unclear"
	}
	which := fmt.Sprintf("the tokens of %d", r.Turns.InBursts)
	if r.Turns.InBursts == r.Metrics.TPOT.Unknown {
		which = "their tokens"
	}
	return which + " came in bursts, as the server or a proxy held them back; TTFT includes the hold"
}

// answerLines returns the notices on the target's answers. Those on settings are in routerLines.
func (r *Run) answerLines() (lines []string) {
	for _, n := range r.Target.Notices {
		if !strings.HasPrefix(n, "target.") {
			lines = append(lines, api.Printable(n))
		}
	}
	return lines
}

// errorLines counts the failed turns by their class.
func (r *Run) errorLines() (lines []string) {
	for _, e := range r.Errors {
		lines = append(lines, fmt.Sprintf("%s: %d, first: %s", e.Class, e.N, api.Printable(e.Message)))
	}
	return lines
}

func (r *Run) clientLine() string {
	level := map[string]string{"ok": "negligible", "noticeable": "noticeable", "bottleneck": "too large"}[r.Client.Verdict]
	switch {
	case level == "":
		return "the load generator's own timing error is unknown: the run was too short for the self-check"
	case len(r.Client.Metrics) == 0:
		return "the load generator's own timing error was not judged: nothing was measured"
	}
	return "the load generator's own timing error is " + level + ": " +
		strings.TrimPrefix(r.Client.Reason, "the load generator's own error is ")
}

// baselineLines compares the last step with the baseline.
func (r *Run) baselineLines() []string {
	c := r.Baseline
	switch {
	case c == nil:
		return []string{"not compared: the load had stopped before the summary"}
	case r.Turns.OK == 0:
		return []string{"not compared: no turn succeeded"}
	case c.N == 0:
		return []string{"not compared: the run ended before its load had settled; a longer run is compared"}
	case len(c.Columns) == 0:
		return []string{c.Title + ": not compared, it has no results yet"}
	case c.Withheld != "":
		return []string{fmt.Sprintf("%s: not compared: %s", c.Title, c.Withheld)}
	case c.Settling:
		return []string{fmt.Sprintf("%s: not compared, still settling: needs another %.0f s of counted turns", c.Title,
			c.SettlingFor)}
	}
	lines := []string{fmt.Sprintf("%s, at %s; the last %.0f s of the run, %s:", c.Title,
		c.Level.InWords(), c.Seconds, plural(c.N, "counted turn"))}
	for _, column := range c.Columns {
		lines = append(lines, fmt.Sprintf("vs. %s: %s", columnMode(column), strings.Join(columnOutcomes(column), ", ")))
	}
	var unlike []string
	for _, d := range c.Differences {
		unlike = append(unlike, fmt.Sprintf("%s %s here, %s there", strings.ReplaceAll(d.Field, "_", " "),
			api.Printable(d.Live), api.Printable(d.Baseline)))
	}
	if len(unlike) > 0 {
		lines = append(lines, "differs from the baseline: "+strings.Join(unlike, "; "))
	}
	return lines
}

func columnMode(c api.Column) string {
	if c.Speculation == "" || c.Speculation == api.SpeculationNotRecorded {
		return string(c.Mode)
	}
	return fmt.Sprintf("%s with speculation %s", c.Mode, c.Speculation)
}

// columnOutcomes describes the improvement of each value of a column.
func columnOutcomes(c api.Column) (all []string) {
	for _, v := range []struct {
		name string
		of   api.LookedUp
	}{
		{"TTFT p95", c.TTFT.P95},
		{"TPOT p95", c.TPOT.P95},
		{"latency p95", c.Latency.P95},
		{"output tokens/s", c.OutputTokensPerSecond},
		{"requests/s", c.RequestsPerSecond},
		{"KV cache hit", c.KVHitRatio},
	} {
		switch i := v.of.Improvement; {
		case v.of.Lookup == api.LookupOutside:
			all = append(all, v.name+" outside the recorded range")
		case i == nil:
			all = append(all, v.name+" not recorded")
		case i.Outcome == api.OutcomeWithheld:
			all = append(all, v.name+" "+ownError)
		case undecided[i.Outcome] != "":
			all = append(all, fmt.Sprintf("%s %s, %s", v.name, improved(i.Percent), undecided[i.Outcome]))
		default:
			all = append(all, v.name+" "+improved(i.Percent))
		}
	}
	return all
}

func improved(percent float64) string {
	text := api.Number(math.Abs(percent), 1) + " %"
	switch {
	case api.IsZero(text):
		return text
	case percent < 0:
		return text + " worse"
	}
	return text + " better"
}

func (r *Run) conditionLines() (lines []string) {
	for _, c := range r.Conditions {
		switch {
		case c.Outcome == NotCertain:
			lines = append(lines, fmt.Sprintf("%s: not certain, value is %s; %s", c.Condition, c.valueText, c.needs))
		case c.Withheld != "":
			lines = append(lines, fmt.Sprintf("%s: undecided, value is %s (%s)", c.Condition, c.valueText,
				c.Withheld))
		case !c.Known:
			lines = append(lines, c.Condition+": not measured")
		case c.Hit:
			lines = append(lines, fmt.Sprintf("%s: FAILED, value is %s", c.Condition, c.valueText))
		default:
			lines = append(lines, fmt.Sprintf("%s: passed, value is %s", c.Condition, c.valueText))
		}
	}
	return lines
}

func (d Data) steps() string {
	if d.FirstStep == d.LastStep {
		return fmt.Sprintf("step %d", d.FirstStep)
	}
	return fmt.Sprintf("steps %d to %d", d.FirstStep, d.LastStep)
}

func ms(v *float64) string {
	if v == nil {
		return "–"
	}
	return api.InMS(*v)
}

func msInterval(v *[2]float64) string {
	if v == nil {
		return "–"
	}
	return api.InMS(v[0]) + " to " + api.InMS(v[1])
}

// elapsed formats a duration to the second, and below a minute to the tenth of a second.
func elapsed(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < time.Minute {
		return d.Round(time.Second / 10).String()
	}
	return d.Round(time.Second).String()
}

// pairs compares the two lanes by the turns that succeeded on both.
func (r *Run) pairs() (s Section) {
	t := r.Pairs
	if t == nil {
		s.add("Two lanes", "not compared: the workload had ended")
		return s
	}
	lines := []string{fmt.Sprintf("%s at %s against %s at %s, %s", t.A.Mode.Name(), api.Printable(t.A.Target),
		t.B.Mode.Name(), api.Printable(t.B.Target), plural(t.Pairs, "pair"))}
	for _, m := range t.Metrics {
		lines = append(lines, pairLine(m))
	}
	s.add("Two lanes", lines...)
	s.add("Note", api.Printable(t.Caution))
	return s
}

// pairLine formats both values of a metric, and their difference with its interval.
func pairLine(m api.PairedMetric) string {
	name := map[string]string{
		"ttft": "mean TTFT", "ttft_p95": "TTFT p95", "tpot": "mean TPOT", "latency": "mean latency",
		"kv_hit_ratio": "KV cache hit",
	}[m.Metric]
	number := api.Milliseconds
	if m.Metric == "kv_hit_ratio" {
		number = api.Percent
	}
	if m.A == nil || m.B == nil {
		return name + " not reported"
	}
	text := fmt.Sprintf("%s %s and %s", name, number(*m.A), number(*m.B))
	if in := m.Interval; in != nil {
		text += fmt.Sprintf("; the second less the first: %s (%s to %s)", number(*m.Difference), number(in[0]), number(in[1]))
	}
	return text
}
