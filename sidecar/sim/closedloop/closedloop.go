// Package closedloop simulates conversations with a cluster in virtual time. Like the load generator, it keeps a
// number of conversations in progress or begins them at a rate, resends the history with each turn, and uses the same
// random draws. [Loop.Recorded] evaluates a run as the recorded results were evaluated.
package closedloop

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/arrival"
	"kvbooth/sidecar/sim/draw"
	"kvbooth/sidecar/sim/traffic"
)

// Workload describes the conversations.
type Workload struct {
	Level    api.Level `json:"Concurrency"`
	Turns    api.Range
	Openings int // different texts that open conversations; 0 means one for each conversation
	// OpeningTokens are the lengths of whole first prompts. The index is the number of the opening, modulo the
	// length of the slice.
	OpeningTokens  []int
	QuestionTokens api.Distribution  // tokens that a follow-up adds to the prompt, after the previous answer
	MaxTokens      int               // limit of an answer
	Output         *api.Distribution // length of an answer, up to the limit; nil means always the limit
	ThinkTime      time.Duration     // between an answer and the next question
	StartRate      float64           // maximum number of new conversations per second, at a number of them
	Seed           uint64            // of the draws, independent of the cluster's seed
	// RampedStart is the number of conversations that start in their middle: see [draw.Shape].
	RampedStart int64 `json:"Midway,omitempty"`

	// Shape is what conversations send in place of the above, but for pauses without a length of their own.
	Shape api.TrafficShape `json:",omitzero"`
	// Timed is sent in place of a shape, if not nil. It has no end.
	Timed *traffic.Timed `json:"-"`

	// At a rate: Arrivals and Burstiness are those of an [arrival.Schedule], and MaxInflight is the number of turns in
	// flight from which arrivals, and further turns, are dropped; 0: no limit.
	Arrivals    api.Arrivals `json:",omitempty"`
	Burstiness  float64      `json:",omitempty"`
	MaxInflight int          `json:",omitempty"`
}

// load returns what the workload says of when conversations begin.
func (w *Workload) load() arrival.Load {
	l := arrival.Load{
		Level: w.Level, StartRate: w.StartRate, Speed: 1,
		Schedule: arrival.Schedule{Gaps: w.Arrivals, Burstiness: w.Burstiness, Seed: w.Seed},
	}
	if w.Timed != nil {
		l.Times, l.Speed = w.Timed.Times, w.Timed.SpeedAt(w.Level)
	}
	return l
}

// Recorded returns the workload of the recorded results, as far as it is known: five turns on ten openings, one short
// sentence at every follow-up, and at most 1,024 tokens per answer. The lengths of the answers are estimated from the
// recorded tables. Tokens over requests gives a mean of 853, and so does Little's law, by which the mean latency is
// 0.96 of the median. The median latency minus the median TTFT, divided by the median TPOT, gives 893, and the 95th
// percentile 1,098: more than the limit, because TPOT scatters too. In a normal distribution cut at the limit that
// has all of these values, a third of the answers reach the limit. Simulated and evaluated in the same way, this
// distribution gives 851, 0.95, 888 and 1,088.
func Recorded() Workload {
	return Workload{
		Level: api.AtConversations(60), Turns: api.Range{Min: 5, Max: 5}, Openings: 10,
		OpeningTokens:  []int{3500, 3556, 3611, 3667, 3722, 3778, 3833, 3889, 3944, 4000},
		QuestionTokens: api.Distribution{Mean: 12},
		MaxTokens:      1024, Output: &api.Distribution{Mean: 900, CV: .3}, StartRate: 10, Seed: 1,
	}
}

