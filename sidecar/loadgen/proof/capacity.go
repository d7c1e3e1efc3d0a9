package proof

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"kvbooth/sidecar/api"
)

// CapacityPlan is what a capacity search asks, settled before its first span.
type CapacityPlan struct {
	Modes      []api.ModeState `json:"modes"`      // one or two; of two it also looks for where they cross
	Levels     []int           `json:"levels"`     // of the coarse scan, ascending
	Resolution int             `json:"resolution"` // conversations: levels that lie closer together are not parted further
	Seconds    float64         `json:"seconds"`    // that a span counts at least
	MaxTime    float64         `json:"max_time"`   // seconds, of all spans with their warm-up; a longer span is not begun
	SLO        api.SLO         `json:"slo"`
	Seed       uint64          `json:"seed,string"` // of the order and of the draws
}

// Validate says what no capacity search can ask: nil, or an *[api.FieldError].
func (p CapacityPlan) Validate() error {
	if n := len(p.Modes); n < 1 || n > 2 {
		return api.Refuse("modes", fmt.Sprintf("a list of %d", n), "one or two")
	}
	for i, m := range p.Modes {
		if !m.Known() {
			return api.Refuse("modes", m.Mode, "kv, round_robin or least_loaded, or the name of an arm")
		}
		if slices.Contains(p.Modes[:i], m) {
			return api.Refuse("modes", m.Mode, "each mode once")
		}
	}
	if n := len(p.Levels); n < 2 || n > api.MaxSweepLevels || p.Levels[0] < 1 {
		return api.Refuse("levels", p.Levels, fmt.Sprintf("2 to %d, each 1 or more", api.MaxSweepLevels))
	}
	for i, level := range p.Levels[1:] {
		if level <= p.Levels[i] {
			return api.Refuse("levels", level, fmt.Sprintf("more than %d: ascending, each once", p.Levels[i]))
		}
	}
	switch {
	case p.Resolution < 1:
		return api.Refuse("resolution", p.Resolution, "1 or more")
	case !(p.Seconds >= 1 && p.Seconds <= maxSpan):
		return api.Refuse("span_seconds", p.Seconds, fmt.Sprintf("1 to %d", maxSpan))
	case !(p.MaxTime >= p.Seconds && p.MaxTime <= maxTrial):
		return api.Refuse("max_seconds", p.MaxTime, fmt.Sprintf("span_seconds to %d", maxTrial))
	case !(p.SLO.TTFT > 0):
		return api.Refuse("slo.ttft", p.SLO.TTFT, "more than 0")
	case !(p.SLO.TPOT > 0):
		return api.Refuse("slo.tpot", p.SLO.TPOT, "more than 0")
	}
	return nil
}

// Capacity finds for each mode the highest concurrency such that it and every lower
// level tested meet the SLOs, TTFT p95 and TPOT p95; of two modes, also where TTFT p95 of
// the second stops being better, or begins to. It is a state machine like [Trial], and
// its JSON is all of its state.
//
// Both are the same question, of where in a row of levels a limit begins to be missed: an SLO, or the order of the
// modes that the lowest levels have. More load makes nothing faster, so the figures rise with the level: isotonic
// regression over all spans gives the estimate, and the levels that a likelihood ratio test does not reject the
// interval of 95 %; see [decide.Capacity]. The variance of a span is that between spans of one level, of all levels
// together. With two SLOs, the one that is missed first counts. A level that certainly misses by itself ends the row,
// whatever lies above.
//
// First each level of the scan is measured once in every mode. Then comes, question by question, whichever level within
// the interval, or out of order, was measured least often, up to [maxRepeats] times, and the middle of the gap around
// the estimate once its ends were measured twice, down to the resolution.
type Capacity struct {
	Plan CapacityPlan `json:"plan"`
	Done []Done       `json:"done"`
}

// maxRepeats is how many spans a level gets in a mode at most: a level that they do not settle is left open.
const maxRepeats = 8

// capacityPlanned is how many median latencies a capacity search's spans count: long ones scatter less.
const capacityPlanned = 16

// capacityMetrics are those that the SLOs are about.
var capacityMetrics = []Metric{TTFT95, TPOT95}

// NewCapacity begins a capacity search. The error is an *[api.FieldError].
func NewCapacity(p CapacityPlan) (*Capacity, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Capacity{Plan: p}, nil
}

// CapacityEnd says why a capacity search is over.
type CapacityEnd string

// The ends.
const (
	CapacityRunning  CapacityEnd = ""
	CapacityDecided  CapacityEnd = "decided"   // all is settled, or too close to call
	CapacityTimeOver CapacityEnd = "time_over" // the next span would take longer than there is
)

// Over says whether and why the search has ended.
func (c *Capacity) Over() CapacityEnd {
	_, end := c.next()
	return end
}

// Next is the span to run; false once the search is over.
func (c *Capacity) Next() (Span, bool) {
	s, end := c.next()
	return s, end == CapacityRunning
}

