package proof

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// The limits of a span.
const (
	// Latencies is the minimum counted time of a span in median latencies, so that long turns are not left out. It is
	// also the minimum number of sections.
	Latencies = 5
	// TrialLatencies is the minimum counted time of a trial's span in median latencies. The span starts after a
	// warm-up, at random moments of its conversations, so that no turn is left out for its length. Shorter spans
	// shorten the two blocks that every verdict needs.
	TrialLatencies = 3
	// maxSections limits the sections of a span. Shorter sections depend on each other and do not improve the estimate.
	maxSections = 15
	// maxSpan is the longest counted time of a span, in seconds.
	maxSpan = 24 * 3600
)

// Recording holds the measurements of a span, or of any run at one setting. Times are seconds since its beginning.
type Recording struct {
	// CountedFrom and Until bound the counted time. It starts when all conversations that began the span have ended.
	CountedFrom, Until float64
	Turns              []workload.Outcome
	Tokens             []float64 // output tokens delivered in each second of the span
	Short              bool      // the counted time may be below [Latencies] median latencies, as in a trial
	// BySent counts a turn, with all of its times, where it was sent, or to be sent, in the counted time: in a slot of a
	// switchback, whose turns belong to the arm that they were sent to, and at a rate, where turns that wait long would
	// be left out otherwise.
	BySent bool
	// Basis has the GPUs, their price and their mean power in the counted time, as far as they are known.
	Basis api.CostBasis
}

// when returns the time by which an event of a turn counts.
func (r *Recording) when(t *workload.Outcome, event float64) float64 {
	if r.BySent {
		return t.Sent.Seconds()
	}
	return event
}

// answered returns the turns that ended well in the counted time.
func (r *Recording) answered() iter.Seq[*workload.Outcome] {
	return func(yield func(*workload.Outcome) bool) {
		for i := range r.Turns {
			t := &r.Turns[i]
			end, _ := t.End()
			if at := r.when(t, end); t.OK() && r.CountedFrom <= at && at < r.Until && !yield(t) {
				return
			}
		}
	}
}

// Least returns the minimum counted time of a span in seconds: the larger of Seconds and the required number of median
// latencies. A NaN median latency, as before the first ended turn, gives NaN.
func (s Span) Least(medianLatency float64) float64 {
	return max(s.Seconds, cmp.Or(s.Latencies, Latencies)*medianLatency)
}

// GiveUp marks the turns without a first token as failed at the end of the span. It is for a target that has stopped
// answering, and for turns of a slot that are not answered when the next one has ended.
func (r *Recording) GiveUp() {
	for i := range r.Turns {
		if t := &r.Turns[i]; !t.OK() && !t.Failed() && t.Waiting() {
			t.Status, t.Ended = api.TurnError, time.Duration(r.Until*float64(time.Second))-1
		}
	}
}

// validate returns an *[api.FieldError] if the recording is invalid or too short for its turns.
func (r *Recording) validate() error {
	counted := r.Until - r.CountedFrom
	switch {
	case !(r.CountedFrom >= 0):
		return api.Refuse("counted_from", r.CountedFrom, "0 or more")
	case !(counted > 0 && counted <= maxSpan):
		return api.Refuse("until", r.Until, fmt.Sprintf("up to %d s after counted_from", maxSpan))
	case float64(len(r.Tokens)) < math.Floor(r.Until):
		return api.Refuse("tokens", fmt.Sprintf("%d seconds of them", len(r.Tokens)),
			fmt.Sprintf("those of all %.0f seconds", math.Floor(r.Until)))
	}
	if median := r.medianLatency(); !r.Short && !(counted >= Latencies*median*(1-rounding)) { // takes in NaN
		return api.Refuse("until", r.Until,
			fmt.Sprintf("at least %d times the median latency (%.1f s) after counted_from", Latencies, median))
	}
	return nil
}

// rounding is the tolerance for rounding errors of times.
const rounding = 1e-9

// medianLatency returns the median latency of the turns that succeeded in the counted time, in seconds. It is NaN
// without such turns.
func (r *Recording) medianLatency() float64 {
	var all []float64
	for t := range r.answered() {
		all = append(all, t.Took())
	}
	return percentile(all, .5)
}

