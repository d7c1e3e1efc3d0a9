package lane

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/loadgen/stats"
)

const (
	// smallest is the difference that "no difference" excludes, in per cent.
	smallest = 5
	// mostFailed is the share of failed turns from which a step is not called better: a target that fails its slow turns
	// looks fast.
	mostFailed = .05
	// ownErrorText says that a result is withheld.
	ownErrorText = "the load generator's own error could change the result"
	// holdFor is the time for which an estimate of the time of a certain result must have been stable to be shown.
	holdFor = 20 * time.Second
)

// headlines holds what the headline of a lane has said about the setting in force. The zero value is ready. It is safe
// for concurrent use.
type headlines struct {
	mu      sync.Mutex
	about   setting
	certain map[lineKey]certainty
	chosen  lineKey       // of the line that was certain first; zero: none
	due     time.Time     // when the result is estimated to be certain; zero: not known
	stable  time.Time     // since when due has not been moved by much
	shown   time.Time     // the time that the countdown runs to; zero: none is shown
	trial   *api.Headline // certain result of a trial that ended in this setting; nil: none
}

// lineKey identifies a line: its reference and its metric.
type lineKey struct {
	against api.HeadlineReference
	metric  string
}

func (l *line) key() lineKey { return lineKey{l.Against, l.Metric} }

// certainty is a certain result.
type certainty struct {
	since time.Time
	line  api.HeadlineLine
	other string // see [line]
}

// line is the comparison with one reference.
type line struct {
	api.HeadlineLine
	other string         // what is compared with, for use within a sentence
	left  *time.Duration // estimated time until it is certain; nil: not known
	doubt string         // why it is not certain although its interval is; empty: it has no such reason
}

// forget makes the headline begin anew.
func (h *headlines) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.about, h.trial = setting{}, nil
}

// keep keeps the certain result of a trial that has ended while the setting stays.
func (h *headlines) keep(now time.Time, about setting, trial *api.Headline) {
	if trial == nil || !trial.Certain {
		return
	}
	kept := *trial
	kept.Detail = append(slices.Clone(trial.Detail), "trial that ended at "+Clock(now))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.about, h.certain, h.chosen = about, map[lineKey]certainty{}, lineKey{}
	h.trial = &kept
}

// kept returns the certain result of a trial in a setting; nil: there is none.
func (h *headlines) kept(about setting) *api.Headline {
	h.mu.Lock()
	defer h.mu.Unlock()
	if about != h.about {
		return nil
	}
	return h.trial
}

// remembered returns the certain result that the headline was about; its time is zero if there was none.
func (h *headlines) remembered(about setting) certainty {
	h.mu.Lock()
	defer h.mu.Unlock()
	if about != h.about {
		return certainty{}
	}
	return h.certain[h.chosen]
}

// judge takes the lines of a moment into account, and returns the result to show.
func (h *headlines) judge(now time.Time, about setting, lines []line) (shown line, was certainty, in *time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if about != h.about {
		h.about, h.certain, h.chosen = about, map[lineKey]certainty{}, lineKey{}
		h.due, h.shown, h.trial = time.Time{}, time.Time{}, nil
	}
	for i := range lines {
		l := &lines[i]
		before, known := h.certain[l.key()]
		switch {
		case !isCertain(l.Kind):
			continue
		case !known || before.line.Kind != l.Kind:
			before.since = now
		}
		before.line, before.other = l.HeadlineLine, l.other
		h.certain[l.key()] = before
	}
	shown = h.choose(lines)
	if isCertain(shown.Kind) {
		h.due, h.shown = time.Time{}, time.Time{}
	} else {
		in = h.countDown(now, lines)
	}
	return shown, h.certain[shown.key()], in
}

// choose returns the line that the headline is about: the one before, unless it is no longer certain and another one
// is; or else the first of lines. The lock is held.
func (h *headlines) choose(lines []line) line {
	before := slices.IndexFunc(lines, func(l line) bool { return l.key() == h.chosen })
	if before >= 0 && isCertain(lines[before].Kind) {
		return lines[before]
	}
	if i := slices.IndexFunc(lines, func(l line) bool { return isCertain(l.Kind) }); i >= 0 {
		h.chosen = lines[i].key()
		return lines[i]
	}
	return lines[max(0, before)]
}

