package live

import (
	"context"
	"hash/fnv"
	"iter"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/shadow"
	"kvbooth/sidecar/sim"
)

const (
	// mostFollowed bounds the turns that are followed at a time.
	mostFollowed = 20_000
	// patience is how long the account waits to hear where a turn went.
	patience = 30 * time.Second
	// foresight is how long turns at the start wait for what the cluster's metrics tell.
	foresight = 10 * time.Second
	// missing is how long a worker that nothing tells of is taken to be there still.
	missing = 10 * time.Second
	// leastSkew is by how much the router may have seen a turn earlier or later on a quiet machine.
	leastSkew = 50 * time.Millisecond
	// adjustEvery is how often the cluster is looked at.
	adjustEvery = time.Second
)

// Options are what a Live is made of.
type Options struct {
	Lane string
	// Tells says whether the target tells the ids of prompts' tokens, and whether it tells
	// which worker serves a turn. It must not call the Live.
	Tells func() (ids, workers bool)
	// Cluster is what is known of the cluster.
	Cluster func() api.Cluster
	// State is the lane's. It is called with no lock held, and must not call the Live.
	State func() api.State
	Log   *slog.Logger
}

// Live is the shadow of one lane. It is safe for concurrent use; a nil one follows nothing.
type Live struct {
	opts  Options
	began time.Time

	queue struct {
		mu       sync.Mutex
		events   []event
		followed int   // turns that have not ended
		lost     int64 // since the last reset
		open     bool  // there is an account
		closed   bool  // there is none, and will not be soon: nothing is followed
		ids      bool  // the ids of tokens are wanted
		serial   int64 // of the account
	}
	wake chan struct{}

	mu      sync.Mutex // held while the account changes or is read
	account *account   // nil: there is none
	problem string     // why
	ratio   perToken
	guess   shadow.Guess // of the engines, as the account before has it
}

// account is a shadow with what belongs to it.
type account struct {
	*shadow.Shadow
	sequencer *shadow.Sequencer
	serial    int64
	since     time.Time
	ids       bool
	ratio     float64 // bytes of text that stand for a token, where ids is false
	size      size
	seen      map[sim.WorkerID]time.Time // workers, and when they were heard of last
	skew      time.Duration
	rules     rules
	away      away
}

// New makes a shadow that follows nothing before Run.
func New(o Options) *Live {
	l := &Live{opts: o, began: time.Now(), wake: make(chan struct{}, 1), problem: "no cluster data yet"}
	l.queue.serial = l.began.UnixNano() // no account has that of one in an earlier process, of which others may still tell
	return l
}

// Run keeps the account until ctx ends. It is called once.
func (l *Live) Run(ctx context.Context) {
	tick := time.NewTicker(adjustEvery)
	defer tick.Stop()
	l.adjust(time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.adjust(time.Now())
		case <-l.wake:
		}
		l.advance(time.Now())
	}
}

// event is something that happened to a turn.
type event struct {
	at   time.Time
	kind kind
	turn *Turn

	ids    []uint32
	worker uint64
	result Result
}

type kind uint8

const (
	routed kind = iota
	begun       // the first token has come
	ended
	over // the conversation has ended, of which only [Notes] hear
)

// Sent is a turn that is about to be sent.
type Sent struct {
	ID           string // of the request
	Conversation string
	Last         bool                      // of the conversation's turns
	Instance     uint64                    // that it is pinned to; 0 leaves it to the router
	Messages     iter.Seq2[string, string] // role and text; may be called later, from another goroutine
	Concurrency  int
}

// Turn is a turn that is followed. A nil one is not. Its methods are called one after the
// other and return at once.
type Turn struct {
	to     interface{ note(e event) } // nil: it is heard of from another process
	serial int64
	ids    bool
	sent   time.Time
	Sent

	number int64         // among those that another process is told of
	last   time.Time     // event that another process has told of
	within time.Duration // how far its clock may be off

	// Of the goroutine that keeps the account, or tells of it.
	text   int // bytes of the prompt
	tokens int
	blocks []uint64
	entry  *shadow.Entry
	first  time.Time // when its first token came; zero before
	told   bool      // the sequencer knows of that
	begun  bool      // [Notes] have told of its beginning
}

