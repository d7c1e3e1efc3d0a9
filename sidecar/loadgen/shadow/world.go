package shadow

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"kvbooth/sidecar/sim"
)

// world holds the requests under one policy.
type world struct {
	shadow  *Shadow
	number  int // index of its parts in flights
	policy  Policy
	costs   sim.Costs
	answers bool // blocks of answers are found again
	rng     *rand.Rand
	slots   []*slot // workers, in the order of the shadow's; Best has one
	turn    int
	homes   recent[sim.WorkerID] // workers of conversations, for Sticky

	totals  Totals
	spread  int
	updated time.Duration

	candidates []sim.Candidate // reused by each choice
}

// slot is one worker in a world.
type slot struct {
	prefixes *sim.Prefixes
	active   *sim.Active
	load     sim.Load // load without the worker's blocks

	// The growth of answers is estimated from the requests that decode.
	decoding int
	since    time.Duration // sum of the times of their first tokens
}

// part is the state of a request in one world.
type part struct {
	slot     *slot // nil where the world does not know the worker
	sequence sim.Sequence
	active   int32
	held     int // blocks of the prompt that the worker held
	uncached int // tokens that the router expects to be prefilled
	hit      int // tokens
	late     int // hit tokens if blocks count that other requests prefilled in the meantime
	room     bool
	answer   int // blocks reserved for the answer
}

func newWorld(s *Shadow, p Policy, seed uint64) *world {
	w := &world{
		shadow: s, policy: p, costs: p.Costs, answers: s.answers,
		rng:   rand.New(rand.NewPCG(sim.Mix(seed), nameSeed(p.Name))),
		homes: newRecent[sim.WorkerID](mostConversations),
	}
	if p.Kind == Actual {
		w.costs = s.options.Router
	}
	w.costs.BlockTokens = s.options.BlockTokens
	return w
}

// nameSeed makes the draws of a policy independent of the other policies.
func nameSeed(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum64()
}

// tracksPrompts reports whether the world needs the router's account of prompts in progress.
func (w *world) tracksPrompts() bool { return w.policy.Kind == KV || w.policy.Kind == Actual }

// setWorkers adjusts the slots to the shadow's workers. kept has the previous index of each
// worker, or −1.
func (w *world) setWorkers(kept []int) {
	if w.policy.Kind == Best {
		if len(w.slots) == 0 {
			w.slots = []*slot{newSlot(0)}
		}
		w.resize()
		return
	}
	slots := make([]*slot, len(kept))
	for i, previous := range kept {
		if previous < 0 {
			slots[i] = newSlot(w.shadow.capacity)
		} else {
			slots[i] = w.slots[previous]
		}
	}
	w.slots = slots
	w.balance(w.updated)
}

func newSlot(blocks int) *slot {
	return &slot{prefixes: sim.NewPrefixes(blocks), active: sim.NewActive()}
}

// resize sets the size of the caches to the present capacity.
func (w *world) resize() {
	blocks := w.shadow.capacity
	if w.policy.Kind == Best {
		blocks *= len(w.shadow.workers)
	}
	for _, s := range w.slots {
		s.prefixes.Resize(blocks)
	}
}

// begin assigns a request to the worker that the policy chooses.
func (w *world) begin(q *query, p *part) {
	*p = part{}
	if len(w.shadow.workers) == 0 {
		return
	}
	chosen := w.choose(q)
	if chosen < 0 {
		return
	}
	s := w.slots[chosen]
	size := w.costs.BlockTokens
	p.slot = s
	reusable := w.reusable(q)
	p.sequence, p.held = s.prefixes.Admit(reusable)
	p.hit = p.held * size
	p.room = s.prefixes.Reserve(&p.sequence, w.shadow.blocksOf(q.PromptTokens)-p.held)
	if w.tracksPrompts() {
		held := p.held
		if held == len(reusable) {
			held = s.prefixes.Held(q.prompt) // the router counts the last block, too
		}
		p.uncached = q.PromptTokens - held*size
		s.load.PrefillTokens += p.uncached
		p.active = s.active.Add(q.prompt)
	}
	s.load.Requests++
	w.balance(q.at)
}

