package shadow

import (
	"fmt"

	"kvbooth/sidecar/sim"
)

// Kind is a method of choosing a worker.
type Kind string

// The kinds of policies. Each has a default policy of the same name.
const (
	RoundRobin  Kind = "round_robin"  // the workers in rotation
	Random      Kind = "random"       // any worker, with equal probability
	LeastLoaded Kind = "least_loaded" // the worker with the fewest requests in progress
	Sticky      Kind = "sticky"       // the worker of the conversation's first turn, which is chosen in rotation
	OpeningHash Kind = "opening_hash" // a consistent hash of the prompt's first tokens
	KV          Kind = "kv"           // Dynamo's KV router
	Best        Kind = "best"         // one cache of all workers' size, as if each worker had the blocks of all
	Actual      Kind = "actual"       // the router's real choice

	// BestPlacement is the worker that holds most of the prompt, of those that are not too busy, by exact knowledge of
	// all caches: see [MostInflight].
	BestPlacement Kind = "best_placement"
)

// Policy is a routing policy to compare.
type Policy struct {
	Name  string // unique name, used for series and rows
	Kind  Kind
	Costs sim.Costs // costs of the kind KV; BlockTokens come from [Options]
}

// Title returns the policy's name for display.
func (p Policy) Title() string {
	switch p.Kind {
	case RoundRobin:
		return "Round-robin"
	case Random:
		return "Random"
	case LeastLoaded:
		return "Least loaded"
	case Sticky:
		return "Sticky by conversation"
	case OpeningHash:
		return "Consistent hash of the opening"
	case BestPlacement:
		return "Best placement: most of the prompt in the cache, on a worker that is not too busy"
	case Best:
		return "Best possible: one cache of all workers' size"
	}
	words, usual := "KV-aware", DefaultCosts()
	if p.Costs.OverlapWeight != usual.OverlapWeight {
		words += fmt.Sprintf(", overlap weight %g", p.Costs.OverlapWeight)
	}
	if p.Costs.Temperature != usual.Temperature {
		words += fmt.Sprintf(", temperature %g", p.Costs.Temperature)
	}
	if p.Costs.TrackOutputBlocks {
		words += ", answer blocks counted"
	}
	return words
}

// DefaultPolicies returns one policy of each kind, and Dynamo's router with other weights and
// temperatures, and with answer blocks counted.
func DefaultPolicies() []Policy {
	kv := func(name string, change func(*sim.Costs)) Policy {
		c := DefaultCosts()
		change(&c)
		return Policy{Name: name, Kind: KV, Costs: c}
	}
	return []Policy{
		{Name: string(RoundRobin), Kind: RoundRobin},
		{Name: string(Random), Kind: Random},
		{Name: string(LeastLoaded), Kind: LeastLoaded},
		{Name: string(Sticky), Kind: Sticky},
		{Name: string(OpeningHash), Kind: OpeningHash},
		kv("kv", func(*sim.Costs) {}),
		kv("kv_weight_0.5", func(c *sim.Costs) { c.OverlapWeight = .5 }),
		kv("kv_weight_2", func(c *sim.Costs) { c.OverlapWeight = 2 }),
		kv("kv_temperature_0.5", func(c *sim.Costs) { c.Temperature = .5 }),
		kv("kv_output_blocks", func(c *sim.Costs) { c.TrackOutputBlocks = true }),
		{Name: string(BestPlacement), Kind: BestPlacement},
		{Name: string(Best), Kind: Best},
	}
}

// DefaultCosts returns the defaults of Dynamo's KV router, without BlockTokens.
func DefaultCosts() sim.Costs {
	return sim.Costs{RouterSwitches: sim.DefaultRouterSwitches(), OverlapWeight: 1}
}

// choose returns the index of the worker that a request goes to; −1 where the world does not
// determine it.
func (w *world) choose(q *query) int {
	switch w.policy.Kind {
	case Actual:
		return w.shadow.indexOf(q.Worker, q.Worker != 0)
	case RoundRobin:
		return w.next()
	case Random:
		return w.rng.IntN(len(w.slots))
	case LeastLoaded:
		return sim.LeastLoaded(w.requestCounts(), w.rng)
	case Sticky:
		if q.Conversation == 0 {
			return w.next()
		}
		i := w.shadow.indexOf(w.homes.get(q.Conversation))
		if i < 0 {
			i = w.next()
		}
		w.homes.set(q.Conversation, w.shadow.workers[i])
		return i
	case OpeningHash:
		return w.shadow.hashed(q.opening)
	case KV:
		return w.costs.Choose(w.candidateCosts(q), w.rng)
	case BestPlacement:
		return w.bestPlacement(q)
	}
	return 0 // Best has one cache
}

// bestPlacement returns the worker that [sim.BestPlacement] chooses.
func (w *world) bestPlacement(q *query) int {
	candidates := w.requestCounts()
	for i, s := range w.slots {
		candidates[i].OverlapBlocks = s.prefixes.Held(q.prompt)
	}
	return sim.BestPlacement(candidates, w.next())
}

// next returns the next worker in rotation.
func (w *world) next() int {
	w.turn++
	return (w.turn - 1) % len(w.slots)
}

// requestCounts returns the workers as candidates for the least-loaded choice.
func (w *world) requestCounts() []sim.Candidate {
	w.candidates = w.candidates[:0]
	for _, s := range w.slots {
		w.candidates = append(w.candidates, sim.Candidate{Requests: s.load.Requests})
	}
	return w.candidates
}

// candidateCosts returns the workers' costs for a request, valid until the next call.
func (w *world) candidateCosts(q *query) []sim.Candidate {
	idlest := w.slots[0].load.PrefillTokens
	for _, s := range w.slots {
		idlest = min(idlest, s.load.PrefillTokens)
	}
	w.candidates = w.candidates[:0]
	for i, s := range w.slots {
		load := s.load
		load.Blocks = s.active.Blocks()
		if w.costs.TrackOutputBlocks {
			load.Blocks += s.answerBlocks(q.at, w.shadow.pace.mean, w.costs.BlockTokens)
		}
		c := w.costs.Candidate(load, q.PromptTokens, s.prefixes.Held(q.prompt), s.active.Shared(q.prompt), idlest)
		c.Worker = w.shadow.workers[i]
		w.candidates = append(w.candidates, c)
	}
	return w.candidates
}

// hashed returns the worker with the highest hash of itself and a key. When workers come or
// go, only their own keys move (rendezvous hashing, Thaler and Ravishankar, 1998).
func (s *Shadow) hashed(key uint64) int {
	best, highest := 0, uint64(0)
	for i, id := range s.workers {
		if h := sim.Mix(key ^ sim.Mix(uint64(id))); i == 0 || h > highest {
			best, highest = i, h
		}
	}
	return best
}
