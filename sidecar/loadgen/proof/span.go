package proof

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

// What a span must hold.
const (
	// Latencies is how many median latencies a span counts at least, so that long turns
	// are not left out; it has as many sections at least, if shorter ones then.
	Latencies = 5
	// TrialLatencies is how many the spans of a trial count at least. They begin after a warm-up, with conversations that
	// are met at random moments, so that no turn is left out for its length; a verdict takes two blocks whatever they
	// show, and shorter spans make them shorter.
	TrialLatencies = 3
	// maxSections bounds a span's sections: with more of them they
	// get shorter than what turns have to do with each other, and no better known.
	maxSections = 15
	// maxSpan is the longest counted time of a span, in seconds.
	maxSpan = 24 * 3600
)

// Recording is what was seen of a span, or of any run at one setting.
type Recording struct {
	// CountedFrom is when the conversations that began the span had all ended, and Until
	// when the count ended. All that happens between them counts.
	CountedFrom, Until float64
	Turns              []Turn
	Tokens             []float64 // output tokens delivered in each second of the span
	Short              bool      // it may count for less than [Latencies] median latencies, as a span of a trial does
}

// Least is for how many seconds a span counts at least: those asked for, and so many times
// the median latency of the turns that ended in them, which is NaN before the first. Then
// Least is NaN, too.
func (s Span) Least(medianLatency float64) float64 {
	return max(s.Seconds, cmp.Or(s.Latencies, Latencies)*medianLatency)
}

// GiveUp counts the turns that wait for their first tokens at the end as failed: the target has not answered for long.
func (r *Recording) GiveUp() {
	for i := range r.Turns {
		if t := &r.Turns[i]; t.Ended == 0 && t.FirstToken == 0 {
			t.Failed, t.Ended = true, math.Nextafter(r.Until, 0)
		}
	}
}

// validate refuses what no span can be, or is too short for its turns.
func (r *Recording) validate() error {
	if err := r.bounds(); err != nil {
		return err
	}
	counted := r.Until - r.CountedFrom
	if median := r.medianLatency(); !r.Short && !(counted >= Latencies*median*(1-rounding)) { // takes in NaN
		return api.Refuse("until", r.Until,
			fmt.Sprintf("at least %d times the median latency (%.1f s) after counted_from", Latencies, median))
	}
	return nil
}

// bounds refuses what no span can be.
func (r *Recording) bounds() error {
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
	return nil
}

// rounding forgives what seconds lose as binary numbers.
const rounding = 1e-9

// medianLatency is that of the turns that ended well while it counted.
func (r *Recording) medianLatency() float64 {
	var all []float64
	for i := range r.Turns {
		if t := &r.Turns[i]; !t.Failed && r.CountedFrom <= t.Ended && t.Ended < r.Until {
			all = append(all, t.Ended-t.Sent)
		}
	}
	return percentile(all, .5)
}

// sections is how many a span is cut into: each half as long again as a median turn at
// least, since turns that are in progress together share workers.
func (r *Recording) sections() int {
	n := int((r.Until - r.CountedFrom) / (1.5 * r.medianLatency()) * (1 + rounding))
	return min(max(n, Latencies), maxSections)
}

// cut counts what lies in each of n sections of equal length, and in all of them. A
// TTFT belongs to the section of the first token, that of a turn which the end of the span cut
// short, too: the load generator ended it, and without it the last TTFTs would be those of short
// answers alone. All else of a turn belongs to the section of its end, since it is known only
// then; tokens belong to the second they came in.
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
		if p, ok := at(t.FirstToken); ok && !t.Failed && t.FirstToken > 0 {
			p.ttft = append(p.ttft, t.FirstToken-t.Sent)
			if t.Number > 1 {
				p.later = append(p.later, t.FirstToken-t.Sent)
			}
		}
		if p, ok := at(t.Ended); ok && t.Ended > 0 {
			p.end(t, slo)
		}
	}
	for second, tokens := range r.Tokens {
		if p, ok := at(float64(second)); ok {
			p.tokens += tokens
			p.seconds++
		}
	}
	for i := range parts {
		whole.add(&parts[i])
	}
	return whole, parts
}

func (t *tally) end(turn *Turn, slo api.SLO) {
	t.ended++
	if turn.good(slo) {
		t.good++
	}
	if turn.Failed {
		t.waits = append(t.waits, turn.wait())
		if turn.Number > 1 {
			t.laterWaits = append(t.laterWaits, turn.wait())
		}
		return
	}
	t.latency = append(t.latency, turn.Ended-turn.Sent)
	if tpot, ok := turn.tpot(); ok {
		t.tpot = append(t.tpot, tpot)
	}
	if turn.HasCached {
		t.prompt += float64(turn.PromptTokens)
		t.cached += float64(turn.CachedTokens)
	}
}

func (t *tally) add(o *tally) {
	t.ttft, t.tpot, t.latency = append(t.ttft, o.ttft...), append(t.tpot, o.tpot...), append(t.latency, o.latency...)
	t.waits = append(t.waits, o.waits...)
	t.later, t.laterWaits = append(t.later, o.later...), append(t.laterWaits, o.laterWaits...)
	t.tokens += o.tokens
	t.seconds += o.seconds
	t.prompt += o.prompt
	t.cached += o.cached
	t.ended += o.ended
	t.good += o.good
}

// Sectioned is one metric of a span: of the whole and of its sections, on the scale
// of differences.
type Sectioned struct {
	Whole    float64   `json:"whole"`
	Sections []float64 `json:"sections"`
	// Error is by how much less Whole may truly be, for late time stamps of the load generator.
	Error float64 `json:"error,omitempty"`
}

// section cuts a recording and computes those metrics that are known in all sections.
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

// percentile is [stats.Percentile] of values in any order; it sorts them.
func percentile(values []float64, p float64) float64 {
	slices.Sort(values)
	return stats.Percentile(values, p)
}
