package shadow

// recent is a map of bounded size that drops the values set longest ago, approximately.
type recent[V any] struct {
	most     int
	new, old map[uint64]V
}

// newRecent returns a map that keeps at least the most recent values, and at most twice as many.
func newRecent[V any](most int) recent[V] { return recent[V]{most: most, new: map[uint64]V{}} }

func (r *recent[V]) get(key uint64) (V, bool) {
	v, ok := r.new[key]
	if !ok {
		v, ok = r.old[key]
	}
	return v, ok
}

func (r *recent[V]) set(key uint64, v V) {
	if len(r.new) >= r.most {
		r.new, r.old = map[uint64]V{}, r.new
	}
	r.new[key] = v
}

func (r *recent[V]) delete(key uint64) {
	delete(r.new, key)
	delete(r.old, key)
}

// mean is a moving mean: a new value has a weight of 1 in 100, or the equal weight
// while there are fewer values.
type mean struct {
	mean float64
	n    int
}

func (m *mean) add(v float64) {
	m.n = min(m.n+1, 100)
	m.mean += (v - m.mean) / float64(m.n)
}
