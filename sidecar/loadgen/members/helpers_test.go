package members

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/natstest"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/workload"
)

// guarded is a lock for the fields of a test double.
type guarded struct{ mu sync.Mutex }

func (g *guarded) locked(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// fakeTarget is a server under load in memory.
type fakeTarget struct {
	guarded
	latency    time.Duration
	sent       map[string]int // number of requests by id
	ended      int
	byInstance map[string]int // turns by instance, since the last call of takeByInstance
}

func newFakeTarget(latency time.Duration) *fakeTarget {
	return &fakeTarget{latency: latency, sent: map[string]int{}, byInstance: map[string]int{}}
}

func (a *fakeTarget) Do(ctx context.Context, r chat.Request) chat.Result {
	a.locked(func() {
		a.sent[r.ID]++
		a.byInstance[r.Instance]++
	})
	defer a.locked(func() { a.ended++ })
	res := chat.Result{Sent: time.Now()}
	if !pause(ctx, a.latency) {
		res.Ended, res.Cancelled = time.Now(), true
		return res
	}
	for i := range 4 {
		res.Chunks = append(res.Chunks, chat.Chunk{At: a.latency/2 + time.Duration(i)*a.latency/8, Tokens: 1})
		r.OnChunk(1)
	}
	res.Content, res.Ended = "Answer to "+r.ID, time.Now()
	res.Usage = &chat.Usage{Prompt: 100, Completion: 4}
	return res
}

func (a *fakeTarget) Close() {}

// Probes returns a number that soon stays at 3.
func (a *fakeTarget) Probes() int64 {
	sent, _ := a.requests()
	return int64(min(sent, 3))
}

// requests returns how many requests were sent, and how many are in progress.
func (a *fakeTarget) requests() (sent, inside int) {
	a.locked(func() { sent, inside = len(a.sent), len(a.sent)-a.ended })
	return sent, inside
}

// takeByInstance returns the number of turns by instance since its last call.
func (a *fakeTarget) takeByInstance() (taken map[string]int) {
	a.locked(func() { taken, a.byInstance = a.byInstance, map[string]int{} })
	return taken
}

// runRecorder is a receiver that records the reports of a run.
type runRecorder struct {
	guarded
	active int
	turns  map[string]workload.Turn
	twice  []string // ids of turns that were reported again

	conversations map[int64]api.ConversationStatus // by number
	tokens        int
	probes        int64
	shadow        *live.Live
}

func newRunRecorder() *runRecorder {
	return &runRecorder{turns: map[string]workload.Turn{}, conversations: map[int64]api.ConversationStatus{}}
}

func (e *runRecorder) Active(actual, _ int)      { e.locked(func() { e.active = actual }) }
func (e *runRecorder) Tokens(_ time.Time, n int) { e.locked(func() { e.tokens += n }) }
func (e *runRecorder) Probes(n int64)            { e.locked(func() { e.probes += n }) }
func (e *runRecorder) Shadow() *live.Live        { return e.shadow }

func (e *runRecorder) Conversation(c api.Conversation) {
	e.locked(func() { e.conversations[c.Number] = c.Status })
}

func (e *runRecorder) Turn(t *workload.Turn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.turns[t.RequestID]; ok {
		e.twice = append(e.twice, t.RequestID)
	}
	e.turns[t.RequestID] = *t
}

func (e *runRecorder) now() (active int) {
	e.locked(func() { active = e.active })
	return active
}

// waitActive waits until n conversations are reported in progress. With conversations this short, the reported number
// is seldom complete.
func (e *runRecorder) waitActive(t *testing.T, n int) {
	t.Helper()
	wait.Eventually(t, fmt.Sprintf("%d conversations are in progress", n), func() (any, bool) {
		active := e.now()
		return active, active == n
	})
}

// memoryStore is a store in memory.
type memoryStore struct {
	guarded
	turns  map[string]api.Turn
	events []string
	fresh  []api.Conversation         // stored with a turn
	latest map[int64]api.Conversation // by number
}

func newMemoryStore() *memoryStore {
	return &memoryStore{turns: map[string]api.Turn{}, latest: map[int64]api.Conversation{}}
}

func (k *memoryStore) SaveConversation(c api.Conversation) {
	k.locked(func() { k.latest[c.Number] = c })
}

func (k *memoryStore) SaveNewConversation(c api.Conversation) {
	k.locked(func() { k.fresh = append(k.fresh, c) })
}

func (k *memoryStore) SaveTurn(t api.Turn) { k.locked(func() { k.turns[t.RequestID] = t }) }

func (k *memoryStore) SaveEvent(_ context.Context, e api.Event) (api.Event, error) {
	k.locked(func() { k.events = append(k.events, e.Text) })
	return e, nil
}

// Steps returns one step that began before every run, and one that begins now.
func (k *memoryStore) Steps(_ context.Context, lane string) ([]api.StepRecord, error) {
	return []api.StepRecord{
		{Lane: lane, ID: 1, Started: time.Now().Add(-time.Minute)},
		{Lane: lane, ID: 2, Started: time.Now()},
	}, nil
}

func (k *memoryStore) TurnsFrom(_ context.Context, _ string, _ int64, add func(*api.Turn) error) error {
	all, _ := k.contents()
	for _, t := range all {
		if err := add(&t); err != nil {
			return err
		}
	}
	return nil
}

func (k *memoryStore) LostTurns() int64            { return 0 }
func (k *memoryStore) Flush(context.Context) error { return nil }

func (k *memoryStore) contents() (turns map[string]api.Turn, events []string) {
	k.locked(func() { turns, events = maps.Clone(k.turns), slices.Clone(k.events) })
	return turns, events
}

func accessOf(l *natstest.Link) Access { return Access{URL: l.URL(), Fleet: "test"} }

// fleet is a coordinator with members in this process.
type fleet struct {
	t     *testing.T
	nats  *natstest.Server
	out   *fakeTarget
	store *memoryStore
	coord *Coordinator
}

func log(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// emptyFleet returns a fleet without a coordinator. The arguments are those of its NATS server.
func emptyFleet(t *testing.T, args ...string) *fleet {
	t.Helper()
	t.Parallel()
	out := newFakeTarget(200 * time.Millisecond)
	return &fleet{t: t, nats: natstest.Start(t, args...), out: out, store: newMemoryStore()}
}

// newFleet returns a fleet with a number of members.
func newFleet(t *testing.T, members int) *fleet {
	t.Helper()
	f := emptyFleet(t)
	f.runCoordinator(accessOf(f.nats.Link))
	f.join(members, func(*MemberOptions) {})
	return f
}

// newFleetBehindLink returns a fleet whose coordinator connects through a link of its own.
func newFleetBehindLink(t *testing.T, members int) (*fleet, *natstest.Link) {
	t.Helper()
	f, k := emptyFleet(t), natstest.NewLink(t)
	k.Lead(f.nats.Address)
	f.runCoordinator(accessOf(k))
	f.join(members, func(*MemberOptions) {})
	return f, k
}

// join runs n members, m0 and so on, and waits until the coordinator has them.
func (f *fleet) join(n int, change func(*MemberOptions)) {
	f.t.Helper()
	for i := range n {
		f.member(fmt.Sprint("m", i), change)
	}
	wait.Eventually(f.t, "all members are there", func() (any, bool) {
		all, known := f.coord.present(time.Now())
		return len(all), known && len(all) == n
	})
}

func (f *fleet) options(access Access) Options {
	return Options{Access: access, Name: "test", Version: "1", FilesEach: 1, Store: f.store, Log: log(f.t)}
}

// open opens a coordinator of an owner, which does not run.
func (f *fleet) open(owner string) (*Coordinator, error) {
	o := f.options(accessOf(f.nats.Link))
	o.Owner, o.Name = owner, "at "+owner
	return Open(f.t.Context(), o)
}

// runCoordinator opens a coordinator and runs it.
func (f *fleet) runCoordinator(access Access) {
	f.t.Helper()
	c, err := Open(f.t.Context(), f.options(access))
	require.NoError(f.t, err)
	f.coord = c
	f.spawn(func(ctx context.Context) { assert.NoError(f.t, c.Run(ctx)) })
}

// spawn runs a function until the end of the test, or until end is called.
func (f *fleet) spawn(run func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	end = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	f.t.Cleanup(end)
	return end
}

// member runs a member. err returns the error that it ended with.
func (f *fleet) member(name string, change func(*MemberOptions)) (err func() error, end func()) {
	var failed atomic.Pointer[error]
	end = f.spawn(func(ctx context.Context) {
		o := MemberOptions{
			Access: accessOf(f.nats.Link), Name: name, Version: "1", Log: log(f.t),
			Target: func(TargetOptions) (Target, error) { return f.out, nil },
			Questioner: func(FollowupOptions) (corpus.Questioner, func(), error) {
				return corpus.BuiltinQuestioner{}, nil, nil
			},
			Health: func(time.Time) api.ClientHealth { return api.ClientHealth{Verdict: api.VerdictFine} },
		}
		change(&o)
		err := RunMember(ctx, o)
		failed.Store(&err)
	})
	return func() error {
		if p := failed.Load(); p != nil {
			return *p
		}
		return nil
	}, end
}

var loopback = TargetOptions{URL: "http://127.0.0.1:1"}

func settingsFor(concurrency int) workload.Settings {
	return workload.Settings{Concurrency: concurrency, Turns: api.Range{Min: 2, Max: 3}, MaxTokens: 8, StartRate: 1000}
}

// orderOf returns the order of a run.
func orderOf(name, run string) order {
	o := noRun(name)
	o.Run = run
	return o
}

func task(t *testing.T, run string, concurrency int) lane.Task {
	t.Helper()
	texts, err := corpus.Builtin()
	require.NoError(t, err)
	settled := time.Now()
	return lane.Task{
		Lane: "main", Run: run, Seed: 7, Corpus: texts, Receiver: newRunRecorder(),
		Step:     api.StepRecord{Lane: "main", ID: 1, Concurrency: concurrency, Settled: &settled},
		Settings: settingsFor(concurrency),
	}
}

// run begins a run and waits until all conversations are in progress.
func (f *fleet) run(concurrency int) (receiver *runRecorder, r lane.Runner, stop func()) {
	f.t.Helper()
	begun := task(f.t, "r1", concurrency)
	receiver = begun.Receiver.(*runRecorder)
	r = f.coord.Engine(loopback, FollowupOptions{}, nil).Begin(begun)
	stop = f.spawn(r.Run)
	receiver.waitActive(f.t, concurrency)
	return receiver, r, stop
}

// checkEachOnce waits until every turn that was sent is stored, and checks that it was sent and reported once.
func (f *fleet) checkEachOnce(receiver *runRecorder) {
	f.t.Helper()
	wait.Eventually(f.t, "every turn is stored", func() (any, bool) {
		turns, _ := f.store.contents()
		sent, inside := f.out.requests()
		return fmt.Sprintf("%d of %d", len(turns), sent), len(turns) == sent && inside == 0
	})
	assert.Empty(f.t, receiver.twice)
	assert.Len(f.t, receiver.turns, len(f.out.sent), "every turn is measured")
	for id, n := range f.out.sent {
		assert.Equal(f.t, 1, n, id)
	}
}

// waitBegun waits until a run has begun more conversations than the given number.
func (f *fleet) waitBegun(r lane.Runner, more int64) {
	f.t.Helper()
	n := r.Pace().Begun
	wait.Eventually(f.t, "conversations begin", func() (any, bool) { return r.Pace().Begun, r.Pace().Begun > n+more })
}
