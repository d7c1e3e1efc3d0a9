package stats

import (
	"sync"
	"time"

	"kvbooth/sidecar/api"
)

// windowSeconds is the length of the window.
const windowSeconds = 60

const windowSpan = windowSeconds * time.Second

// Window holds the turns that ended in the last 60 s. It is safe for concurrent use.
type Window struct {
	mu     sync.Mutex
	start  time.Time
	turns  []turn // in the order in which they were added
	gaps   [windowSeconds]second
	step   int64         // the latest with a counted turn
	first  time.Duration // end of its first counted turn
	counts bool          // there is such a step
}

// turn is what the window keeps of a sample.
type turn struct {
	Sample
	ended time.Duration // since the window's start
}

// second holds the inter-token latencies of the turns that ended in one second
// since the start: of all, and of the latest step's counted ones.
type second struct {
	number       int64
	all, counted buckets
}

// Report is what a selection of the window's turns was like. Failed turns enter
// the counts alone; cancelled ones enter Cancelled alone.
type Report struct {
	// Window is complete but for Awaiting. Its OutputTokensPerSecond counts
	// tokens by the end of their turn; [Meter] counts them as they arrive.
	Window     api.Window
	TTFTByTurn []api.TurnTTFT // turns that occurred, ascending

	OK, Errors, Cancelled int
	SLOMet                int // good turns: whole, and within both objectives

	// Tokens of whole turns.
	PromptTokens, CachedTokens, OutputTokens int64
	// HitRatio is cached / prompt tokens over the turns that told cached
	// tokens; nil where none did.
	HitRatio *float64
}

// NewWindow makes an empty window that starts now.
func NewWindow(now time.Time) *Window { return &Window{start: now} }

// Reset empties the window, which starts anew. Turns that ended before will not
// enter it.
func (w *Window) Reset(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start, w.turns, w.step, w.first, w.counts = now, nil, 0, 0, false
	for i := range w.gaps {
		w.gaps[i].number = 0
		w.gaps[i].all.clear()
		w.gaps[i].counted.clear()
	}
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
	for old < len(w.turns) && ended-w.turns[old].ended >= windowSpan {
		old++
	}
	w.turns = append(w.turns[old:], turn{Sample: s, ended: ended})
}

// count notes the first counted turn of the latest step, and lets the gaps of
// the step before go.
func (w *Window) count(step int64, ended time.Duration) {
	switch {
	case !w.counts || step > w.step:
		w.step, w.first, w.counts = step, ended, true
		for i := range w.gaps {
			w.gaps[i].counted.clear()
		}
	case step == w.step:
		w.first = min(w.first, ended)
	}
}

func (w *Window) addGaps(s *Sample, ended time.Duration) {
	number := int64(ended / time.Second)
	slot := &w.gaps[number%windowSeconds]
	if slot.number > number {
		return // a minute late
	}
	if slot.number < number {
		slot.number = number
		slot.all.clear()
		slot.counted.clear()
	}
	counted := s.Counted && s.Step == w.step
	for _, g := range s.ITL {
		if !g.valid() {
			continue
		}
		octave, part := bucketOf(g.Seconds)
		slot.all.add(octave, part, g.Tokens)
		if counted {
			slot.counted.add(octave, part, g.Tokens)
		}
	}
	slot.all.estimated = slot.all.estimated || s.ITLEstimated
	slot.counted.estimated = slot.counted.estimated || counted && s.ITLEstimated
}

// Report describes all turns of the last 60 s; its ITL covers whole seconds, the
// last 59 and the one under way.
func (w *Window) Report(now time.Time, slo api.SLO) Report {
	w.mu.Lock()
	t := newTally(now.Sub(w.start), 0, slo)
	t.gather(w, func(*turn) bool { return true }, func(s *second) *buckets { return &s.all })
	w.mu.Unlock()
	return t.report()
}

// Counted describes the counted turns of a step, which must be the latest that
// has any: for another one the report is empty. Its seconds run from the end of
// the step's first counted turn, which the rates therefore leave out until 60 s
// have passed.
func (w *Window) Counted(now time.Time, step int64, slo api.SLO) Report {
	w.mu.Lock()
	at := now.Sub(w.start)
	t := newTally(at, at, slo)
	if w.counts && step == w.step {
		t = newTally(at, w.first, slo)
		t.gather(w, func(one *turn) bool { return one.Counted && one.Step == step }, func(s *second) *buckets { return &s.counted })
	}
	w.mu.Unlock()
	return t.report()
}

// TTFT is that of Report, for a quarter of its cost.
func (w *Window) TTFT(now time.Time) api.Quantiles {
	w.mu.Lock()
	from := now.Sub(w.start) - windowSpan
	var values []float64
	for i := range w.turns {
		if one := &w.turns[i]; one.ended > from && one.Status == api.TurnOK {
			values = appendDefined(values, one.TTFT)
		}
	}
	w.mu.Unlock()
	return Summarise(values)
}