// countDown returns the time until some line is estimated to be certain. It is shown once the estimate has been stable
// for holdFor, and never grows: an estimate that moves away hides it. The lock is held.
func (h *headlines) countDown(now time.Time, lines []line) *time.Duration {
	var due time.Time
	for _, l := range lines {
		if l.left == nil {
			continue
		}
		if at := now.Add(*l.left); due.IsZero() || at.Before(due) {
			due = at
		}
	}
	moved := due.Sub(h.due).Abs()
	switch {
	case due.IsZero() || due.Sub(now) > time.Hour:
		h.due, h.shown = time.Time{}, time.Time{}
		return nil
	case h.due.IsZero() || moved > max(10*time.Second, due.Sub(now)/5):
		h.due, h.stable, h.shown = due, now, time.Time{}
		return nil
	case now.Sub(h.stable) < holdFor:
		return nil
	}
	if h.shown.IsZero() || due.Before(h.shown) {
		h.shown = due
	}
	return new(max(0, h.shown.Sub(now)))
}

func isCertain(k api.HeadlineKind) bool { return k == api.HeadlineBetter || k == api.HeadlineWorse }

// judge takes a batch that has ended into account, whether or not anything shows the result. A step whose TTFT has
// certainly changed is measured anew.
func (l *Lane) judge(now time.Time) {
	_, batches := l.record.FirstTokens()
	if batches == l.judged {
		return
	}
	l.judged = batches
	r := l.read(now)
	c := r.compare(r.defaultBaseline())
	r.headline(&c)
	s, _ := l.record.Series()
	l.mu.Lock()
	d, changed := s.Changed(l.series[l.setting()])
	l.mu.Unlock()
	if changed {
		reason := fmt.Sprintf("measured anew, since the first token of the last %.0f minutes came %s than before in the step",
			stats.StepSpan.Minutes(), DifferenceText(sooner(d)))
		_, _ = l.beginAnew("load generator", reason, func(*Lane) {}) // a lane that is taken or has stopped stays as it is
	}
}

// headline returns the result of the step in one sentence. c is the comparison with the default baseline.
func (r *reading) headline(c *api.Comparison) *api.Headline {
	if s := r.state.Sweep; s != nil && s.Headline != nil {
		return s.Headline
	}
	if text := IdleText(&r.state); text != "" {
		return waiting(text)
	}
	if problem, _ := r.target.state(); problem != "" {
		return waiting("The target does not serve", problem)
	}
	if reason := r.disturbed(); reason != "" {
		return waiting("No result", reason)
	}
	if !r.state.InMode().Known() {
		return waiting("No result", baseline.ModeNotKnown)
	}
	lines := r.lines(c)
	r.mu.Lock()
	about, step := r.setting(), r.steps.current().ID
	r.mu.Unlock()
	if step != r.state.Step.ID { // what was read says nothing of the setting in force
		return waiting("Settling: a new step has just begun")
	}
	if trial := r.headlines.kept(about); trial != nil {
		return trial
	}
	if r.state.Settling || c.Live.TTFT.Mean == nil {
		return r.settlingHeadline(lines, r.headlines.remembered(about))
	}
	if len(lines) == 0 {
		return waiting(fmt.Sprintf("Nothing to compare with yet at %s", r.level().InWords()),
			"switch to another mode, which is then compared with this one")
	}
	shown, was, in := r.headlines.judge(r.now, about, lines)
	h := r.sentence(&shown, was)
	if in != nil {
		h.CertainIn = new(in.Seconds())
	}
	for _, l := range lines {
		h.Lines = append(h.Lines, l.HeadlineLine)
	}
	return h
}

func waiting(text string, detail ...string) *api.Headline {
	return &api.Headline{
		Text: text, Kind: api.HeadlineWaiting, Detail: notNil(detail), Lines: api.List[api.HeadlineLine]{},
	}
}

