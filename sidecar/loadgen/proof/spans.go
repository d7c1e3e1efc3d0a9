package proof

import "kvbooth/sidecar/api"

// maxTrial limits the duration of a trial, a sweep or a capacity search, in seconds.
const maxTrial = 7 * 24 * 3600

// Span describes a span to run. It starts with cold caches and a restarted workload.
type Span struct {
	Number  int           `json:"number"`        // from 0; a repeat has the same number
	Attempt int           `json:"attempt"`       // from 1; above 1 after spoiled attempts
	Arm     Arm           `json:"arm,omitempty"` // empty outside trials
	Mode    api.ModeState `json:"mode"`
	// Concurrency is the number of conversations in progress.
	Concurrency int    `json:"concurrency"`
	Seed        uint64 `json:"seed,string"` // seed of the workload; equal for spans that are compared
	// WarmUp is the number of first conversations that must have ended before the span counts.
	WarmUp int `json:"warm_up"`
	// RunIn extends the warm-up, in multiples of the counted time; see [decide.Run].
	RunIn float64 `json:"run_in,omitempty"`
	// Midway is the number of first conversations that start in their middle. Without it, conversations that start
	// together would end together again and again; see [draw.Shape].
	Midway int `json:"midway,omitempty"`
	// WarmUpSeconds is the minimum time at the full concurrency before the span counts.
	WarmUpSeconds float64 `json:"warm_up_seconds,omitempty"`
	// Seconds is the minimum counted time; see [Span.Least].
	Seconds float64 `json:"seconds"`
	// Latencies is the minimum counted time in median latencies of the span itself. 0 means [Latencies].
	Latencies float64 `json:"latencies,omitempty"`
}

// Result is the result of a span.
type Result struct {
	// Elapsed is the time of the span with switch and warm-up, in seconds.
	Elapsed float64
	// Spoiled is the reason why the span does not count; empty if it counts. A spoiled span is repeated. In a trial,
	// faults of the load generator or of the switch, and a target that does not serve, spoil a span. The speed and the
	// failures of a target that serves never do.
	Spoiled string
	// Errors holds the upper bounds of the load generator's own error by metric, in seconds.
	Errors map[Metric]float64
	Recording
}

// reason returns why the span does not count: for the given reason, or because its recording is invalid or too short.
func (r *Result) reason() string {
	if err := r.validate(); err != nil && r.Spoiled == "" {
		return err.Error()
	}
	return r.Spoiled
}
