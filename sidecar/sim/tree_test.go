package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTreeMatchesMapOfPrefixes compares the tree with a map of all held prefixes: a path keeps its ids while its end
// is held, equal prefixes have equal ids, and other nodes are freed.
func TestTreeMatchesMapOfPrefixes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tree := newTree(100)
	type held struct {
		keys []uint64
		ids  []int32
	}
	var all []held
	for range 3000 {
		if len(all) > 40 || len(all) > 0 && rng.IntN(3) == 0 {
			i := rng.IntN(len(all))
			tree.drop(all[i].ids[len(all[i].ids)-1])
			all = slices.Delete(all, i, i+1)
		} else {
			h := held{}
			if len(all) > 0 { // share a prefix with another path
				keys := all[rng.IntN(len(all))].keys
				h.keys = slices.Clone(keys[:rng.IntN(len(keys)+1)])
			}
			for range 1 + rng.IntN(5) {
				h.keys = append(h.keys, rng.Uint64N(4)) // few keys, so that they repeat in many places
			}
			last := int32(0)
			for _, key := range h.keys {
				next := tree.find(last, key)
				if next == 0 {
					next = tree.add(last, key)
				}
				last = next
				h.ids = append(h.ids, next)
			}
			tree.hold(last)
			all = append(all, h)
		}
		prefixes := map[string]int32{}
		for _, h := range all {
			last, prefix := int32(0), ""
			for i, key := range h.keys {
				last = tree.find(last, key)
				require.Equal(t, h.ids[i], last)
				prefix += string(rune('a' + key))
				prefixes[prefix] = last
			}
		}
		require.Equal(t, len(prefixes), tree.count)
		ids := map[int32]bool{}
		for _, id := range prefixes {
			ids[id] = true
		}
		require.Len(t, ids, len(prefixes), "each block has its own id")
	}
	for _, h := range all {
		tree.drop(h.ids[len(h.ids)-1])
	}
	assert.Zero(t, tree.count)
	assert.Empty(t, tree.branches)
}

// TestDepthsMatchSingleLookups compares depths with lookups worker by worker and block by block, for sets of one and
// of several words.
func TestDepthsMatchSingleLookups(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, number := range []int{1, 3, 63, 64, 65, 128, 200, maxWorkers} {
		sets := newWorkers(number, 10)
		sets.grow(50)
		member := map[[2]int]bool{}
		path := make([]blockID, 40)
		for i, id := range rng.Perm(50)[:len(path)] {
			path[i] = blockID(id)
		}
		for w := range number {
			for _, id := range path[:rng.IntN(len(path)+1)] {
				assert.True(t, sets.add(id, w))
				assert.False(t, sets.add(id, w))
				member[[2]int{int(id), w}] = true
			}
			if gap := path[rng.IntN(len(path))]; rng.IntN(2) == 0 {
				assert.Equal(t, member[[2]int{int(gap), w}], sets.remove(gap, w))
				delete(member, [2]int{int(gap), w})
			}
		}
		want := make([]int, number)
		for w := range want {
			for want[w] < len(path) && member[[2]int{int(path[want[w]]), w}] {
				want[w]++
			}
		}
		assert.Equal(t, want, sets.depths(path), number)
		assert.Equal(t, slices.Repeat([]int{0}, number), sets.depths(nil))
	}
}
