package api

import "encoding/json"

// List is a slice that JSON encodes as [] if it is nil.
type List[T any] []T

// MarshalJSON implements [json.Marshaler].
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]T(l))
}

// Map is a map that JSON encodes as {} if it is nil.
type Map[K comparable, V any] map[K]V

// MarshalJSON implements [json.Marshaler].
func (m Map[K, V]) MarshalJSON() ([]byte, error) {
	if m == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(map[K]V(m))
}