// reusable returns the blocks of a prompt without its last token, which is always computed.
func (w *world) reusable(q *query) []uint64 {
	return q.prompt[:min(len(q.prompt), (q.PromptTokens-1)/w.costs.BlockTokens)]
}

// first applies the first token of a request.
func (w *world) first(at time.Duration, q *query, p *part) {
	s := p.slot
	if s == nil {
		return
	}
	w.totals.Requests++
	w.totals.PromptTokens += int64(q.PromptTokens)
	p.late = max(p.hit, s.prefixes.Held(w.reusable(q))*w.costs.BlockTokens)
	w.totals.HitTokens += int64(p.hit)
	w.totals.LateTokens += int64(p.late)
	if !p.room {
		w.totals.Crowded++
		w.makeRoom(q, p)
	}
	s.prefixes.Register(&p.sequence, q.prompt)
	s.load.PrefillTokens -= p.uncached
	p.uncached = 0
	// The answer grows from nothing to its length, so half of the length is its mean.
	if n := int(w.shadow.length.mean) / 2 / w.costs.BlockTokens; s.prefixes.Reserve(&p.sequence, n) {
		p.answer = n
	}
	s.decoding++
	s.since += at
}

// makeRoom retries to reserve room for a prompt.
func (w *world) makeRoom(q *query, p *part) {
	p.room = p.slot.prefixes.Reserve(&p.sequence, w.shadow.blocksOf(q.PromptTokens)-p.held)
}

// end applies the end of a request. answer is the number of blocks behind the prompt's; whole
// are the full blocks of both if they can be found again.
func (w *world) end(at time.Duration, q *query, p *part, answer int, whole []uint64) {
	if q.Last {
		w.homes.delete(q.Conversation)
	}
	s := p.slot
	if s == nil {
		return
	}
	if q.answering {
		s.decoding--
		s.since -= q.first
		if !p.room {
			w.makeRoom(q, p)
			s.prefixes.Register(&p.sequence, q.prompt)
		}
		if s.prefixes.Reserve(&p.sequence, max(answer-p.answer, 0)) && w.answers && p.room {
			s.prefixes.Register(&p.sequence, whole)
		}
	}
	s.prefixes.Release(&p.sequence)
	s.load.PrefillTokens -= p.uncached
	if w.tracksPrompts() {
		s.active.Drop(p.active)
	}
	s.load.Requests--
	p.slot = nil
	w.balance(at)
}

// cost returns the part of a request's cost that comes from the worker's load.
func (s *slot) cost(k *sim.Costs) float64 {
	l := s.load
	l.Blocks = s.active.Blocks()
	c := k.Candidate(l, 1, 0, 0, l.PrefillTokens)
	return c.Cost
}

// answerBlocks estimates the blocks of the answers in progress. pace is the time of one token in
// seconds.
func (s *slot) answerBlocks(at time.Duration, pace float64, blockTokens int) int {
	if pace <= 0 {
		return 0
	}
	return int((time.Duration(s.decoding)*at - s.since).Seconds() / pace / float64(blockTokens))
}

// balance adds the spread of requests up to a moment, and recomputes it.
func (w *world) balance(at time.Duration) {
	if d := at - w.updated; d > 0 {
		w.totals.Time += d
		w.totals.spread += float64(w.spread) * d.Seconds()
		w.updated = at
	}
	w.spread = 0
	if len(w.slots) > 1 {
		least, most := w.slots[0].load.Requests, w.slots[0].load.Requests
		for _, s := range w.slots {
			least = min(least, s.load.Requests)
			most = max(most, s.load.Requests)
		}
		w.spread = most - least
	}
}
