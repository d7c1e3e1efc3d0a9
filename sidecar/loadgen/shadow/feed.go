package shadow

import (
	"cmp"
	"container/heap"
	"time"

	"kvbooth/sidecar/sim"
)

// Feed gives live traffic to a [Shadow]: its events come from many goroutines, a little out of
// order, and which worker has a request is known only later, from its first chunk. So a Feed
// holds events back until it knows the workers of all requests that began before them, and
// gives them on in the order of time. It lags by the longest wait for a first token, up to a
// patience after which a request's worker is taken as unknown.
//
// A Feed is not safe for concurrent use.
type Feed struct {
	shadow   *Shadow
	patience time.Duration
	began    time.Time // time 0 of the shadow; zero before the first event
	events   events
	serial   uint64
}

// disorder is by how much events may come later than others that were after them.
const disorder = 250 * time.Millisecond

// NewFeed is for a shadow without requests.
func NewFeed(s *Shadow, patience time.Duration) *Feed { return &Feed{shadow: s, patience: patience} }

// Entry is a request in a [Feed].
type Entry struct {
	request Request
	flight  *Flight // once it has been given on
	decided bool    // its worker is known, or never will be
	output  int
	cached  int
}

// Begin is a request that is about to be sent. Its Worker is 0 where the request does not name
// one.
func (f *Feed) Begin(at time.Time, r Request) *Entry {
	if f.began.IsZero() {
		f.began = at
	}
	e := &Entry{request: r, decided: r.Worker != 0, cached: -1}
	f.push(at, beginning, e)
	return e
}

// First is a request's first token, with its worker; 0 if the server does not say.
func (f *Feed) First(at time.Time, e *Entry, worker sim.WorkerID) {
	f.decide(e, worker)
	f.push(at, firstToken, e)
}

// End is a request's end: see [Shadow.End]. A request that has failed is not to be held
// against anything: give −1 as its cachedTokens.
func (f *Feed) End(at time.Time, e *Entry, outputTokens, cachedTokens int) {
	f.decide(e, 0)
	e.output, e.cached = outputTokens, cachedTokens
	f.push(at, ending, e)
}

func (f *Feed) decide(e *Entry, worker sim.WorkerID) {
	if worker != 0 {
		e.request.Worker = worker
	}
	e.decided = true
}

// Advance gives on what can be given on at a moment, and says up to when the shadow knows
// everything. It is to be called now and then, once a second say, and before figures are read.
func (f *Feed) Advance(now time.Time) time.Duration {
	if f.began.IsZero() {
		return 0
	}
	moment := now.Sub(f.began)
	for len(f.events) > 0 {
		e := f.events[0]
		if e.at > moment-disorder || e.kind == beginning && !e.entry.decided && e.at > moment-f.patience {
			return min(e.at, moment)
		}
		heap.Pop(&f.events)
		switch e.kind {
		case beginning:
			e.entry.flight = f.shadow.Begin(e.at, e.entry.request)
		case firstToken:
			f.shadow.First(e.at, e.entry.flight)
		case ending:
			f.shadow.End(e.at, e.entry.flight, e.entry.output, e.entry.cached)
			e.entry.flight = nil
		}
	}
	return max(moment-disorder, 0)
}

// Waiting is how many events are held back.
func (f *Feed) Waiting() int { return len(f.events) }

func (f *Feed) push(at time.Time, kind eventKind, e *Entry) {
	f.serial++
	heap.Push(&f.events, event{at: max(at.Sub(f.began), 0), kind: kind, serial: f.serial, entry: e})
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
