package sim

import "container/list"

// cache is the KV cache of one worker. A block is private (a running sequence
// fills it), registered (found by its hash, used by any number of sequences or by
// none) or free. Registered blocks that nobody uses are evicted, least recently
// used first, when blocks are needed. No block is registered twice.
type cache struct {
	capacity int
	private  int
	used     int // registered blocks in use
	blocks   map[BlockHash]*block
	unused   *list.List // of *block, the one to evict next in front
	events   eventSink
}

// block is a registered block.
type block struct {
	hash BlockHash
	refs int
	idle *list.Element // of unused, nil while in use
}

// eventSink is told what a cache holds, as a Dynamo worker publishes it: one call
// is one event. It must not keep the hashes.
type eventSink interface {
	stored(hashes []BlockHash)
	removed(hashes []BlockHash)
	cleared()
}

func newCache(capacity int, events eventSink) *cache {
	return &cache{capacity: capacity, blocks: map[BlockHash]*block{}, unused: list.New(), events: events}
}

// available is how many blocks can be had, free or by eviction.
func (c *cache) available() int { return c.capacity - c.private - c.used }

// active is how many blocks are in use.
func (c *cache) active() int { return c.private + c.used }

// match is how many of the hashes are registered, from the first on.
func (c *cache) match(hashes []BlockHash) int {
	for i, hash := range hashes {
		if c.blocks[hash] == nil {
			return i
		}
	}
	return len(hashes)
}

// acquire takes registered blocks into use.
func (c *cache) acquire(hashes []BlockHash) []*block {
	blocks := make([]*block, 0, len(hashes))
	for _, hash := range hashes {
		b := c.blocks[hash]
		c.ref(b)
		blocks = append(blocks, b)
	}
	return blocks
}

func (c *cache) ref(b *block) {
	if b.refs++; b.refs == 1 {
		c.used++
		if b.idle != nil {
			c.unused.Remove(b.idle)
			b.idle = nil
		}
	}
}

// reserve takes so many blocks as private, evicting what must go; false, and
// nothing is taken, if there are not enough.
func (c *cache) reserve(n int) bool {
	if n > c.available() {
		return false
	}
	var evicted []BlockHash
	for free := c.capacity - c.private - len(c.blocks); free < n; free++ {
		b := c.unused.Remove(c.unused.Front()).(*block)
		delete(c.blocks, b.hash)
		evicted = append(evicted, b.hash)
	}
	if len(evicted) > 0 {
		c.events.removed(evicted)
	}
	c.private += n
	return true
}

// register makes private blocks findable and keeps them in use. Where a hash is
// registered already, the private block is given up for that one.
func (c *cache) register(hashes []BlockHash) []*block {
	var stored []BlockHash
	blocks := make([]*block, 0, len(hashes))
	for _, hash := range hashes {
		b := c.blocks[hash]
		if b == nil {
			b = &block{hash: hash}
			c.blocks[hash] = b
			stored = append(stored, hash)
		}
		c.ref(b)
		blocks = append(blocks, b)
	}
	c.private -= len(hashes)
	if len(stored) > 0 {
		c.events.stored(stored)
	}
	return blocks
}

// release gives blocks back. Of a sequence's registered blocks the last one is
// evicted first, so that a prefix stays whole from its beginning on.
func (c *cache) release(shared []*block, private int) {
	for i := len(shared) - 1; i >= 0; i-- {
		b := shared[i]
		if b.refs--; b.refs == 0 {
			c.used--
			b.idle = c.unused.PushBack(b)
		}
	}
	c.private -= private
}

// clear empties the cache. No block may be in use by a sequence that goes on.
func (c *cache) clear() {
	*c = *newCache(c.capacity, c.events)
	c.events.cleared()
}
