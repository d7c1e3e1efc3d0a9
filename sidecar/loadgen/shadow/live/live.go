package live

import (
	"cmp"
	"context"
	"hash/fnv"
	"iter"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster/router"
	"kvbooth/sidecar/loadgen/shadow"
	"kvbooth/sidecar/sim"
)

const (
	// maxFollowed is the number of turns that are followed at a time at most.
	maxFollowed = 20_000

	// maxHeld is the size in bytes of answers in the prompts of waiting turns from which further turns are lost. The
	// answers of a conversation that has ended are kept by nothing else.
	maxHeld = 32 << 20
	// workerTimeout bounds the wait for the worker of a turn.
	workerTimeout = 30 * time.Second
	// clusterTimeout bounds the wait of the first turns for the cluster's metrics.
	clusterTimeout = 10 * time.Second
	// workerExpiry is the time after which a worker is removed that neither metrics nor turns report.
	workerExpiry = 10 * time.Second
	// minSkew is the skew of the router's times on an idle machine.
	minSkew = 50 * time.Millisecond
	// adjustEvery is the interval between readings of the cluster.
	adjustEvery = time.Second
)

// Options configure a Live.
type Options struct {
	Lane string
	// Capabilities returns whether the target reports the ids of prompts' tokens, and whether it
	// reports the worker of a turn. It must not call the Live.
	Capabilities func() (ids, workers bool)
	// Router returns the id of the recognized router, "" while unknown. It must not call the Live.
	Router func() string
	// Cluster returns the state of the cluster.
	Cluster func() api.Cluster
	// SendsSession reports whether requests name their conversation to the router. It must not call the Live.
	SendsSession func() bool
	// State returns the lane's state. It is called without a lock, and must not call the Live.
	State func() api.State
	Log   *slog.Logger
}

// Live is the shadow of one lane. It is safe for concurrent use. A nil Live follows nothing.
type Live struct {
	opts  Options
	began time.Time

	queue struct {
		mu       sync.Mutex
		events   []event
		held     int   // bytes of answers in the prompts of events
		followed int   // turns that have not ended
		lost     int64 // turns lost since the last reset
		open     bool  // there is an account
		closed   bool  // there is no account, and none is expected soon: nothing is followed
		ids      bool  // the account needs token ids
		serial   int64 // serial number of the account
	}
	wake chan struct{}
	// ids are the ids of workers by name: a router's header can name a worker that its metrics page gives an id.
	ids atomic.Pointer[map[string]string]

	mu      sync.Mutex // held while the account changes or is read
	account *account   // nil while there is none
	problem string     // the reason why there is no account
	ratio   perToken
	guess   shadow.Guess // assumptions from the previous account of the same engines
}

// account is a shadow with its inputs.
type account struct {
	*shadow.Shadow
	sequencer *shadow.Sequencer
	serial    int64
	since     time.Time
	ids       bool
	ratio     float64 // bytes of text for one token, where ids is false
	size      size
	seen      map[sim.WorkerID]time.Time // when each worker was last reported
	skew      time.Duration
	rules     rules
}

// New makes a shadow that follows nothing before Run.
func New(o Options) *Live {
	l := &Live{opts: o, began: time.Now(), wake: make(chan struct{}, 1), problem: "no cluster data yet"}
	l.queue.serial = l.began.UnixNano()
	return l
}

// Run maintains the account until ctx ends. It must be called only once.
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

// event is an event of a turn.
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
	eventRouted kind = iota
	eventFirstToken
	eventEnded
)

// Sent describes a turn that is about to be sent.
type Sent struct {
	ID           string // id of the request
	Conversation string
	Last         bool   // the last turn of the conversation
	Instance     uint64 // the instance that the turn is pinned to; 0 leaves it to the router
	Concurrency  int
	Answers      int // bytes of the answers among the messages
	// Messages are the roles and texts. It may be called later, from another goroutine.
	Messages iter.Seq2[string, string]
}

// Turn is a turn that is followed. A nil Turn is not followed. Its methods must be called in
// order and return at once.
type Turn struct {
	live   *Live
	serial int64
	ids    bool
	sent   time.Time
	Sent

	// The fields below belong to the goroutine that maintains the account.
	text      int // bytes of the prompt
	tokens    int
	blocks    []uint64
	opening   uint64 // last block of the opening
	entry     *shadow.Entry
	first     time.Time // time of the first token; zero before
	firstSent bool      // the sequencer has the first token
}

// Follow begins to follow a turn. It returns nil for a turn that is not followed.
func (l *Live) Follow(s Sent) *Turn {
	if l == nil {
		return nil
	}
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	if l.queue.closed {
		return nil
	}
	if !l.queue.open { // the target may have been probed since the last adjustment
		ids, _ := l.opts.Capabilities()
		l.setIDs(ids)
	}
	if l.queue.followed >= maxFollowed || l.queue.held >= maxHeld {
		l.queue.lost++
		return nil
	}
	l.queue.followed++
	t := &Turn{live: l, serial: l.queue.serial, ids: l.queue.ids, sent: time.Now(), Sent: s}
	if !t.ids {
		l.push(event{at: t.sent, kind: eventRouted, turn: t})
	}
	return t
}

