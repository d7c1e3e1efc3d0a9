package sim

import "math/bits"

// workers stores a set of workers for each block, by the block's id.
type workers struct {
	number int      // number of workers
	words  int      // words of one set
	bits   []uint64 // the sets, one after the other

	left  []uint64 // buffers of [workers.depths]
	depth []int
}

// newWorkers returns empty sets of so many workers, with memory for some of the given number of blocks.
func newWorkers(number, blocks int) workers {
	words := (number + 63) / 64
	return workers{
		number: number, words: words, bits: make([]uint64, words, words*initialCapacity(blocks)),
		left: make([]uint64, words), depth: make([]int, number),
	}
}

// grow adds empty sets up to the given number of blocks.
func (s *workers) grow(blocks int) {
	for len(s.bits) < blocks*s.words {
		s.bits = append(doubled(s.bits), 0)
	}
}

// add puts a worker into a block's set. It returns false if the worker is in the set already.
func (s *workers) add(id blockID, worker int) bool {
	word, bit := &s.bits[int(id)*s.words+worker>>6], uint64(1)<<(worker&63)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// remove takes a worker out of a block's set. It returns false if the worker is not in the set.
func (s *workers) remove(id blockID, worker int) bool {
	word, bit := &s.bits[int(id)*s.words+worker>>6], uint64(1)<<(worker&63)
	if *word&bit == 0 {
		return false
	}
	*word &^= bit
	return true
}

// depths returns, for each worker, the length of the longest prefix of the path whose sets all contain the worker. The
// result is valid until the next call.
func (s *workers) depths(path []blockID) []int {
	for w := range s.depth {
		s.depth[w] = len(path)
	}
	for k := range s.left {
		s.left[k] = ^uint64(0)
	}
	s.left[s.words-1] >>= (64 - s.number%64) % 64
	for i, id := range path {
		remaining := uint64(0)
		for k, set := range s.bits[int(id)*s.words:][:s.words] {
			for missing := s.left[k] &^ set; missing != 0; missing &= missing - 1 {
				s.depth[k<<6+bits.TrailingZeros64(missing)] = i
			}
			s.left[k] &= set
			remaining |= s.left[k]
		}
		if remaining == 0 {
			break
		}
	}
	return s.depth
}
