package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// sections returns all sections in reading order. The findings come first and the setup last, and sections without
// content are left out.
func (r *Results) sections() []Section {
	top := Section{Top: true, Text: r.Words}
	if run := r.Sweep; run != nil && run.Unfinished != "" && !strings.Contains(strings.Join(r.Words, ""), run.Unfinished) {
		top.add("Unfinished", fmt.Sprintf("%s, with %s measured. This report is partial.", run.State, run.Unfinished))
	}
	results := Section{Title: "Results", Text: r.howToRead(), Charts: r.charts()}
	if r.OfTrial() {
		results.Title = "Details"
	}
	all := append([]Section{top, r.armsSection()}, r.verdictSections()...)
	all = append(append(append(all, results), r.trialSections()...), r.capacitySections()...)
	if len(r.Sides) == 1 || len(r.Sides) > 0 && r.OfTrial() {
		all = append(all, r.figures())
	}
	for i := range r.Pairs {
		all = append(all, r.pairSections(&r.Pairs[i])...)
	}
	all = append(all, r.sustained(), r.crossing(), r.summary(), r.costs())
	return filled(append(all, r.workers(), r.hitCauses(), r.firstTokens(), r.spans(), r.inputs(), r.methodology(),
		r.setup(), r.notes()))
}

// sameForAll reports whether a text is the same for all sides.
func (r *Results) sameForAll(text func(*proof.Side) string) bool {
	for i := range r.Sides {
		if text(&r.Sides[i]) != text(&r.Sides[0]) {
			return false
		}
	}
	return true
}

// setupItems lists the items of the setup. value returns "" for an unknown value.
var setupItems = []struct {
	name  string
	value func(*proof.Side) string
}{
	{"Target", func(s *proof.Side) string {
		switch {
		case len(s.Addresses) > 0:
			return strings.Join(s.Addresses, " and ")
		case s.Target == nil:
			return ""
		}
		return s.Target.URL
	}},
	{"Router", func(s *proof.Side) string { return strings.Join(s.Routers, "; at other times ") }},
	{"Model", func(s *proof.Side) string {
		if s.Target == nil {
			return s.Deployment.Model
		}
		return cmp.Or(s.Deployment.Model, s.Target.Model)
	}},
	{"GPU", func(s *proof.Side) string { return s.Deployment.GPU }},
	{"GPUs", func(s *proof.Side) string { return positive(s.Deployment.Workers * s.Deployment.TensorParallel) }},
	{"Workers", func(s *proof.Side) string { return positive(s.Deployment.Workers) }},
	{"Price of a GPU-hour", func(s *proof.Side) string {
		if s.Deployment.GPUHour == 0 {
			return ""
		}
		return api.Plain(s.Deployment.GPUHour) + " $"
	}},
	{"Tensor parallelism", func(s *proof.Side) string { return positive(s.Deployment.TensorParallel) }},
	{"Engine", func(s *proof.Side) string { return cmp.Or(engines[s.Deployment.Engine], s.Deployment.Engine) }},
	{"Dynamo", func(s *proof.Side) string { return s.Deployment.Dynamo }},
	{"Kubernetes", func(s *proof.Side) string { return s.Deployment.Kubernetes }},
	{"Serving", func(s *proof.Side) string { return s.Deployment.Serving }},
	{"Block size", func(s *proof.Side) string { return positive(s.Deployment.BlockSize) }},
	{"Max batch size", func(s *proof.Side) string { return positive(s.Deployment.MaxBatchSize) }},
	{"Workload", func(s *proof.Side) string { return workload(s.Workload) }},
	{"Interconnect", func(s *proof.Side) string { return s.Provenance.Interconnect }},
	{"Services", func(s *proof.Side) string { return s.Provenance.Services }},
	{"Region", func(s *proof.Side) string { return s.Provenance.Region }},
	{"Between modes", func(s *proof.Side) string { return s.Provenance.BetweenModes }},
}

