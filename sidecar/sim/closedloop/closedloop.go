// Package closedloop holds conversations with a simulated cluster in virtual time, as
// the load generator holds them with a real one: so many in progress, each turn
// resending the history, with the same draws. What comes of it is read as the recorded
// results were: [Loop.Recorded].
package closedloop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/draw"
	"kvbooth/sidecar/sim"
)

// Workload is what a closed loop asks of a cluster.
type Workload struct {
	Concurrency    int // conversations in progress
	Turns          api.Range
	Openings       int               // different texts that open conversations; 0: one for each
	OpeningTokens  []int             // of the first prompt, whole, by the number of its opening, which goes round
	QuestionTokens api.Distribution  // that a follow-up adds to the prompt, behind the answer before it
	MaxTokens      int               // cap of an answer
	Output         *api.Distribution // of an answer's length, up to the cap; nil: always the cap
	ThinkTime      time.Duration     // between an answer and the question after it
	StartRate      float64           // new conversations a second at most
	Seed           uint64            // of the draws; that of the cluster is its own
	Midway         int64             `json:",omitempty"` // conversations that are held from their midst; see [draw.Shape]
}

// Recorded is the workload of the recorded results, as far as it is known: five turns
// on ten openings, one short sentence at every follow-up, and at most 1,024 tokens an
// answer. The lengths of the answers are what the recorded tables tell of them. Tokens
// over requests gives a mean of 853, and so does Little's law, by which the mean latency
// is .96 of the median. The median of the latency less that of TTFT, over that of TPOT,
// gives 893, and the 95th percentile 1,098: more than the cap, since TPOT scatters, too.
// A normal distribution cut at the cap that has all of these is one in which a third of
// the answers reach it: simulated and read in the same way, this one gives 851, .95,
// 888 and 1,088.
func Recorded() Workload {
	return Workload{
		Concurrency: 60, Turns: api.Range{Min: 5, Max: 5}, Openings: 10,
		OpeningTokens:  []int{3500, 3556, 3611, 3667, 3722, 3778, 3833, 3889, 3944, 4000},
		QuestionTokens: api.Distribution{Mean: 12},
		MaxTokens:      1024, Output: &api.Distribution{Mean: 900, CV: .3}, StartRate: 10, Seed: 1,
	}
}

