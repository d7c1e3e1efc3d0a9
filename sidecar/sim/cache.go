package sim

// cache is the KV cache of one worker. A block is private (filled by a running sequence), registered (found by its
// id, in use by any number of sequences or by none) or free. When blocks are needed, unused registered blocks are
// evicted, the least recently used first. A block is registered at most once.
//
// A sequence that uses a block uses all blocks before it too. Therefore a sequence refers only to the last of its
// registered blocks, and each block counts the sequences that end in it and the blocks behind it that are in use.
type cache[K blockKey] struct {
	capacity int
	private  int
	used     int // registered blocks in use
	tree     tree
	blocks   []block // by node of the tree; blocks[0] is both ends of the list of unused blocks
	changed  []K     // blocks of the current event
	events   eventSink[K]
}

// blockKey identifies a block: the id that the router has assigned, or the block's hash.
type blockKey interface{ blockID | uint64 }

// block is a registered block.
type block struct {
	users      int32 // sequences that end in it, and blocks behind it that are in use
	prev, next int32 // neighbors in the list of unused blocks, whose first block is evicted next
}

// eventSink receives the changes of a cache, as a Dynamo worker publishes them. One call is one event. It must not
// keep the ids.
type eventSink[K blockKey] interface {
	stored(ids []K)
	removed(ids []K)
	cleared()
}

func newCache[K blockKey](capacity int, events eventSink[K]) *cache[K] {
	return &cache[K]{
		capacity: capacity, tree: newTree(capacity), blocks: make([]block, 1, initialCapacity(capacity)), events: events,
	}
}

// available returns the number of blocks that are free or can be evicted.
func (c *cache[K]) available() int { return c.capacity - c.private - c.used }

// active returns the number of blocks in use.
func (c *cache[K]) active() int { return c.private + c.used }

// registered returns the number of registered blocks, in use or not.
func (c *cache[K]) registered() int { return c.tree.count }

// match returns the longest registered prefix of ids: its last block and its length.
func (c *cache[K]) match(ids []K) (last int32, n int) {
	for i, id := range ids {
		next := c.tree.find(last, uint64(id))
		if next == 0 {
			return last, i
		}
		last = next
	}
	return last, len(ids)
}

// acquire marks a registered block and all blocks before it as used.
func (c *cache[K]) acquire(last int32) {
	for ; last != 0; last = c.tree.nodes[last].parent {
		b := &c.blocks[last]
		if b.users++; b.users > 1 {
			return
		}
		c.used++
		c.blocks[b.prev].next, c.blocks[b.next].prev = b.next, b.prev
	}
}

// release returns the blocks of a sequence. The last of its registered blocks is evicted first, so that a prefix
// stays complete from its beginning.
func (c *cache[K]) release(last int32, private int) {
	for ; last != 0; last = c.tree.nodes[last].parent {
		if c.blocks[last].users--; c.blocks[last].users > 0 {
			break
		}
		c.used--
		c.addUnused(last)
	}
	c.private -= private
}

// addUnused appends a block to the list of unused blocks, which are evicted from its beginning.
func (c *cache[K]) addUnused(id int32) {
	end := &c.blocks[0]
	c.blocks[id].prev, c.blocks[id].next = end.prev, 0
	c.blocks[end.prev].next = id
	end.prev = id
}

// reserve takes n blocks as private and evicts blocks where necessary. It returns false and changes nothing if fewer
// are available.
func (c *cache[K]) reserve(n int) bool {
	if n > c.available() {
		return false
	}
	c.changed = c.changed[:0]
	for free := c.capacity - c.private - c.registered(); free < n; free++ {
		id := c.blocks[0].next
		c.blocks[0].next, c.blocks[c.blocks[id].next].prev = c.blocks[id].next, 0
		c.changed = append(c.changed, K(c.tree.nodes[id].key))
		c.tree.drop(id)
	}
	if len(c.changed) > 0 {
		c.events.removed(c.changed)
	}
	c.private += n
	return true
}

// register registers private blocks behind last, the registered block in which a sequence ends, and returns the new
// last block of the sequence. Where a block is registered already, the private one is freed.
func (c *cache[K]) register(last int32, ids []K) int32 {
	c.changed = c.changed[:0]
	end := last
	for _, id := range ids {
		next := c.tree.find(end, uint64(id))
		if next == 0 {
			next = c.add(end, id)
		}
		end = next
	}
	c.acquire(end)
	c.release(last, len(ids))
	if len(c.changed) > 0 {
		c.events.stored(c.changed)
	}
	return end
}

// add registers a block that is not in use yet.
func (c *cache[K]) add(parent int32, id K) int32 {
	n := c.tree.add(parent, uint64(id))
	c.tree.hold(n)
	if int(n) == len(c.blocks) {
		c.blocks = append(doubled(c.blocks), block{})
	}
	c.blocks[n] = block{}
	c.addUnused(n)
	c.changed = append(c.changed, id)
	return n
}

// clear empties the cache. No running sequence may use a block.
func (c *cache[K]) clear() {
	*c = *newCache(c.capacity, c.events)
	c.events.cleared()
}
