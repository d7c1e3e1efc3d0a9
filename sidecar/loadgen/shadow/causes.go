package shadow

import (
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// Causes divide the prompt tokens of requests, whose worker and hits are known, by what became of them. All of them add
// up to PromptTokens.
type Causes struct {
	Requests     int64
	PromptTokens int64

	Found     int64 // the worker reported them as cached
	New       int64 // in blocks that no request had before
	Remainder int64 // behind the last whole block that can be found again
	Elsewhere int64 // only on other workers, of which one was no busier than the chosen one
	Spilled   int64 // only on other workers, all of which were busier
	Evicted   int64 // the worker had computed them, and had to evict them since
	// Unexplained are those that the modeled cache held, less those that the worker reported. It is negative where the
	// worker found more.
	Unexplained int64
}

// Totals returns the tokens in the order of [api.CauseKinds].
func (c *Causes) Totals() api.CauseTotals {
	return api.CauseTotals{c.Found, c.New, c.Elsewhere, c.Spilled, c.Evicted, c.Remainder, c.Unexplained}
}

func (c *Causes) minus(o Causes) Causes {
	return Causes{
		Requests: c.Requests - o.Requests, PromptTokens: c.PromptTokens - o.PromptTokens, Found: c.Found - o.Found,
		New: c.New - o.New, Remainder: c.Remainder - o.Remainder, Elsewhere: c.Elsewhere - o.Elsewhere,
		Spilled: c.Spilled - o.Spilled, Evicted: c.Evicted - o.Evicted, Unexplained: c.Unexplained - o.Unexplained,
	}
}

// origin is what was known of a prompt when it reached the router, in blocks from its beginning.
type origin struct {
	anywhere int  // computed by some worker before
	own      int  // computed by the chosen worker before
	spilled  bool // every worker with all of them was busier than the chosen one
}

// Blocks that were not used while so many others were are forgotten: they count as new.
const (
	seenCaches = 2       // as a multiple of all caches
	leastSeen  = 1 << 14 // but at least, so that small caches explain what they lose
)

// seen remembers which workers have ever computed a block, whatever they have evicted since.
type seen struct {
	recent, earlier map[uint64]uint64 // workers, one bit each, by block
	bits            map[sim.WorkerID]uint64
}

// bit returns the bit of a worker. From the 64th on, workers share one.
func (s *seen) bit(id sim.WorkerID) uint64 {
	b, ok := s.bits[id]
	if !ok {
		if s.bits == nil {
			s.bits = map[sim.WorkerID]uint64{}
		}
		b = 1 << min(len(s.bits), 63)
		s.bits[id] = b
	}
	return b
}

func (s *seen) workers(block uint64) uint64 { return s.recent[block] | s.earlier[block] }

func (s *seen) add(blocks []uint64, worker uint64, most int) {
	for _, b := range blocks {
		if s.recent == nil || len(s.recent) >= most {
			s.recent, s.earlier = make(map[uint64]uint64), s.recent
		}
		s.recent[b] = s.workers(b) | worker
	}
}

// computed remembers that a worker has computed blocks.
func (s *Shadow) computed(blocks []uint64, worker sim.WorkerID) {
	s.seen.add(blocks, s.seen.bit(worker), max(leastSeen, seenCaches*s.capacity*len(s.workers)))
}

// originOf looks up a prompt whose worker is known.
func (s *Shadow) originOf(f *Flight) (o origin) {
	chosen := s.indexOf(f.Worker, f.Worker != 0)
	if chosen < 0 {
		return o
	}
	own, prompt := s.seen.bit(f.Worker), s.actual.reusable(&f.query)
	var holders uint64 // of the last block that was found
	for o.anywhere < len(prompt) {
		workers := s.seen.workers(prompt[o.anywhere])
		if workers == 0 {
			break
		}
		if o.own == o.anywhere && workers&own != 0 {
			o.own++
		}
		holders = workers
		o.anywhere++
	}
	if o.own == o.anywhere {
		return o
	}
	o.spilled = true
	for i, id := range s.workers {
		if holders&s.seen.bit(id) != 0 && s.actual.slots[i].load.Requests <= s.actual.slots[chosen].load.Requests {
			o.spilled = false
		}
	}
	return o
}

// explain adds a request to the causes. hit are the tokens that the modeled cache held.
func (s *Shadow) explain(f *Flight, hit, cachedTokens int) {
	size := s.options.BlockTokens
	own := max(f.origin.own*size, hit)
	anywhere := max(f.origin.anywhere*size, own)
	whole := max(len(s.actual.reusable(&f.query))*size, anywhere)
	c := &s.causes
	c.Requests++
	c.PromptTokens += int64(f.PromptTokens)
	c.Found += int64(cachedTokens)
	c.New += int64(whole - anywhere)
	c.Remainder += int64(f.PromptTokens - whole)
	if f.origin.spilled {
		c.Spilled += int64(anywhere - own)
	} else {
		c.Elsewhere += int64(anywhere - own)
	}
	if own > hit { // where a prompt is partly evicted, the model is not exact about the place where it is cut
		hit = min(own, cachedTokens)
	}
	c.Evicted += int64(own - hit)
	c.Unexplained += int64(hit - cachedTokens)
}