// Validate says what no loop can run: nil, or an *[api.FieldError]. What the fields of
// [api.Limits] bound, it holds against those.
func (w Workload) Validate() error {
	switch {
	case w.Concurrency < 1 || w.Concurrency > maxConcurrency:
		return api.Refuse("concurrency", w.Concurrency, fmt.Sprintf("1 to %d", maxConcurrency))
	case w.Turns.Min < 1 || w.Turns.Max < w.Turns.Min || w.Turns.Max > api.MaxTurns:
		return api.Refuse("turns", fmt.Sprintf("%d to %d", w.Turns.Min, w.Turns.Max), fmt.Sprintf("1 to %d, in order", api.MaxTurns))
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

// maxConcurrency is the most that one process simulates.
const maxConcurrency = 100_000

// Turn is one that has ended well. Times are in virtual seconds.
type Turn struct {
	Conversation int64
	Number       int // from 1
	sim.Report
	// Decision is why its worker. Turns on more than 64 workers come without: of so
	// many, decisions would be most of the memory of a run.
	Decision *sim.Decision

	// Of the decision.
	crowded bool // the worker chosen had more than [Crowd] times the mean in flight
	held    int  // blocks of the prompt that the worker with the most of them held
}

// maxDecided is the number of workers up to which decisions are kept.
const maxDecided = 64

// TTFT is the time from the request to its first token.
func (t *Turn) TTFT() time.Duration { return t.FirstToken - t.Submitted }

// Latency is the time from the request to its last token.
func (t *Turn) Latency() time.Duration { return t.Ended - t.Submitted }

// TPOT is the mean time of an output token after the first; false below two tokens.
func (t *Turn) TPOT() (time.Duration, bool) {
	if t.OutputTokens < 2 {
		return 0, false
	}
	return (t.Ended - t.FirstToken) / time.Duration(t.OutputTokens-1), true
}

// Queue is the time that the turn waited at its worker to be admitted.
func (t *Turn) Queue() time.Duration { return t.Started - t.Arrived }

// Second is what the cluster was like at the end of one second of virtual time.
type Second struct {
	Tokens           int // that were delivered in it
	Waiting          int // requests in the workers' queues
	Least, Most, All int // requests routed and not ended: of the idlest worker, of the busiest, of all
}

// Loop is a workload on a cluster. It is not safe for concurrent use.
type Loop struct {
	Cluster *sim.Cluster
	// OnTokens, if set, hears of tokens as they are delivered; t has what is known so far.
	OnTokens func(t *Turn, at time.Duration, n int)
	// OnAsk, if set, hears of each turn that begins, with what the cluster is asked for.
	OnAsk func(t *Turn, q sim.Request)
	// OnTurn, if set, hears of each turn that has ended.
	OnTurn func(t *Turn)

	workload Workload
	profile  sim.Profile
	started  int64
	active   int
	nextAt   time.Duration // the earliest start of the next conversation
	tokens   int           // since the last second
	seconds  []Second
	turns    []Turn
	err      error
	pauses   []pause // of users who think, by their ends: all think for the same time
}

type pause struct {
	until time.Duration
	of    *conversation
}

// New makes a cluster and the loop around it, at time zero. The error is an
// *[api.FieldError].
func New(o sim.Options, w Workload) (*Loop, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	c, err := sim.New(o)
	if err != nil {
		return nil, err
	}
	return &Loop{Cluster: c, workload: w, profile: o.Profile}, nil
}

// SetConcurrency changes the number of conversations in progress. Surplus ones end with the
// turn that they are in.
func (l *Loop) SetConcurrency(n int) { l.workload.Concurrency = n }

// Run goes on until a moment of virtual time, at whole seconds. An error is the cluster's, which refused
// or lost a request, and ends the loop.
func (l *Loop) Run(until time.Duration) error {
	for l.err == nil && l.Cluster.Now() < until {
		end := time.Duration(len(l.seconds)+1) * time.Second
		for l.err == nil && l.step(end) {
		}
		l.observe()
	}
	return l.err
}

// step lets the next thing happen, of the cluster or of the users; false, when none
// is left up to a moment, which is the present one then.
func (l *Loop) step(until time.Duration) bool {
	at, what := l.due(until)
	if next, ok := l.Cluster.Next(); ok && next < at {
		l.Cluster.Advance(next)
		return true
	}
	l.Cluster.Advance(at)
	if what == nil {
		return false
	}
	what()
	return true
}

// due is what the users do next, no later than a moment: begin a conversation, or ask
// after a pause.
func (l *Loop) due(until time.Duration) (at time.Duration, what func()) {
	at = until
	if l.active < l.workload.Concurrency && l.nextAt < at {
		at, what = max(l.nextAt, l.Cluster.Now()), l.begin
	}
	if len(l.pauses) > 0 && l.pauses[0].until < at {
		next := l.pauses[0]
		at, what = next.until, func() { l.pauses = l.pauses[1:]; next.of.ask() }
	}
	return at, what
}

func (l *Loop) begin() {
	w, k := &l.workload, l.started
	l.started++
	l.active++
	l.nextAt = l.Cluster.Now() + time.Duration(float64(time.Second)/w.StartRate)
	d := draw.New(w.Seed, k, k, draw.Shape{Turns: w.Turns, Openings: w.Openings, MaxTokens: w.MaxTokens, Output: w.Output, Midway: w.Midway})
	c := &conversation{loop: l, number: k, draw: d}
	c.say(text{id: uint64(d.Opening) + 1, tokens: w.OpeningTokens[d.Opening%int64(len(w.OpeningTokens))]})
	c.ask()
}

func (l *Loop) observe() {
	s := Second{Tokens: l.tokens, Least: math.MaxInt}
	for _, w := range l.Cluster.Workers() {
		s.Waiting += w.Waiting
		s.All += w.Inflight
		s.Least, s.Most = min(s.Least, w.Inflight), max(s.Most, w.Inflight)
	}
	l.tokens = 0
	l.seconds = append(l.seconds, s)
}

// Turns are those that have ended, in the order of their ends.
func (l *Loop) Turns() []Turn { return l.turns }

// Seconds are those that have passed.
func (l *Loop) Seconds() []Second { return l.seconds }

// text is a part of a conversation: tokens that no other part has, save under the same id.
type text struct {
	id     uint64
	tokens int
}

// conversation is one in progress, and the observer of its turns.
type conversation struct {
	loop   *Loop
	number int64
	draw   draw.Conversation
	turn   Turn // under way

	// The history. A block is told by the text that it ends in, its place, and all
	// texts before it.
	hash   uint64
	tokens int
	blocks []sim.BlockHash
}

func (c *conversation) say(t text) {
	size := c.loop.profile.KV.BlockTokens
	c.hash = sim.Mix(c.hash ^ sim.Mix(t.id))
	for end := (c.tokens/size + 1) * size; end <= c.tokens+t.tokens; end += size {
		c.blocks = append(c.blocks, sim.BlockHash(sim.Mix(c.hash+uint64(end))))
	}
	c.tokens += t.tokens
}

// own is the id of a text that only this conversation has.
func (c *conversation) own(part uint64) uint64 {
	return 1<<63 | uint64(c.number)<<16 | uint64(c.turn.Number)<<1 | part
}

func (c *conversation) ask() {
	l := c.loop
	c.turn = Turn{Conversation: c.number, Number: c.turn.Number + 1}
	q := sim.Request{PromptTokens: c.tokens, OutputTokens: c.draw.MaxTokens[c.turn.Number-1], Reason: sim.FinishLength}
	c.say(text{id: c.own(0), tokens: q.OutputTokens})
	q.Blocks = c.blocks
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
	c.loop.tokens += n
	if c.loop.OnTokens != nil {
		c.loop.OnTokens(&c.turn, at, n)
	}
}

// Finished implements [sim.Observer].
func (c *conversation) Finished(r sim.Report) {
	l := c.loop
	if r.Err != nil {
		l.err = r.Err
		return
	}
	c.turn.Report = r
	l.turns = append(l.turns, c.turn)
	if l.OnTurn != nil {
		l.OnTurn(&c.turn)
	}
	if c.turn.Number == c.draw.Turns || l.active > l.workload.Concurrency {
		l.active--
		if l.active < l.workload.Concurrency && l.nextAt <= l.Cluster.Now() {
			l.begin()
		}
		return
	}
	c.say(text{id: c.own(1), tokens: questionTokens(c.draw.Questions, l.workload.QuestionTokens)})
	if l.workload.ThinkTime > 0 {
		l.pauses = append(l.pauses, pause{l.Cluster.Now() + l.workload.ThinkTime, c})
		return
	}
	c.ask()
}

func questionTokens(r *rand.Rand, d api.Distribution) int {
	return int(math.Round(max(d.Mean*(1+d.CV*r.NormFloat64()), d.Mean/4, 1)))
}
