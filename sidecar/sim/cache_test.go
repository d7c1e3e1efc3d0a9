package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ledger is an event sink that records the blocks in the cache.
type ledger map[blockID]bool

func (l ledger) stored(ids []blockID) {
	for _, id := range ids {
		l[id] = true
	}
}

func (l ledger) removed(ids []blockID) {
	for _, id := range ids {
		delete(l, id)
	}
}

func (l ledger) cleared() { clear(l) }

func ids(from, to blockID) (out []blockID) {
	for id := from; id < to; id++ {
		out = append(out, id)
	}
	return out
}

// compute runs a sequence through a cache: it reuses cached blocks, computes the rest, and releases all of them.
func compute(t *testing.T, c *cache[blockID], blocks []blockID) {
	t.Helper()
	last, found := c.match(blocks)
	c.acquire(last)
	require.True(t, c.reserve(len(blocks)-found))
	last = c.register(last, blocks[found:])
	assert.Equal(t, len(blocks), c.active())
	c.release(last, 0)
	assert.Zero(t, c.active())
}

// TestEvictionOrder checks that the least recently used blocks are evicted first, and the end of a sequence before its
// beginning.
func TestEvictionOrder(t *testing.T) {
	seen := ledger{}
	c := newCache[blockID](10, seen)
	compute(t, c, ids(100, 104))
	compute(t, c, ids(200, 204))
	compute(t, c, ids(100, 104)) // makes the others the least recently used
	require.True(t, c.reserve(5))
	assert.Equal(t, ledger{100: true, 101: true, 102: true, 103: true, 200: true}, seen)
	require.True(t, c.reserve(2))
	assert.Equal(t, ledger{100: true, 101: true, 102: true}, seen)
	_, found := c.match(ids(100, 110))
	assert.Equal(t, 3, found)
}

func TestReserveKeepsBlocksInUse(t *testing.T) {
	seen := ledger{}
	c := newCache[blockID](10, seen)
	compute(t, c, ids(100, 106))
	last, _ := c.match(ids(100, 104))
	c.acquire(last)
	assert.Equal(t, 6, c.available())
	assert.False(t, c.reserve(7))
	assert.Len(t, seen, 6, "a failed reservation evicts nothing")
	assert.True(t, c.reserve(6))
	assert.Len(t, seen, 4)
	assert.False(t, c.reserve(1))
	c.release(last, 6)
	assert.Equal(t, 10, c.available())
}

// TestRegisterSharesEqualBlocks has two sequences compute the same blocks at the same time.
func TestRegisterSharesEqualBlocks(t *testing.T) {
	seen := ledger{}
	c := newCache[blockID](10, seen)
	require.True(t, c.reserve(8))
	one, two := c.register(0, ids(1, 5)), c.register(0, ids(1, 5))
	assert.Equal(t, 4, c.active())
	c.release(one, 0)
	assert.Equal(t, 4, c.active())
	c.release(two, 0)
	assert.Zero(t, c.active())
	assert.Len(t, seen, 4)
	c.clear()
	assert.Empty(t, seen)
	assert.Equal(t, 10, c.available())
}