// Validate returns an *[api.FieldError] for a workload that cannot run, or nil. It checks the fields with limits in
// [api.Limits] against those.
func (w Workload) Validate() error {
	switch {
	case !w.Level.IsRate() && (w.Level.Conversations() < 1 || w.Level.Conversations() > api.MaxConcurrency):
		return api.Refuse("concurrency", w.Level, fmt.Sprintf("1 to %d, or %s", api.MaxConcurrency, api.AllowedRate))
	case w.Turns.Min < 1 || w.Turns.Max < w.Turns.Min || w.Turns.Max > api.MaxTurns:
		return api.Refuse("turns", fmt.Sprintf("%d to %d", w.Turns.Min, w.Turns.Max),
			fmt.Sprintf("1 to %d, in order", api.MaxTurns))
	case w.Openings < 0 || w.Openings > api.MaxOpenings:
		return api.Refuse("openings", w.Openings, api.Limits["openings"].String())
	case len(w.OpeningTokens) == 0:
		return api.Refuse("opening_tokens", "none", "at least one length")
	case w.MaxTokens < 1 || w.MaxTokens > api.MaxTokens:
		return api.Refuse("max_tokens", w.MaxTokens, api.Limits["max_tokens"].String())
	case !(w.StartRate > 0):
		return api.Refuse("start_rate", w.StartRate, "more than 0")
	case !(w.QuestionTokens.Mean >= 1):
		return api.Refuse("question_tokens.mean", w.QuestionTokens.Mean, "at least 1")
	case w.ThinkTime < 0:
		return api.Refuse("think_time", w.ThinkTime, "0 or more")
	}
	for _, n := range w.OpeningTokens {
		if n < 1 || n > api.MaxTokens {
			return api.Refuse("opening_tokens", n, fmt.Sprintf("1 to %d", api.MaxTokens))
		}
	}
	return nil
}

// Turn is a turn that ended without an error. Times are virtual.
type Turn struct {
	Conversation int64
	Number       int // from 1
	sim.Report
	// Decision is the router's decision. It is nil for clusters of more than 64 workers, where decisions would
	// take most of the memory of a run.
	Decision *sim.Decision

	// Derived from the decision:
	crowded bool // the chosen worker had more than [CrowdedFactor] times the mean number of requests in flight
	held    int  // largest overlap of a worker with the prompt, in blocks
}

// maxDecided is the largest number of workers for which decisions are kept.
const maxDecided = 64

// TTFT returns the time from the request to its first token.
func (t *Turn) TTFT() time.Duration { return t.FirstToken - t.Submitted }

// Latency returns the time from the request to its last token.
func (t *Turn) Latency() time.Duration { return t.Ended - t.Submitted }

// TPOT returns the mean time per output token after the first; false for fewer than two tokens.
func (t *Turn) TPOT() (time.Duration, bool) {
	if t.OutputTokens < 2 {
		return 0, false
	}
	return (t.Ended - t.FirstToken) / time.Duration(t.OutputTokens-1), true
}

// Queue returns the time from the turn's arrival at its worker to its admission.
func (t *Turn) Queue() time.Duration { return t.Started - t.Arrived }

// Second is the state of the cluster at the end of one second of virtual time.
type Second struct {
	Tokens           int // delivered during the second
	Dropped          int // arrivals and further turns that were dropped during the second
	Active           int // conversations in progress
	Waiting          int // requests in the workers' queues
	Least, Most, All int // requests in flight: of the idlest worker, of the busiest, of all workers
}

// Loop runs a workload on a cluster. It is not safe for concurrent use.
type Loop struct {
	Cluster *sim.Cluster
	// OnTokens, if set, is called when tokens are delivered; t is the turn so far.
	OnTokens func(t *Turn, at time.Duration, n int)
	// OnAsk, if set, is called when a turn begins, with its request to the cluster.
	OnAsk func(t *Turn, q sim.Request)
	// OnTurn, if set, is called when a turn has ended.
	OnTurn func(t *Turn)

	workload Workload
	load     arrival.Process
	profile  sim.Profile
	begun    int64 // number of conversations begun, with those that were dropped
	active   map[int64]struct{}
	inflight int    // number of turns in flight
	second   Second // tokens and dropped turns since the last full second
	seconds  []Second
	turns    []Turn
	err      error
	pauses   []pause        // think times in progress, by their ends
	source   traffic.Source // nil with the recorded shape
}

// pause is the think time of a conversation.
type pause struct {
	until        time.Duration
	conversation *conversation
}

