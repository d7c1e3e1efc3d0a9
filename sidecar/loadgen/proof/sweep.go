package proof

import (
	"math"
	"math/rand/v2"
	"slices"

	"kvbooth/sidecar/api"
)

// SweepPlan holds the settings of a sweep of levels. They do not change after the first span.
type SweepPlan struct {
	Levels  []api.Level     `json:"levels"`
	Modes   []api.ModeState `json:"modes"`
	Repeats int             `json:"repeats"` // spans per level and mode
	Order   api.SweepOrder  `json:"order"`
	WarmUp  float64         `json:"warm_up"` // minimum seconds at full concurrency before a span counts
	Seconds float64         `json:"seconds"` // minimum counted time; see [Span.Least]
	Seed    uint64          `json:"seed,string"`
	// Together runs the two modes of a level at the same time, on two targets. With an even number of repeats, each
	// mode runs equally often on both targets.
	Together bool `json:"together,omitempty"`
}

// Sweep measures every level in every mode several times. It is a state machine like [Trial], and its JSON is its whole
// state.
//
// In the interleaved order, every level and mode runs once before any runs again. Repeats form pairs: the seed draws
// the order of levels and modes for the first repeat, and the second repeat uses the reverse order. A steady change
// over both thus affects all levels and modes equally. The modes of a level run in succession on the same
// conversations. In the order mode after mode, all spans of one mode run before the next mode, as in the recorded
// results.
//
// With Together, the two successive spans of a level run at the same time. The second repeat of a pair swaps the
// targets of the modes. If one of the two spans is spoiled, both are repeated.
type Sweep struct {
	Plan SweepPlan   `json:"plan"`
	Done []SweepDone `json:"done"`
}

// SweepDone is the part of a span's result that a sweep keeps.
type SweepDone struct {
	Number  int     `json:"number"`
	Attempt int     `json:"attempt"`
	Elapsed float64 `json:"elapsed"` // seconds, with switch and warm-up
	Spoiled string  `json:"spoiled,omitempty"`
}

// Of returns the planned number of spans that count. Spans that are spoiled twice reduce it.
func (s *Sweep) Of() int { return len(s.Plan.Levels) * len(s.Plan.Modes) * s.Plan.Repeats }

// Next returns the span to run next, which may be a spoiled one for the second time. It returns false once all spans
// are done. It changes nothing: the span stays the same until [Sweep.Add] records its result.
func (s *Sweep) Next() (Span, bool) {
	number, attempt := 0, 1
	if len(s.Done) > 0 {
		number, attempt = s.after()
	}
	if number >= s.Of() {
		return Span{}, false
	}
	return s.numbered(number, attempt), true
}

// Beside returns the span that runs on the other target at the same time as the span of [Sweep.Next]. It returns false
// if the modes do not run together, or if one result of the pair was already added.
func (s *Sweep) Beside() (Span, bool) {
	span, ok := s.Next()
	if !ok || !s.Plan.Together || span.Number%2 == 1 {
		return Span{}, false
	}
	return s.numbered(span.Number+1, span.Attempt), true
}

// after returns the number and the attempt of the next span. There must be a span that is done.
func (s *Sweep) after() (number, attempt int) {
	last := s.Done[len(s.Done)-1]
	first, spoiled := last.Number, last.Spoiled != ""
	if s.Plan.Together {
		if last.Number%2 == 0 {
			return last.Number + 1, last.Attempt // the other span of the pair, even if this one was spoiled
		}
		first, spoiled = last.Number-1, spoiled || s.Done[len(s.Done)-2].Spoiled != ""
	}
	if spoiled && last.Attempt == 1 {
		return first, 2
	}
	return last.Number + 1, 1
}

func (s *Sweep) numbered(number, attempt int) Span {
	span := s.order()[number]
	span.Number, span.Attempt = number, attempt
	return span
}

// order returns all spans of the sweep in their order.
func (s *Sweep) order() (all []Span) {
	p := s.Plan
	if p.Order == api.OrderModeAfterMode {
		for _, m := range p.Modes {
			for _, level := range p.Levels {
				for repeat := range p.Repeats {
					all = append(all, s.span(level, m, repeat))
				}
			}
		}
		return all
	}
	for repeat := range p.Repeats {
		rng := rand.New(rand.NewPCG(p.Seed, 1<<62|uint64(repeat/2)))
		var round []Span
		for _, i := range rng.Perm(len(p.Levels)) {
			for _, j := range rng.Perm(len(p.Modes)) {
				round = append(round, s.span(p.Levels[i], p.Modes[j], repeat))
			}
		}
		if repeat%2 == 1 {
			slices.Reverse(round)
		}
		all = append(all, round...)
	}
	return all
}

// span returns the span of a level in a mode. Each repeat of a level runs different conversations, which are the same
// in all modes.
func (s *Sweep) span(level api.Level, m api.ModeState, repeat int) Span {
	begin := 0
	if level.Kind == api.Rate {
		begin = OpenWarmUp
	}
	return Span{
		Mode: m, Level: level, WarmUp: begin, WarmUpSeconds: s.Plan.WarmUp, Seconds: s.Plan.Seconds,
		Seed: rand.New(rand.NewPCG(s.Plan.Seed, drawOf(level, repeat))).Uint64(),
	}
}

// drawOf identifies the draws of the n-th span of a level.
func drawOf(level api.Level, n int) uint64 {
	if level.Kind == api.Conversations {
		return uint64(level.Conversations())<<32 | uint64(n)
	}
	return math.Float64bits(level.Value) ^ uint64(n)
}

// Add records the result of the span that [Sweep.Next] returned. It returns why the span does not count, or "".
func (s *Sweep) Add(r Result) (spoiled string) {
	span, _ := s.Next()
	d := SweepDone{Number: span.Number, Attempt: span.Attempt, Elapsed: r.Elapsed, Spoiled: r.reason()}
	s.Done = append(s.Done, d)
	return d.Spoiled
}

// Left estimates the remaining time from the mean, the shortest and the longest span so far. Before the first span, the
// estimate uses the times of the plan, without the time to switch modes.
func (s *Sweep) Left() Left {
	n := len(s.Done)
	if n == 0 {
		each := s.Plan.WarmUp + s.Plan.Seconds
		if s.Plan.Together {
			each /= 2
		}
		return Left{Seconds: new(each * float64(s.Of()))}
	}
	left := float64(s.Of() - s.Done[n-1].Number - 1)
	sum, least, most := 0., math.Inf(1), 0.
	for _, d := range s.Done {
		sum, least, most = sum+d.Elapsed, min(least, d.Elapsed), max(most, d.Elapsed)
	}
	return Left{Seconds: new(sum / float64(n) * left), Least: new(least * left), Most: new(most * left)}
}
