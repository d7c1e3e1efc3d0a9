package workload

import (
	"math"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// Draw identifies the random choices of a conversation. Two conversations of one draw, on any lanes
// of one workload, open with the same text, and have the same number of turns and the same limits
// of their answers. From turn 2 on, the questions also depend on the answers. All conversations of
// a lane have different draws, except those of the spans of a sweep, which begin from 0 each time.
type Draw struct {
	Seed   uint64 `json:"seed"`
	Opened int64  `json:"opened,omitempty"` // conversations of the lane's earlier runs
	Number int64  `json:"number"`           // of the conversation in its run, from 0
	// Shape is the number of changes of settings or corpus that affect draws, since the run began.
	Shape int `json:"shape,omitempty"`
}

// Turn is one turn of a conversation, with its step and, once it has ended, its outcome. The window,
// the store, spans and twins receive this value. They must not change what its pointers refer to.
type Turn struct {
	api.Turn            // what is stored and shown
	Draw     Draw       `json:"draw"`             // of the conversation
	Model    string     `json:"model,omitempty"`  // that the plan names; "": the client's
	Chunks   int        `json:"chunks,omitempty"` // content chunks; 0: unknown, or none
	ITL      []chat.Gap `json:"itl,omitempty"`    // inter-token latencies
}

// end sets the outcome. Times to the user count from when the turn was to be sent, so that neither a slow load
// generator nor a limit on its connections hides that the user waits.
func (t *LiveTurn) end(r *chat.Result) {
	late := t.Late(r.Sent)
	t.Turn.end(r, late)
	if !t.Intended.IsZero() {
		t.Turn.Late = new(late.Seconds())
	}
	if !t.Scheduled.IsZero() {
		t.Behind = new(r.Sent.Sub(t.Scheduled).Seconds())
	}
}

// Late returns how long after its intended moment a turn was sent; 0 where it has none.
func (t *LiveTurn) Late(sent time.Time) time.Duration {
	if t.Intended.IsZero() {
		return 0
	}
	return max(0, sent.Sub(t.Intended))
}

// end sets the outcome of a turn that was sent late.
func (t *Turn) end(r *chat.Result, late time.Duration) {
	since := func(d time.Duration, ok bool) *float64 { return seconds(late+d, ok) }
	t.Status = status(r)
	t.Started, t.Ended = r.Sent.Add(-late), r.Ended
	t.TTFT, t.TPOT, t.Latency = since(r.TTFT()), seconds(r.TPOT()), since(r.Latency())
	if ttft, _ := r.TTFT(); r.FirstAnswer > ttft {
		t.FirstAnswer = since(r.FirstAnswer, true)
	}
	t.Chunks = len(r.Chunks)
	t.ITL, t.ITLEstimated = r.Gaps(nil)
	t.InBursts = r.Buffered()
	p50, p95 := chat.GapPercentiles(t.ITL)
	t.ITLP50, t.ITLP95 = known(p50), known(p95)
	n, source := r.OutputTokens()
	t.OutputTokens, t.TokenSource = &n, source
	if r.Usage != nil && r.Usage.Prompt > 0 {
		t.PromptTokens = &r.Usage.Prompt
		if r.Usage.HasCached {
			t.CachedTokens = &r.Usage.Cached
		}
	}
	t.FinishReason, t.AssistantMessage = api.Printable(r.FinishReason), r.Content
	if r.Err != nil {
		t.ErrorClass, t.ErrorMessage = r.Err.Class, r.Err.Message
	}
	t.addRouting(r)
}

// Outcome is the part of a turn that figures are computed from. Windows and spans keep thousands of them, so that it
// has no pointers to values and no texts of the conversation. Latencies are seconds, NaN where they are unknown.
type Outcome struct {
	Number       int // in its conversation, from 1
	Step         int64
	Status       api.TurnStatus // "" while the turn is in flight
	Class        api.ErrorClass // of a failed turn
	FinishReason string         // in lower case; "" if unknown
	Sent, Ended  time.Duration  // since a moment that the holder chooses

	TTFT, TPOT, Latency float64
	FirstAnswer         float64 // 0 without reasoning
	Late                float64 // NaN where the load waits for the server
	Behind              float64 // NaN where no traffic schedules the turn

	// Tokens, 0 where unknown. CachedTokens is valid only with HasCached.
	PromptTokens, CachedTokens, OutputTokens int
	PlannedInput, PlannedOutput              int // of the traffic

	HasCached bool // the server reported prompt and cached tokens
	InBursts  bool // the server or a proxy held tokens back and sent many at once
	Counted   bool
	Usage     bool // the server reported OutputTokens
	Estimated bool // OutputTokens is the number of chunks
}

// OutcomeOf returns the outcome of a turn, with its times since an origin.
func OutcomeOf(t *api.Turn, origin time.Time) Outcome {
	o := Outcome{
		Number: t.Number, Step: t.Step, Status: t.Status, Class: t.ErrorClass, FinishReason: strings.ToLower(t.FinishReason),
		Sent: t.Started.Sub(origin), Ended: t.Ended.Sub(origin),
		TTFT: orNaN(t.TTFT), TPOT: orNaN(t.TPOT), Latency: orNaN(t.Latency), Late: orNaN(t.Late), Behind: orNaN(t.Behind),
		HasCached: t.PromptTokens != nil && t.CachedTokens != nil, InBursts: t.InBursts, Counted: t.Counted,
		Usage: t.TokenSource == "usage", Estimated: t.TokenSource == "chunks",
	}
	api.Patch(&o.FirstAnswer, t.FirstAnswer)
	api.Patch(&o.PromptTokens, t.PromptTokens)
	api.Patch(&o.CachedTokens, t.CachedTokens)
	api.Patch(&o.OutputTokens, t.OutputTokens)
	api.Patch(&o.PlannedInput, t.PlannedInput)
	api.Patch(&o.PlannedOutput, t.PlannedOutput)
	return o
}

// TimeOf returns how one of [api.Times] is read from an outcome, and whether a turn that ended well counts as one
// without a known value. value is nil for inter-token latencies, of which a turn has many.
func TimeOf(f *api.Figure) (value func(*Outcome) float64, unknown func(*Outcome) bool) {
	switch f.Key {
	case "ttft":
		return func(o *Outcome) float64 { return o.TTFT }, (*Outcome).Waiting
	case "tpot":
		return func(o *Outcome) float64 { return o.TPOT }, (*Outcome).TPOTUnknown
	case "latency":
		return func(o *Outcome) float64 { return o.Latency }, (*Outcome).Waiting
	}
	return nil, (*Outcome).TPOTUnknown
}

// OK reports whether the turn ended well.
func (o *Outcome) OK() bool { return o.Status == api.TurnOK }

// Failed reports whether the turn ended in an error.
func (o *Outcome) Failed() bool { return o.Status == api.TurnError }

// Buffered reports whether the turn ended well with tokens that the server or a proxy held back.
func (o *Outcome) Buffered() bool { return o.OK() && o.InBursts }

// Waiting reports whether the turn has no first token.
func (o *Outcome) Waiting() bool { return math.IsNaN(o.TTFT) }

// FirstToken returns the time of the first token in seconds since the origin; NaN without one.
func (o *Outcome) FirstToken() float64 { return o.Sent.Seconds() + o.TTFT }

// End returns the time in seconds since the origin at which the last content of the turn arrived, or at which it
// failed. ok is false for a turn that was cancelled or is in flight.
func (o *Outcome) End() (at float64, ok bool) {
	switch {
	case o.OK() && !math.IsNaN(o.Latency):
		return o.Sent.Seconds() + o.Latency, true
	case o.OK(), o.Failed():
		return o.Ended.Seconds(), true
	}
	return math.NaN(), false
}

// Took returns the seconds until [Outcome.End]; NaN where there is none.
func (o *Outcome) Took() float64 {
	if o.OK() && !math.IsNaN(o.Latency) {
		return o.Latency
	}
	at, _ := o.End()
	return at - o.Sent.Seconds()
}

// TPOTUnknown reports whether the TPOT of the turn could not be measured: its tokens came in bursts, or in one chunk
// that may hold any number of them. An answer of one token has no TPOT, which is known.
func (o *Outcome) TPOTUnknown() bool {
	return math.IsNaN(o.TPOT) && (o.OutputTokens > 1 || o.Estimated)
}

// Meets reports whether the turn is good: it ended well, within both objectives. A value equal to the objective meets
// it. An answer of one token needs no TPOT; an unknown TPOT meets nothing.
func (o *Outcome) Meets(slo api.SLO) bool {
	meetsTPOT := o.TPOT <= slo.TPOT || math.IsNaN(o.TPOT) && !o.TPOTUnknown()
	return o.OK() && o.TTFT <= slo.TTFT && meetsTPOT
}

// orNaN is the inverse of known.
func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// addRouting adds what the router reported of the turn.
func (t *Turn) addRouting(r *chat.Result) {
	t.Worker = api.Printable(r.Worker)
	if r.Timing.HasTTFT {
		t.ServerTTFT = new(r.Timing.TTFT) // a copy, so that the turn does not keep the result in memory
	}
	if r.Timing.HasPredicted {
		t.PredictedRatio = new(r.Timing.PredictedHitRatio)
	}
	if r.Timing.HasQueueDepth {
		t.QueueDepth = new(r.Timing.QueueDepth)
	}
}

func status(r *chat.Result) api.TurnStatus {
	switch {
	case r.Cancelled:
		return api.TurnCancelled
	case r.Err != nil:
		return api.TurnError
	}
	return api.TurnOK
}

// seconds returns nil for a duration that is not defined.
func seconds(d time.Duration, ok bool) *float64 {
	if !ok {
		return nil
	}
	return new(d.Seconds())
}

// known returns nil for NaN.
func known(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

// uncounted returns the number of output tokens that a turn's usage reports beyond those counted by
// chunks as they arrived. It is negative if the usage reports fewer.
func uncounted(r *chat.Result) int {
	counted := 0
	for _, c := range r.Chunks {
		counted += max(1, int(c.Tokens))
	}
	n, _ := r.OutputTokens()
	return n - counted
}

// LiveTurn is a turn under way or just ended, in the process that holds its conversation.
type LiveTurn struct {
	Turn
	Settled bool      // the step had settled when the turn began
	Last    bool      // the conversation has no further turn planned
	Began   time.Time // before the request was sent
	// Intended is when the turn was to be sent, by a load that waits for no server; zero for others.
	Intended time.Time
	Live     chat.Live
	// Instance is the worker instance (decimal id) that the turn is pinned to, "" if the router
	// chooses one. It is set before [Options].ObserveRouting receives the turn, and empty without it.
	Instance string
	// Scheduled is when the plan has the turn sent; zero without one, or where it is sent once another one has ended.
	Scheduled time.Time
	Salt      uint64 // of [chat.Request]

	prompt  []chat.Message
	routing RoutingObserver // nil: routing is not observed
}

// Begin sets the step that the turn begins in.
func (t *LiveTurn) Begin(s api.StepRecord) {
	t.Step, t.Level = s.ID, s.Level
	t.Arm, t.Mode, t.Speculation = s.Arm, s.Mode, s.Speculation
	t.Settled = s.Settled != nil
}

// Prompt returns the messages that the turn sends. They are shared and must not be modified.
func (t *LiveTurn) Prompt() []chat.Message { return t.prompt }

// Underway is the number of turns under way at a moment.
type Underway struct {
	Turns    int
	Awaiting api.Awaiting // turns that still wait for their first token
}

// Underway counts the turns under way.
func (w *Workload) Underway(now time.Time) (u Underway) {
	for _, t := range w.turns() {
		u.Turns++
		sent, _, waiting := t.Live.First()
		if !waiting || sent.IsZero() {
			continue
		}
		u.Awaiting.N++
		u.Awaiting.OldestSeconds = max(u.Awaiting.OldestSeconds, now.Sub(sent).Seconds())
	}
	return u
}

// LiveTurn returns the turn under way of the conversation with the id; nil if there is none.
func (w *Workload) LiveTurn(conversation string) *api.LiveTurn {
	for _, t := range w.turns() {
		if t.Conversation == conversation {
			return t.live()
		}
	}
	return nil
}

// live returns the part of the turn that has arrived.
func (t *LiveTurn) live() *api.LiveTurn {
	live := &api.LiveTurn{
		Number: t.Number, Started: t.Began, UserMessage: t.UserMessage, AssistantMessage: t.Live.Text(),
		Worker: t.Live.Worker(),
	}
	if sent, ttft, waiting := t.Live.First(); !waiting {
		live.TTFT = new((t.Late(sent) + ttft).Seconds())
	}
	return live
}

// turns returns the turns under way.
func (w *Workload) turns() []*LiveTurn {
	var all []*LiveTurn
	for _, c := range w.Conversations() {
		if t := c.Turn(); t != nil {
			all = append(all, t)
		}
	}
	return all
}

// Uniform reports whether every conversation in progress was drawn from the settings and the corpus
// in force.
func (w *Workload) Uniform() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.active {
		if c.Shape != w.shape {
			return false
		}
	}
	return true
}
