package trace

// blockSet is a set of block hashes that takes a few bytes for each. Small numbers, which many traces have in place of
// hashes, take a bit. Of others, it stores 32 bits in one of 4,096 tables: of 30 million hashes, two in a million that
// are new are taken for another.
type blockSet struct {
	n      int
	pages  map[uint64]*[pageWords]uint64
	shards [4096]shard
}

// shard is a hash table with open addressing. A free slot has 0.
type shard struct {
	slots []uint32
	n     int
}

const (
	mostSmall = 1 << 30 // numbers below take a bit
	pageWords = 512
)

// add adds a hash. It reports whether it is new.
func (s *blockSet) add(hash uint64) bool {
	var isNew bool
	if hash < mostSmall {
		isNew = s.addSmall(hash)
	} else {
		mixed := Mix(hash)
		isNew = s.shards[mixed%uint64(len(s.shards))].add(fingerprint(mixed))
	}
	if isNew {
		s.n++
	}
	return isNew
}

func (s *blockSet) addSmall(number uint64) bool {
	if s.pages == nil {
		s.pages = map[uint64]*[pageWords]uint64{}
	}
	page := s.pages[number/(64*pageWords)]
	if page == nil {
		page = &[pageWords]uint64{}
		s.pages[number/(64*pageWords)] = page
	}
	word, bit := number/64%pageWords, uint64(1)<<(number%64)
	isNew := page[word]&bit == 0
	page[word] |= bit
	return isNew
}

// fingerprint returns the part of a mixed hash that a table stores. It is never 0.
func fingerprint(mixed uint64) uint32 { return max(uint32(mixed>>32), 1) }

func (s *shard) add(part uint32) bool {
	if 4*(s.n+1) > 3*len(s.slots) {
		old := s.slots
		s.slots = make([]uint32, max(2*len(old), 16))
		for _, stored := range old {
			if stored != 0 {
				*s.find(stored) = stored
			}
		}
	}
	slot := s.find(part)
	if *slot != 0 {
		return false
	}
	*slot = part
	s.n++
	return true
}

// find returns the slot of a fingerprint, or the free slot for it.
func (s *shard) find(part uint32) *uint32 {
	mask := uint32(len(s.slots) - 1)
	for i := part & mask; ; i = (i + 1) & mask {
		if stored := s.slots[i]; stored == 0 || stored == part {
			return &s.slots[i]
		}
	}
}

// lru is a cache of blocks that drops those that were not used for the longest time.
type lru struct {
	size           int
	at             map[uint64]int32 // positions in entries
	entries        []lruEntry
	newest, oldest int32 // oldest is the one to drop next
}

// lruEntry is a block between the one that was used before it and the one after it.
type lruEntry struct {
	hash         uint64
	older, newer int32
}

func newLRU(size int) *lru { return &lru{size: size, at: map[uint64]int32{}, newest: -1, oldest: -1} }

func (l *lru) has(hash uint64) bool {
	_, ok := l.at[hash]
	return ok
}

// use makes a block the newest, and stores it if it is not in the cache.
func (l *lru) use(hash uint64) {
	i, ok := l.at[hash]
	switch {
	case ok:
		l.unlink(i)
	case len(l.entries) < l.size:
		i = int32(len(l.entries))
		l.entries = append(l.entries, lruEntry{})
	default:
		i = l.oldest
		l.unlink(i)
		delete(l.at, l.entries[i].hash)
	}
	l.entries[i] = lruEntry{hash: hash, older: l.newest, newer: -1}
	if l.newest >= 0 {
		l.entries[l.newest].newer = i
	} else {
		l.oldest = i
	}
	l.newest, l.at[hash] = i, i
}

func (l *lru) unlink(i int32) {
	e := l.entries[i]
	if e.older >= 0 {
		l.entries[e.older].newer = e.newer
	} else {
		l.oldest = e.newer
	}
	if e.newer >= 0 {
		l.entries[e.newer].older = e.older
	} else {
		l.newest = e.older
	}
}