// WantsIDs reports whether Routed must be called with the ids of the prompt's tokens.
func (t *Turn) WantsIDs() bool { return t != nil && t.ids }

// Routed reports that the router has chosen a worker, with the ids of the prompt's tokens.
func (t *Turn) Routed(ids []uint32) {
	if t.WantsIDs() {
		t.live.record(event{kind: eventRouted, turn: t, ids: ids})
	}
}

// FirstToken reports the first token of the answer; worker is empty where it is unknown.
func (t *Turn) FirstToken(worker string) {
	if t != nil {
		t.live.record(event{kind: eventFirstToken, turn: t, worker: t.live.number(worker)})
	}
}

// Result is the result of a turn.
type Result struct {
	OK           bool
	Worker       uint64 // 0: unknown
	PromptTokens int    // 0: unknown
	OutputTokens int
	CachedTokens int // −1: unknown
	Bytes        int // size of the answer's text
}

// Ended reports the end of a turn.
func (t *Turn) Ended(turn *api.Turn) { t.end(t.result(turn)) }

func (t *Turn) end(r Result) {
	if t != nil {
		t.live.record(event{kind: eventEnded, turn: t, worker: r.Worker, result: r})
	}
}

// result returns the part of an ended turn that an account takes.
func (t *Turn) result(turn *api.Turn) Result {
	r := Result{OK: turn.Status == api.TurnOK, CachedTokens: -1, Bytes: len(turn.AssistantMessage)}
	if t != nil {
		r.Worker = t.live.number(turn.Worker)
	}
	api.Patch(&r.PromptTokens, turn.PromptTokens)
	api.Patch(&r.OutputTokens, turn.OutputTokens)
	api.Patch(&r.CachedTokens, turn.CachedTokens)
	return r
}

// number returns the number of a worker that a turn names.
func (l *Live) number(name string) uint64 {
	if ids := l.ids.Load(); ids != nil {
		name = cmp.Or((*ids)[name], name)
	}
	return workerNumber(name)
}

// record adds an event to the queue.
func (l *Live) record(e event) {
	e.at = time.Now()
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.push(e)
}

