package traffic

import (
	"cmp"
	"container/heap"
	"hash/fnv"
	"io"
	"time"

	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/arrival"
	"kvbooth/sidecar/trace"
)

// PlanOptions describe the load of a [Plan].
type PlanOptions struct {
	Source      Source
	Load        arrival.Process // new; nil if the conversations have times of their own
	BlockTokens int             // tokens of an engine's block
	Until       time.Duration   // end of the plan
	MostBlocks  int             // blocks of all prompts after which the plan ends early; 0 sets no limit
	Speed       float64         // multiple of the speed of pauses; 0 means 1

	// Times of a request, which decide when the next turn or conversation begins. They are assumptions.
	FirstToken, PerToken time.Duration
	ThinkTime            time.Duration // of turns without a pause of their own
	MaxTokens            int           // of answers without a length of their own
}

// Plan is the requests of a source under a load in the order of their expected times, before anything is sent. It is a
// [trace.Stream], from which package trace computes lengths and hit rates, and package shadow those of placements. A
// text counts as a token for four bytes. Memory grows with the conversations in progress.
type Plan struct {
	options PlanOptions
	began   int64 // conversations that have begun
	ready   *Conversation
	now     time.Duration
	active  int
	ahead   planned
	blocks  int
	cut     bool
}

// NewPlan returns the plan at its beginning.
func NewPlan(o PlanOptions) *Plan { return &Plan{options: o} }

// End returns when the plan ended, and whether it was cut there although its traffic goes on.
func (p *Plan) End() (at time.Duration, cut bool) {
	if isOver := p.ready == nil && len(p.ahead) == 0; p.cut || isOver {
		return p.now, p.cut
	}
	return p.options.Until, false
}

// Next implements [trace.Stream].
func (p *Plan) Next() (*trace.Record, error) {
	for !p.cut {
		at, ok := p.nextBeginning()
		switch {
		case ok && (len(p.ahead) == 0 || at <= p.ahead[0].at) && at < p.options.Until:
			p.begin(at)
		case len(p.ahead) == 0 || p.ahead[0].at >= p.options.Until:
			return nil, io.EOF
		default:
			c := heap.Pop(&p.ahead).(*timed)
			p.now = c.at
			if !c.Ended() {
				return p.ask(c), nil
			}
			p.active--
		}
	}
	return nil, io.EOF
}

// nextBeginning returns when the next conversation begins; false after the last, or while none may begin.
func (p *Plan) nextBeginning() (at time.Duration, ok bool) {
	if p.ready == nil {
		c, ok := p.options.Source.Conversation(p.began)
		if !ok {
			return 0, false
		}
		p.ready = &c
	}
	if p.options.Load == nil {
		return max(p.ready.At, p.now), true
	}
	at, ok = p.options.Load.Next(p.state(p.now))
	return max(at, p.now), ok
}

func (p *Plan) state(now time.Duration) arrival.State {
	return arrival.State{Now: now, Active: p.active}
}

func (p *Plan) begin(at time.Duration) {
	if p.options.Load != nil {
		at = p.options.Load.Begin(p.state(at))
	}
	p.began++
	p.active++
	heap.Push(&p.ahead, &timed{NewDialog[uint64](p.began, p.ready, p.options.BlockTokens), at, at})
	p.ready = nil
}

// ask returns the request of a conversation's next turn, and schedules what follows its answer.
func (p *Plan) ask(c *timed) *trace.Record {
	o := &p.options
	turn := c.Ask()
	r := &trace.Record{
		Line: int64(c.Turn), Model: c.Plan.Model, At: p.now, PromptTokens: c.Prompt.Tokens,
		OutputTokens: cmp.Or(turn.MaxTokens, o.MaxTokens), Blocks: c.Prompt.Blocks, BlockTokens: o.BlockTokens,
		Session: uint64(c.Number), Turn: c.Turn, FirstToken: o.FirstToken, Cached: -1,
	}
	r.Ended = o.FirstToken + time.Duration(max(r.OutputTokens-1, 0))*o.PerToken
	c.Answer(r.OutputTokens)
	r.Computed = c.Prompt.computed()
	c.at += r.Ended
	if !c.Ended() {
		c.at += c.Plan.Turns[c.Turn].AtSpeed(cmp.Or(o.Speed, 1)).Pause(c.at-c.began, o.ThinkTime)
	}
	heap.Push(&p.ahead, c)
	p.blocks += len(r.Blocks)
	p.cut = o.MostBlocks > 0 && p.blocks >= o.MostBlocks
	return r
}

// Pause returns the pause before a turn. ended is when the turn before has ended, since the beginning of the
// conversation; think is the pause of turns without one of their own.
func (t Turn) Pause(ended, think time.Duration) time.Duration {
	switch {
	case t.At > 0:
		return max(t.At-ended, 0)
	case t.Think < 0:
		return think
	}
	return t.Think
}