// settlingHeadline says what is waited for. was is what was certain in an earlier step of the same setting; its time is
// zero if nothing was.
func (r *reading) settlingHeadline(lines []line, was certainty) *api.Headline {
	left := math.Ceil(r.settling.Seconds())
	text := fmt.Sprintf("Settling, %.0f s to go", left)
	if left == 0 {
		text = "Settling: waiting for the first turns"
	}
	h := waiting(text)
	if !was.since.IsZero() {
		h.Kind, h.Since, h.Against = api.HeadlineUncertain, &was.since, was.line.Against
		h.Difference = DifferenceText(*was.line.Percent)
		h.Text = fmt.Sprintf("%s, certain at %s; measured anew, %.0f s to go",
			Claim(r.state.InMode().Short(), *was.line.Percent, was.other), Clock(was.since), left)
	}
	var others []string
	for _, l := range lines {
		if !slices.Contains(others, l.other) {
			others = append(others, l.other)
		}
	}
	if len(others) > 0 {
		h.Detail = append(h.Detail, "to be compared with "+strings.Join(others, " and with "))
	}
	return h
}

// sentence words the result that is shown. was is the certain result with the same reference; its time is zero if there
// was none.
func (r *reading) sentence(l *line, was certainty) *api.Headline {
	h := &api.Headline{Kind: l.Kind, Against: l.Against, Detail: api.List[string]{}, Lines: api.List[api.HeadlineLine]{}}
	subject := r.state.InMode().Short()
	difference := ""
	if l.Percent != nil {
		difference = DifferenceText(*l.Percent)
	}
	switch {
	case isCertain(l.Kind):
		h.Certain, h.Since, h.Difference = true, &was.since, difference
		h.Text = Claim(subject, *l.Percent, l.other)
		h.Detail = append(h.Detail, "certain since "+Clock(was.since))
	case !was.since.IsZero():
		h.Kind, h.Since = api.HeadlineUncertain, &was.since
		h.Difference = DifferenceText(*was.line.Percent)
		h.Text = fmt.Sprintf("%s, certain at %s; now %s, not certain", Claim(subject, *was.line.Percent, l.other),
			Clock(was.since), difference)
	case l.Kind == api.HeadlineSame:
		h.Certain = true
		h.Text = fmt.Sprintf("%s: no difference of %d %% or more from %s", subject, smallest, l.other)
	default:
		h.Difference = difference
		h.Text = SoFar(subject, *l.Percent)
		h.Detail = append(h.Detail, "compared with "+l.other)
	}
	if l.doubt != "" {
		h.Detail = append(h.Detail, l.doubt)
	}
	h.Detail = append(h.Detail, l.figures()...)
	return h
}

// figures returns the values and the interval of a line, as clauses.
func (l *line) figures() (clauses []string) {
	if l.Live != nil && l.Other != nil {
		clauses = append(clauses, fmt.Sprintf("%s %s beside %s", metricNames[l.Metric], api.Milliseconds(*l.Live),
			api.Milliseconds(*l.Other)))
	}
	if l.Interval != nil {
		clauses = append(clauses, "95 % interval: "+IntervalText(*l.Interval))
	}
	return clauses
}

var metricNames = map[string]string{"ttft_mean": "mean TTFT", "ttft_p50": "TTFT p50", "ttft_p95": "TTFT p95"}

// text words a line, such as "against round-robin, measured here at 14:02: mean 22 % sooner (12 to 31 %)".
func (l *line) text() string {
	metric := strings.Trim(strings.Replace(metricNames[l.Metric], "TTFT", "", 1), " ")
	text := fmt.Sprintf("against %s: %s ", l.other, metric)
	switch {
	case l.Percent == nil:
		return text + "not measured yet"
	case l.Kind == api.HeadlineSame:
		return text + fmt.Sprintf("no difference of %d %% or more", smallest)
	}
	text += DifferenceText(*l.Percent)
	if !isCertain(l.Kind) {
		text += " so far, not certain"
	}
	if l.Interval != nil {
		text += " (" + IntervalText(*l.Interval) + ")"
	}
	return text
}