// InBursts returns the numbers of answers that came in bursts, and of all that ended well.
func (r *Recording) InBursts() (bursts, answers int) {
	for i := range r.Turns {
		if r.Turns[i].OK() {
			answers++
		}
		if r.Turns[i].Buffered() {
			bursts++
		}
	}
	return bursts, answers
}

// sections returns the number of sections of a span. A section should last at least 1.5 median latencies, since
// concurrent turns share workers. The number lies between [Latencies] and maxSections.
func (r *Recording) sections() int {
	n := int((r.Until - r.CountedFrom) / (1.5 * r.medianLatency()) * (1 + rounding))
	return min(max(n, Latencies), maxSections)
}

// cut tallies n sections of equal length, and the whole. A TTFT belongs to the section of the first token, even if the
// end of the span cut the turn short: without these turns, the last TTFTs would come only from short answers.
// Everything else about a turn belongs to the section of its end. Output tokens belong to the second of their arrival.
func (r *Recording) cut(n int, slo api.SLO) (whole tally, parts []tally) {
	parts = make([]tally, n)
	length := (r.Until - r.CountedFrom) / float64(n)
	at := func(time float64) (*tally, bool) {
		if time < r.CountedFrom || time >= r.Until {
			return nil, false
		}
		return &parts[min(int((time-r.CountedFrom)/length), n-1)], true
	}
	for i := range r.Turns {
		t := &r.Turns[i]
		if !t.Failed() && !t.Waiting() {
			if p, ok := at(r.when(t, t.FirstToken())); ok {
				p.addTTFT(t)
			}
		}
		if end, ended := t.End(); ended {
			if p, ok := at(r.when(t, end)); ok {
				p.end(t, slo)
			}
		}
	}
	for second, tokens := range r.Tokens {
		if p, ok := at(float64(second)); ok {
			p.tokens += tokens
			p.seconds++
		}
	}
	heldBack := stats.HeldBack(r.InBursts())
	for i := range parts {
		if heldBack {
			parts[i].times[api.TimeTPOT] = nil
		}
		whole.add(&parts[i])
	}
	return whole, parts
}

// addTTFT adds the TTFT of a turn that has not failed.
func (t *tally) addTTFT(turn *workload.Outcome) {
	t.times[api.TimeTTFT] = append(t.times[api.TimeTTFT], turn.TTFT)
	if turn.Number > 1 {
		t.later = append(t.later, turn.TTFT)
	}
}

// timesOf returns the times of a turn, in the order of [api.Times]; nil: a turn has many.
var timesOf = func() (all [api.NumTimes]func(*workload.Outcome) float64) {
	for i, f := range api.Times {
		all[i], _ = workload.TimeOf(f)
	}
	return all
}()

// end adds an ended turn, without its TTFT.
func (t *tally) end(turn *workload.Outcome, slo api.SLO) {
	t.ended++
	if turn.Meets(slo) {
		t.good++
	}
	if turn.Failed() {
		t.waits = append(t.waits, wait(turn))
		if turn.Number > 1 {
			t.laterWaits = append(t.laterWaits, wait(turn))
		}
		return
	}
	for i, of := range timesOf {
		switch {
		case of == nil || i == api.TimeTTFT: // [tally.addTTFT] adds that
		case i == api.TimeLatency:
			t.times[i] = append(t.times[i], turn.Took())
		case of(turn) > 0:
			t.times[i] = append(t.times[i], of(turn))
		}
	}
	t.answers++
	if turn.Usage {
		t.reported++
		t.answerTokens += float64(turn.OutputTokens)
	}
	if turn.FinishReason != "" {
		t.addFinished(turn.FinishReason, 1)
	}
	if turn.HasCached {
		t.prompt += float64(turn.PromptTokens)
		t.cached += float64(turn.CachedTokens)
	}
}

// wait returns the time to the first token of a failed turn, or to its end if no token arrived.
func wait(turn *workload.Outcome) float64 {
	if turn.Waiting() {
		return turn.Took()
	}
	return turn.TTFT
}

func (t *tally) add(o *tally) {
	for i := range t.times {
		t.times[i] = append(t.times[i], o.times[i]...)
	}
	t.waits = append(t.waits, o.waits...)
	t.later, t.laterWaits = append(t.later, o.later...), append(t.laterWaits, o.laterWaits...)
	t.tokens += o.tokens
	t.seconds += o.seconds
	t.prompt += o.prompt
	t.cached += o.cached
	t.ended += o.ended
	t.good += o.good
	t.answers += o.answers
	t.reported += o.reported
	t.answerTokens += o.answerTokens
	for reason, n := range o.finished {
		t.addFinished(reason, n)
	}
}

