package shadow

import (
	"cmp"
	"container/heap"
	"time"

	"kvbooth/sidecar/sim"
)

// Sequencer passes live traffic to a [Shadow]. Live events come from many goroutines, slightly out
// of order, and the worker of a request is known only from its first chunk. A Sequencer holds
// events back until the workers of all earlier requests are known, and passes them on in the order
// of time. It lags by the longest wait for a first token. After a timeout the worker of a request
// counts as unknown.
//
// A Sequencer is not safe for concurrent use.
type Sequencer struct {
	shadow  *Shadow
	timeout time.Duration
	began   time.Time // time 0 of the shadow; zero before the first event
	events  queue[event]
	serial  uint64
}

// maxDisorder is the longest time by which an event may be late.
const maxDisorder = 250 * time.Millisecond

// NewSequencer makes a sequencer for a shadow without requests. timeout bounds the wait for a worker.
func NewSequencer(s *Shadow, timeout time.Duration) *Sequencer {
	return &Sequencer{shadow: s, timeout: timeout}
}

// Entry is a request in a [Sequencer].
type Entry struct {
	request Request
	flight  *Flight // set after Begin was passed on
	decided bool    // the worker is known, or stays unknown
	output  int
	cached  int
}

// Begin adds a request that is about to be sent. Its Worker is 0 where the request is not
// pinned.
func (q *Sequencer) Begin(at time.Time, r Request) *Entry {
	if q.began.IsZero() {
		q.began = at
	}
	e := &Entry{request: r, decided: r.Worker != 0, cached: -1}
	q.push(at, beginning, e)
	return e
}

// First adds a request's first token, with its worker, 0 if the server does not report it.
func (q *Sequencer) First(at time.Time, e *Entry, worker sim.WorkerID) {
	q.decide(e, worker)
	q.push(at, firstToken, e)
}

// End adds a request's end: see [Shadow.End]. For a failed request, cachedTokens must be −1, so
// that it is left out of the account.
func (q *Sequencer) End(at time.Time, e *Entry, outputTokens, cachedTokens int) {
	q.decide(e, 0)
	e.output = outputTokens
	e.cached = cachedTokens
	q.push(at, ending, e)
}

func (q *Sequencer) decide(e *Entry, worker sim.WorkerID) {
	if worker != 0 {
		e.request.Worker = worker
	}
	e.decided = true
}

// Advance passes on all events that are in order at a moment, and returns the time up to which the
// shadow is complete. It must be called regularly, such as once a second, and before figures are read.
func (q *Sequencer) Advance(now time.Time) time.Duration {
	if q.began.IsZero() {
		return 0
	}
	elapsed := now.Sub(q.began)
	for len(q.events) > 0 {
		e := q.events[0]
		undecided := e.kind == beginning && !e.entry.decided && e.at > elapsed-q.timeout
		if e.at > elapsed-maxDisorder || undecided {
			return min(e.at, elapsed)
		}
		heap.Pop(&q.events)
		switch e.kind {
		case beginning:
			e.entry.flight = q.shadow.Begin(e.at, e.entry.request)
		case firstToken:
			q.shadow.First(e.at, e.entry.flight)
		case ending:
			q.shadow.End(e.at, e.entry.flight, e.entry.output, e.entry.cached)
			e.entry.flight = nil
		}
	}
	return max(elapsed-maxDisorder, 0)
}

// Waiting returns the number of events held back.
func (q *Sequencer) Waiting() int { return len(q.events) }

func (q *Sequencer) push(at time.Time, kind eventKind, e *Entry) {
	q.serial++
	heap.Push(&q.events, event{at: max(at.Sub(q.began), 0), kind: kind, serial: q.serial, entry: e})
}

type eventKind int

const (
	beginning eventKind = iota
	firstToken
	ending
)

type event struct {
	at     time.Duration
	kind   eventKind
	serial uint64
	entry  *Entry
}

// Before orders by time. Events of one moment keep the order of the calls.
func (e event) Before(other event) bool {
	return cmp.Or(cmp.Compare(e.at, other.at), cmp.Compare(e.serial, other.serial)) < 0
}

// queue implements [heap.Interface], the earliest first.
type queue[T interface{ Before(T) bool }] []T

func (q queue[T]) Len() int           { return len(q) }
func (q queue[T]) Less(i, j int) bool { return q[i].Before(q[j]) }
func (q queue[T]) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue[T]) Push(x any)        { *q = append(*q, x.(T)) }

func (q *queue[T]) Pop() any {
	last := len(*q) - 1
	popped := (*q)[last]
	(*q)[last] = *new(T)
	*q = (*q)[:last]
	return popped
}
