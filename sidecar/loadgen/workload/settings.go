package workload

import (
	"fmt"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/sim/arrival"
)

// Settings define a workload. They may change while it runs; a conversation keeps the draw that it
// began with. The names in JSON are those of [api.Limits].
type Settings struct {
	Level     api.Level         `json:"concurrency"` // conversations in progress
	Turns     api.Range         `json:"turns"`
	Openings  Openings          `json:"openings"`
	MaxTokens int               `json:"max_tokens"`    // limit of an answer
	Output    *api.Distribution `json:"output_tokens"` // of max_tokens per turn; nil: always MaxTokens
	StartRate float64           `json:"start_rate"`    // maximum of new conversations per second
	TargetRPS float64           `json:"target_rps"`    // maximum of requests per second; 0: none
	ThinkTime time.Duration     `json:"think_time"`    // pause between an answer and the follow-up
	// Arrivals and Burstiness are those of an [arrival.Schedule], at a level that is a rate.
	Arrivals   arrival.Gaps `json:"arrivals"`
	Burstiness float64      `json:"burstiness"`
	// MaxInflight is the number of turns in flight from which arrivals at a rate are dropped.
	MaxInflight int `json:"max_inflight"`
}

// Openings is the number of different texts that open the conversations, or one of the constants.
type Openings int

// With AsMany, there are as many openings as the corpus in use has texts. With OneEach, every
// conversation of a process opens with a text of its own.
const (
	AsMany  Openings = 0
	OneEach Openings = -1
)

// OpeningsOf converts the number in the API, where 0 means [OneEach].
func OpeningsOf(n int) Openings {
	if n == 0 {
		return OneEach
	}
	return Openings(n)
}

// Of returns the number in the API, for a corpus.
func (o Openings) Of(c *corpus.Corpus) int {
	switch o {
	case AsMany:
		return len(c.Starters)
	case OneEach:
		return 0
	}
	return int(o)
}

// Apply returns the settings changed by a patch. The error is an [api.FieldError] that names the
// invalid field; then s is returned unchanged.
func (s Settings) Apply(p api.WorkloadPatch, maxConcurrency int) (Settings, error) {
	if err := api.CheckLimits(p); err != nil {
		return s, err
	}
	next := s
	api.Patch(&next.Level, p.Level)
	api.Patch(&next.Turns, p.Turns)
	api.Patch(&next.MaxTokens, p.MaxTokens)
	api.Patch(&next.StartRate, p.StartRate)
	api.Patch(&next.TargetRPS, p.TargetRPS)
	if p.Openings != nil {
		next.Openings = OpeningsOf(*p.Openings)
	}
	if err := next.Check(maxConcurrency); err != nil {
		return s, err
	}
	return next, nil
}

// arrivals returns the process that the settings describe, from now on. One of the same kind goes on. begun is the number
// of conversations so far.
func (s Settings) arrivals(now time.Duration, before arrival.Process, seed uint64, begun int64) arrival.Process {
	if s.Level.Kind == api.Rate {
		schedule := arrival.Schedule{Gaps: s.Arrivals, Burstiness: s.Burstiness, Seed: seed}
		if o, ok := before.(*arrival.Open); ok && o.Follows(schedule) {
			o.Set(now, s.Level.Value)
			return o
		}
		return arrival.NewOpen(now, begun, s.Level.Value, schedule)
	}
	if l, ok := before.(*arrival.ClosedLoop); ok {
		l.Set(now, s.Level.Conversations(), s.StartRate)
		return l
	}
	return arrival.NewClosedLoop(s.Level.Conversations(), s.StartRate)
}

// drawsAs reports whether both settings draw the same conversations.
func (s Settings) drawsAs(o Settings) bool {
	length := func(d *api.Distribution) api.Distribution {
		if d == nil {
			return api.Distribution{}
		}
		return *d
	}
	return s.Turns == o.Turns && s.Openings == o.Openings && s.MaxTokens == o.MaxTokens &&
		length(s.Output) == length(o.Output)
}

// Check checks every field against its range. The error is an [api.FieldError].
func (s Settings) Check(maxConcurrency int) error {
	if err := api.CheckLimits(s); err != nil {
		return err
	}
	if s.Level.Conversations() > maxConcurrency {
		return api.Refuse("concurrency", s.Level, fmt.Sprintf("1 to %d (max_concurrency)", maxConcurrency))
	}
	if s.Openings < OneEach || s.Openings > api.MaxOpenings {
		return api.Refuse("openings", int(s.Openings), api.Limits["openings"].String())
	}
	if s.Output != nil && s.Output.Mean == 0 {
		return api.Refuse("output_tokens.mean", s.Output.Mean,
			"more than 0; leave output_tokens out to limit answers by max_tokens alone")
	}
	return nil
}