// addFinished counts n more turns with a finish reason.
func (t *tally) addFinished(reason string, n float64) {
	if t.finished == nil {
		t.finished = map[string]float64{}
	}
	t.finished[reason] += n
}

// Sectioned holds one metric of a span, for the whole and for each section, on the scale of differences.
type Sectioned struct {
	Whole    float64   `json:"whole"`
	Sections []float64 `json:"sections"`
	// Error is the amount by which late time stamps of the load generator may make Whole too large.
	Error float64 `json:"error,omitempty"`
}

// section computes the metrics of n sections. It leaves out a metric that is undefined in any section.
func (r *Recording) section(n int, slo api.SLO, metrics ...Metric) map[Metric]Sectioned {
	whole, parts := r.cut(n, slo)
	found := map[Metric]Sectioned{}
	for _, m := range metrics {
		s := Sectioned{Whole: m.scaled(whole.value(m))}
		ok := finite(s.Whole)
		for i := range parts {
			v := m.scaled(parts[i].value(m))
			ok = ok && finite(v)
			s.Sections = append(s.Sections, v)
		}
		if ok {
			found[m] = s
		}
	}
	return found
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// percentile sorts values and returns their [stats.Percentile].
func percentile(values []float64, p float64) float64 {
	slices.Sort(values)
	return stats.Percentile(values, p)
}

// maxTrial limits the duration of a trial, a sweep or a capacity search, in seconds.
const maxTrial = 7 * 24 * 3600

// Span describes a span to run. It starts with cold caches and a restarted workload.
type Span struct {
	Number  int           `json:"number"`        // from 0; a repeat has the same number
	Attempt int           `json:"attempt"`       // from 1; above 1 after spoiled attempts
	Arm     Arm           `json:"arm,omitempty"` // empty outside trials
	Mode    api.ModeState `json:"mode"`
	// Concurrency is the number of conversations in progress.
	Level api.Level `json:"concurrency"`
	Seed  uint64    `json:"seed,string"` // seed of the workload; equal for spans that are compared
	// WarmUp is the number of first conversations that must have ended before the span counts.
	WarmUp int `json:"warm_up"`
	// RunIn extends the warm-up, in multiples of the counted time; see [decide.Run].
	RunIn float64 `json:"run_in,omitempty"`
	// Settle is the least time in seconds between the end of these conversations and the counted time or the run-in.
	Settle float64 `json:"settle,omitempty"`
	// Settles extends that until the hit rate no longer rises; see [HitRateRises] and [Trial.LongestRunIn].
	Settles bool `json:"settles,omitempty"`
	// Midway is the number of first conversations that start in their middle. Without it, conversations that start
	// together would end together again and again; see [draw.Shape].
	Midway int `json:"midway,omitempty"`
	// From is the least time in seconds from the beginning of the load to the counted time, at a rate.
	From float64 `json:"from,omitempty"`
	// Arrivals is the seed of the arrivals of a slot at a rate. They begin anew with each slot, so that those of a pair
	// have the same.
	Arrivals uint64 `json:"arrivals,omitempty,string"`
	// LeadIn is the time in seconds at the beginning of a slot that does not count.
	LeadIn float64 `json:"lead_in,omitempty"`
	// WarmUpSeconds is the minimum time at the full concurrency before the span counts. Spans that are kept have none.
	WarmUpSeconds float64 `json:"-"`
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
	// RunIn is the time in seconds for which the span waited after its warm-up until the hit rate no longer rose.
	RunIn float64
	// Before is the time in seconds from the beginning of the load to the counted time, at a rate.
	Before float64
	// Growth is how many more conversations were in progress at the end of the counted time than at its beginning, at a
	// rate.
	Growth float64
	// Overloaded reports that the target did not keep up with the rate. The span ended early, and may be short.
	Overloaded bool
	Recording
}

// reason returns why the span does not count: for the given reason, or because its recording is invalid or too short.
func (r *Result) reason() string {
	if err := r.validate(); err != nil && r.Spoiled == "" {
		return err.Error()
	}
	return r.Spoiled
}
