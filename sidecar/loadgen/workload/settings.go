package workload

import (
	"fmt"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
)

// Settings shape a workload. They may change while it runs; a conversation
// keeps the shape it was drawn with. The names in JSON are those of [api.Limits].
type Settings struct {
	Concurrency int               `json:"concurrency"` // conversations in progress
	Turns       api.Range         `json:"turns"`
	Openings    Openings          `json:"openings"`
	MaxTokens   int               `json:"max_tokens"`    // cap of an answer
	Output      *api.Distribution `json:"output_tokens"` // of max_tokens per turn; nil: always the cap
	StartRate   float64           `json:"start_rate"`    // new conversations a second at most
	TargetRPS   float64           `json:"target_rps"`    // requests a second at most; 0: no cap
	ThinkTime   time.Duration     `json:"think_time"`    // pause of the user before a follow-up
}

// Openings is how many different texts open the conversations: a number of them, or
// one of these.
type Openings int

// AsMany is as many as the corpus has, whichever is in use. With OneEach every
// conversation of a process opens with a text that no other one has.
const (
	AsMany  Openings = 0
	OneEach Openings = -1
)

// OpeningsOf takes the number as the API has it, where 0 is [OneEach].
func OpeningsOf(n int) Openings {
	if n == 0 {
		return OneEach
	}
	return Openings(n)
}

// Of is the number as the API has it, with a corpus.
func (o Openings) Of(c *corpus.Corpus) int {
	switch o {
	case AsMany:
		return len(c.Starters)
	case OneEach:
		return 0
	}
	return int(o)
}

// Apply gives the settings with a patch. The error is an [api.FieldError] that
// names what does not fit; then s is returned unchanged.
func (s Settings) Apply(p api.WorkloadPatch, maxConcurrency int) (Settings, error) {
	if err := api.CheckLimits(p); err != nil {
		return s, err
	}
	next := s
	api.Patch(&next.Concurrency, p.Concurrency)
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

// drawsAs says whether a conversation drawn by either settings is the same.
func (s Settings) drawsAs(o Settings) bool {
	length := func(d *api.Distribution) api.Distribution {
		if d == nil {
			return api.Distribution{}
		}
		return *d
	}
	return s.Turns == o.Turns && s.Openings == o.Openings && s.MaxTokens == o.MaxTokens && length(s.Output) == length(o.Output)
}

// Check holds every field against its range. The error is an [api.FieldError].
func (s Settings) Check(maxConcurrency int) error {
	if err := api.CheckLimits(s); err != nil {
		return err
	}
	if s.Concurrency > maxConcurrency {
		return api.Refuse("concurrency", s.Concurrency, fmt.Sprintf("1 to %d (max_concurrency)", maxConcurrency))
	}
	if s.Openings < OneEach || s.Openings > api.MaxOpenings {
		return api.Refuse("openings", int(s.Openings), api.Limits["openings"].String())
	}
	if s.Output != nil && s.Output.Mean == 0 {
		return api.Refuse("output_tokens.mean", s.Output.Mean, "more than 0; leave output_tokens out to limit answers by max_tokens alone")
	}
	return nil
}