// push is record with the lock held. A turn has three events, so that the bound on turns bounds
// the queue.
func (l *Live) push(e event) {
	if e.kind == eventEnded {
		l.queue.followed--
	}
	if l.queue.closed || e.turn.serial != l.queue.serial {
		return // the account of the turn was replaced
	}
	l.queue.events = append(l.queue.events, e)
	if e.kind == eventRouted {
		l.queue.held += e.turn.Answers
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Reset starts a new account, with empty caches. Turns in flight are not followed any more;
// turns that are sent from now on are.
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

// drop removes the account. The lock is held.
func (l *Live) drop() {
	l.guess = l.account.Guess()
	l.account = nil
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.queue.open = false
	l.queue.events, l.queue.held = nil, 0
	l.queue.lost = 0
	l.queue.serial++
}

// identified returns workers with the ids that are known by their names. Where only a router's page shows a worker, its
// name stands in place of the id.
func identified(workers []api.Worker, known map[string]string) []api.Worker {
	workers = slices.Clone(workers)
	for i := range workers {
		if w := &workers[i]; w.ID == w.Name {
			w.ID = cmp.Or(known[w.Name], w.ID)
		}
	}
	return workers
}

// maxNames is the number of workers' names from which on those of workers that are gone are forgotten.
const maxNames = 4096

// adjust opens an account when the cluster's size is known, and updates its size.
func (l *Live) adjust(now time.Time) {
	cluster := l.opts.Cluster() // Cluster and State may block on a caller of Reset
	state := l.opts.State()
	ids, reportsWorker := l.opts.Capabilities()
	front := router.ByID(cmp.Or(l.opts.Router(), cluster.Router))
	byName := map[string]string{}
	if known := l.ids.Load(); known != nil && len(*known) < maxNames {
		maps.Copy(byName, *known) // of a worker whose page was not read this time, too
	}
	cluster.Workers = identified(cluster.Workers, byName)
	for _, w := range cluster.Workers {
		byName[w.Name] = w.ID
	}
	l.ids.Store(&byName)
	l.mu.Lock()
	defer l.mu.Unlock()
	size, problem := sizeOf(cluster, front)
	if problem == "" && !reportsWorker {
		problem = unattributed(front)
	}
	a := l.account
	switch {
	case problem != "" && a == nil:
		l.problem = problem
		l.awaitCluster(now, ids)
		return
	case problem != "": // the last known size of the cluster stays in use
		return
	case a != nil && (a.size.tokens != size.tokens || a.ids != ids):
		l.drop()
		a = nil
	}
	if a == nil {
		a = l.open(now, ids, size)
		if a == nil {
			l.awaitCluster(now, ids)
			return
		}
	}
	a.size = size
	a.SetCapacity(size.blocks)
	a.SetWorkers(a.present(now))
	a.rules.observe(cluster, state.Running)
}

// present returns the workers that metrics or turns have reported lately. A metrics page that
// cannot be read once must not cost a worker its cache.
func (a *account) present(now time.Time) []sim.WorkerID {
	for _, id := range a.size.workers {
		a.seen[id] = now
	}
	maps.DeleteFunc(a.seen, func(_ sim.WorkerID, last time.Time) bool { return now.Sub(last) > workerExpiry })
	return slices.Sorted(maps.Keys(a.seen))
}

// awaitCluster keeps the events of turns until an account opens, and drops them after
// clusterTimeout. The lock is held.
func (l *Live) awaitCluster(now time.Time, ids bool) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.setIDs(ids)
	l.queue.closed = now.Sub(l.began) > clusterTimeout
	if l.queue.closed {
		l.queue.events, l.queue.held = nil, 0
	}
}

// setIDs sets whether token ids are needed. A change invalidates all queued events. The queue's
// lock is held.
func (l *Live) setIDs(ids bool) {
	if l.queue.ids != ids {
		l.queue.ids = ids
		l.queue.events, l.queue.held = nil, 0
		l.queue.serial++
	}
}

// open opens an account. The lock is held.
func (l *Live) open(now time.Time, ids bool, size size) *account {
	o := shadow.DefaultOptions(size.tokens)
	o.Workers = size.workers
	o.Capacity = size.blocks
	o.Guess = l.guess
	s, err := shadow.New(o)
	if err != nil {
		l.problem = "the cluster reports impossible sizes: " + err.Error()
		return nil
	}
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.setIDs(ids)
	l.queue.open = true
	l.queue.closed = false
	l.account = &account{
		Shadow: s, sequencer: shadow.NewSequencer(s, workerTimeout), serial: l.queue.serial, since: now, ids: ids,
		ratio: l.ratio.inUse(), size: size, seen: map[sim.WorkerID]time.Time{},
	}
	l.problem = ""
	l.opts.Log.Info("shadowing other routing policies", "lane", l.opts.Lane, "workers", len(size.workers),
		"block_tokens", size.tokens, "worker_blocks", size.blocks, "token_ids", ids)
	return l.account
}

// advance processes the queued events, and advances the account as far as possible.
func (l *Live) advance(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account
	if a == nil {
		return
	}
	l.queue.mu.Lock()
	events := l.queue.events
	l.queue.events, l.queue.held = nil, 0
	l.queue.mu.Unlock()
	for i := range events {
		if events[i].turn.serial == a.serial {
			l.apply(a, &events[i])
		}
	}
	a.sequencer.Advance(now)
}

// apply passes an event to the sequencer.
func (l *Live) apply(a *account, e *event) {
	t := e.turn
	if id := sim.WorkerID(e.worker); id != 0 && e.at.After(a.seen[id]) {
		a.seen[id] = e.at
	}
	switch e.kind {
	case eventRouted:
		a.raiseSkew(e.at.Sub(t.sent))
		a.cut(t, e.ids)
		t.entry = a.sequencer.Begin(e.at, shadow.Request{
			ID: t.ID, Conversation: conversationHash(t.Conversation), Last: t.Last, Worker: sim.WorkerID(t.Instance),
			Blocks: t.blocks, PromptTokens: t.tokens,
		})
	case eventFirstToken:
		if t.entry == nil {
			l.countLost() // the target reported no ids for this prompt
			return
		}
		t.first = e.at
		if e.worker != 0 { // otherwise the end of the answer may report the worker
			a.sequencer.First(e.at, t.entry, sim.WorkerID(e.worker))
			t.firstSent = true
		}
	case eventEnded:
		if t.entry == nil {
			return
		}
		output, cached := e.result.OutputTokens, e.result.CachedTokens
		switch {
		case !e.result.OK:
			cached = -1
		case !t.ids: // counted in the average tokens into which the text was cut
			output = int(float64(e.result.Bytes+len(beforeAnswer)) / a.ratio)
			cached = -1
			if e.result.PromptTokens > 0 && e.result.CachedTokens >= 0 {
				hitRatio := float64(e.result.CachedTokens) / float64(e.result.PromptTokens)
				cached = int(math.Round(hitRatio * float64(t.tokens)))
			}
		}
		if !t.firstSent && !t.first.IsZero() {
			a.sequencer.First(t.first, t.entry, sim.WorkerID(e.worker))
		}
		a.sequencer.End(e.at, t.entry, output, cached)
		if e.result.OK {
			l.ratio.add(t.text, e.result.PromptTokens)
			a.rules.ended(e.at, t, &e.result)
		}
	}
}

// raiseSkew takes in the delay between sending a turn and the report that it was routed. The router
// chose at some time in between, so the delay bounds the error of the account. It is much larger on
// an overloaded machine. A long delay decays within some hundred turns.
func (a *account) raiseSkew(delay time.Duration) {
	a.skew = max(minSkew, delay, a.skew*98/100)
	a.SetSkew(a.skew)
}

// countLost counts a turn that could not be followed.
func (l *Live) countLost() {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.queue.lost++
}

// conversationHash returns the number of a conversation in the shadow; it is never 0.
func conversationHash(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return h.Sum64() | 1
}
