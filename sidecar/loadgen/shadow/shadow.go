package shadow

import (
	"fmt"
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// Answers selects whether turns find the blocks of earlier answers.
type Answers string

// The assumptions about blocks of answers.
const (
	AnswersForgotten Answers = "forgotten" // not found, as with Dynamo's mock workers
	AnswersFound     Answers = "found"     // found, as with real engines
	AnswersInferred  Answers = "inferred"  // the one that agrees better with the measured hits; found until then
)

// Options describe the cluster and the policies.
type Options struct {
	BlockTokens int            // tokens of a block, at least 1
	Workers     []sim.WorkerID // workers at the start; a request that names another one adds it
	Capacity    int            // blocks of one worker's cache; 0 means unknown, see [UnknownCapacity]
	Policies    []Policy       // policies besides the actual one
	Router      sim.Costs      // costs of the router in force; BlockTokens above replaces its BlockTokens
	Answers     Answers
	// Guess is the initial assumption about the engines, where it is inferred.
	Guess Guess

	// OpeningTokens is the length of the opening that opening_hash uses: its full blocks, at least
	// one.
	OpeningTokens int
	// Skew bounds the time between At and the moment at which the router received a request, in
	// either direction. Events within this time of a decision may have changed the costs.
	Skew time.Duration
	Seed uint64 // seed of random choices

	noActual bool // there is no actual world, although workers are known
}

// Guess holds the properties of engines that are inferred from the measured hits. The zero value is the
// default assumption.
type Guess struct {
	Forgotten bool // blocks of answers are not found again
	Late      bool // see [Figures].Late
}

// Guess returns the present assumptions, for the shadow of the same engines with other caches.
func (s *Shadow) Guess() Guess { return Guess{Forgotten: !s.answers, Late: s.late} }

// DefaultOptions returns options for a block size: all default policies, the defaults of Dynamo's
// router, an opening of 1,024 tokens, and a skew of 50 ms.
func DefaultOptions(blockTokens int) Options {
	return Options{
		BlockTokens: blockTokens, Policies: DefaultPolicies(), Router: DefaultCosts(), Answers: AnswersInferred,
		OpeningTokens: 1024, Skew: 50 * time.Millisecond, Seed: 1,
	}
}

// UnknownCapacity is the number of blocks that a worker's cache is assumed to have until it is
// known.
const UnknownCapacity = 1 << 16

// Window is the span of the windowed figures.
const Window = time.Minute

const (
	mostConversations = 1 << 15 // remembered, at least
	fewestInferred    = 50      // requests needed to infer the reuse of answers
	inferredBy        = .005    // share of the prompts' tokens by which the better assumption must agree better
	maxBlockTokens    = 1 << 16
	maxCapacity       = 1 << 28
)

// Validate gives an *[api.FieldError] for the first invalid option.
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

// Request is a request that has reached the router.
type Request struct {
	ID string // id for the decision; may be empty

	// Blocks are the hashes of the prompt's blocks in order. Each hash stands for all blocks before
	// it as well. Only full blocks count; a hash of the remainder is ignored. They must not be
	// changed until the request has ended.
	Blocks       []uint64
	PromptTokens int // tokens of the prompt, at least 1
	Conversation uint64
	Last         bool         // the last turn of its conversation, which is then dropped
	Worker       sim.WorkerID // the worker that really got the request; 0 if unknown
}

// Flight is a request between Begin and End.
type Flight struct {
	query
	serial uint64
	parts  []part // state in each world, in the order of the worlds
	ended  bool
}

// query is the part of a request that worlds use.
type query struct {
	Request
	at        time.Duration
	first     time.Duration
	answering bool     // the first token has come
	prompt    []uint64 // its full blocks
	origin    origin
	opening   uint64 // the hash of the opening's last block
}

// past is the latest turn of a conversation, kept to name the blocks of its answer.
type past struct {
	serial uint64
	blocks int // full blocks of the prompt
	answer int // blocks of the answer
	slots  []*slot
	worker sim.WorkerID // 0 if unknown
}

// Shadow is the account of all policies. Times count from a moment before the first request, as
// in virtual time, and never decrease: see [Sequencer] for events that come out of order.
type Shadow struct {
	options  Options
	workers  []sim.WorkerID
	capacity int
	answers  bool
	late     bool // see [Figures].Late

	actual      *world // the real choices
	alternative *world // the real choices under the opposite assumption on answers; nil unless that is inferred
	worlds      []*world

	now                time.Duration
	since              time.Duration // start of the totals
	baseAccount        Account       // the account at since
	serial             uint64
	spare              []*Flight
	pasts              recent[past]
	pace               mean // seconds of an answer's token
	length             mean // tokens of an answer
	history            history
	choices            choices
	account            Account
	alternativeAccount Account // account of alternative
	seen               seen
	causes             Causes
	baseCauses         Causes // the causes at since
	blocks             []uint64
}

// New makes a shadow without requests. The error is an *[api.FieldError].
func New(o Options) (*Shadow, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Shadow{
		options: o, capacity: UnknownCapacity, late: o.Guess.Late,
		answers: o.Answers != AnswersForgotten, pasts: newRecent[past](mostConversations),
	}
	if o.Answers == AnswersInferred {
		s.answers = !o.Guess.Forgotten
	}
	s.options.Router.BlockTokens = o.BlockTokens
	s.actual = newWorld(s, Policy{Name: string(Actual), Kind: Actual}, o.Seed)
	s.worlds = []*world{s.actual}
	if o.Answers == AnswersInferred {
		s.alternative = newWorld(s, s.actual.policy, o.Seed)
		s.alternative.answers = !s.answers
		s.worlds = append(s.worlds, s.alternative)
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

// SetWorkers sets the present workers. Known workers keep their caches; requests in progress on
// a worker that is gone end with it.
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
		w.setWorkers(kept)
	}
	s.choices.clear()
}

// SetSkew sets [Options].Skew for later requests.
func (s *Shadow) SetSkew(d time.Duration) { s.choices.skew = d }

// SetCapacity sets the number of blocks of each worker's cache, at least 1.
func (s *Shadow) SetCapacity(blocks int) {
	if blocks == s.capacity {
		return
	}
	s.capacity = blocks
	for _, w := range s.worlds {
		w.resize()
	}
}

// indexOf returns the index of a worker, −1 if ok is false or the worker is unknown.
func (s *Shadow) indexOf(id sim.WorkerID, ok bool) int {
	if !ok {
		return -1
	}
	return slices.Index(s.workers, id)
}

// Begin adds a request's arrival at the router. The flight must be passed to [Shadow.First]
// and [Shadow.End].
func (s *Shadow) Begin(at time.Duration, r Request) *Flight {
	s.advance(at)
	if r.Worker != 0 && !slices.Contains(s.workers, r.Worker) {
		s.SetWorkers(append(slices.Clone(s.workers), r.Worker))
	}
	if s.options.noActual {
		r.Worker = 0
	}
	f := s.flight(at, r)
	s.nameAnswer(f)
	if r.Worker != 0 && len(s.workers) > 1 {
		s.choices.decide(s.actual, f)
	}
	f.origin = s.originOf(f)
	s.update(f, func(w *world, p *part) { w.begin(&f.query, p) })
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
	f.serial = s.serial
	f.ended = false
	full := min(r.PromptTokens/s.options.BlockTokens, len(r.Blocks))
	f.query = query{Request: r, at: at, prompt: r.Blocks[:full]}
	if n := min(full, max(s.options.OpeningTokens/s.options.BlockTokens, 1)); n > 0 {
		f.opening = r.Blocks[n-1]
	}
	return f
}

// First adds a request's first token.
func (s *Shadow) First(at time.Duration, f *Flight) {
	if f.ended || f.answering {
		return
	}
	s.advance(at)
	f.first = at
	f.answering = true
	s.update(f, func(w *world, p *part) { w.first(at, &f.query, p) })
	if f.Worker != 0 {
		s.computed(f.prompt, f.Worker)
	}
}

// update applies an event of a flight to all worlds. The change of costs in the actual world is
// an uncertainty of the choices.
func (s *Shadow) update(f *Flight, apply func(*world, *part)) {
	for i, w := range s.worlds {
		p := &f.parts[i]
		if w != s.actual || f.Worker == 0 {
			apply(w, p)
			continue
		}
		worker := s.indexOf(f.Worker, true)
		if worker < 0 { // the worker is gone
			apply(w, p)
			continue
		}
		before := w.slots[worker].cost(&w.costs)
		apply(w, p)
		s.choices.moved(s.now, f.serial, f.Worker, math.Abs(w.slots[worker].cost(&w.costs)-before))
	}
}

// End adds a request's end, with the tokens of its answer and the prompt tokens that the worker
// really found in its cache; −1 if unknown. A request without a first token does not count. The
// flight must not be used afterwards.
func (s *Shadow) End(at time.Duration, f *Flight, outputTokens, cachedTokens int) {
	if f.ended {
		return
	}
	s.advance(at)
	f.ended = true
	var whole []uint64
	answer := 0
	if f.answering {
		whole = s.answerBlocks(at, f, outputTokens)
		answer = s.blocksOf(f.PromptTokens+outputTokens-1) - s.blocksOf(f.PromptTokens)
		s.compareHits(f, cachedTokens)
		s.remember(f, len(whole)-len(f.prompt))
	}
	s.update(f, func(w *world, p *part) { w.end(at, &f.query, p, answer, whole) })
	f.query = query{}
	s.spare = append(s.spare, f)
}

// answerBlocks returns the full blocks of a prompt and its answer, or nil if answers are not found
// again. The hashes of the answer's blocks are known when the next turn of the conversation brings
// them; until then they are placeholders.
func (s *Shadow) answerBlocks(at time.Duration, f *Flight, tokens int) []uint64 {
	s.length.add(float64(tokens))
	if tokens > 1 {
		s.pace.add((at - f.first).Seconds() / float64(tokens-1))
	}
	if s.options.Answers == AnswersForgotten {
		return nil
	}
	// The last token of an answer is never computed.
	n := (f.PromptTokens+tokens-1)/s.options.BlockTokens - len(f.prompt)
	s.blocks = s.placeholders(append(s.blocks[:0], f.prompt...), f.serial, n)
	return s.blocks
}

// blocksOf returns the number of blocks for a number of tokens.
func (s *Shadow) blocksOf(tokens int) int {
	return (tokens + s.options.BlockTokens - 1) / s.options.BlockTokens
}

// placeholders appends n hashes for the blocks of an answer.
func (s *Shadow) placeholders(in []uint64, serial uint64, n int) []uint64 {
	for i := range n {
		in = append(in, sim.Mix(serial<<20|uint64(i)|1<<63))
	}
	return in
}

// remember keeps a turn until the next turn of its conversation brings the hashes of its answer.
func (s *Shadow) remember(f *Flight, answer int) {
	if f.Last {
		s.pasts.delete(f.Conversation)
		return
	}
	if answer <= 0 || f.Conversation == 0 {
		return
	}
	p := past{
		serial: f.serial, blocks: len(f.prompt), answer: answer, slots: make([]*slot, len(f.parts)), worker: f.Worker,
	}
	for i := range f.parts {
		p.slots[i] = f.parts[i].slot
	}
	s.pasts.set(f.Conversation, p)
}

// nameAnswer replaces the placeholders of the previous answer in a conversation with the hashes
// from the turn's prompt.
func (s *Shadow) nameAnswer(f *Flight) {
	p, ok := s.pasts.get(f.Conversation)
	if !ok {
		return
	}
	s.pasts.delete(f.Conversation)
	if len(f.prompt) <= p.blocks {
		return
	}
	if p.worker != 0 && s.answers {
		s.computed(f.prompt[p.blocks:min(len(f.prompt), p.blocks+p.answer)], p.worker)
	}
	names := s.placeholders(s.blocks[:0], p.serial, p.answer)
	for i, w := range s.worlds {
		if p.slots[i] != nil && w.answers {
			p.slots[i].prefixes.Rename(f.prompt[:p.blocks], names, f.prompt[p.blocks:])
		}
	}
	s.blocks = names
}

// advance moves the present to a moment.
func (s *Shadow) advance(at time.Duration) {
	s.now = max(s.now, at)
	s.choices.settle(s.now)
	s.history.advance(s, s.now)
}

// compareHits adds the modeled and the measured hits of a request to the account.
func (s *Shadow) compareHits(f *Flight, cachedTokens int) {
	if cachedTokens < 0 || f.parts[0].slot == nil {
		return
	}
	p := &f.parts[s.actual.number]
	s.account.add(f.PromptTokens, cachedTokens, p.hit, p.late)
	hit := p.hit
	if s.late {
		hit = p.late
	}
	s.explain(f, hit, cachedTokens)
	if s.alternative != nil {
		p := &f.parts[s.alternative.number]
		s.alternativeAccount.add(f.PromptTokens, cachedTokens, p.hit, p.late)
		if s.account.Requests >= fewestInferred &&
			s.alternativeAccount.leastDeviation()+inferredBy < s.account.leastDeviation() {
			s.swapAnswers()
		}
	}
	if s.account.Requests >= fewestInferred && s.account.deviation(!s.late)+inferredBy < s.account.deviation(s.late) {
		s.late = !s.late
	}
}

// swapAnswers reverses the assumption about answers. The policies' totals restart, since they were
// counted in other caches, and all totals must cover the same requests.
func (s *Shadow) swapAnswers() {
	s.answers = !s.answers
	s.actual, s.alternative = s.alternative, s.actual
	s.account, s.alternativeAccount = s.alternativeAccount, s.account
	for _, w := range s.worlds {
		if w != s.alternative {
			w.answers = s.answers
		}
		w.balance(s.now)
		w.totals = Totals{}
	}
	s.history = history{}
	s.since = s.now
	s.baseAccount, s.baseCauses = s.account, s.causes
	s.choices.clear()
}

// AnswersFound reports whether blocks of answers are assumed to be found again. sure is true if
// that was inferred from enough requests or set by the options.
func (s *Shadow) AnswersFound() (found, sure bool) {
	return s.answers, s.options.Answers != AnswersInferred || s.account.Requests >= fewestInferred
}
