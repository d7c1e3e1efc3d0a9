package sim

// cache is the KV cache of one worker. A block is private (a running sequence
// fills it), registered (found by its id, used by any number of sequences or by
// none) or free. Registered blocks that nobody uses are evicted, least recently
// used first, when blocks are needed. No block is registered twice.
//
// Who uses a block uses those before it too. So a sequence holds on to the last of its
// registered blocks only, and of each block it is enough to know how many
// sequences end in it and how many of the blocks behind it are in use.
type cache[K blockKey] struct {
	capacity int
	private  int
	used     int // registered blocks in use
	tree     tree
	blocks   []block // of the tree's nodes; that of the root is both ends of the list of unused ones
	changed  []K     // for the event under way
	events   eventSink[K]
}

// blockKey is what a block is found by: the id that the router has given it, or its hash.
type blockKey interface{ blockID | uint64 }

// block is a registered block.
type block struct {
	users      int32 // sequences that end in it, and blocks behind it that are in use
	prev, next int32 // in the list of unused ones: the one to evict next comes first
}

// eventSink is told what a cache holds, as a Dynamo worker publishes it: one call
// is one event. It must not keep the ids.
type eventSink[K blockKey] interface {
	stored(ids []K)
	removed(ids []K)
	cleared()
}

func newCache[K blockKey](capacity int, events eventSink[K]) *cache[K] {
	return &cache[K]{capacity: capacity, tree: newTree(capacity), blocks: make([]block, 1, room(capacity)), events: events}
}

// available is how many blocks can be had, free or by eviction.
func (c *cache[K]) available() int { return c.capacity - c.private - c.used }

// active is how many blocks are in use.
func (c *cache[K]) active() int { return c.private + c.used }

// registered is how many blocks can be found, in use or not.
func (c *cache[K]) registered() int { return c.tree.count }

// match is the last block of those that are registered, from the first on, and how
// many these are.
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

// acquire takes a registered block, and so those before it, into use.
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

// release gives blocks back. Of a sequence's registered blocks the last one is
// evicted first, so that a prefix stays whole from its beginning on.
func (c *cache[K]) release(last int32, private int) {
	for ; last != 0; last = c.tree.nodes[last].parent {
		if c.blocks[last].users--; c.blocks[last].users > 0 {
			break
		}
		c.used--
		c.unused(last)
	}
	c.private -= private
}

// unused puts a block at the end of those to evict.
func (c *cache[K]) unused(id int32) {
	end := &c.blocks[0]
	c.blocks[id].prev, c.blocks[id].next = end.prev, 0
	c.blocks[end.prev].next = id
	end.prev = id
}

// reserve takes so many blocks as private, evicting what must go; false, and
// nothing is taken, if there are not enough.
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

// register makes private blocks findable behind a registered one, in which a sequence
// ends, and gives the last of them, in which it ends from then on. Where a block is
// registered already, the private one is given up for that one.
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

// add registers a block that nobody uses yet.
func (c *cache[K]) add(parent int32, id K) int32 {
	n := c.tree.add(parent, uint64(id))
	c.tree.hold(n)
	if int(n) == len(c.blocks) {
		c.blocks = append(doubled(c.blocks), block{})
	}
	c.blocks[n] = block{}
	c.unused(n)
	c.changed = append(c.changed, id)
	return n
}

// clear empties the cache. No block may be in use by a sequence that goes on.
func (c *cache[K]) clear() {
	*c = *newCache(c.capacity, c.events)
	c.events.cleared()
}
