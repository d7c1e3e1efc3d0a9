package sim

// Prefixes is the prefix cache of a simulated worker without the worker, for callers that follow the requests of
// another system. Blocks are found by their hashes. A block's hash covers all blocks before it too.
type Prefixes struct{ blocks *cache[uint64] }

// NewPrefixes returns an empty cache with the given number of blocks.
func NewPrefixes(capacity int) *Prefixes {
	blocks := newCache[uint64](0, discardEvents{}) // capacity 0, so that memory is allocated as blocks come
	blocks.capacity = capacity
	return &Prefixes{blocks}
}

// discardEvents is an eventSink that ignores all changes.
type discardEvents struct{}

func (discardEvents) stored([]uint64)  {}
func (discardEvents) removed([]uint64) {}
func (discardEvents) cleared()         {}

// Sequence is the part of a cache that one request uses.
type Sequence struct {
	last    int32 // node of the last registered block
	shared  int32 // registered blocks
	private int32 // blocks that other requests cannot find
}

// Held returns the length of the longest prefix of the prompt's blocks that the cache holds.
func (p *Prefixes) Held(blocks []uint64) int {
	_, n := p.blocks.match(blocks)
	return n
}

// Admit marks the longest prefix of the prompt's blocks that the cache holds as used, so that it is not evicted. It
// returns the sequence and the length of the prefix.
func (p *Prefixes) Admit(blocks []uint64) (Sequence, int) {
	last, n := p.blocks.match(blocks)
	p.blocks.acquire(last)
	return Sequence{last: last, shared: int32(n)}, n
}

// Reserve adds private blocks to a sequence and evicts unused blocks where necessary, the least recently used first.
// It returns false and changes nothing if too few are available.
func (p *Prefixes) Reserve(s *Sequence, blocks int) bool {
	ok := p.blocks.reserve(blocks)
	if ok {
		s.private += int32(blocks)
	}
	return ok
}

// Register makes private blocks of a sequence findable for others, as many as it has reserved. all are the sequence's
// blocks from the first one, including those already registered.
func (p *Prefixes) Register(s *Sequence, all []uint64) {
	n := min(int32(len(all))-s.shared, s.private)
	if n <= 0 {
		return
	}
	s.last = p.blocks.register(s.last, all[s.shared:s.shared+n])
	s.shared += n
	s.private -= n
}

// Release returns all blocks of a sequence. The registered ones can be found until they are evicted.
func (p *Prefixes) Release(s *Sequence) {
	p.blocks.release(s.last, int(s.private))
	*s = Sequence{}
}

// Resize changes the capacity. Excess blocks are evicted as soon as they are unused.
func (p *Prefixes) Resize(capacity int) {
	p.blocks.capacity = capacity
	p.blocks.reserve(0)
}

// Rename replaces the hashes of blocks behind a prefix, once the actual hashes are known. It stops at a block that has
// been evicted, or whose new hash is registered already.
func (p *Prefixes) Rename(prefix, from, to []uint64) {
	last, n := p.blocks.match(prefix)
	if n < len(prefix) {
		return
	}
	tree := &p.blocks.tree
	for i := range min(len(from), len(to)) {
		next := tree.find(last, from[i])
		if next == 0 || tree.find(last, to[i]) != 0 {
			return
		}
		tree.rename(next, to[i])
		last = next
	}
}

// Blocks returns the number of registered blocks.
func (p *Prefixes) Blocks() int { return p.blocks.registered() }

// Active is the set of blocks of the prompts in progress on one worker, as Dynamo's router counts them: a block that
// several prompts share counts once.
type Active struct{ tree tree }

// NewActive returns the empty set.
func NewActive() *Active { return &Active{newTree(0)} }

// Blocks returns the number of different blocks.
func (a *Active) Blocks() int { return a.tree.count }

// Shared returns the length of the longest prefix of the prompt's blocks that is in the set.
func (a *Active) Shared(blocks []uint64) int {
	last := int32(0)
	for i, hash := range blocks {
		if last = a.tree.find(last, hash); last == 0 {
			return i
		}
	}
	return len(blocks)
}

// Add counts the blocks of a prompt until [Active.Drop] is called with the returned value.
func (a *Active) Add(blocks []uint64) int32 {
	last := int32(0)
	for _, hash := range blocks {
		next := a.tree.find(last, hash)
		if next == 0 {
			next = a.tree.add(last, hash)
		}
		last = next
	}
	if last != 0 {
		a.tree.hold(last)
	}
	return last
}

// Drop removes the blocks of a prompt; last is the result of [Active.Add].
func (a *Active) Drop(last int32) {
	if last != 0 {
		a.tree.drop(last)
	}
}
