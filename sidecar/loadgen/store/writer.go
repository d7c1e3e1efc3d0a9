package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// run is the writer. It commits records and removes what exceeds the limits, until
// the store closes.
func (s *Store) run() {
	defer close(s.stopped)
	maintenance := time.NewTimer(s.limits.prune)
	defer maintenance.Stop()
	for {
		if s.isClosing() { // maintain would clear the problem of the last attempt
			s.drain()
			return
		}
		select {
		case <-s.queue.arrived:
			s.pause(s.limits.gather, s.queue.urgent)
			s.drain()
		case <-maintenance.C:
			began := time.Now()
			if s.maintain() {
				maintenance.Reset(time.Since(began) / 2) // leaves a third of the time to other records
			} else {
				maintenance.Reset(s.limits.prune)
			}
		case <-s.closing:
		}
	}
}

// pause blocks for d, or until wake receives or the store closes.
func (s *Store) pause(d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-s.closing:
	}
}

// drain commits batches until the queue is empty. A batch that fails is retried,
// since most failures are temporary, such as a full disk. While the store is closing
// there is one attempt, after which the records are lost.
func (s *Store) drain() {
	pause := s.limits.retryMin
	for {
		last := s.isClosing()
		batch := s.queue.first(s.limits.batch)
		if len(batch) == 0 {
			return
		}
		err := s.commit(batch)
		s.report(err)
		for err == nil && s.oversized() && s.prune() { // maintain runs only when the queue is empty
		}
		switch {
		case err == nil:
			s.queue.drop(len(batch))
			pause = s.limits.retryMin
		case last:
			s.abandon()
			return
		default:
			s.pause(pause, nil)
			pause = min(2*pause, s.limits.retryMax)
		}
	}
}

func (s *Store) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// commit writes a batch in one transaction. A record that can never be written is
// counted as lost, so that it does not block the others.
func (s *Store) commit(batch []record) error {
	ctx := context.Background() // a batch is completed even while the store is closing
	var refused, stored int
	err := s.change(ctx, func(tx *sql.Tx) error {
		for _, r := range batch {
			if r.write == nil {
				continue
			}
			err := r.write(ctx, tx)
			if err != nil && !isPermanent(err) {
				return err
			}
			if err != nil {
				s.opts.Log.Error("a record cannot be stored", "error", err)
				if r.turn {
					refused++
				}
			} else if r.turn && !*r.known {
				stored++
			}
		}
		return nil
	})
	if err == nil {
		s.lost.Add(int64(refused))
		s.stored.Add(int64(stored))
	}
	return err
}

// maintain checks the file and removes what exceeds the limits. It reports whether there may be more to remove.
func (s *Store) maintain() (more bool) {
	err := s.present()
	s.report(err)
	return err == nil && s.prune()
}

// errEncoding reports a record that has no JSON form.
var errEncoding = errors.New("the record cannot be encoded")

// isPermanent reports whether the record causes the error, rather than the disk.
func isPermanent(err error) bool {
	switch codeOf(err) {
	case sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH:
		return true
	}
	return errors.Is(err, errEncoding)
}

// abandon counts everything in the queue as lost.
func (s *Store) abandon() {
	rest := s.queue.first(math.MaxInt)
	turns := 0
	for _, r := range rest {
		if r.turn {
			turns++
		}
	}
	s.lost.Add(int64(turns))
	s.opts.Log.Error("records were not stored before closing", "turns", turns)
	s.queue.drop(len(rest))
}

// report stores the result of a commit for the status, and logs when it changes.
func (s *Store) report(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		if s.problem == "" {
			s.opts.Log.Error("the store cannot be written; the workload continues", "path", s.path, "error", err)
		}
		s.problem = fmt.Sprintf("turns are not stored, since %s cannot be written: %v; "+
			"%d of them wait for the next attempt, %d are lost: %s",
			s.path, err, s.queue.waitingTurns(), s.lost.Load(), Advice(err))
	case s.problem != "":
		s.problem = ""
		s.opts.Log.Info("the store is writable again", "path", s.path, "lost_turns", s.lost.Load())
	}
	if err == nil {
		s.full.Store(false)
	}
}

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

// first returns up to n records without removing them.
func (q *queue) first(n int) []record {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.records[:min(n, len(q.records))])
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
