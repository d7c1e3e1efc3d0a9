package sweep

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// recorder records the events of a span, in seconds since it was made, which is before the span's
// switch. It is safe for concurrent use.
type recorder struct {
	base    time.Time
	opening func(workload.Draw) int64 // number of a conversation's opening

	mu       sync.Mutex
	turns    []proof.Turn
	unserved []bool    // of each of turns: it failed without a connection or with a status, and not for load
	ttft     []float64 // reported by the server, of some of turns
	ttftAt   []float64 // times of those turns' first tokens
	tokens   []float64 // output tokens of each second
	firsts   []stats.FirstTurn
	left     int   // conversations that begin the span and have not ended
	first    int64 // number of conversations that begin the span
	ok       int
	failed   int
	reason   string         // error of the latest failed turn
	served   map[string]int // turns of each worker that their answers name
}

var _ lane.SpanObserver = (*recorder)(nil)

// newRecorder makes a recorder for a span that begins with so many conversations.
func newRecorder(now time.Time, begin int, opening func(workload.Draw) int64) *recorder {
	return &recorder{base: now, opening: opening, left: begin, first: int64(begin), served: map[string]int{}}
}

// Tokens adds n output tokens to their second. Tokens from before the recorder was made are ignored, and tokens of the
// future count in the current second. Both come from a member whose clock differs.
func (r *recorder) Tokens(at time.Time, n int) {
	since := min(at.Sub(r.base), time.Since(r.base))
	if since < 0 {
		return
	}
	second := int(since / time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grow(second + 1)
	r.tokens[second] += float64(n)
}

// grow extends tokens to so many seconds. The lock is held.
func (r *recorder) grow(seconds int) {
	for len(r.tokens) < seconds {
		r.tokens = append(r.tokens, 0)
	}
}

// Turn records a turn. A cancelled turn has no end, but may have a first token.
func (r *recorder) Turn(t *workload.Turn) {
	sent := t.Started.Sub(r.base).Seconds()
	turn := proof.Turn{Number: t.Number, Sent: sent, Failed: t.Status == api.TurnError}
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
		turn.OutputTokens, turn.Usage = *t.OutputTokens, t.TokenSource == "usage"
	}
	api.Patch(&turn.TPOT, t.TPOT)
	turn.InBursts = t.InBursts
	turn.TPOTUnknown = t.Status == api.TurnOK && t.TPOT == nil && turn.OutputTokens > 1
	turn.FinishReason = strings.ToLower(t.FinishReason)
	if t.PromptTokens != nil && t.CachedTokens != nil {
		turn.PromptTokens = *t.PromptTokens
		turn.CachedTokens = *t.CachedTokens
		turn.HasCached = true
	}
	var firsts []stats.FirstTurn
	if t.Number == 1 {
		firsts = []stats.FirstTurn{stats.NewFirstTurn(&t.Turn, r.opening(t.Draw), sent)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns = append(r.turns, turn)
	r.unserved = append(r.unserved, turn.Failed &&
		slices.Contains([]api.ErrorClass{api.ErrorConnect, api.ErrorHTTP4xx, api.ErrorHTTP5xx}, t.ErrorClass))
	if t.Worker != "" {
		r.served[t.Worker]++
	}
	r.firsts = append(r.firsts, firsts...)
	if t.ServerTTFT != nil {
		r.ttft = append(r.ttft, *t.ServerTTFT)
		r.ttftAt = append(r.ttftAt, turn.FirstToken)
	}
	switch t.Status {
	case api.TurnOK:
		r.ok++
	case api.TurnError:
		r.failed++
		r.reason = string(t.ErrorClass)
		if t.ErrorMessage != "" {
			r.reason += ": " + t.ErrorMessage
		}
	}
}

// ConversationEnded counts the end of a conversation that began the span.
func (r *recorder) ConversationEnded(number int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number < r.first {
		r.left--
	}
}

// seconds returns the time in seconds since the recorder was made.
func (r *recorder) seconds(now time.Time) float64 { return now.Sub(r.base).Seconds() }

// at returns the time of a second.
func (r *recorder) at(second float64) time.Time {
	return r.base.Add(time.Duration(second * float64(time.Second))).UTC()
}

// warmingUp returns how many of the conversations that began the span have not ended.
func (r *recorder) warmingUp() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// total returns the numbers of ended turns, and the error of the latest failed one.
func (r *recorder) total() (ok, failed int, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ok, r.failed, r.reason
}

// counted returns the numbers of successful and failed turns that ended between two seconds, and the
// median latency of the successful ones, NaN without any.
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

// serves reports whether more than a tenth of the turns that began and ended between two seconds were served, or failed
// by a time-out of the load generator or by a limit (429, 529). It is true without such turns. Other errors, such as
// the 503 of a gateway, count as not served, since a gateway gives them for load and for a server that is gone.
func (r *recorder) serves(from, until float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ended, unserved := 0, 0
	for i := range r.turns {
		if t := &r.turns[i]; t.Sent >= from && t.Ended > 0 && t.Ended < until {
			ended++
			if r.unserved[i] {
				unserved++
			}
		}
	}
	return ended == 0 || 10*unserved < 9*ended
}

// recording returns everything recorded, with the bounds of the counted part.
func (r *recorder) recording(from, until float64) proof.Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grow(int(math.Ceil(until)))
	return proof.Recording{
		CountedFrom: from, Until: until, Turns: slices.Clone(r.turns), Tokens: slices.Clone(r.tokens),
	}
}

// servedBy returns the number of turns of each worker so far.
func (r *recorder) servedBy() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.served)
}

// serverTTFT returns the p95 of the TTFT that the server reported, of turns with the first token
// between two seconds; nil where it reported none.
func (r *recorder) serverTTFT(from, until float64) *float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []float64
	for i, v := range r.ttft {
		if r.ttftAt[i] >= from && r.ttftAt[i] < until {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	return new(stats.Percentile(all, .95))
}

// coldness returns the coldness of the first turns so far.
func (r *recorder) coldness(tokens int) *api.SweepFirstTurns {
	r.mu.Lock()
	defer r.mu.Unlock()
	return stats.Coldness(r.firsts, tokens)
}
