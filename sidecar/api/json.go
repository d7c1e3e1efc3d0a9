package api

import "encoding/json"

// List is a list that is never null in JSON: nil is written as an empty list.
type List[T any] []T

// MarshalJSON writes the list.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]T(l))
}

// Map is a map that is never null in JSON: nil is written as an empty map.
type Map[K comparable, V any] map[K]V

// MarshalJSON writes the map.
func (m Map[K, V]) MarshalJSON() ([]byte, error) {
	if m == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(map[K]V(m))
}