// AtSpeed returns the turn with its times at a multiple of their speed.
func (t Turn) AtSpeed(speed float64) Turn {
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) / speed) }
	if t.At > 0 {
		t.At = max(1, scaled(t.At)) // 0 would mean none
	}
	if t.Think > 0 {
		t.Think = scaled(t.Think)
	}
	return t
}

// timed is a conversation in progress with the moment of its next turn, or of its end.
type timed struct {
	*Dialog[uint64]
	at, began time.Duration
}

// Dialog is the prompts of a planned conversation, turn by turn. H is the type of the hashes of blocks.
type Dialog[H ~uint64] struct {
	Plan   *Conversation
	Number int64
	Turn   int         // number of turns so far
	Prompt Sequence[H] // of the turn before, with its answer

	blockTokens int
	sent        []Message // of the turn before
	reply       Message
}

// NewDialog returns the conversation with a number before its first turn.
func NewDialog[H ~uint64](number int64, plan *Conversation, blockTokens int) *Dialog[H] {
	return &Dialog[H]{
		Plan: plan, Number: number, Prompt: NewSequence[H](blockTokens, plan.Model), blockTokens: blockTokens,
	}
}

// Ended reports whether there is no further turn.
func (d *Dialog[H]) Ended() bool { return d.Turn == len(d.Plan.Turns) }

// Ask returns the next turn, whose prompt is then that of the dialog.
func (d *Dialog[H]) Ask() *Turn {
	t := &d.Plan.Turns[d.Turn]
	added := t.Messages
	all := t.Prompt(d.sent, d.reply)
	if t.Whole {
		d.Prompt, added = NewSequence[H](d.blockTokens, d.Plan.Model), all
	}
	for _, m := range added {
		for _, s := range m.segments() {
			d.Prompt.Add(s)
		}
	}
	d.sent = all
	d.Turn++
	return t
}

// Answer adds an answer to the prompt. No other conversation has its text.
func (d *Dialog[H]) Answer(tokens int) {
	own := Segment{ID: AnswerID(d.Number, d.Turn), Tokens: tokens}
	d.reply = Message{Role: "assistant", Segments: []Segment{own}}
	d.Prompt.Add(own)
}

// AnswerID returns the id of the text that a turn of a conversation is answered.
func AnswerID(conversation int64, turn int) uint64 {
	return sim.Mix(sim.Mix(uint64(conversation)) ^ uint64(turn) ^ 1<<63)
}

// Scatter is a permutation of the numbers that scatters neighbors: SplitMix64.
func Scatter(x uint64) uint64 { return sim.Mix(x + 0x9e3779b97f4a7c15) }

// segments returns the segments of a message, or one that stands for its text.
func (m *Message) segments() []Segment {
	if m.Text == "" || m.Segments != nil {
		return m.Segments
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, m.Text)
	return []Segment{{ID: h.Sum64(), Tokens: (len(m.Text) + 3) / 4}}
}

// Sequence is the tokens of a prompt with the hashes of its full blocks, each of which covers all blocks before it.
type Sequence[H ~uint64] struct {
	Tokens int
	Blocks []H

	blockTokens int
	hash        uint64
}

// NewSequence returns an empty sequence. Those of different models share no blocks.
func NewSequence[H ~uint64](blockTokens int, model string) Sequence[H] {
	h := fnv.New64a()
	_, _ = io.WriteString(h, model)
	return Sequence[H]{blockTokens: blockTokens, hash: h.Sum64()}
}

// Add appends a segment. Blocks that were read from the sequence before do not change.
func (s *Sequence[H]) Add(segment Segment) {
	s.hash = sim.Mix(s.hash ^ sim.Mix(segment.ID+sim.Mix(uint64(s.Tokens)))) // of what, and from where on
	size := s.blockTokens
	for end := (s.Tokens/size + 1) * size; end <= s.Tokens+segment.Tokens; end += size {
		s.Blocks = append(s.Blocks, H(sim.Mix(s.hash+uint64(end))))
	}
	s.Tokens += segment.Tokens
}

// computed returns the blocks that an engine computes of a prompt with its answer, whose last token it does not.
func (s *Sequence[H]) computed() []H { return s.Blocks[:max(s.Tokens-1, 0)/s.blockTokens] }

// planned is a heap of conversations in progress by their next moments, then by their numbers.
type planned []*timed

// Len implements [heap.Interface].
func (h planned) Len() int { return len(h) }

// Less implements [heap.Interface].
func (h planned) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].Number < h[j].Number
}

// Swap implements [heap.Interface].
func (h planned) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *planned) Push(x any) { *h = append(*h, x.(*timed)) }

// Pop implements [heap.Interface].
func (h *planned) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