// lines compares the step with each reference that there is.
func (r *reading) lines(c *api.Comparison) (all []line) {
	if l, ok := r.measuredLine(c); ok {
		all = append(all, l)
	}
	all = append(all, r.recordedLines(c)...)
	failed := r.record.FailedShare(r.now)
	for i := range all {
		l := &all[i]
		if l.Kind == api.HeadlineBetter && failed >= mostFailed {
			l.Kind, l.doubt = api.HeadlineUncertain, fmt.Sprintf("%.0f %% of the turns fail, and are in no time", 100*failed)
		}
		l.Text = l.text()
	}
	return all
}

// measuredLine compares the mean TTFT with that of another mode at the same level on this target: of its latest settled
// step, or of the row that was kept of it.
func (r *reading) measuredLine(c *api.Comparison) (l line, ok bool) {
	r.mu.Lock()
	other, reference, all, ok := r.otherSeries(r.now)
	own := slices.Clone(r.series[r.setting()])
	r.mu.Unlock()
	l.HeadlineLine = api.HeadlineLine{
		Against: api.AgainstMeasured, Metric: "ttft_mean", Kind: api.HeadlineUncertain, Live: c.Live.TTFT.Mean,
	}
	var was decide.Mean
	mode, at := other.mode, reference.Until
	referenceError := reference.Error
	switch {
	case ok:
		isLatest := func(s stats.Series) bool { return s.Until.Equal(reference.Until) }
		was = reference.Estimate(slices.DeleteFunc(slices.Clone(all), isLatest), stats.DesignEffect(nil))
		l.Other = &reference.Average
	default:
		column, found := r.measuredColumn()
		if !found {
			return l, false
		}
		mode, at = api.ModeState{Arm: column.Arm, Mode: column.Mode, Speculation: column.Speculation}, *column.Measured
		l.Other = column.TTFTMean.Value
		was = ofRow(column.TTFTMean)
		if e := column.TTFTMean.Error; e != nil {
			referenceError = *e
		}
	}
	l.other = fmt.Sprintf("%s, measured here at %s", InSentence(mode.Short()), Clock(at))
	if l.Live == nil {
		return l, true
	}
	is, batched := r.record.Series()
	d := math.Log(*l.Live / *l.Other)
	l.Percent = new(sooner(d))
	if !batched {
		return l, true
	}
	now := is.Estimate(own, stats.DesignEffect(all))
	half := stats.Contrast(now, was)
	ownError := 0.
	if e := c.Live.TTFT.MeanError; e != nil {
		ownError = *e
	}
	l.settle(d, half, ownError / *l.Live, referenceError / *l.Other)
	if !isCertain(l.Kind) && l.doubt == "" {
		l.left = untilCertain(d, now, was, is.Batch, r.now.Sub(is.Until))
	}
	return l, true
}

// settle sets the interval and the result from a difference of logarithms, half the length of its interval, and the
// relative errors of both values, which can only make them too large.
func (l *line) settle(d, half, ownError, referenceError float64) {
	if math.IsNaN(half) || math.IsInf(half, 0) {
		return
	}
	without := kindOf(d-half, d+half)
	low, high := d-half-ownError, d+half+referenceError
	l.Kind = kindOf(low, high)
	l.Interval = &[2]float64{sooner(high), sooner(low)}
	if l.Kind != without {
		l.Kind = api.HeadlineUncertain
		if ownError+referenceError >= baseline.LeastOwnError*math.Abs(d) {
			l.doubt = ownErrorText
		}
	}
}

// kindOf returns the result of an interval of log(live / reference).
func kindOf(low, high float64) api.HeadlineKind {
	switch {
	case high < 0:
		return api.HeadlineBetter
	case low > 0:
		return api.HeadlineWorse
	case low > math.Log1p(-smallest/100.) && high < math.Log1p(smallest/100.):
		return api.HeadlineSame
	}
	return api.HeadlineUncertain
}

// untilCertain estimates the time until a difference that stays as it is would be certain; nil: more than an hour.
func untilCertain(d float64, is, was decide.Mean, batch, age time.Duration) *time.Duration {
	for more := 1; time.Duration(more)*batch <= time.Hour; more++ {
		later := is
		later.N += float64(more)
		later.Batch.DF += float64(more)
		if stats.Contrast(later, was) < math.Abs(d) {
			return new(max(0, time.Duration(more)*batch-age))
		}
	}
	return nil
}