// engines maps the short names of baselines and metrics to the names in reports.
var engines = map[string]string{"trtllm": "TensorRT-LLM", "vllm": "vLLM", "sglang": "SGLang"}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// workload describes the known settings of the conversations. It is empty if neither turns nor traffic are known.
func workload(w *api.WorkloadShape) string {
	if w == nil || w.Turns.Max <= 0 && w.Traffic == "" {
		return ""
	}
	turns := strconv.Itoa(w.Turns.Min)
	if w.Turns.Max > w.Turns.Min {
		turns += " to " + strconv.Itoa(w.Turns.Max)
	}
	parts := []string{cmp.Or(w.Traffic, turns+" turns a conversation")}
	add := func(known bool, format string, args ...any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	if n := w.Openings; n != nil {
		add(*n == 0, "an opening text for each conversation")
		add(*n != 0, "%s", plural(*n, "opening text"))
	}
	add(w.OpeningTokens > 0, "openings of %d tokens", w.OpeningTokens)
	if d := w.OutputTokens; d != nil {
		add(true, "answers of %s tokens on average (coefficient of variation %s)", tenths(d.Mean), hundredths(d.CV))
	}
	add(w.MaxTokens > 0, "at most %d tokens an answer", w.MaxTokens)
	add(w.Corpus != "", "corpus %s", w.Corpus)
	add(w.Followup != "", "follow-up questions: %s", w.Followup)
	think, rps := value64(w.ThinkTime), value64(w.TargetRPS)
	add(think > 0, "users think for %s s", api.Plain(think))
	add(rps > 0, "at most %s requests/s", api.Plain(rps))
	for _, s := range api.WorkloadSettings {
		if v := value64(w.Number(s)); s.Key != "think_time" && s.Key != "target_rps" {
			add(v > 0, "%s %s", strings.ToLower(s.Label), s.Text(v))
		}
	}
	add(w.Arrivals != "", "arrivals: %s", w.Arrivals)
	add(w.Request != "", "each request with %s", w.Request)
	add(w.Session != "", "session by %s", w.Session)
	add(w.NoRequestID, "no X-Request-Id")
	if t := w.Timeouts; t != nil {
		add(true, "timeouts of %s s (first token), %s s (between tokens) and %s s (turn)",
			api.Plain(t.FirstToken), api.Plain(t.Stall), api.Plain(t.Turn))
	}
	return strings.Join(parts, ", ")
}

// setup lists the deployment and workload of the sides. Values that do not differ are listed once.
func (r *Results) setup() Section {
	s := Section{Title: "Setup"}
	if run := r.Sweep; run != nil {
		s.add("Load generator", run.Program)
	}
	if !r.sameForAll(func(s *proof.Side) string { return s.Baseline }) {
		for i := range r.Sides {
			s.add(r.Sides[i].Name, r.Sides[i].Title+" ("+r.Sides[i].Kind+")")
		}
	}
	for _, d := range setupItems {
		if len(r.Sides) == 0 {
			break
		}
		if r.sameForAll(d.value) {
			s.add(d.name, d.value(&r.Sides[0]))
			continue
		}
		var each []string
		for i := range r.Sides {
			value := cmp.Or(d.value(&r.Sides[i]), notRecorded)
			if len(r.Sides) > 2 {
				s.add(d.name+", "+r.Sides[i].Name, value)
				continue
			}
			each = append(each, r.Sides[i].Name+": "+value)
		}
		if each != nil {
			s.add(d.name, strings.Join(each, "; "))
		}
	}
	var modes []string
	for i := range r.Sides {
		text, m := r.Sides[i].Name, r.Sides[i].Mode
		if m.Mode != api.ModeUnknown {
			text += fmt.Sprintf(" (%s, speculation %s)", m.Mode, m.Speculation.Name())
		}
		modes = append(modes, text)
	}
	if len(modes) == 2 {
		modes = []string{modes[1] + " against " + modes[0]}
	}
	s.add(sentenceCase(r.side())+"s", strings.Join(modes, "; "))
	return s
}

func (r *Results) methodology() Section {
	s := Section{Title: "Methodology"}
	if r.Sweep != nil {
		r.sweepMethodology(&s)
		return s
	}
	add := func(name string, same bool, text func(*proof.Side) string) {
		if same {
			s.add(name, text(&r.Sides[0]))
			return
		}
		for i := range r.Sides {
			s.add(name+", "+r.Sides[i].Name, text(&r.Sides[i]))
		}
	}
	concurrency := func(s *proof.Side) string { return loadWords(s.Levels()) }
	one := r.Sides[0].Baseline == r.Sides[1].Baseline
	add("Figures", one, func(s *proof.Side) string { return s.Kind })
	add("Averaged", one, averaged)
	add(r.levelHead(), r.sameForAll(concurrency), concurrency)
	return s
}

// averaged lists the runs that a side is the mean of. It is empty for a single run.
func averaged(s *proof.Side) string {
	if len(s.Provenance.Runs) < 2 {
		return ""
	}
	var files []string
	for _, run := range s.Provenance.Runs {
		files = append(files, run.File)
	}
	return plural(len(files), "run") + ": " + strings.Join(files, ", ")
}

// minuteFormat is the layout of times, to the minute.
const minuteFormat = "2006-01-02 15:04 MST"

// sweepMethodology describes how a sweep measures, from its request and its spans.
func (r *Results) sweepMethodology(s *Section) {
	run := r.Sweep
	q := &run.Request
	s.add("Kind", kindWords(q))
	s.add("Measured", when(run))
	s.add(r.levelHead(), loadWords(q.Levels))
	warmUp := untilFirstEnded
	switch q.Kind {
	case api.SweepTrial:
		warmUp = trialWarmUp(q, run.Trial)
		s.add("Order", trialOrder(q, run.Trial))
		if q.Primary != nil {
			s.add("Decided by", proof.Metric(*q.Primary).Name()+
				", chosen before the start; smallest difference of interest "+r.smallest())
		}
	case api.SweepLevels:
		s.add("Order", levelsOrder(q))
		if q.Repeats != nil {
			s.add("Repeats", plural(*q.Repeats, "span")+" of each level and mode")
		}
		warmUp = "each span for " + durationText(value64(q.WarmUp)) + " at its full concurrency"
		if atRate(q) {
			warmUp = fmt.Sprintf("each span for %s after %s", durationText(value64(q.WarmUp)), firstEnded)
		}
	case api.SweepCapacity:
		s.add("Order", "a scan of these levels, then bisection of the first that misses the SLOs; each level that "+
			"decides is measured until its verdict is certain enough")
		if q.Resolution != nil {
			resolution := api.Level{Value: *q.Resolution}
			if q.ByRate() {
				resolution.Kind = api.Rate
			}
			s.add("Resolution", resolution.InWords())
		}
	}
	if q.MaxSeconds != nil {
		s.add("Time", "at most "+durationText(*q.MaxSeconds))
	}
	s.add("Warm-up", warmUp)
	if q.Seconds != nil {
		s.add("Counted", countedWords(q, onPairs(run.Trial)))
	}
	if q.Snapshots != nil {
		s.add("Snapshots", fmt.Sprintf("percentiles are the mean of %s of %d s in each span",
			plural(*q.Snapshots, "snapshot"), proof.SnapshotSeconds))
	}
	if q.Seed != nil {
		s.add("Seed", strconv.FormatUint(*q.Seed, 10))
	}
	s.add("Time used", durationText(run.Progress.SecondsUsed)+" by all spans that have ended, warm-up included")
	s.add("Caches", coldCaches(run.Spans))
	s.add("Intervals", fmt.Sprintf("95 %%, by Student's t over the spans of a level and %s, or over parts of the span if "+
		"there is only one", sideOf(q.Kind)))
	s.add("Spoiled spans", spoiledSpans(run.Spans))
}

// kindWords describes the question of a sweep.
func kindWords(q *api.SweepRequest) string {
	level := "concurrency"
	if atRate(q) {
		level = "rate"
	}
	switch {
	case q.Kind == api.SweepLevels:
		return "sweep: what does each mode do at each level?"
	case q.Kind == api.SweepCapacity && q.ByRate():
		return "capacity search: which rate does each mode sustain within the SLOs?"
	case q.Kind == api.SweepCapacity:
		return "capacity search: how many conversations does each mode sustain within the SLOs?"
	case len(q.Modes) <= 2:
		return "trial: is one arm better than the other at one " + level + "?"
	case q.Question != nil && *q.Question == api.QuestionOrder:
		return "trial: how do each two of these arms compare at one " + level + "?"
	}
	return "trial: which arm is better than all others at one " + level + "?"
}

// atRate reports whether the levels of a sweep are rates.
func atRate(q *api.SweepRequest) bool { return len(q.Levels) > 0 && q.Levels[0].Kind == api.Rate }

// loadWords describes levels of one kind.
func loadWords(levels []api.Level) string {
	if len(levels) > 0 && levels[0].Kind == api.Rate {
		return numbers(levels) + ": conversations that begin in a second, whatever the server does"
	}
	return numbers(levels) + " conversations in progress"
}

// levelHead returns the heading of the levels.
func (r *Results) levelHead() string {
	byRate := func(row *api.BaselineRow) bool { return row.Level.Kind == api.Rate }
	if r.Sweep != nil && atRate(&r.Sweep.Request) || r.Sweep == nil && r.anyRow(byRate) {
		return "Rate"
	}
	return "Concurrency"
}

// firstEnded is until when a span at a rate warms up.
var firstEnded = fmt.Sprintf("its first %d conversations have ended", proof.OpenWarmUp)

// untilFirstEnded describes the warm-up of a span without a fixed length.
const untilFirstEnded = "each span warms up until its initial conversations have ended"

// trialWarmUp describes what of a trial does not count.
func trialWarmUp(q *api.SweepRequest, t *api.TrialState) string {
	if q.Warm() && atRate(q) {
		return "until the first conversations have ended; then the first " + leadIn(q) + " of each slot"
	}
	if q.Warm() {
		return "until the initial conversations have ended, which start at different turns; then the first " +
			leadIn(q) + " of each slot"
	}
	text := untilFirstEnded + "; these start at different turns, so that they do not all end at once"
	if atRate(q) {
		text = "each span warms up until " + firstEnded + ", and for as long as any span before it"
	}
	if t != nil && t.RunIn > 0 {
		text += "; then for " + durationText(t.RunIn) + ", after which the hit rate no longer rose in the first block"
	}
	return text
}

// leadIn describes the least time at the beginning of a slot that does not count.
func leadIn(q *api.SweepRequest) string {
	return whole(max(proof.LeadIn, value64(q.WarmUp))) + " s"
}

// countedWords describes how long a span counts. pairs selects the method of earlier versions.
func countedWords(q *api.SweepRequest, pairs bool) string {
	latencies, text := proof.Latencies, "%s of each span at least, and no less than %d median latencies"
	if q.Kind == api.SweepTrial && !pairs {
		latencies = proof.TrialLatencies
	}
	if q.Warm() {
		text = "each slot lasts %s at least, and no less than %d median latencies, without its first " + leadIn(q)
	}
	text = fmt.Sprintf(text, durationText(*q.Seconds), latencies)
	if atRate(q) {
		text += "; a turn counts by when it was to be sent, and is waited for"
	}
	return text
}

// trialOrder describes the order of a trial's spans.
func trialOrder(q *api.SweepRequest, t *api.TrialState) string {
	looks := "a look after each block" + firstLook(t)
	switch {
	case onPairs(t):
		return "pairs of spans, by the method of earlier versions"
	case q.Warm():
		return "one run, whose arm changes every slot, in random order within pairs of slots; conversations and caches go " +
			"on, and a turn belongs to the slot in which it was sent; " + looks
	case q.Together != nil && *q.Together:
		return "blocks of spans with the same conversations, both arms at the same time on two targets and then " +
			"in the opposite order if both can switch; " + looks
	}
	once := ", each arm once, in the order of a row of a Williams design, drawn by the seed; "
	switch {
	case atRate(q):
		return "blocks of spans with the same arrivals" + once + looks
	case len(q.Modes) > 2:
		return "blocks of spans with the same conversations" + once + "once two are left, ABBA and BAAB in turn; " + looks
	}
	return "blocks of spans with the same conversations, ABBA and BAAB in turn, the first by the seed, the two in the " +
		"middle as one of double length; " + looks
}

// firstLook says after which block a trial has its first look.
func firstLook(t *api.TrialState) string {
	switch {
	case t == nil || t.FirstLook == 0 || t.FirstLook == 2:
		return " from the second on"
	case t.FirstLook == 3:
		return " from the third on"
	}
	return ""
}

// levelsOrder describes the order of the spans in a sweep of levels.
func levelsOrder(q *api.SweepRequest) string {
	switch {
	case q.Together != nil && *q.Together:
		return "each level runs once per round, in an order set by the seed, reversed in every second round; both " +
			"modes of a level at the same time, each on one of two targets, with lanes swapped every second time if " +
			"both can switch"
	case q.Order != nil && *q.Order == api.OrderModeAfterMode:
		return "one mode after the other; machine drift over that time affects the result"
	}
	return "interleaved: all levels and modes once before any comes again, in an order drawn by the seed, every " +
		"second time in reverse"
}

// when formats the times of the request and of the end.
func when(r *proof.Run) string {
	if r.Ended == nil {
		return "from " + r.Asked.UTC().Format(minuteFormat)
	}
	return r.Asked.UTC().Format(minuteFormat) + " to " + r.Ended.UTC().Format(minuteFormat)
}

// coldCaches describes how caches were made cold, and whether they were cold.
func coldCaches(spans []api.SweepSpan) string {
	var ways []string
	for _, s := range spans {
		way := map[string]string{
			"emptied": "emptied before each span",
			"nonce":   "made cold before each span by a new nonce at the start of every opening text",
			"warm":    "warm, with what both arms left in them",
		}[s.Cold]
		if way = cmp.Or(way, s.Cold); way != "" && !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
	}
	if len(ways) == 0 {
		return "no span has ended yet"
	}
	text := strings.Join(ways, "; in other spans ")
	if slices.Equal(ways, []string{"warm, with what both arms left in them"}) {
		return text
	}
	return text + "; " + coldness(spans)
}

// coldness counts the spans whose first turns found cold caches.
func coldness(spans []api.SweepSpan) string {
	unknown, warm := 0, 0
	for _, s := range spans {
		switch f := s.FirstTurns; {
		case f == nil:
			unknown++
		case f.Warm > 0:
			warm++
		}
	}
	const found = "the first turn on each opening found no unexplained cached tokens in "
	switch {
	case unknown == len(spans):
		return "not known whether cold: no first turn with its cached tokens is recorded"
	case unknown+warm == 0:
		return found + "all " + plural(len(spans), "span")
	}
	text := fmt.Sprintf("%s%d of %s", found, len(spans)-unknown-warm, plural(len(spans), "span"))
	if warm > 0 {
		text += fmt.Sprintf(", some in %d", warm)
	}
	if unknown > 0 {
		text += fmt.Sprintf("; not known whether cold in %d", unknown)
	}
	return text
}

// spoiledSpans lists the spans that do not count, with the reasons.
func spoiledSpans(spans []api.SweepSpan) string {
	var all []string
	for _, s := range spans {
		if s.Spoiled != "" {
			all = append(all, fmt.Sprintf("span %d, attempt %d (%s at %v): %s", s.Number+1, s.Attempt, s.Mode.Name(),
				s.Level, s.Spoiled))
		}
	}
	return cmp.Or(strings.Join(all, "; "), "none")
}

// notes returns the notes of the baselines, each baseline once.
func (r *Results) notes() Section {
	s := Section{Title: "Notes", Level: 3}
	for i := range r.Sides {
		side := &r.Sides[i]
		if side.Notes == "" || i > 0 && side.Baseline == r.Sides[0].Baseline {
			continue
		}
		s.add(side.Title, side.Notes)
	}
	return s
}

// overSpans says what the values of a sweep are means of.
const overSpans = "A value is the mean of the values of its spans; the share of failed turns is of all turns of its " +
	"spans."

// howToRead explains advantages and intervals in the tables.
func (r *Results) howToRead() (text []string) {
	switch {
	case len(r.Sides) == 0 && r.OfTrial() && onPairs(r.Sweep.Trial): // an earlier version kept no rows
		return r.howDecided()
	case len(r.Sides) == 0:
		return []string{"Nothing was measured yet."}
	case r.OfTrial():
		times := "all times"
		if t := r.Sweep.Trial; t != nil && t.Succeeded {
			times += " but the mean TTFT"
		}
		return append(r.howDecided(), "Under “The verdict”, arms are compared by whole blocks: failed turns count in "+
			times+", and a value is the mean over the spans, geometric for times and rates, adjusted for the block and the "+
			"place of each span, so that values and differences agree. “Figures” and “Spans” have what was measured, without "+
			"adjustment. In brackets are 95 % intervals of each arm by itself. "+overSpans)
	}
	times, shares := "times", "hit rates"
	if r.drafts() {
		times, shares = "times and memory", "hit and acceptance rates"
	}
	switch len(r.Sides) {
	case 1:
		return []string{fmt.Sprintf("Only %s was measured, so there is nothing to compare it with.", r.Sides[0].Name)}
	case 2:
		a, b := r.Sides[0].Name, r.Sides[1].Name
		text = append(text, fmt.Sprintf("An advantage is (%s − %s) / %[1]s for %[3]s, (%[2]s − %[1]s) / %[1]s for "+
			"rates, and a difference in percentage points for %[4]s: positive where %[2]s is "+
			"better.", a, b, times, shares))
	default:
		text = append(text, "Each mode is compared with each other one. An advantage is by how much the "+
			"latter's "+times+" are lower and its rates higher than the former's, in per cent of the former's, and a "+
			"difference in percentage points for "+shares+".")
	}
	if r.Sweep != nil {
		text = append(text, overSpans)
	}
	measured, estimated := r.intervals()
	switch {
	case measured && r.Sweep != nil && r.Sweep.Request.Kind == api.SweepLevels:
		text = append(text, "95 % intervals are in brackets, each by itself. The scatter of the values "+
			"is estimated from the repeats of all levels together. A level is called better or worse where that holds "+
			"for all levels and for TTFT p95, throughput and hit rate together, with an error of 5 % (Holm), so an "+
			"interval may leave out zero where no difference is shown. The other quantities are judged together in "+
			"the same way.")
	case measured:
		text = append(text,
			"95 % intervals are in brackets. Where the interval of an advantage includes zero, no difference is shown.")
	}
	if estimated {
		text = append(text, "Recorded values have no intervals. Whether they show a difference is judged by an "+
			"estimate of their scatter.")
	}
	return text
}

// intervals reports whether any value has a measured interval, and whether any difference has an estimated one.
func (r *Results) intervals() (measured, estimated bool) {
	for i := range r.Pairs {
		for _, l := range r.Pairs[i].Levels {
			for _, f := range l.Figures {
				measured = measured || f.IntervalA != nil || f.IntervalB != nil
				estimated = estimated || f.Estimated
			}
		}
	}
	return measured, estimated
}

// pairSections returns the tables of two sides.
func (r *Results) pairSections(p *proof.Pair) (all []Section) {
	a, b := r.Sides[p.A].Name, r.Sides[p.B].Name
	head := Section{Level: 3, Title: r.versus(p, "")}
	if p.Withheld != "" {
		head.Text = append(head.Text, "No advantage is shown: "+p.Withheld+".")
	}
	for _, only := range []struct {
		name   string
		levels []api.Level
	}{{a, p.OnlyA}, {b, p.OnlyB}} {
		if len(only.levels) > 0 {
			head.Text = append(head.Text, fmt.Sprintf("Levels of %s alone, which are not compared: %s.", only.name,
				numbers(only.levels)))
		}
	}
	if len(p.Levels) == 0 {
		head.Text = append(head.Text, "The two have no level in common.")
	}
	if len(p.Differences) > 0 {
		head.Title = cmp.Or(head.Title, "Differences in setup")
		head.Text = append(head.Text, "More than the mode differs, so the results do not compare the modes alone:")
		head.Table = &Table{Words: []int{1, 2}, Head: []string{"What", b, a}}
		for _, d := range p.Differences {
			head.Table.add(strings.ReplaceAll(d.Field, "_", " "), d.Live, d.Baseline)
		}
	}
	all = append(all, head)
	if len(p.Levels) == 0 {
		return all
	}
	for _, t := range r.tables() {
		var rows []*api.BaselineRow
		for _, l := range p.Levels {
			rows = append(rows, r.Sides[p.A].Row(l.Level), r.Sides[p.B].Row(l.Level))
		}
		title := withFailures(r.versus(p, ": ")+t.title, t.of[0].isTime(), rows...)
		all = append(all, r.pairTable(p, title, t.of, a, b))
	}
	return append(all, r.errorSection(p))
}

// versus names a pair, with the text that follows, in a report on several pairs.
func (r *Results) versus(p *proof.Pair, then string) string {
	if len(r.Pairs) < 2 {
		return ""
	}
	return r.Sides[p.B].Name + " against " + r.Sides[p.A].Name + then
}

// errorSection returns the table of failed turns. It is empty if no level has a share of failed turns.
func (r *Results) errorSection(p *proof.Pair) Section {
	a, b := &r.Sides[p.A], &r.Sides[p.B]
	s := Section{Title: r.versus(p, ": ") + "Errors", Level: 3}
	s.Table = &Table{Head: []string{r.levelHead(), a.Name + " failed", b.Name + " failed"}}
	known := false
	for _, l := range p.Levels {
		x, y := a.Row(l.Level).ErrorRatio, b.Row(l.Level).ErrorRatio
		known = known || x != nil || y != nil
		s.Table.add(l.Level.String(), failedCell(x), failedCell(y))
	}
	if !known {
		return Section{}
	}
	return s
}

// failedCell formats a share of failed turns, from 0 to 1.
func failedCell(v *float64) string {
	if v == nil {
		return notRecorded
	}
	return api.Number(100**v, 2) + " %"
}

// pairTable returns the table of some quantities, a row for each level. Quantities without a value have no column.
func (r *Results) pairTable(p *proof.Pair, title string, of []*quantity, a, b string) Section {
	s := Section{Title: title, Level: 3}
	known := slices.DeleteFunc(slices.Clone(of), func(q *quantity) bool {
		return !slices.ContainsFunc(p.Levels, func(l proof.Level) bool {
			f := l.Figures[q.Quantity]
			return f.A != nil || f.B != nil
		})
	})
	if len(known) == 0 {
		s.Text = []string{"Not recorded."}
		return s
	}
	s.Table = &Table{Head: []string{r.levelHead()}}
	for _, q := range known {
		s.Table.Head = append(s.Table.Head, a+" "+q.label, b+" "+q.label, "Advantage")
	}
	for _, l := range p.Levels {
		row := []string{l.Level.String()}
		for _, q := range known {
			f := l.Figures[q.Quantity]
			row = append(row, q.cellOf(f.A, f.IntervalA, f.UnlikeA, f.AtLeastA),
				q.cellOf(f.B, f.IntervalB, f.UnlikeB, f.AtLeastB), q.advantageCell(&f))
		}
		s.Table.add(row...)
	}
	return s
}

// figures returns the table of every side's values, without a comparison.
func (r *Results) figures() Section {
	s := Section{Title: "Figures", Level: 3, Table: &Table{Head: []string{sentenceCase(r.side()), r.levelHead()}}}
	var known []*quantity
	var rows []*api.BaselineRow
	for i := range r.Sides {
		for j := range r.Sides[i].Rows {
			rows = append(rows, &r.Sides[i].Rows[j])
		}
	}
	all := []*quantity{meanTTFT}
	for _, q := range r.Quantities() {
		all = append(all, describe(q))
	}
	for _, q := range all {
		if r.anyRow(func(row *api.BaselineRow) bool { return *q.In(row) != nil }) {
			known = append(known, q)
			s.Table.Head = append(s.Table.Head, withFailures(q.title, q.isTime(), rows...))
		}
	}
	failed := r.anyRow(func(row *api.BaselineRow) bool { return row.ErrorRatio != nil })
	if failed {
		s.Table.Head = append(s.Table.Head, "Failed")
	}
	for i := range r.Sides {
		for j := range r.Sides[i].Rows {
			of := &r.Sides[i].Rows[j]
			row := []string{r.Sides[i].Name, of.Level.String()}
			for _, q := range known {
				row = append(row, q.cellOf(*q.In(of), q.IntervalOf(of), q.UnlikeIn(of), q.AtLeastIn(of)))
			}
			if failed {
				row = append(row, failedCell(of.ErrorRatio))
			}
			s.Table.add(row...)
		}
	}
	return s
}

func (r *Results) anyRow(has func(*api.BaselineRow) bool) bool {
	return slices.ContainsFunc(r.Sides, func(s proof.Side) bool {
		return slices.ContainsFunc(s.Rows, func(row api.BaselineRow) bool { return has(&row) })
	})
}

func (r *Results) sustained() Section {
	if len(r.Sides) == 0 || r.SLO == (api.SLO{}) {
		return Section{}
	}
	s := Section{
		Title: "What the SLOs allow", Level: 3,
		Text: []string{fmt.Sprintf("TTFT p95 up to %s and TPOT p95 up to "+
			"%s. Sustained is the highest tested level such that it and every lower one meet both.",
			api.Objective(r.SLO.TTFT), api.Objective(r.SLO.TPOT))},
	}
	level := strings.ToLower(r.levelHead())
	s.Table = &Table{Words: []int{1}, Head: []string{sentenceCase(r.side()), "Sustained " + level}}
	for i := range r.Sides {
		s.Table.add(r.Sides[i].Name, cmp.Or(sustains(&r.Sides[i]), "not known"))
	}
	return s
}

func (r *Results) summary() Section {
	s := Section{Title: "Summary"}
	for i := range r.Pairs {
		p := &r.Pairs[i]
		b := r.Sides[p.B].Name
		for _, t := range r.tables() {
			for _, q := range t.of {
				average, ok := p.Averages[q.Quantity]
				if !ok {
					continue
				}
				name := r.versus(p, ", ") + t.title
				if len(t.of) > 1 {
					name += ", " + q.label
				}
				text := q.verdict(average, b)
				if q.Quantity == proof.QuantityHitRate {
					v, a := q.value, r.Sides[p.A].Name
					text += fmt.Sprintf(" On average %s under %s (%s to %s) and %s under %s (%s to %s).",
						v(average.B), b, v(average.RangeB[0]), v(average.RangeB[1]), v(average.A), a,
						v(average.RangeA[0]), v(average.RangeA[1]))
				}
				s.add(name, text)
			}
		}
	}
	for i := range r.Sides {
		s.add("Saturation, "+r.Sides[i].Name, saturation(&r.Sides[i]))
	}
	return s
}

func (r *Results) inputs() Section {
	s := Section{Title: "Inputs"}
	if len(r.Inputs) == 0 {
		s.Text = []string{"Not recorded."}
		return s
	}
	s.Table = &Table{Words: []int{1, 2, 3}, Head: []string{"File", "Date", "Seed", "Version"}}
	for _, in := range r.Inputs {
		date, seed := notRecorded, notRecorded
		if in.Date != nil {
			date = in.Date.UTC().Format(time.RFC3339)
		}
		if in.Seed != nil {
			seed = shortID(strconv.FormatUint(*in.Seed, 10))
		}
		s.Table.add(cmp.Or(in.File, notRecorded), date, seed, cmp.Or(in.Version, notRecorded))
	}
	return s
}

// saturation describes the level at which a side's throughput stops growing. It is empty if too few rates are known.
func saturation(side *proof.Side) string {
	s := side.Saturation()
	if s == nil {
		return ""
	}
	q := describe(s.Quantity)
	rate := q.value(s.Rate) + " " + q.label
	switch {
	case s.From.Value > 0:
		return fmt.Sprintf("at about %s: from %s to %v, throughput grows by less than half as much as "+
			"the conversations, or not at all.", rate, s.From.InWords(), s.Top)
	case s.Grows:
		return fmt.Sprintf("not shown: throughput still grows at %v, to %s.", s.Top, rate)
	}
	return fmt.Sprintf("not certain: throughput is %s at %v, the highest level.", rate, s.Top)
}
