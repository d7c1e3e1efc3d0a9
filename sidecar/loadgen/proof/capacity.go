package proof

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"kvbooth/sidecar/api"
)

// CapacityPlan holds the settings of a capacity search. They do not change after the first span.
type CapacityPlan struct {
	Modes      []api.ModeState `json:"modes"`      // one, or two to find their crossing, too
	Levels     []api.Level     `json:"levels"`     // levels of the coarse scan, ascending
	Resolution float64         `json:"resolution"` // smallest gap between levels, in conversations or in those per second
	Seconds    float64         `json:"seconds"`    // minimum counted time of a span
	MaxTime    float64         `json:"max_time"`   // seconds for all spans with their warm-up
	SLO        api.SLO         `json:"slo"`
	Seed       uint64          `json:"seed,string"` // seed of the order and of the draws
}

// Capacity finds the highest level of each mode, a concurrency or a rate, at which the mode meets the SLOs for TTFT p95
// and TPOT p95 there and at every lower tested level. For two modes it also finds their crossing: the level at which
// TTFT p95 of the second mode stops or begins to be better. It is a state machine like [Trial], and its JSON is its
// whole state.
//
// Both questions ask for the first level that misses a limit. The limit is an SLO, or the order of the modes at the
// lowest levels. Load makes no target faster, so the figures rise with the level. Isotonic regression over all spans
// gives the estimate. The 95 % interval holds the levels that a likelihood ratio test does not reject; see
// [decide.Capacity]. The variance of a span may change with the level; see [decide.Scatter]. With two SLOs, the one
// that is missed first counts. A level that certainly misses by itself ends the row, and higher levels do not count.
//
// Each level of the scan is measured once in every mode first. After that, each question adds the level that was
// measured least often among the open ones, up to [maxRepeats] times. Where both ends of the gap around the estimate
// were measured twice, the middle of the gap is added, down to the resolution.
type Capacity struct {
	Plan CapacityPlan `json:"plan"`
	Done []Done       `json:"done"`
}

// maxRepeats limits the spans of a level in a mode. A level without a verdict after these spans stays open.
const maxRepeats = 8

// capacityPlanned is the counted time of a span in median latencies. Longer spans scatter less.
const capacityPlanned = 16

// capacityMetrics lists the metrics that have an SLO.
var capacityMetrics = []Metric{TTFT95, TPOT95}

// NewCapacity returns a capacity search without spans. It returns an *[api.FieldError] for a time limit below the time
// of a span. The other fields must have passed [api.SweepRequest.Check], and the levels must ascend.
func NewCapacity(p CapacityPlan) (*Capacity, error) {
	if p.MaxTime < p.Seconds {
		return nil, api.Refuse("max_time", p.MaxTime, fmt.Sprintf("span to %d", maxTrial))
	}
	return &Capacity{Plan: p}, nil
}

// CapacityEnd is the reason why a capacity search is over.
type CapacityEnd string

// The reasons for the end of a capacity search.
const (
	CapacityRunning  CapacityEnd = ""
	CapacityDecided  CapacityEnd = "decided"   // no further span would change a verdict
	CapacityTimeOver CapacityEnd = "time_over" // the next span would exceed the time limit
)

// Over returns the reason why the search is over, or [CapacityRunning].
func (c *Capacity) Over() CapacityEnd {
	_, end := c.next()
	return end
}

// Next returns the span to run next. It returns false once the search is over.
func (c *Capacity) Next() (Span, bool) {
	s, end := c.next()
	return s, end == CapacityRunning
}

// Beside returns false: a capacity search runs its spans one after the other.
func (c *Capacity) Beside() (Span, bool) { return Span{}, false }

func (c *Capacity) next() (Span, CapacityEnd) {
	s, ok := c.repeated()
	if !ok {
		t, ok := c.task()
		if !ok {
			return Span{}, CapacityDecided
		}
		s = c.span(t)
	}
	if each, known := c.expected(s.Level); known && c.used()+each > c.Plan.MaxTime {
		return Span{}, CapacityTimeOver
	}
	return s, CapacityRunning
}

// repeated returns the second attempt of the last span, if the first attempt was spoiled.
func (c *Capacity) repeated() (Span, bool) {
	if n := len(c.Done); n > 0 && c.Done[n-1].Spoiled != "" && c.Done[n-1].Attempt == 1 {
		s := c.Done[n-1].Span
		s.Attempt = 2
		return s, true
	}
	return Span{}, false
}

// task is a level to measure in a mode. mode is an index of [CapacityPlan.Modes].
type task struct {
	level api.Level
	mode  int
}

