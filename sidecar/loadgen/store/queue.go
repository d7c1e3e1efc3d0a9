package store

import (
	"context"
	"database/sql"
	"slices"
	"sync"
)

// record is something to be written, or the mark of a caller who waits.
type record struct {
	write func(context.Context, *sql.Tx) error
	turn  bool
	bytes int           // of a turn's texts
	known *bool         // of a turn: whether it was stored before; set by write
	done  chan struct{} // of a mark: closed when all before it is written or lost
}

// bounds are how much may wait. Conversations and steps are small and
// few, and a conversation whose end is lost would look active until the next
// start, so they have a bound of their own, which turns do not use up.
type bounds struct {
	turns, bytes, others int
}

// queue holds records in the order of their arrival. It never makes a caller wait.
type queue struct {
	limit   bounds
	arrived chan struct{} // holds one word that there is something
	urgent  chan struct{} // holds one word that somebody waits for it

	mu      sync.Mutex
	records []record
	held    bounds
	closed  bool
}

func newQueue(limit bounds) *queue {
	return &queue{limit: limit, arrived: make(chan struct{}, 1), urgent: make(chan struct{}, 1)}
}

// push adds a record, or says that it is full or closed.
func (q *queue) push(r record) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	next := q.held.with(r, 1)
	if q.closed || r.done == nil && (next.turns > q.limit.turns || next.bytes > q.limit.bytes || next.others > q.limit.others) {
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

// with gives b after sign records like r.
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

// first gives up to n records without taking them out, of no more than so many bytes if it is more than one.
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

// drop takes out the first n records and tells those who wait for them.
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

// close refuses all further records; those inside stay.
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
