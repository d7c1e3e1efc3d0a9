package workload

import (
	"fmt"
	"time"

	"kvbooth/sidecar/api"
)

// Settings shape a workload. They may change while it runs; a conversation
// keeps the shape it was drawn with.
type Settings struct {
	Concurrency int // conversations in progress
	Turns       api.Range
	MaxTokens   int               // cap of an answer
	Output      *api.Distribution // of max_tokens per turn; nil: always the cap
	StartRate   float64           // new conversations a second at most
	TargetRPS   float64           // requests a second at most; 0: no cap
	ThinkTime   time.Duration     // pause of the user before a follow-up
}

// Apply gives the settings with a patch. The error is an [api.FieldError] that
// names what does not fit; then s is returned unchanged.
func (s Settings) Apply(p api.WorkloadPatch, maxConcurrency int) (Settings, error) {
	next := s
	api.Patch(&next.Concurrency, p.Concurrency)
	api.Patch(&next.Turns, p.Turns)
	api.Patch(&next.MaxTokens, p.MaxTokens)
	api.Patch(&next.StartRate, p.StartRate)
	api.Patch(&next.TargetRPS, p.TargetRPS)
	if err := next.Check(maxConcurrency); err != nil {
		return s, err
	}
	return next, nil
}

// Check holds every field against its range. The error is an [api.FieldError].
func (s Settings) Check(maxConcurrency int) error {
	switch {
	case s.Concurrency < 1 || s.Concurrency > maxConcurrency:
		return api.Refuse("concurrency", s.Concurrency, fmt.Sprintf("1 to %d (max_concurrency)", maxConcurrency))
	case s.Turns.Min < 1 || s.Turns.Min > s.Turns.Max || s.Turns.Max > maxTurns:
		return api.Refuse("turns", fmt.Sprintf("%d to %d", s.Turns.Min, s.Turns.Max), fmt.Sprintf("min from 1 to max, max up to %d", maxTurns))
	case s.MaxTokens < 1 || s.MaxTokens > 131072:
		return api.Refuse("max_tokens", s.MaxTokens, "1 to 131072")
	case s.Output != nil && !fits(*s.Output):
		return api.Refuse("output_tokens", fmt.Sprintf("mean %g, cv %g", s.Output.Mean, s.Output.CV), "mean above 0, up to 131072; cv from 0 to 2")
	case !(s.StartRate > 0 && s.StartRate <= 1000):
		return api.Refuse("start_rate", s.StartRate, "more than 0, up to 1000 conversations a second")
	case !(s.TargetRPS >= 0 && s.TargetRPS <= 10000):
		return api.Refuse("target_rps", s.TargetRPS, "0 (no cap) to 10000 requests a second")
	case s.ThinkTime < 0 || s.ThinkTime > time.Hour:
		return api.Refuse("think_time", s.ThinkTime, "0 to 1h")
	}
	return nil
}

// fits is false for what is not a number, too.
func fits(d api.Distribution) bool {
	return d.Mean > 0 && d.Mean <= 131072 && d.CV >= 0 && d.CV <= 2
}
