package stats

import (
	"sync"
	"time"

	"kvbooth/sidecar/api"
)

// windowSeconds is the length of the window.
const windowSeconds = 60

const windowSpan = windowSeconds * time.Second

// StepSpan is how far a step's own figures reach back at most. Within a step
// nothing is changed, so that more of it tells more.
const StepSpan = 5 * time.Minute

// maxStepTurns bounds what is kept of a step beyond the window: at more than 66
// turns a second its figures reach back less far than [StepSpan].
const maxStepTurns = 20_000

// Window holds the turns that ended in the last 60 s, and of the latest step those
// of [StepSpan]. It is safe for concurrent use.
type Window struct {
	mu      sync.Mutex
	start   time.Time
	turns   []turn        // in the order in which they were added
	gaps    ring          // of all whole turns
	counted ring          // of the latest step's counted ones
	step    int64         // the latest with a counted turn
	first   time.Duration // end of its first counted turn
	kept    time.Duration // turns that ended up to then may be gone, though they are not older than StepSpan
	counts  bool          // there is such a step
	live    liveBatches   // of that step
}

// turn is what the window keeps of a sample.
type turn struct {
	Sample
	ended time.Duration // since the window's start
}

// ringSlots are the slots of a ring.
const ringSlots = 60

// ring holds the inter-token latencies of turns by when these ended, in slots of
// one length; its latest slots only.
type ring struct {
	length time.Duration
	slots  [ringSlots]slot
}

// slot is one of a ring. Slots are numbered since the window's start.
type slot struct {
	number int64
	buckets
}

func (r *ring) number(at time.Duration) int64 { return int64(at / r.length) }

// at is the slot of a moment, emptied if it held an earlier one; nil where it holds
// a later one.
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

// Report is what a selection of the window's turns was like. Failed turns enter
// the counts alone; cancelled ones enter Cancelled alone.
type Report struct {
	// Window is complete but for Awaiting. Its OutputTokensPerSecond counts
	// tokens by the end of their turn; [Meter] counts them as they arrive.
	Window     api.Window
	TTFTByTurn []api.TurnFigures // turns that occurred, ascending

	OK, Errors, Cancelled int
	SLOMet                int // good turns: whole, and within both objectives

	// Tokens of whole turns.
	PromptTokens, CachedTokens, OutputTokens int64
	// Whole turns without a count of prompt and of cached tokens.
	PromptUnknown, CachedUnknown int
	// HitRatio is cached / prompt tokens over the turns that reported cached
	// tokens; nil where none did.
	HitRatio *float64

	// Batched says that the span is long enough for intervals. Without it there is
	// none, neither below nor in Window.
	Batched bool
	// The 95 % intervals of Window's rates and of HitRatio; nil where not known.
	OutputInterval, RequestsInterval, HitInterval *[2]float64
}

// Allow is [Lag.Allow] for the turns of the report.
func (r *Report) Allow(l *Lag) {
	l.Allow(&r.Window.Metrics, float64(r.OutputTokens)/float64(max(1, r.OK)))
}

// Row is a report as a row of a baseline, which the caller gives its level, mode and
// time.
func (r *Report) Row() api.BaselineRow {
	m := &r.Window.Metrics
	return api.BaselineRow{
		TTFT: percentiles(m.TTFT), TPOT: percentiles(m.TPOT), ITL: percentiles(m.ITL), Latency: percentiles(m.Latency),
		OutputTokensPerSecond: new(r.Window.OutputTokensPerSecond), RequestsPerSecond: new(r.Window.RequestsPerSecond),
		KVHitRatio: r.HitRatio, ErrorRatio: r.Window.ErrorRatio, N: r.OK, Seconds: r.Window.Seconds, Errors: errorsOf(m),
		Intervals: &api.RowIntervals{
			TTFT: intervals(m.TTFT), TPOT: intervals(m.TPOT), ITL: intervals(m.ITL), Latency: intervals(m.Latency),
			OutputTokensPerSecond: r.OutputInterval, RequestsPerSecond: r.RequestsInterval, KVHitRatio: r.HitInterval,
		},
	}
}

func percentiles(q api.Quantiles) api.Percentiles { return api.Percentiles{P50: q.P50, P95: q.P95} }

func intervals(q api.Quantiles) api.PercentileIntervals {
	return api.PercentileIntervals{P50: q.P50Interval, P95: q.P95Interval}
}