// New returns a loop on a new cluster, at time zero. The error is an *[api.FieldError].
func New(o sim.Options, w Workload) (*Loop, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	c, err := sim.New(o)
	if err != nil {
		return nil, err
	}
	l := &Loop{
		Cluster: c, workload: w, load: w.load().Process(0, nil, 0), profile: o.Profile, active: map[int64]struct{}{},
	}
	if w.Timed != nil {
		l.source = w.Timed
	} else if !w.Shape.Recorded() {
		kv := o.Profile.KV
		if l.source, err = traffic.NewShape(w.Shape, w.Seed, kv.Tokens()-kv.BlockTokens); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// SetLevel changes the level. Surplus conversations end with their current turn.
func (l *Loop) SetLevel(level api.Level) {
	l.workload.Level = level
	l.load = l.workload.load().Process(l.Cluster.Now(), l.load, l.begun)
}

// Settled reports whether the load is what its level says.
func (l *Loop) Settled() bool {
	s := l.state()
	s.Oldest = l.begun
	for number := range l.active {
		s.Oldest = min(s.Oldest, number)
	}
	return l.load.Settled(s)
}

func (l *Loop) state() arrival.State {
	return arrival.State{Now: l.Cluster.Now(), Active: len(l.active)}
}

// Run simulates until a moment of virtual time, rounded up to whole seconds. An error of the cluster, which refused or
// lost a request, ends the loop.
func (l *Loop) Run(until time.Duration) error {
	for l.err == nil && l.Cluster.Now() < until {
		end := time.Duration(len(l.seconds)+1) * time.Second
		for l.err == nil && l.step(end) {
		}
		l.observe()
	}
	return l.err
}

// step runs the next event of the cluster or of the users. It returns false if none is left until the given moment,
// and sets the cluster's time to that moment.
func (l *Loop) step(until time.Duration) bool {
	at, action := l.due(until)
	if next, ok := l.Cluster.Next(); ok && next < at {
		l.Cluster.Advance(next)
		return true
	}
	l.Cluster.Advance(at)
	if action == nil {
		return false
	}
	action()
	return true
}

// due returns the next action of the users and its time: the start of a conversation, or a question after a pause. The
// action is nil if there is none until the given moment.
func (l *Loop) due(until time.Duration) (at time.Duration, action func()) {
	at = until
	if next, ok := l.load.Next(l.state()); ok && next < at {
		at, action = max(next, l.Cluster.Now()), l.begin
	}
	if len(l.pauses) > 0 && l.pauses[0].until < at {
		at, action = l.pauses[0].until, l.resume
	}
	return at, action
}

// resume ends the first pause with the next question of its conversation.
func (l *Loop) resume() {
	c := l.pauses[0].conversation
	l.pauses = l.pauses[1:]
	c.goOn()
}

// begin starts the next conversation with its first turn, at the moment that the load intends: in virtual time, none
// is late.
func (l *Loop) begin() {
	w, k := &l.workload, l.begun
	l.load.Begin(l.state())
	l.begun++
	if l.full() {
		return
	}
	l.active[k] = struct{}{}
	c := &conversation{loop: l, number: k, began: l.Cluster.Now()}
	if l.source != nil {
		plan, _ := l.source.Conversation(k) // it has no end
		c.plan = traffic.NewDialog[sim.BlockHash](k, &plan, l.profile.KV.BlockTokens)
		c.ask()
		return
	}
	c.draw = draw.New(w.Seed, k, k, draw.Shape{
		Turns: w.Turns, Openings: w.Openings, MaxTokens: w.MaxTokens, Output: w.Output, RampedStart: w.RampedStart,
	})
	c.prompt = traffic.NewSequence[sim.BlockHash](l.profile.KV.BlockTokens, "")
	opening := c.draw.Opening
	c.add(uint64(opening)+1, w.OpeningTokens[opening%int64(len(w.OpeningTokens))])
	c.ask()
}

// full reports whether no further turn may be sent at a rate, and counts the one that is not.
func (l *Loop) full() bool {
	if l.load.Waits() || l.workload.MaxInflight == 0 || l.inflight < l.workload.MaxInflight {
		return false
	}
	l.second.Dropped++
	return true
}

// end removes a conversation, in whose place another one may begin.
func (l *Loop) end(c *conversation) {
	delete(l.active, c.number)
	if next, ok := l.load.Next(l.state()); ok && next <= l.Cluster.Now() {
		l.begin()
	}
}

// observe appends the state at the end of a second.
func (l *Loop) observe() {
	s := l.second
	s.Active, s.Least = len(l.active), math.MaxInt
	for _, w := range l.Cluster.Workers() {
		s.Waiting += w.Waiting
		s.All += w.Inflight
		s.Least, s.Most = min(s.Least, w.Inflight), max(s.Most, w.Inflight)
	}
	l.second = Second{}
	l.seconds = append(l.seconds, s)
}

// Turns returns the turns that have ended, in the order of their ends.
func (l *Loop) Turns() []Turn { return l.turns }

// Seconds returns the states at the ends of the seconds so far.
func (l *Loop) Seconds() []Second { return l.seconds }

// conversation is a conversation in progress, and the observer of its turns.
type conversation struct {
	loop   *Loop
	number int64
	began  time.Duration
	turn   Turn // under way

	plan   *traffic.Dialog[sim.BlockHash] // nil with the recorded shape, whose draws and history follow
	draw   draw.Conversation
	prompt traffic.Sequence[sim.BlockHash]
}

// add appends a text to the history. Texts with different ids have no common tokens.
func (c *conversation) add(id uint64, tokens int) {
	c.prompt.Add(traffic.Segment{ID: id, Tokens: tokens})
}

// own returns the id of a text that only this conversation has.
func (c *conversation) own(part uint64) uint64 {
	return 1<<63 | uint64(c.number)<<16 | uint64(c.turn.Number)<<1 | part
}

// ask submits the next turn.
func (c *conversation) ask() {
	l := c.loop
	l.inflight++
	c.turn = Turn{Conversation: c.number, Number: c.turn.Number + 1}
	q := sim.Request{Reason: sim.FinishLength}
	if c.plan != nil {
		q.OutputTokens = cmp.Or(c.plan.Ask().MaxTokens, l.workload.MaxTokens)
		q.PromptTokens = c.plan.Prompt.Tokens
		c.plan.Answer(q.OutputTokens)
		q.Blocks = c.plan.Prompt.Blocks
	} else {
		q.PromptTokens, q.OutputTokens = c.prompt.Tokens, c.draw.MaxTokens[c.turn.Number-1]
		c.add(c.own(0), q.OutputTokens)
		q.Blocks = c.prompt.Blocks
	}
	if l.OnAsk != nil {
		l.OnAsk(&c.turn, q)
	}
	if _, err := l.Cluster.Submit(q, c); err != nil {
		l.err = err
	}
}

// Routed implements [sim.Observer].
func (c *conversation) Routed(d *sim.Decision) { c.turn.decided(d) }

// FirstToken implements [sim.Observer].
func (c *conversation) FirstToken(r sim.Report) { c.turn.Report = r }

// Tokens implements [sim.Observer].
func (c *conversation) Tokens(at time.Duration, n int) {
	c.loop.second.Tokens += n
	if c.loop.OnTokens != nil {
		c.loop.OnTokens(&c.turn, at, n)
	}
}

// Finished implements [sim.Observer].
func (c *conversation) Finished(r sim.Report) {
	l := c.loop
	l.inflight--
	if r.Err != nil {
		l.err = r.Err
		return
	}
	c.turn.Report = r
	l.turns = append(l.turns, c.turn)
	if l.OnTurn != nil {
		l.OnTurn(&c.turn)
	}
	if c.ended() || l.load.Surplus(l.state()) {
		l.end(c)
		return
	}
	think := l.workload.ThinkTime
	if c.plan != nil {
		turn := c.plan.Plan.Turns[c.plan.Turn].AtSpeed(l.workload.load().Speed)
		think = turn.Pause(l.Cluster.Now()-c.began, think)
	} else {
		c.add(c.own(1), questionTokens(c.draw.Questions, l.workload.QuestionTokens))
	}
	if think > 0 {
		l.pause(c, l.Cluster.Now()+think)
		return
	}
	c.goOn()
}

// ended reports whether there is no further turn.
func (c *conversation) ended() bool {
	if c.plan != nil {
		return c.plan.Ended()
	}
	return c.turn.Number == c.draw.Turns
}

// pause lets a conversation go on at a moment, after those that go on then, too.
func (l *Loop) pause(c *conversation, until time.Duration) {
	i, _ := slices.BinarySearchFunc(l.pauses, until+1, func(p pause, at time.Duration) int {
		return cmp.Compare(p.until, at)
	})
	l.pauses = slices.Insert(l.pauses, i, pause{until, c})
}

// goOn submits a further turn, unless too many are in flight: then the conversation ends.
func (c *conversation) goOn() {
	if c.loop.full() {
		c.loop.end(c)
		return
	}
	c.ask()
}

func questionTokens(r *rand.Rand, d api.Distribution) int {
	return int(math.Round(max(d.Mean*(1+d.CV*r.NormFloat64()), d.Mean/4, 1)))
}
