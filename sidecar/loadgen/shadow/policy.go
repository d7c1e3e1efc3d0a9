package shadow

import (
	"kvbooth/sidecar/sim"
)

// Kind is a way to choose a worker.
type Kind string

// The kinds of policies. Each has the default policy of its name.
const (
	RoundRobin  Kind = "round_robin"  // one worker after the other
	Random      Kind = "random"       // any, with equal chances
	LeastLoaded Kind = "least_loaded" // the one with the fewest requests in progress
	Sticky      Kind = "sticky"       // all turns of a conversation on the worker of the first, which is dealt out in turn
	OpeningHash Kind = "opening_hash" // by a consistent hash of the prompt's first tokens
	KV          Kind = "kv"           // Dynamo's KV router
	Best        Kind = "best"         // one cache of all workers' size, as if each worker held what any of them holds
	Actual      Kind = "actual"       // what the router really chose
)

// Policy is a router that might have been.
type Policy struct {
	Name  string // of the series and the row: unique
	Kind  Kind
	Costs sim.Costs // of KV; its BlockTokens are those of the [Options]
}

// DefaultPolicies are one of each kind, and Dynamo's router with other weights and
// temperatures, and with the blocks of answers counted.
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
		{Name: string(Best), Kind: Best},
	}
}

// DefaultCosts are those of Dynamo's KV router as it comes. BlockTokens is left open.
func DefaultCosts() sim.Costs {
	return sim.Costs{RouterSwitches: sim.DefaultRouterSwitches(), OverlapWeight: 1}
}

// choose is the number of the worker that a request goes to, among those of the world; −1
// where the world does not know.
func (w *world) choose(q *query) int {
	switch w.policy.Kind {
	case Actual:
		return w.shadow.indexOf(q.Worker, q.Worker != 0)
	case RoundRobin:
		return w.next()
	case Random:
		return w.rng.IntN(len(w.slots))
	case LeastLoaded:
		return sim.LeastLoaded(w.loads(), w.rng)
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
		return w.costs.Choose(w.weigh(q), w.rng)
	}
	return 0 // Best has one cache
}

// next is the worker whose turn it is.
func (w *world) next() int {
	w.turn++
	return (w.turn - 1) % len(w.slots)
}

// loads are the workers as least-loaded sees them.
func (w *world) loads() []sim.Candidate {
	w.candidates = w.candidates[:0]
	for _, s := range w.slots {
		w.candidates = append(w.candidates, sim.Candidate{Requests: s.load.Requests})
	}
	return w.candidates
}

// weigh gives the workers' costs for a request, valid until the next call.
func (w *world) weigh(q *query) []sim.Candidate {
	idlest := w.slots[0].load.PrefillTokens
	for _, s := range w.slots {
		idlest = min(idlest, s.load.PrefillTokens)
	}
	w.candidates = w.candidates[:0]
	for i, s := range w.slots {
		load := s.load
		load.Blocks = s.active.Blocks()
		if w.costs.TrackOutputBlocks {
			load.Blocks += s.answered(q.at, w.shadow.pace.mean, w.costs.BlockTokens)
		}
		c := w.costs.Candidate(load, q.PromptTokens, s.prefixes.Held(q.prompt), s.active.Shared(q.prompt), idlest)
		c.Worker = w.shadow.workers[i]
		w.candidates = append(w.candidates, c)
	}
	return w.candidates
}

// hashed is the worker with the highest hash of itself and a key: when workers come or
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