func (c *Capacity) next() (Span, CapacityEnd) {
	s, ok := c.repeated()
	if !ok {
		t, ok := c.task()
		if !ok {
			return Span{}, CapacityDecided
		}
		s = c.span(t)
	}
	if each, known := c.expected(s.Concurrency); known && c.used()+each > c.Plan.MaxTime {
		return Span{}, CapacityTimeOver
	}
	return s, CapacityRunning
}

// repeated is the last span once more, if that was spoiled for the first time.
func (c *Capacity) repeated() (Span, bool) {
	if n := len(c.Done); n > 0 && c.Done[n-1].Spoiled != "" && c.Done[n-1].Attempt == 1 {
		s := c.Done[n-1].Span
		s.Attempt = 2
		return s, true
	}
	return Span{}, false
}

// task is a level to measure in a mode, by its place in the plan.
type task struct{ level, mode int }

// span is that of a task. The k-th spans of a level hold the same conversations in all modes.
func (c *Capacity) span(t task) Span {
	s := Span{
		Attempt: 1, Mode: c.Plan.Modes[t.mode], Concurrency: t.level, WarmUp: t.level, Midway: t.level,
		Seconds: c.Plan.Seconds,
	}
	if n := len(c.Done); n > 0 {
		s.Number = c.Done[n-1].Number + 1
	}
	for i := range c.Done {
		if d := &c.Done[i]; d.Concurrency <= t.level { // more conversations are slower
			s.Seconds = max(s.Seconds, capacityPlanned*d.Latency)
		}
	}
	s.Seed = rand.New(rand.NewPCG(c.Plan.Seed, uint64(t.level)<<32|uint64(c.at(t).begun))).Uint64()
	return s
}

// held is what was measured of a task.
type held struct {
	begun int     // spans, repeats of a spoiled one not counted
	lost  bool    // a span and its repeat were spoiled: it gets no more
	good  []*Done // by the order of their draws, nil where one was lost
	count int     // of good that are not nil
}

func (c *Capacity) at(t task) (h held) {
	for i := range c.Done {
		d := &c.Done[i]
		if d.Concurrency != t.level || d.Mode != c.Plan.Modes[t.mode] {
			continue
		}
		switch {
		case d.Spoiled == "":
			h.begun++
			h.good = append(h.good, d)
			h.count++
		case d.Attempt == 2:
			h.begun++
			h.lost = true
			h.good = append(h.good, nil)
		}
	}
	return h
}

// task chooses the next measurement. It returns false if no further one would add information.
func (c *Capacity) task() (task, bool) {
	for _, level := range c.Plan.Levels {
		if t, ok := c.fewest(level, 1); ok {
			return t, true
		}
	}
	rows, _ := c.rows()
	best, question, fewest := 0, -1, math.MaxInt
	for i, r := range rows {
		if concurrency, spans, ok := c.wish(r); ok && spans < fewest {
			best, question, fewest = concurrency, i, spans
		}
	}
	switch question {
	case -1:
		return task{}, false
	case len(c.Plan.Modes): // the crossing takes both modes
		return c.fewest(best, math.MaxInt)
	}
	return task{best, question}, true
}

// fewest is the mode in which a level was begun least often, if below so many times. Which
// of two comes first is drawn for each of their pairs.
func (c *Capacity) fewest(level, below int) (best task, ok bool) {
	first := 0
	for mode := range c.Plan.Modes {
		first += c.at(task{level, mode}).begun
	}
	coin := rand.New(rand.NewPCG(c.Plan.Seed, 1<<63|uint64(level)<<32|uint64(first/2))).IntN(2)
	least := below
	for i := range c.Plan.Modes {
		t := task{level, (i + coin) % len(c.Plan.Modes)}
		if n := c.at(t).begun; n < least {
			best, least, ok = t, n, true
		}
	}
	return best, ok
}

// Add takes in the result of the span that [Capacity.Next] gave. What cannot be that
// span's result gives an *[api.FieldError] and changes nothing.
func (c *Capacity) Add(r Result) error {
	s, ok := c.Next()
	if err := r.checkFor(s, ok, "search"); err != nil {
		return err
	}
	c.Done = append(c.Done, s.done(&r, c.Plan.SLO, capacityMetrics...))
	return nil
}

// Spoiled says why the span that was added last does not count; empty: it does, or there is none.
func (c *Capacity) Spoiled() string { return lastSpoiled(c.Done) }

func (c *Capacity) used() (seconds float64) {
	for i := range c.Done {
		seconds += c.Done[i].Elapsed
	}
	return seconds
}

// expected is how long a span of a level takes, by those of the level closest to it; false
// before the first.
func (c *Capacity) expected(level int) (seconds float64, known bool) {
	closest, sum, n := math.MaxInt, 0., 0.
	for i := range c.Done {
		d := &c.Done[i]
		by := max(d.Concurrency-level, level-d.Concurrency)
		if by < closest {
			closest, sum, n = by, 0, 0
		}
		if by == closest {
			sum, n = sum+d.Elapsed, n+1
		}
	}
	return sum / n, n > 0
}