// Follow hears of a turn; nil where it is not followed.
func (l *Live) Follow(s Sent) *Turn {
	if l == nil {
		return nil
	}
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	if l.queue.closed {
		return nil
	}
	if !l.queue.open { // nobody has looked since the target was probed, perhaps
		ids, _ := l.opts.Tells()
		l.asks(ids)
	}
	if l.queue.followed >= mostFollowed {
		l.queue.lost++
		return nil
	}
	l.queue.followed++
	t := &Turn{to: l, serial: l.queue.serial, ids: l.queue.ids, sent: time.Now(), Sent: s}
	if !t.ids {
		l.put(event{at: t.sent, kind: routed, turn: t})
	}
	return t
}

// WantsIDs says whether the ids of the prompt's tokens are wanted.
func (t *Turn) WantsIDs() bool { return t != nil && t.ids }

// Routed says that the router has chosen, with the ids of the prompt's tokens.
func (t *Turn) Routed(ids []uint32) {
	if t.WantsIDs() {
		t.to.note(event{kind: routed, turn: t, ids: ids})
	}
}

// FirstToken says that an answer begins; worker is 0 where nobody told.
func (t *Turn) FirstToken(worker uint64) {
	if t != nil {
		t.to.note(event{kind: begun, turn: t, worker: worker})
	}
}

// Result is how a turn ended.
type Result struct {
	OK           bool   `json:"ok,omitempty"`
	Worker       uint64 `json:"worker,omitempty"` // 0 where nobody told
	PromptTokens int    `json:"prompt,omitempty"` // 0 where nobody told
	OutputTokens int    `json:"output,omitempty"`
	CachedTokens int    `json:"cached"`          // −1 where nobody told
	Bytes        int    `json:"bytes,omitempty"` // of the answer's text
}

// Ended says that a turn has ended.
func (t *Turn) Ended(r Result) {
	if t != nil {
		t.to.note(event{kind: ended, turn: t, worker: r.Worker, result: r})
	}
}

// note puts an event into the queue.
func (l *Live) note(e event) {
	e.at = time.Now()
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.put(e)
}

// put is note with the lock held. A turn has three events, so that the queue is bounded
// as the turns are.
func (l *Live) put(e event) {
	if e.kind == ended {
		l.queue.followed--
	}
	if l.queue.closed || e.turn.serial != l.queue.serial {
		return // the account that it belonged to is gone
	}
	l.queue.events = append(l.queue.events, e)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Reset begins anew, with empty caches. The turns in flight are not followed any more;
// those that are sent from now on are.
func (l *Live) Reset() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.account; a != nil {
		l.drop()
		l.open(time.Now(), a.ids, a.size)
	}
}

// drop gives the account up. The lock is held.
func (l *Live) drop() {
	l.guess, l.account = l.account.Guess(), nil
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.queue.open, l.queue.events, l.queue.lost = false, nil, 0
	l.queue.serial++
}

// adjust makes an account where there can be one, and gives it the cluster's size.
func (l *Live) adjust(now time.Time) {
	cluster, state := l.opts.Cluster(), l.opts.State() // which may wait for whoever resets
	ids, tellsWorker := l.opts.Tells()
	l.mu.Lock()
	defer l.mu.Unlock()
	size, problem := sizeOf(cluster)
	if problem == "" && !tellsWorker {
		problem = "the target does not report which worker serves a turn (nvext.worker_id); NVIDIA Dynamo does"
	}
	a := l.account
	switch {
	case problem != "" && a == nil:
		l.problem = problem
		l.await(now, ids)
		return
	case problem != "": // what was known of the cluster holds until more is known
		return
	case a != nil && (a.size.tokens != size.tokens || a.ids != ids || !ids && l.ratio.differs(a.ratio)):
		l.drop()
		a = nil
	}
	if a == nil {
		a = l.open(now, ids, size)
		if a == nil {
			l.await(now, ids)
			return
		}
	}
	a.size = size
	a.SetCapacity(size.blocks)
	a.SetWorkers(a.present(now))
	a.rules.watch(cluster, state.Running)
}

// present are the workers that metrics or turns have told of lately: a page that cannot be
// read once must not cost a worker its cache.
func (a *account) present(now time.Time) []sim.WorkerID {
	for _, id := range a.size.workers {
		a.seen[id] = now
	}
	maps.DeleteFunc(a.seen, func(_ sim.WorkerID, last time.Time) bool { return now.Sub(last) > missing })
	return slices.Sorted(maps.Keys(a.seen))
}

// await keeps what turns tell while there is no account yet, and nothing where there will
// be none. The lock is held.
func (l *Live) await(now time.Time, ids bool) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.asks(ids)
	if l.queue.closed = now.Sub(l.began) > foresight; l.queue.closed {
		l.queue.events = nil
	}
}

