package sweep

import (
	"math"
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/stats"
)

// recorder notes what happens in a span, in seconds since it was made, which is before
// the span's switch. It is safe for concurrent use.
type recorder struct {
	base    time.Time
	opening func(lane.Draw) int64 // of a conversation

	mu     sync.Mutex
	turns  []proof.Turn
	ttft   []float64 // as the server told it, of turns in turns
	told   []float64 // their first tokens
	tokens []float64 // output tokens of each second
	firsts []firstTurn
	left   int   // conversations that begin the span and have not ended
	first  int64 // how many those were
	ok     int
	failed int
	words  string // what was said of the latest failed turn
}

var _ lane.SpanObserver = (*recorder)(nil)

// newRecorder begins with so many conversations that begin the span.
func newRecorder(now time.Time, begin int, opening func(lane.Draw) int64) *recorder {
	return &recorder{base: now, opening: opening, left: begin, first: int64(begin)}
}

// Tokens counts them into their second.
func (r *recorder) Tokens(at time.Time, n int) {
	second := int(at.Sub(r.base) / time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grow(second + 1)
	r.tokens[second] += float64(n)
}

// grow makes room for so many seconds. The lock is held.
func (r *recorder) grow(seconds int) {
	for len(r.tokens) < seconds {
		r.tokens = append(r.tokens, 0)
	}
}

// Turn notes a turn. One that was cancelled has a first token, if any, and no end.
func (r *recorder) Turn(t lane.EndedTurn) {
	sent := t.Started.Sub(r.base).Seconds()
	turn := proof.Turn{Number: t.Turn.Number, Sent: sent, Failed: t.Status == api.TurnError}
	if t.TTFT != nil {
		turn.FirstToken = sent + *t.TTFT
	}
	switch {
	case t.Status == api.TurnOK && t.Latency != nil:
		turn.Ended = sent + *t.Latency // the last content chunk
	case t.Status != api.TurnCancelled:
		turn.Ended = t.Ended.Sub(r.base).Seconds()
	}
	if t.OutputTokens != nil {
		turn.OutputTokens = *t.OutputTokens
	}
	turn.Buffered = t.Status == api.TurnOK && t.TPOT == nil && turn.OutputTokens > 1
	if t.PromptTokens != nil && t.CachedTokens != nil {
		turn.PromptTokens, turn.CachedTokens, turn.HasCached = *t.PromptTokens, *t.CachedTokens, true
	}
	var firsts []firstTurn
	if t.Turn.Number == 1 {
		firsts = []firstTurn{newFirstTurn(&t, r.opening(t.Draw), sent)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns, r.firsts = append(r.turns, turn), append(r.firsts, firsts...)
	if t.ServerTTFT != nil {
		r.ttft, r.told = append(r.ttft, *t.ServerTTFT), append(r.told, turn.FirstToken)
	}
	switch t.Status {
	case api.TurnOK:
		r.ok++
	case api.TurnError:
		r.failed++
		r.words = string(t.ErrorClass)
		if t.ErrorMessage != "" {
			r.words += ": " + t.ErrorMessage
		}
	}
}

// ConversationEnded counts those that began the span.
func (r *recorder) ConversationEnded(number int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number < r.first {
		r.left--
	}
}

// seconds is the time since it was made.
func (r *recorder) seconds(now time.Time) float64 { return now.Sub(r.base).Seconds() }

// at is the moment of a second.
func (r *recorder) at(second float64) time.Time {
	return r.base.Add(time.Duration(second * float64(time.Second))).UTC()
}

// warmingUp is how many of the conversations that began the span have not ended.
func (r *recorder) warmingUp() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// total is how many turns have ended so far, and what was said of the latest that failed.
func (r *recorder) total() (ok, failed int, words string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ok, r.failed, r.words
}

// counted is what has ended since a second: well and badly, with the median latency of the
// former, NaN where there is none.
func (r *recorder) counted(from, until float64) (ok, failed int, latency float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []float64
	for i := range r.turns {
		switch t := &r.turns[i]; {
		case t.Ended < from || t.Ended >= until || t.Ended == 0:
		case t.Failed:
			failed++
		default:
			all = append(all, t.Ended-t.Sent)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return 0, failed, math.NaN()
	}
	return len(all), failed, stats.Percentile(all, .5)
}

// recording is all of it, for what counted from one second to another.
func (r *recorder) recording(from, until float64) proof.Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grow(int(math.Ceil(until)))
	return proof.Recording{CountedFrom: from, Until: until, Turns: slices.Clone(r.turns), Tokens: slices.Clone(r.tokens)}
}

// serverTTFT is the p95 of what the server told of the turns whose first tokens came in
// a span of time; nil where it told nothing.
func (r *recorder) serverTTFT(from, until float64) *float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []float64
	for i, v := range r.ttft {
		if r.told[i] >= from && r.told[i] < until {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	return new(stats.Percentile(all, .95))
}

// coldness is that of the first turns so far.
func (r *recorder) coldness(tokens int) *api.SweepFirstTurns {
	r.mu.Lock()
	defer r.mu.Unlock()
	return coldness(r.firsts, tokens)
}
