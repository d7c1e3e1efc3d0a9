package stats

import (
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/workload"
)

const windowSeconds = 60

const windowSpan = windowSeconds * time.Second

// StepSpan is the longest time over which a step's figures are computed. No setting changes
// within a step, so a longer time gives more evidence.
const StepSpan = 5 * time.Minute

// maxStepTurns bounds the turns of a step that are kept beyond the window. With more than 66
// turns a second the figures cover less than [StepSpan].
const maxStepTurns = 20_000

// Window holds the turns that ended in the last 60 s, and those of the latest step from the last
// [StepSpan]. It is safe for concurrent use.
type Window struct {
	mu      sync.Mutex
	slo     api.SLO
	start   time.Time
	since   int64              // the first step since then; 0: none has begun
	turns   []workload.Outcome // in the order in which they were added
	gaps    ring               // of all whole turns
	counted ring               // of the latest step's counted turns
	step    int64              // the latest step with a counted turn
	first   time.Duration      // end of its first counted turn
	kept    time.Duration      // turns that ended up to then may be missing, although they are within StepSpan
	counts  bool               // there is such a step
	live    liveBatches        // of that step
	tokens  firstTokens        // of the latest step
}

const ringSlots = 60

// ring holds the inter-token latencies of turns by their end, in slots of one length. It has only
// the latest slots.
type ring struct {
	length time.Duration
	slots  [ringSlots]slot
}

// slot is a slot of a ring. Slots are numbered since the window's start.
type slot struct {
	number int64
	buckets
}

func (r *ring) number(at time.Duration) int64 { return int64(at / r.length) }

// at returns the slot of a moment, and clears it if it held an earlier one. It returns nil where
// the slot holds a later one.
func (r *ring) at(moment time.Duration) *slot {
	number := r.number(moment)
	s := &r.slots[number%ringSlots]
	if s.number > number {
		return nil
	}
	if s.number < number {
		s.number = number
		s.clear()
	}
	return s
}

func (r *ring) clear() {
	for i := range r.slots {
		r.slots[i].number = 0
		r.slots[i].clear()
	}
}

// Report holds the figures of a selection of the window's turns. Failed turns enter the counts
// only; cancelled ones enter Cancelled only.
type Report struct {
	// Window lacks Awaiting. Its OutputTokensPerSecond counts tokens at the end of their turn;
	// [Meter] counts them as they arrive.
	Window     api.Window
	TTFTByTurn []api.TurnFigures // turns that occurred, ascending

	OK, Errors, Cancelled int
	SLOMet                int // good turns: whole, and within both objectives

	HeldBack bool // see [HeldBack]; TPOT and ITL are unknown

	// Tokens of whole turns.
	PromptTokens, CachedTokens, OutputTokens int64
	// Whole turns without a count of prompt and of cached tokens.
	PromptUnknown, CachedUnknown int
	// HitRatio is cached / prompt tokens over the turns that reported cached tokens; nil where
	// none did.
	HitRatio *float64

	// Batched reports whether the span is long enough for intervals. Without it there are none,
	// neither below nor in Window.
	Batched bool
	// The 95 % intervals of Window's rates and of HitRatio; nil where unknown.
	OutputInterval, RequestsInterval, HitInterval *[2]float64
}

// Allow is [Lag.Allow] for the turns of the report.
func (r *Report) Allow(l *Lag) {
	l.Allow(&r.Window.Metrics, float64(r.OutputTokens)/float64(max(1, r.OK)))
}

// Row converts a report to a row of a baseline. The caller sets its level, mode and time.
func (r *Report) Row() api.BaselineRow {
	m := &r.Window.Metrics
	row := api.BaselineRow{
		OutputTokensPerSecond: new(r.Window.OutputTokensPerSecond), RequestsPerSecond: new(r.Window.RequestsPerSecond),
		KVHitRatio: r.HitRatio, ErrorRatio: r.Window.ErrorRatio, TTFTMean: m.TTFT.Mean,
		N: r.OK, Seconds: r.Window.Seconds, Errors: errorsOf(m),
		Intervals: &api.RowIntervals{
			OutputTokensPerSecond: r.OutputInterval, RequestsPerSecond: r.RequestsInterval, KVHitRatio: r.HitInterval,
			TTFTMean: m.TTFT.MeanInterval,
		},
	}
	for _, f := range api.Times {
		q := f.Quantiles(m)
		*f.Row(&row) = api.Percentiles{P50: q.P50, P95: q.P95}
		*f.Intervals(row.Intervals) = intervals(q)
		for _, figure := range []string{"p50", "p95", "mean"} {
			if slices.Contains(q.AtLeast, figure) && (figure != "mean" || f.Key == "ttft") {
				row.AtLeast = append(row.AtLeast, f.Key+"_"+figure)
			}
		}
	}
	slices.Sort(row.AtLeast)
	return row
}

func intervals(q *api.Quantiles) api.PercentileIntervals {
	return api.PercentileIntervals{P50: q.P50Interval, P95: q.P95Interval}
}

// NewWindow makes an empty window that starts now.
func NewWindow(now time.Time, slo api.SLO) *Window {
	return &Window{
		slo: slo, start: now, gaps: ring{length: windowSpan / ringSlots}, counted: ring{length: StepSpan / ringSlots},
	}
}

// SetSLO changes the objectives. Reports judge the whole window by the new ones.
func (w *Window) SetSLO(slo api.SLO) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slo = slo
}

func (w *Window) objectives() api.SLO {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slo
}