// asks says whether the ids of tokens are wanted; what has been noted otherwise is of no
// use then. The queue's lock is held.
func (l *Live) asks(ids bool) {
	if l.queue.ids != ids {
		l.queue.ids, l.queue.events = ids, nil
		l.queue.serial++
	}
}

// open begins an account. The lock is held.
func (l *Live) open(now time.Time, ids bool, size size) *account {
	o := shadow.DefaultOptions(size.tokens)
	o.Workers, o.Capacity, o.Guess = size.workers, size.blocks, l.guess
	s, err := shadow.New(o)
	if err != nil {
		l.problem = "the cluster reports impossible sizes: " + err.Error()
		return nil
	}
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.asks(ids)
	l.queue.open, l.queue.closed = true, false
	l.account = &account{Shadow: s, sequencer: shadow.NewSequencer(s, patience), serial: l.queue.serial, since: now, ids: ids, ratio: l.ratio.inUse(), size: size, seen: map[sim.WorkerID]time.Time{}}
	l.problem = ""
	l.opts.Log.Info("shadowing other routing policies", "lane", l.opts.Lane, "workers", len(size.workers), "block_tokens", size.tokens, "worker_blocks", size.blocks, "token_ids", ids)
	return l.account
}

// advance takes what has been noted, and brings the account up to where it can be.
func (l *Live) advance(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account
	if a == nil {
		return
	}
	l.queue.mu.Lock()
	events := l.queue.events
	l.queue.events = nil
	l.queue.mu.Unlock()
	for i := range events {
		if events[i].turn.serial == a.serial {
			l.take(a, &events[i])
		}
	}
	events, known := a.away.release(now)
	for i := range events { // each at its time, as if it had been heard of then
		l.take(a, &events[i])
		a.sequencer.Advance(events[i].at)
	}
	a.sequencer.Advance(known)
}

// take tells the sequencer of an event.
func (l *Live) take(a *account, e *event) {
	t := e.turn
	if id := sim.WorkerID(e.worker); id != 0 && e.at.After(a.seen[id]) {
		a.seen[id] = e.at
	}
	switch e.kind {
	case routed:
		a.late(e.at.Sub(t.sent) + t.within)
		if t.to != nil {
			t.cut(a.cut(), e.ids)
		}
		t.entry = a.sequencer.Begin(e.at, shadow.Request{
			ID: t.ID, Conversation: number(t.Conversation), Last: t.Last, Worker: sim.WorkerID(t.Instance),
			Blocks: t.blocks, PromptTokens: t.tokens,
		})
	case begun:
		if t.entry == nil {
			l.lose() // the target told no ids of this prompt
			return
		}
		if t.first = e.at; e.worker != 0 {
			a.sequencer.First(e.at, t.entry, sim.WorkerID(e.worker))
			t.told = true
		} // else the end of the answer may tell
	case ended:
		if t.entry == nil {
			return
		}
		output, cached := e.result.OutputTokens, e.result.CachedTokens
		switch {
		case !e.result.OK:
			cached = -1
		case !t.ids: // in tokens as long as those that its text was cut into
			output = int(float64(e.result.Bytes+len(answering)) / a.ratio)
			if cached = -1; e.result.PromptTokens > 0 && e.result.CachedTokens >= 0 {
				cached = int(math.Round(float64(e.result.CachedTokens) / float64(e.result.PromptTokens) * float64(t.tokens)))
			}
		}
		if !t.told && !t.first.IsZero() {
			a.sequencer.First(t.first, t.entry, sim.WorkerID(e.worker))
		}
		a.sequencer.End(e.at, t.entry, output, cached)
		if e.result.OK {
			l.ratio.add(t.text, e.result.PromptTokens)
			a.rules.ended(t, &e.result, a.size.tokens)
		}
	}
}

// late hears how long after a turn was sent it was told what the router had read. When it chose
// lies in between, so that much the account may be off: far more on a machine that is too
// busy than on another. A long delay is forgotten within some hundred turns.
func (a *account) late(delay time.Duration) {
	a.skew = max(leastSkew, delay, a.skew*98/100)
	a.SetSkew(a.skew)
}

// lose counts a turn that could not be followed.
func (l *Live) lose() {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.queue.lost++
}

// number stands for a conversation.
func number(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return h.Sum64() | 1
}
