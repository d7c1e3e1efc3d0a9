package store

import (
	"context"
	"database/sql"
	"slices"
	"sync"
)

// record is a record to write, or the marker of a waiting [Store.Flush].
type record struct {
	write func(context.Context, *sql.Tx) error
	turn  bool
	bytes int           // of a turn's texts
	known *bool         // for a turn, set by write: it was stored before
	done  chan struct{} // for a marker, closed when all earlier records are written or lost
}

// bounds limit the queued records. Conversations and steps are small and few, and
// a conversation whose end is lost would look active until the next start, so they
// have their own bound, which turns do not use up.
type bounds struct {
	turns, bytes, others int
}

// queue holds records in the order of their arrival. It never blocks a caller.
type queue struct {
	limit   bounds
	arrived chan struct{} // has a token while there may be records
	urgent  chan struct{} // has a token while a caller may wait for them

	mu      sync.Mutex
	records []record
	held    bounds
	closed  bool
}

func newQueue(limit bounds) *queue {
	return &queue{limit: limit, arrived: make(chan struct{}, 1), urgent: make(chan struct{}, 1)}
}

// push adds a record. It returns false if the queue is full or closed.
func (q *queue) push(r record) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	next := q.held.with(r, 1)
	if q.closed || r.done == nil && (next.turns > q.limit.turns || next.bytes > q.limit.bytes ||
		next.others > q.limit.others) {
		return false
	}
	q.held = next
	q.records = append(q.records, r)
	signal(q.arrived)
	if r.done != nil {
		signal(q.urgent)
	}
	return true
}

// with returns b after adding sign records like r.
func (b bounds) with(r record, sign int) bounds {
	switch {
	case r.turn:
		b.turns += sign
		b.bytes += sign * r.bytes
	case r.done == nil:
		b.others += sign
	}
	return b
}

// first returns up to n records without removing them. More than one record fits within bytes.
func (q *queue) first(n, bytes int) []record {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.records))
	for i, r := range q.records[:n] {
		if bytes -= r.bytes + perRecord; bytes < 0 {
			n = max(i, 1)
			break
		}
	}
	return slices.Clone(q.records[:n])
}

// drop removes the first n records and wakes the callers that wait for them.
func (q *queue) drop(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.records[:n] {
		q.held = q.held.with(r, -1)
		if r.done != nil {
			close(r.done)
		}
	}
	q.records = slices.Delete(q.records, 0, n)
}

func (q *queue) waitingTurns() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held.turns
}

// close makes push fail. Queued records stay.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