// span returns the next span of a task. The k-th spans of a level run the same conversations in all modes.
func (c *Capacity) span(t task) Span {
	s := Span{Attempt: 1, Mode: c.Plan.Modes[t.mode], Level: t.level, Seconds: c.Plan.Seconds}
	s.WarmUp, s.Midway = warmUp(t.level)
	if n := len(c.Done); n > 0 {
		s.Number = c.Done[n-1].Number + 1
	}
	for i := range c.Done {
		if d := &c.Done[i]; !t.level.Below(d.Level) && !d.Overloaded { // more conversations are slower
			s.Seconds = max(s.Seconds, capacityPlanned*d.Latency)
		}
	}
	s.Seed = rand.New(rand.NewPCG(c.Plan.Seed, drawOf(t.level, len(c.at(t))))).Uint64()
	return s
}

// held holds the measured spans of a task in the order of their draws. A nil span was spoiled twice. The task then gets
// no further span.
type held []*Done

func (c *Capacity) at(t task) (h held) {
	for i := range c.Done {
		switch d := &c.Done[i]; {
		case d.Level != t.level || d.Mode != c.Plan.Modes[t.mode]:
		case d.Spoiled == "":
			h = append(h, d)
		case d.Attempt == 2:
			h = append(h, nil)
		}
	}
	return h
}

// lost reports whether a span was spoiled twice.
func (h held) lost() bool { return slices.Contains(h, nil) }

// task chooses the next measurement. It returns false if no further one would add information.
func (c *Capacity) task() (task, bool) {
	for _, level := range c.Plan.Levels {
		if t, ok := c.fewest(level, 1); ok {
			return t, true
		}
	}
	rows, _ := c.rows()
	best, question, fewest := api.Level{}, -1, math.MaxInt
	for i, r := range rows {
		if level, spans, ok := c.wish(r); ok && spans < fewest {
			best, question, fewest = level, i, spans
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

// fewest returns the task of the level with the fewest spans, if it has fewer than below. For each pair of spans, the
// seed draws which of two modes comes first.
func (c *Capacity) fewest(level api.Level, below int) (best task, ok bool) {
	first := 0
	for mode := range c.Plan.Modes {
		first += len(c.at(task{level, mode}))
	}
	coin := rand.New(rand.NewPCG(c.Plan.Seed, 1<<63|drawOf(level, first/2))).IntN(2)
	least := below
	for i := range c.Plan.Modes {
		t := task{level, (i + coin) % len(c.Plan.Modes)}
		if n := len(c.at(t)); n < least {
			best, least, ok = t, n, true
		}
	}
	return best, ok
}

// Add records the result of the span that [Capacity.Next] returned. It returns why the span does not count, or "".
func (c *Capacity) Add(r Result) (spoiled string) {
	s, _ := c.Next()
	d := s.done(&r, c.Plan.SLO)
	c.Done = append(c.Done, d)
	return d.Spoiled
}

func (c *Capacity) used() (seconds float64) {
	for i := range c.Done {
		seconds += c.Done[i].Elapsed
	}
	return seconds
}

// expected returns the time that a span of a level takes, in seconds: the mean over the spans of the closest measured
// level. It returns false before the first span.
func (c *Capacity) expected(level api.Level) (seconds float64, known bool) {
	closest, sum, n := math.Inf(1), 0., 0.
	for i := range c.Done {
		d := &c.Done[i]
		distance := math.Abs(d.Level.Value - level.Value)
		if distance < closest {
			closest, sum, n = distance, 0, 0
		}
		if distance == closest {
			sum, n = sum+d.Elapsed, n+1
		}
	}
	return sum / n, n > 0
}

// Done is the part of a span's result that a capacity search keeps.
type Done struct {
	Span
	Elapsed float64              `json:"elapsed"` // seconds, with switch and warm-up
	Latency float64              `json:"latency"` // median in seconds
	Spoiled string               `json:"spoiled,omitempty"`
	Metrics map[Metric]Sectioned `json:"metrics,omitempty"` // those with an SLO
	// Good is the number of turns in a second that met every SLO.
	Good float64 `json:"good,omitempty"`
	// Overloaded reports that the target did not keep up with the rate. Its metrics may be unknown.
	Overloaded bool `json:"overloaded,omitempty"`
}

// done returns the kept part of a span's result. The span is spoiled if a metric is unknown in any section.
func (s Span) done(r *Result, slo api.SLO) Done {
	r.Short = r.Short || r.Overloaded
	d := Done{Span: s, Elapsed: r.Elapsed, Spoiled: r.reason(), Overloaded: r.Overloaded}
	if d.Spoiled != "" {
		return d
	}
	whole, _ := r.cut(1, slo)
	d.Good = whole.value(GoodRate)
	if r.Overloaded {
		return d
	}
	d.Latency = r.medianLatency()
	d.Metrics = r.section(r.sections(), slo, capacityMetrics...)
	for _, m := range capacityMetrics {
		s, ok := d.Metrics[m]
		if !ok {
			d.Spoiled = fmt.Sprintf("%s is not known in every section of it", m)
			return d
		}
		s.Error = -math.Log1p(-min(r.Errors[m]/m.unscaled(s.Whole), tooLarge))
		d.Metrics[m] = s
	}
	return d
}

// tooLarge limits the share of a figure that is attributed to the load generator's own error. The caller spoils a span
// with a larger share.
const tooLarge = .5
