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
	"kvbooth/sidecar/loadgen/workload"
)

// recorder records the events of a span, in seconds since it was made, which is before the span's
// switch. It is safe for concurrent use.
type recorder struct {
	base    time.Time
	opening func(workload.Draw) int64 // number of a conversation's opening

	mu       sync.Mutex
	turns    []workload.Outcome
	ttft     []float64 // reported by the server, of some of turns
	ttftAt   []float64 // times of those turns' first tokens
	tokens   []float64 // output tokens of each second
	firsts   []stats.FirstTurn
	left     int   // conversations that begin the span and have not ended
	first    int64 // number of conversations that begin the span
	ok       int
	failed   int
	reason   string                       // error of the latest failed turn
	workers  []string                     // of each of turns, as its answer names it; "" if it does not
	inFlight map[string]*workload.Outcome // by their requests
}

var _ lane.SpanObserver = (*recorder)(nil)

// newRecorder makes a recorder for a span that begins with so many conversations.
func newRecorder(now time.Time, begin int, opening func(workload.Draw) int64) *recorder {
	return &recorder{
		base: now, opening: opening, left: begin, first: int64(begin), inFlight: map[string]*workload.Outcome{},
	}
}

// TurnBegan records that a turn is in flight.
func (r *recorder) TurnBegan(request string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight[request] = &workload.Outcome{Sent: at.Sub(r.base), TTFT: math.NaN()}
}

// FirstToken records the first token of a turn in flight.
func (r *recorder) FirstToken(request string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.inFlight[request]; t != nil {
		t.TTFT = (at.Sub(r.base) - t.Sent).Seconds()
	}
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

// Turn records a turn.
func (r *recorder) Turn(t *workload.Turn) {
	turn := workload.OutcomeOf(&t.Turn, r.base)
	var firsts []stats.FirstTurn
	if t.Number == 1 {
		firsts = []stats.FirstTurn{stats.NewFirstTurn(&t.Turn, r.opening(t.Draw), r.base)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inFlight, t.RequestID)
	r.turns = append(r.turns, turn)
	r.workers = append(r.workers, t.Worker)
	r.firsts = append(r.firsts, firsts...)
	if t.ServerTTFT != nil {
		r.ttft = append(r.ttft, *t.ServerTTFT)
		r.ttftAt = append(r.ttftAt, turn.FirstToken())
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
		t := &r.turns[i]
		switch end, ended := t.End(); {
		case !ended || end < from || end >= until:
		case t.Failed():
			failed++
		default:
			all = append(all, t.Took())
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return 0, failed, math.NaN()
	}
	return len(all), failed, stats.Percentile(all, .5)
}

// hitRateRises returns [proof.HitRateRises] of the turns so far.
func (r *recorder) hitRateRises(second, round float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return proof.HitRateRises(r.turns, second, round)
}

// notServed lists the classes of turns that failed without a connection or with a status, and not for load.
var notServed = []api.ErrorClass{api.ErrorConnect, api.ErrorHTTP4xx, api.ErrorHTTP5xx}

// sentWithin reports whether a turn was sent between two seconds.
func sentWithin(t *workload.Outcome, from, until float64) bool {
	sent := t.Sent.Seconds()
	return from <= sent && sent < until
}

// serves reports whether more than a tenth of the turns that were sent between two seconds, and ended before a third,
// were served, or failed by a time-out of the load generator or by a limit (429, 529). It is true without such turns.
// Other errors, such as the 503 of a gateway, count as not served, since a gateway gives them for load and for a server
// that is gone.
func (r *recorder) serves(from, until, ended float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, unserved := 0, 0
	for i := range r.turns {
		t := &r.turns[i]
		if end, ok := t.End(); ok && end < ended && sentWithin(t, from, until) {
			all++
			if slices.Contains(notServed, t.Class) {
				unserved++
			}
		}
	}
	return all == 0 || 10*unserved < 9*all
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

// underway reports whether a turn that was sent between two seconds is in flight.
func (r *recorder) underway(from, until float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.inFlight {
		if sentWithin(t, from, until) {
			return true
		}
	}
	return false
}

// slot returns what was recorded of the turns that were sent between two seconds, and of no others. One that has no
// first token yet has failed at the present second, so that it counts as at least that slow.
func (r *recorder) slot(from, until, now float64) proof.Recording {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grow(int(math.Ceil(until)))
	rec := proof.Recording{CountedFrom: from, Until: until, Tokens: slices.Clone(r.tokens), BySent: true}
	for i := range r.turns {
		if t := &r.turns[i]; sentWithin(t, from, until) {
			rec.Turns = append(rec.Turns, *t)
		}
	}
	for _, t := range r.inFlight {
		if sentWithin(t, from, until) {
			late := *t
			if late.Waiting() {
				late.Status, late.Ended = api.TurnError, time.Duration(now*float64(time.Second))
			}
			rec.Turns = append(rec.Turns, late)
		}
	}
	return rec
}

// servedBy returns the number of turns of each worker that were sent between two seconds, and the prompt tokens that
// the worker had to compute for them; nil if no turn reported them.
func (r *recorder) servedBy(from, until float64) (turns, uncached map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	turns = map[string]int{}
	for i, worker := range r.workers {
		t := &r.turns[i]
		if worker == "" || !sentWithin(t, from, until) {
			continue
		}
		turns[worker]++
		if t.HasCached {
			if uncached == nil {
				uncached = map[string]int{}
			}
			uncached[worker] += t.PromptTokens - t.CachedTokens
		}
	}
	return turns, uncached
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
