package shadow

import (
	"cmp"
	"container/heap"
	"time"

	"kvbooth/sidecar/sim"
)

// Sequencer gives live traffic to a [Shadow]: its events come from many goroutines, a little out of
// order, and which worker has a request is known only later, from its first chunk. So a Sequencer
// holds events back until it knows the workers of all requests that began before them, and
// gives them on in the order of time. It lags by the longest wait for a first token, up to a
// patience after which a request's worker is taken as unknown.
//
// A Sequencer is not safe for concurrent use.
type Sequencer struct {
	shadow   *Shadow
	patience time.Duration
	began    time.Time // time 0 of the shadow; zero before the first event
	events   events
	serial   uint64
}

// disorder is by how much events may come later than others that were after them.
const disorder = 250 * time.Millisecond

// NewSequencer is for a shadow without requests.
func NewSequencer(s *Shadow, patience time.Duration) *Sequencer {
	return &Sequencer{shadow: s, patience: patience}
}

// Entry is a request in a [Sequencer].
type Entry struct {
	request Request
	flight  *Flight // once it has been given on
	decided bool    // its worker is known, or never will be
	output  int
	cached  int
}

// Begin is a request that is about to be sent. Its Worker is 0 where the request does not name
// one.
func (q *Sequencer) Begin(at time.Time, r Request) *Entry {
	if q.began.IsZero() {
		q.began = at
	}
	e := &Entry{request: r, decided: r.Worker != 0, cached: -1}
	q.push(at, beginning, e)
	return e
}

// First is a request's first token, with its worker; 0 if the server does not say.
func (q *Sequencer) First(at time.Time, e *Entry, worker sim.WorkerID) {
	q.decide(e, worker)
	q.push(at, firstToken, e)
}

// End is a request's end: see [Shadow.End]. A request that has failed is not to be held
// against anything: give −1 as its cachedTokens.
func (q *Sequencer) End(at time.Time, e *Entry, outputTokens, cachedTokens int) {
	q.decide(e, 0)
	e.output, e.cached = outputTokens, cachedTokens
	q.push(at, ending, e)
}

func (q *Sequencer) decide(e *Entry, worker sim.WorkerID) {
	if worker != 0 {
		e.request.Worker = worker
	}
	e.decided = true
}

// Advance gives on what can be given on at a moment, and says up to when the shadow knows
// everything. It is to be called now and then, once a second say, and before figures are read.
func (q *Sequencer) Advance(now time.Time) time.Duration {
	if q.began.IsZero() {
		return 0
	}
	elapsed := now.Sub(q.began)
	for len(q.events) > 0 {
		e := q.events[0]
		if e.at > elapsed-disorder || e.kind == beginning && !e.entry.decided && e.at > elapsed-q.patience {
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
	return max(elapsed-disorder, 0)
}

// Waiting is how many events are held back.
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

// events are a heap, the earliest first. Of one moment, a request's own come in their order.
type events []event

// Len, Less, Swap, Push and Pop implement [heap.Interface].
func (e events) Len() int { return len(e) }

// Less is the order of time, then of the calls.
func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].serial, e[j].serial)) < 0
}

// Swap swaps two.
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push adds one.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop takes the last one.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = event{}
	*e = (*e)[:len(*e)-1]
	return last
}
