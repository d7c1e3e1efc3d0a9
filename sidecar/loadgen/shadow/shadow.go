package shadow

import (
	"fmt"
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// Answers says whether the blocks of answers are found again by the turns after them.
type Answers string

// What is known of the blocks of answers.
const (
	AnswersForgotten Answers = "forgotten" // as by Dynamo's mock workers
	AnswersFound     Answers = "found"     // as by real engines
	AnswersInferred  Answers = "inferred"  // whichever agrees better with the hits that were measured; found until then
)

// Options say what there is to know of the cluster, and what to keep.
type Options struct {
	BlockTokens int            // tokens of a block, at least 1
	Workers     []sim.WorkerID // known from the beginning; others are taken up as requests name them
	Capacity    int            // blocks of one worker's cache; 0: not known yet, taken as [UnknownCapacity]
	Policies    []Policy       // beside the actual one
	Router      sim.Costs      // of the router in force, for "why this worker"; BlockTokens above hold
	Answers     Answers
	// Guess is what is thought of the engines at first, where it is inferred.
	Guess Guess

	// OpeningTokens are those of a prompt that opening_hash looks at: full blocks of them, and at
	// least one.
	OpeningTokens int
	// Skew is by how much the router may have seen a request earlier or later than At says:
	// what happens within it of a decision can have moved the costs.
	Skew time.Duration
	Seed uint64 // of what is left to chance

	blind bool // there is no actual world, though workers are known
}

// Guess is what can be inferred of engines from the hits that were measured.
type Guess struct {
	Forgotten bool // blocks of answers are not found again
	Late      bool // see [Figures].Late
}

// Guess is what is thought now, for the shadow of the same engines with other caches.
func (s *Shadow) Guess() Guess { return Guess{Forgotten: !s.answers, Late: s.late} }

// DefaultOptions are for blocks of some size: all default policies, Dynamo's router as it comes,
// an opening of 1,024 tokens, and a skew of 50 ms.
func DefaultOptions(blockTokens int) Options {
	return Options{
		BlockTokens: blockTokens, Policies: DefaultPolicies(), Router: DefaultCosts(), Answers: AnswersInferred,
		OpeningTokens: 1024, Skew: 50 * time.Millisecond, Seed: 1,
	}
}

// UnknownCapacity is the number of blocks that a worker's cache is taken to have until that is
// known.
const UnknownCapacity = 1 << 16

// Window is the span of the figures "now".
const Window = time.Minute

const (
	mostConversations = 1 << 15 // that are remembered, at least
	fewestInferred    = 50      // requests from which the reuse of answers is inferred
	inferredBy        = .005    // the share of the prompts' tokens by which one thing agrees better than the other
	maxBlockTokens    = 1 << 16
	maxCapacity       = 1 << 28
)

// Validate says what is wrong: nil, or an *[api.FieldError].
func (o *Options) Validate() error {
	switch {
	case o.BlockTokens < 1 || o.BlockTokens > maxBlockTokens:
		return api.Refuse("block_tokens", o.BlockTokens, fmt.Sprintf("1 to %d", maxBlockTokens))
	case o.Capacity < 0 || o.Capacity > maxCapacity:
		return api.Refuse("blocks", o.Capacity, fmt.Sprintf("0 to %d", maxCapacity))
	case !slices.Contains([]Answers{AnswersForgotten, AnswersFound, AnswersInferred}, o.Answers):
		return api.Refuse("answers", o.Answers, "forgotten, found or inferred")
	case o.OpeningTokens < 1:
		return api.Refuse("opening_tokens", o.OpeningTokens, "1 or more")
	}
	return nil
}

// Request is one that has reached the router.
type Request struct {
	ID string // of the decision; may be empty

	// Blocks are the hashes of the prompt's blocks, the first one first, each standing for
	// all before it, too. Those of full blocks count; what is left over has none, or one
	// that is ignored. They must not be changed until the request has ended.
	Blocks       []uint64
	PromptTokens int // at least 1
	Conversation uint64
	Last         bool         // of its conversation, of which nothing is remembered then
	Worker       sim.WorkerID // that really got it; 0 if nobody knows
}

// Flight is a request between Begin and End.
type Flight struct {
	query
	serial uint64
	parts  []part // as the shadow's worlds
	ended  bool
}

// query is what worlds know of a request.
type query struct {
	Request
	at        time.Duration
	first     time.Duration
	answering bool     // it has had its first token
	prompt    []uint64 // its full blocks
	opening   uint64   // the hash of the opening's last block
}

// past is what is kept of a conversation's latest turn, for the blocks of its answer.
type past struct {
	serial uint64
	blocks int // full ones of the prompt
	answer int // behind them
	slots  []*slot
}

// Shadow is the account of all policies. Times are counted from some moment before the first
// request, as in virtual time, and never go back: see [Sequencer] for events that come out of order.
type Shadow struct {
	options  Options
	workers  []sim.WorkerID
	capacity int
	known    bool // the capacity
	answers  bool
	late     bool // see [Figures].Late

	actual, other *world // by real choices; other takes the opposite of answers, nil unless that is inferred
	worlds        []*world

	now      time.Duration
	since    time.Duration // of the totals
	from     Account       // at that moment
	serial   uint64
	spare    []*Flight
	pasts    recent[past]
	pace     mean // seconds of an answer's token
	length   mean // tokens of an answer
	history  history
	choices  choices
	account  Account
	opposite Account // of other
	blocks   []uint64
}

// New is a shadow without requests. The error is an *[api.FieldError].
func New(o Options) (*Shadow, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Shadow{options: o, capacity: UnknownCapacity, answers: o.Answers != AnswersForgotten, pasts: newRecent[past](mostConversations)}
	if s.late = o.Guess.Late; o.Answers == AnswersInferred {
		s.answers = !o.Guess.Forgotten
	}
	s.options.Router.BlockTokens = o.BlockTokens
	s.actual = newWorld(s, Policy{Name: string(Actual), Kind: Actual}, o.Seed)
	s.worlds = []*world{s.actual}
	if o.Answers == AnswersInferred {
		s.other = newWorld(s, s.actual.policy, o.Seed)
		s.other.answers = !s.answers
		s.worlds = append(s.worlds, s.other)
	}
	for _, p := range o.Policies {
		s.worlds = append(s.worlds, newWorld(s, p, o.Seed))
	}
	for i, w := range s.worlds {
		w.number = i
	}
	s.choices.skew = o.Skew
	s.SetWorkers(o.Workers)
	if o.Capacity > 0 {
		s.SetCapacity(o.Capacity)
	}
	return s, nil
}

// SetWorkers says which workers there are. Those that were there already keep their caches;
// requests in progress on one that has gone end with it.
func (s *Shadow) SetWorkers(ids []sim.WorkerID) {
	kept := make([]int, len(ids))
	same := len(ids) == len(s.workers)
	for i, id := range ids {
		kept[i] = slices.Index(s.workers, id)
		same = same && kept[i] == i
	}
	if same && len(ids) > 0 {
		return
	}
	s.workers = slices.Clone(ids)
	for _, w := range s.worlds {
		w.arrange(kept)
	}
	s.choices.clear()
}

// SetSkew says by how much the router may have seen requests earlier or later from now on;
// see [Options].
func (s *Shadow) SetSkew(d time.Duration) { s.choices.skew = d }

// Workers are those that there are, in the order of the decisions' candidates.
func (s *Shadow) Workers() []sim.WorkerID { return s.workers }

// SetCapacity says how many blocks each worker's cache has, at least 1.
func (s *Shadow) SetCapacity(blocks int) {
	s.known = true
	if blocks == s.capacity {
		return
	}
	s.capacity = blocks
	for _, w := range s.worlds {
		w.resize()
	}
}

// Capacity is how many blocks each worker's cache is taken to have, and whether that is known.
func (s *Shadow) Capacity() (blocks int, known bool) { return s.capacity, s.known }

// indexOf is the number of a worker if there is one, else −1.
func (s *Shadow) indexOf(id sim.WorkerID, ok bool) int {
	if !ok {
		return -1
	}
	return slices.Index(s.workers, id)
}

// Begin is a request's arrival at the router. The flight is to be given to [Shadow.First]
// and [Shadow.End].
func (s *Shadow) Begin(at time.Duration, r Request) *Flight {
	s.pass(at)
	if r.Worker != 0 && !slices.Contains(s.workers, r.Worker) {
		s.SetWorkers(append(slices.Clone(s.workers), r.Worker))
	}
	if s.options.blind {
		r.Worker = 0
	}
	f := s.flight(at, r)
	s.reveal(f)
	if r.Worker != 0 && len(s.workers) > 1 {
		s.choices.decide(s.actual, f)
	}
	s.each(f, func(w *world, p *part) { w.begin(&f.query, p) })
	return f
}

func (s *Shadow) flight(at time.Duration, r Request) *Flight {
	var f *Flight
	if n := len(s.spare); n > 0 {
		f = s.spare[n-1]
		s.spare = s.spare[:n-1]
	} else {
		f = &Flight{parts: make([]part, len(s.worlds))}
	}
	s.serial++
	f.serial, f.ended = s.serial, false
	full := min(r.PromptTokens/s.options.BlockTokens, len(r.Blocks))
	f.query = query{Request: r, at: at, prompt: r.Blocks[:full]}
	if n := min(full, max(s.options.OpeningTokens/s.options.BlockTokens, 1)); n > 0 {
		f.opening = r.Blocks[n-1]
	}
	return f
}

// First is a request's first token.
func (s *Shadow) First(at time.Duration, f *Flight) {
	if f.ended || f.answering {
		return
	}
	s.pass(at)
	f.first, f.answering = at, true
	s.each(f, func(w *world, p *part) { w.first(at, &f.query, p) })
}

// each lets something happen to a flight in all worlds. By how much it moves costs in the
// actual one is what choices are uncertain by.
func (s *Shadow) each(f *Flight, happen func(*world, *part)) {
	for i, w := range s.worlds {
		p := &f.parts[i]
		if w != s.actual || f.Worker == 0 {
			happen(w, p)
			continue
		}
		of := s.indexOf(f.Worker, true)
		if of < 0 { // gone
			happen(w, p)
			continue
		}
		before := w.slots[of].cost(&w.costs)
		happen(w, p)
		s.choices.moved(s.now, f.serial, f.Worker, math.Abs(w.slots[of].cost(&w.costs)-before))
	}
}

// End is a request's end, with the tokens of its answer and those of its prompt that the
// worker really found in its cache; −1 if nobody knows. A request that has had no first token
// counts nowhere. The flight must not be used any more.
func (s *Shadow) End(at time.Duration, f *Flight, outputTokens, cachedTokens int) {
	if f.ended {
		return
	}
	s.pass(at)
	f.ended = true
	var whole []uint64
	answer := 0
	if f.answering {
		whole = s.answered(at, f, outputTokens)
		answer = s.blocksOf(f.PromptTokens+outputTokens-1) - s.blocksOf(f.PromptTokens)
		s.measure(f, cachedTokens)
		s.remember(f, len(whole)-len(f.prompt))
	}
	s.each(f, func(w *world, p *part) { w.end(at, &f.query, p, answer, whole) })
	f.query = query{}
	s.spare = append(s.spare, f)
}

// answered are the blocks of a prompt with those of its answer, or none if nobody will find these.
// What they are will be known when the next turn of the conversation brings them; until then
// they have names of their own.
func (s *Shadow) answered(at time.Duration, f *Flight, tokens int) []uint64 {
	s.length.add(float64(tokens))
	if tokens > 1 {
		s.pace.add((at - f.first).Seconds() / float64(tokens-1))
	}
	if s.options.Answers == AnswersForgotten {
		return nil
	}
	// The last token of an answer is never computed.
	n := (f.PromptTokens+tokens-1)/s.options.BlockTokens - len(f.prompt)
	s.blocks = s.names(append(s.blocks[:0], f.prompt...), f.serial, n)
	return s.blocks
}

// blocksOf is how many blocks so many tokens take.
func (s *Shadow) blocksOf(tokens int) int {
	return (tokens + s.options.BlockTokens - 1) / s.options.BlockTokens
}

// names are what blocks of an answer are called until their hashes are known.
func (s *Shadow) names(in []uint64, serial uint64, n int) []uint64 {
	for i := range n {
		in = append(in, sim.Mix(serial<<20|uint64(i)|1<<63))
	}
	return in
}

// remember keeps what the next turn of the conversation tells of the answer.
func (s *Shadow) remember(f *Flight, answer int) {
	if f.Last {
		s.pasts.delete(f.Conversation)
		return
	}
	if answer <= 0 || f.Conversation == 0 {
		return
	}
	p := past{serial: f.serial, blocks: len(f.prompt), answer: answer, slots: make([]*slot, len(f.parts))}
	for i := range f.parts {
		p.slots[i] = f.parts[i].slot
	}
	s.pasts.set(f.Conversation, p)
}

// reveal gives the blocks of the answer before a turn the hashes that the turn's prompt has
// for them.
func (s *Shadow) reveal(f *Flight) {
	p, ok := s.pasts.get(f.Conversation)
	if !ok {
		return
	}
	s.pasts.delete(f.Conversation)
	if len(f.prompt) <= p.blocks {
		return
	}
	names := s.names(s.blocks[:0], p.serial, p.answer)
	for i, w := range s.worlds {
		if p.slots[i] != nil && w.answers {
			p.slots[i].prefixes.Rename(f.prompt[:p.blocks], names, f.prompt[p.blocks:])
		}
	}
	s.blocks = names
}

// pass lets time pass.
func (s *Shadow) pass(at time.Duration) {
	s.now = max(s.now, at)
	s.choices.settle(s.now)
	s.history.pass(s, s.now)
}

// measure holds the modelled hits of a request against the measured ones.
func (s *Shadow) measure(f *Flight, cachedTokens int) {
	if cachedTokens < 0 || f.parts[0].slot == nil {
		return
	}
	p := &f.parts[s.actual.number]
	s.account.add(f.PromptTokens, cachedTokens, p.hit, p.late)
	if s.other != nil {
		p := &f.parts[s.other.number]
		s.opposite.add(f.PromptTokens, cachedTokens, p.hit, p.late)
		if s.account.Requests >= fewestInferred && s.opposite.least()+inferredBy < s.account.least() {
			s.swap()
		}
	}
	if s.account.Requests >= fewestInferred && s.account.deviation(!s.late)+inferredBy < s.account.deviation(s.late) {
		s.late = !s.late
	}
}

// swap takes back what was thought of answers. What policies have found until now was found
// in other caches, and all of them are to be about the same requests: all totals begin anew.
func (s *Shadow) swap() {
	s.answers = !s.answers
	s.actual, s.other = s.other, s.actual
	s.account, s.opposite = s.opposite, s.account
	for _, w := range s.worlds {
		if w != s.other {
			w.answers = s.answers
		}
		w.balance(s.now)
		w.totals = Totals{}
	}
	s.history, s.since, s.from = history{}, s.now, s.account
	s.choices.clear()
}

// AnswersFound says whether blocks of answers are taken to be found again, and whether
// that has been inferred from enough requests, or was said.
func (s *Shadow) AnswersFound() (found, sure bool) {
	return s.answers, s.options.Answers != AnswersInferred || s.account.Requests >= fewestInferred
}