// Reset clears the window and starts it anew. Turns that ended before, or were sent in an earlier step, are ignored.
func (w *Window) Reset(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start, w.since = now, 0
	w.turns = nil
	w.step = 0
	w.first = 0
	w.kept = 0
	w.counts = false
	w.live = liveBatches{}
	w.tokens = firstTokens{}
	w.gaps.clear()
	w.counted.clear()
}

// Add adds an ended turn with the gaps between its chunks, and keeps neither t nor gaps. It reports false for a turn
// that was sent in a step before the last reset.
func (w *Window) Add(t *api.Turn, gaps []chat.Gap) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.Step < w.since {
		return false
	}
	ended := t.Ended.Sub(w.start)
	if ended < 0 {
		return true
	}
	if t.Counted {
		w.count(t.Step, ended)
	}
	if t.Status == api.TurnOK {
		w.addGaps(t, gaps, ended)
	}
	old := 0
	for old < len(w.turns) && w.isOld(&w.turns[old], len(w.turns)-old, ended) {
		w.kept = max(w.kept, w.turns[old].Ended)
		old++
	}
	w.turns = append(w.turns[old:], workload.OutcomeOf(t, w.start))
	return true
}

// doubtCached makes the counts of 0 cached tokens of earlier turns unknown.
func (w *Window) doubtCached(doubt bool) {
	if !doubt {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.turns {
		w.turns[i].HasCached = w.turns[i].HasCached && w.turns[i].CachedTokens > 0
	}
	for i := range w.live.all {
		if b := &w.live.all[i]; b.report.CachedTokens == 0 {
			b.prompt, b.report.HitRatio = 0, nil
		}
	}
}

// isOld reports whether the oldest of so many turns can be removed.
func (w *Window) isOld(t *workload.Outcome, turns int, now time.Duration) bool {
	age := now - t.Ended
	ofStep := w.counts && t.Ended >= w.first && age < StepSpan && turns <= maxStepTurns
	return age >= windowSpan && !ofStep
}

// count records the first counted turn of the latest step, and drops the gaps of the previous
// step.
func (w *Window) count(step int64, ended time.Duration) {
	switch {
	case !w.counts || step > w.step:
		w.step = step
		w.first = ended
		w.counts = true
		w.live = liveBatches{from: ended}
		w.counted.clear()
	case step == w.step:
		w.first = min(w.first, ended)
		if len(w.live.all) == 0 {
			w.live.from = w.first
		}
	}
}

func (w *Window) addGaps(t *api.Turn, gaps []chat.Gap, ended time.Duration) {
	w.gaps.at(ended).addGaps(gaps, t.ITLEstimated)
	if t.Counted && t.Step == w.step {
		w.counted.at(ended).addGaps(gaps, t.ITLEstimated)
	}
}

// addGaps adds the gaps of a turn. A nil slot is already used for a later time.
func (s *slot) addGaps(gaps []chat.Gap, estimated bool) {
	if s != nil {
		s.buckets.addGaps(gaps, estimated)
	}
}

// Report describes all turns of the last 60 s. Its ITL covers whole seconds: the last 59 and the
// one in progress.
func (w *Window) Report(now time.Time) Report {
	w.mu.Lock()
	t := newTally(now.Sub(w.start), windowSpan, 0, w.slo)
	t.gather(w, func(*workload.Outcome) bool { return true }, &w.gaps)
	w.mu.Unlock()
	return t.report()
}

// Counted describes the counted turns of a step. It must be the latest step with a counted turn;
// for another one the report is empty. The span begins at the end of the step's first counted
// turn, which the rates therefore leave out, and covers at most [StepSpan]. ITL covers whole spans
// of 5 s. The rates include all whole turns that ended in that time: turns that straddle the
// step's beginning do not count, but are part of its pace.
func (w *Window) Counted(now time.Time, step int64) Report {
	w.mu.Lock()
	at := now.Sub(w.start)
	t := newTally(at, StepSpan, at, w.slo)
	if w.counts && step == w.step {
		t = newTally(at, StepSpan, max(w.first, w.kept), w.slo)
		counts := func(one *workload.Outcome) bool { return one.Counted && one.Step == step && one.Ended >= t.from }
		t.gather(w, counts, &w.counted)
	}
	w.mu.Unlock()
	return t.report()
}

// Course returns TTFT and the hit ratio of Report without their intervals, for a quarter of its cost.
func (w *Window) Course(now time.Time) (ttft api.Quantiles, hitRatio *float64) {
	w.mu.Lock()
	from := now.Sub(w.start) - windowSpan
	var values []float64
	var cached, prompt int64
	for i := range w.turns {
		one := &w.turns[i]
		if one.Ended <= from || !one.OK() {
			continue
		}
		if defined(one.TTFT) {
			values = append(values, one.TTFT)
		}
		if one.HasCached {
			cached += int64(one.CachedTokens)
			prompt += int64(one.PromptTokens)
		}
	}
	w.mu.Unlock()
	return Summarize(values), ratio(cached, prompt)
}

// CountedAsArrived is [Window.Counted] with the output tokens as they arrived in that time. That
// rate is far steadier than the rate by the end of their turn.
func (w *Window) CountedAsArrived(m *Meter, now time.Time, step int64) Report {
	r := w.Counted(now, step)
	span := time.Duration(r.Window.Seconds * float64(time.Second))
	if rate, interval := m.Over(now.Add(-span), now); rate != nil {
		r.Window.OutputTokensPerSecond = *rate
		r.OutputInterval = nil
		if r.Batched {
			r.OutputInterval = interval
		}
	}
	return r
}
