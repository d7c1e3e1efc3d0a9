package sim

// Prefixes is the prefix cache of a worker without the worker, for whoever knows when
// requests come and go from elsewhere: the cache that the simulated cluster's workers have,
// with blocks found by their hashes. A block's hash stands for everything before it, too.
type Prefixes struct{ blocks *cache[uint64] }

// NewPrefixes is an empty cache of so many blocks.
func NewPrefixes(capacity int) *Prefixes {
	blocks := newCache[uint64](0, deaf{}) // which takes memory for blocks as they come
	blocks.capacity = capacity
	return &Prefixes{blocks}
}

// deaf is told of changes to a cache, and does nothing.
type deaf struct{}

func (deaf) stored([]uint64)  {}
func (deaf) removed([]uint64) {}
func (deaf) cleared()         {}

// Sequence is what one request has of a cache.
type Sequence struct {
	last    int32 // of its registered blocks
	shared  int32 // registered blocks
	private int32 // blocks that nobody else can find
}

// Held is how many of the blocks of a prompt the cache holds, from the first on.
func (p *Prefixes) Held(blocks []uint64) int {
	_, n := p.blocks.match(blocks)
	return n
}

// Admit takes the blocks of a prompt that the cache holds, from the first on, into use, so
// that they stay; it says how many these are.
func (p *Prefixes) Admit(blocks []uint64) (Sequence, int) {
	last, n := p.blocks.match(blocks)
	p.blocks.acquire(last)
	return Sequence{last: last, shared: int32(n)}, n
}

// Reserve takes room for further blocks, evicting what nobody uses, the least recently
// used first; false, and nothing is taken, if there is not enough.
func (p *Prefixes) Reserve(s *Sequence, blocks int) bool {
	ok := p.blocks.reserve(blocks)
	if ok {
		s.private += int32(blocks)
	}
	return ok
}

// Register lets others find the blocks behind those that a sequence has registered already,
// as many as it has room for. All are the sequence's blocks from the first on.
func (p *Prefixes) Register(s *Sequence, all []uint64) {
	n := min(int32(len(all))-s.shared, s.private)
	if n <= 0 {
		return
	}
	s.last = p.blocks.register(s.last, all[s.shared:s.shared+n])
	s.shared += n
	s.private -= n
}

// Release gives all of a sequence's blocks back. Those that are registered can be found
// until they are evicted.
func (p *Prefixes) Release(s *Sequence) {
	p.blocks.release(s.last, int(s.private))
	*s = Sequence{}
}

// Resize changes how many blocks there may be. What is too much is evicted as soon as
// nobody uses it.
func (p *Prefixes) Resize(capacity int) {
	p.blocks.capacity = capacity
	p.blocks.reserve(0)
}

// Rename gives blocks behind a prefix the hashes that they turn out to have. What has been
// evicted meanwhile, or is there under its hash already, stays as it is.
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

// Blocks is how many blocks can be found.
func (p *Prefixes) Blocks() int { return p.blocks.registered() }

// Active are the different blocks of the prompts in progress on one worker, as Dynamo's
// router counts them: a block that several share counts once.
type Active struct{ tree tree }

// NewActive is for a worker without requests.
func NewActive() *Active { return &Active{newTree(0)} }

// Blocks is how many different ones there are.
func (a *Active) Blocks() int { return a.tree.count }

// Shared is how many of the blocks of a prompt are there, from the first on.
func (a *Active) Shared(blocks []uint64) int {
	last := int32(0)
	for i, hash := range blocks {
		if last = a.tree.find(last, hash); last == 0 {
			return i
		}
	}
	return len(blocks)
}

// Add counts the blocks of a prompt until [Active.Drop] is called with what it returns.
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

// Drop takes the blocks of a prompt back.
func (a *Active) Drop(last int32) {
	if last != 0 {
		a.tree.drop(last)
	}
}
