package sim

import "math/bits"

// workers is a set of workers for each block, by its id.
type workers struct {
	number int      // of workers
	words  int      // that a set has
	bits   []uint64 // the sets, one after the other

	still []uint64 // for [workers.depths]
	depth []int
}

// newWorkers are empty sets of so many workers, for blocks that may come to be so many.
func newWorkers(number, blocks int) workers {
	words := (number + 63) / 64
	return workers{number: number, words: words, bits: make([]uint64, words, words*room(blocks)), still: make([]uint64, words), depth: make([]int, number)}
}

// grow makes room for the sets of so many blocks.
func (s *workers) grow(blocks int) {
	for len(s.bits) < blocks*s.words {
		s.bits = append(doubled(s.bits), 0)
	}
}

// add puts a worker into a block's set; false if it is there.
func (s *workers) add(id blockID, worker int) bool {
	word, bit := &s.bits[int(id)*s.words+worker>>6], uint64(1)<<(worker&63)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// remove takes a worker out of a block's set; false if it is not there.
func (s *workers) remove(id blockID, worker int) bool {
	word, bit := &s.bits[int(id)*s.words+worker>>6], uint64(1)<<(worker&63)
	if *word&bit == 0 {
		return false
	}
	*word &^= bit
	return true
}

// depths is, for each worker, how many of the blocks' sets have it, from the first on.
// They are valid until the next call.
func (s *workers) depths(path []blockID) []int {
	for w := range s.depth {
		s.depth[w] = len(path)
	}
	for k := range s.still {
		s.still[k] = ^uint64(0)
	}
	s.still[s.words-1] >>= (64 - s.number%64) % 64
	for i, id := range path {
		left := uint64(0)
		for k, set := range s.bits[int(id)*s.words:][:s.words] {
			for gone := s.still[k] &^ set; gone != 0; gone &= gone - 1 {
				s.depth[k<<6+bits.TrailingZeros64(gone)] = i
			}
			s.still[k] &= set
			left |= s.still[k]
		}
		if left == 0 {
			break
		}
	}
	return s.depth
}
