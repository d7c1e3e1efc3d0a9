package proof

import (
	"fmt"

	"kvbooth/sidecar/api"
)

// maxTrial bounds all times, in seconds.
const maxTrial = 7 * 24 * 3600

// Span is one to run next: on cold caches, with the workload begun anew.
type Span struct {
	Number  int           `json:"number"`        // from 0; the same when it is repeated
	Attempt int           `json:"attempt"`       // 1, or more where those before were spoiled
	Arm     Arm           `json:"arm,omitempty"` // of a trial
	Mode    api.ModeState `json:"mode"`
	// Concurrency is how many conversations it keeps in progress.
	Concurrency int    `json:"concurrency"`
	Seed        uint64 `json:"seed,string"` // of the workload's draws, the same for the spans that are compared
	// WarmUp is how many conversations, from the first on, must have ended before it counts.
	WarmUp int `json:"warm_up"`
	// RunIn is how much longer it then waits, in multiples of the time that it counts; see [decide.Run].
	RunIn float64 `json:"run_in,omitempty"`
	// Midway is how many conversations, from the first on, are held from their midst, so that those
	// that begin together do not end together, over and over; see [draw.Shape].
	Midway int `json:"midway,omitempty"`
	// WarmUpSeconds is for how long it must have been at its concurrency before it counts.
	WarmUpSeconds float64 `json:"warm_up_seconds,omitempty"`
	// Seconds is for how long it then counts at least; see [Span.Least].
	Seconds float64 `json:"seconds"`
	// Latencies is for how many of its own median latencies it counts at least; 0: [Latencies].
	Latencies float64 `json:"latencies,omitempty"`
}

// Result is a span that has been run.
type Result struct {
	Number int
	// Elapsed is what it took with switch and warm-up, in seconds.
	Elapsed float64
	// Spoiled says why it does not count. Such a span is repeated. In a trial that is for faults of the load generator
	// or of the switch alone, never for what the target did. Empty: it counts.
	Spoiled string
	// Errors are the most that the load generator itself may be wrong by, in seconds.
	Errors map[Metric]float64
	Recording
}

// isOf says why a result is not that of the next span of what is asked for; more is false once that is over.
func (r *Result) isOf(next Span, more bool, what string) error {
	switch {
	case !more:
		return api.Refuse("number", r.Number, "none: the "+what+" is over")
	case r.Number != next.Number:
		return api.Refuse("number", r.Number, fmt.Sprintf("%d, the next one", next.Number))
	case !(r.Elapsed > 0 && r.Elapsed <= maxTrial):
		return api.Refuse("elapsed", r.Elapsed, fmt.Sprintf("more than 0, up to %d", maxTrial))
	}
	return nil
}

// checkFor does the same, and refuses what is too short for its turns.
func (r *Result) checkFor(next Span, more bool, what string) error {
	if err := r.isOf(next, more, what); err != nil || r.Spoiled != "" {
		return err
	}
	return r.validate()
}