// measuredColumn returns the latest result of another mode at the level in the baseline of this target.
func (r *reading) measuredColumn() (latest api.Column, ok bool) {
	own, _ := r.baseline(api.ThisTarget)
	for _, c := range baseline.Columns(own, r.level()) {
		mode := api.ModeState{Arm: c.Arm, Mode: c.Mode, Speculation: c.Speculation}
		if mode == r.state.InMode() || !mode.Known() || c.TTFTMean.Interval == nil ||
			c.TTFTMean.Lookup != api.LookupExact || c.Measured == nil || r.now.Sub(*c.Measured) > seriesReach {
			continue
		}
		if !ok || c.Measured.After(*latest.Measured) {
			latest, ok = c, true
		}
	}
	return latest, ok
}

// ofRow returns the mean of a row, whose interval comes from four batches by Student's t.
func ofRow(l api.LookedUp) decide.Mean {
	deviation := math.Log(l.Interval[1]/l.Interval[0]) / 2 / stats.Student
	return decide.Mean{
		Value: math.Log(*l.Value), N: 4, Batch: decide.Variance{Value: 4 * deviation * deviation, DF: 3},
	}
}

// recordedLines compares TTFT p95 and p50 with another mode of the default baseline.
func (r *reading) recordedLines(c *api.Comparison) (all []line) {
	column, ok := r.recordedColumn(c)
	if !ok || c.Withheld != "" {
		return nil
	}
	mode := api.ModeState{Arm: column.Arm, Mode: column.Mode, Speculation: column.Speculation}
	for _, q := range []struct {
		metric string
		live   *float64
		was    *api.LookedUp
	}{{"ttft_p95", c.Live.TTFT.P95, &column.TTFT.P95}, {"ttft_p50", c.Live.TTFT.P50, &column.TTFT.P50}} {
		if q.was.Value == nil {
			continue
		}
		l := line{other: InSentence(mode.Short()) + " (recorded)", HeadlineLine: api.HeadlineLine{
			Against: api.AgainstRecorded, Metric: q.metric, Kind: api.HeadlineUncertain, Live: q.live, Other: q.was.Value,
		}}
		if q.was.Improvement != nil {
			l.improved(q.was.Improvement)
		}
		all = append(all, l)
	}
	if len(all) == 2 && pointApart(&all[0], &all[1]) {
		for i := range all {
			if isCertain(all[i].Kind) {
				all[i].Kind = api.HeadlineUncertain
			}
		}
	}
	return all
}

// pointApart reports whether one of two figures is better and the other worse. Then neither is the result.
func pointApart(a, b *line) bool {
	return a.Percent != nil && b.Percent != nil && *a.Percent**b.Percent < 0
}

// improved sets the result of a comparison with a recorded value.
func (l *line) improved(i *api.Improvement) {
	l.Percent, l.Interval = &i.Percent, i.Interval
	if i.Outcome == api.OutcomeWithheld {
		l.doubt = ownErrorText
	}
	switch {
	case i.Outcome == api.OutcomeBetter:
		l.Kind = api.HeadlineBetter
	case i.Outcome == api.OutcomeWorse:
		l.Kind = api.HeadlineWorse
	case i.Outcome == api.OutcomeNoDifference && i.Interval[0] > -smallest && i.Interval[1] < smallest:
		l.Kind = api.HeadlineSame
	}
	if i.SecondsLeft != nil {
		l.left = new(time.Duration(*i.SecondsLeft * float64(time.Second)))
	}
}

// recordedColumn returns the column of another mode, with the live speculation where there is one. The results of this
// target are no recording.
func (r *reading) recordedColumn(c *api.Comparison) (found api.Column, ok bool) {
	if c.Name == api.ThisTarget {
		return found, false
	}
	for _, column := range c.Columns {
		if column.Mode == r.state.Mode && column.Arm == r.state.Arm || column.TTFT.P95.Value == nil {
			continue
		}
		if !ok || column.Speculation == r.state.Speculation && found.Speculation != r.state.Speculation {
			found, ok = column, true
		}
	}
	return found, ok
}

// sooner returns how much sooner the live value is in per cent, from log(live / reference).
func sooner(d float64) float64 { return 0 - 100*math.Expm1(d) }