// NewWindow makes an empty window that starts now.
func NewWindow(now time.Time) *Window {
	return &Window{start: now, gaps: ring{length: windowSpan / ringSlots}, counted: ring{length: StepSpan / ringSlots}}
}

// Reset empties the window, which starts anew. Turns that ended before will not
// enter it.
func (w *Window) Reset(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start, w.turns, w.step, w.first, w.kept, w.counts = now, nil, 0, 0, 0, false
	w.live = liveBatches{}
	w.gaps.clear()
	w.counted.clear()
}

// Add takes in one ended turn.
func (w *Window) Add(s Sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ended := s.Ended.Sub(w.start)
	if ended < 0 {
		return
	}
	if s.Counted {
		w.count(s.Step, ended)
	}
	if s.Status == api.TurnOK {
		w.addGaps(&s, ended)
	}
	s.ITL = nil
	old := 0
	for old < len(w.turns) && w.isOld(&w.turns[old], len(w.turns)-old, ended) {
		w.kept = max(w.kept, w.turns[old].ended)
		old++
	}
	w.turns = append(w.turns[old:], turn{Sample: s, ended: ended})
}

// isOld says whether the oldest of so many turns can go.
func (w *Window) isOld(t *turn, turns int, now time.Duration) bool {
	age := now - t.ended
	ofStep := w.counts && t.ended >= w.first && age < StepSpan && turns <= maxStepTurns
	return age >= windowSpan && !ofStep
}

// count notes the first counted turn of the latest step, and lets the gaps of
// the step before go.
func (w *Window) count(step int64, ended time.Duration) {
	switch {
	case !w.counts || step > w.step:
		w.step, w.first, w.counts, w.live = step, ended, true, liveBatches{from: ended}
		w.counted.clear()
	case step == w.step:
		w.first = min(w.first, ended)
		if len(w.live.all) == 0 {
			w.live.from = w.first
		}
	}
}

func (w *Window) addGaps(s *Sample, ended time.Duration) {
	w.gaps.at(ended).addGaps(s)
	if s.Counted && s.Step == w.step {
		w.counted.at(ended).addGaps(s)
	}
}

// addGaps adds those of a turn. A slot that is nil has gone on to a later time.
func (s *slot) addGaps(of *Sample) {
	if s != nil {
		s.buckets.addGaps(of)
	}
}

// Report describes all turns of the last 60 s; its ITL covers whole seconds, the
// last 59 and the one under way.
func (w *Window) Report(now time.Time, slo api.SLO) Report {
	w.mu.Lock()
	t := newTally(now.Sub(w.start), windowSpan, 0, slo)
	t.gather(w, func(*turn) bool { return true }, &w.gaps)
	w.mu.Unlock()
	return t.report()
}

// Counted describes the counted turns of a step, which must be the latest that
// has any: for another one the report is empty. Its seconds run from the end of
// the step's first counted turn, which the rates therefore leave out, and reach
// back [StepSpan] at most; its ITL covers whole spans of 5 s. The rates are those
// of all whole turns that ended in that time: those that straddle the step's
// beginning do not count, and still are a part of its pace.
func (w *Window) Counted(now time.Time, step int64, slo api.SLO) Report {
	w.mu.Lock()
	at := now.Sub(w.start)
	t := newTally(at, StepSpan, at, slo)
	if w.counts && step == w.step {
		t = newTally(at, StepSpan, max(w.first, w.kept), slo)
		t.gather(w, func(one *turn) bool { return one.Counted && one.Step == step && one.ended >= t.from }, &w.counted)
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
		if one.ended <= from || one.Status != api.TurnOK {
			continue
		}
		if defined(one.TTFT) {
			values = append(values, one.TTFT)
		}
		if one.HasCached {
			cached, prompt = cached+int64(one.CachedTokens), prompt+int64(one.PromptTokens)
		}
	}
	w.mu.Unlock()
	return quantiles(values), ratio(cached, prompt)
}

// CountedAsArrived is [Window.Counted] with the output tokens as they arrived in that
// time: a rate that is far steadier than that by the end of their turn.
func (w *Window) CountedAsArrived(m *Meter, now time.Time, step int64, slo api.SLO) Report {
	r := w.Counted(now, step, slo)
	span := time.Duration(r.Window.Seconds * float64(time.Second))
	if rate, interval := m.Over(now.Add(-span), now); rate != nil {
		r.Window.OutputTokensPerSecond, r.OutputInterval = *rate, nil
		if r.Batched {
			r.OutputInterval = interval
		}
	}
	return r
}
