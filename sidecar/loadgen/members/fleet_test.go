package members

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/workload"
)

const soon = time.Minute // on a machine with much else to do

// server is a NATS server in a process of its own.
type server struct {
	t    *testing.T
	port int
	dir  string
	args []string
	cmd  *exec.Cmd
}

func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &server{t: t, port: l.Addr().(*net.TCPAddr).Port, dir: t.TempDir(), args: args}
	require.NoError(t, l.Close())
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *server) start() {
	program := os.Getenv("NATS_SERVER")
	if program == "" {
		s.t.Skip("no nats-server")
	}
	s.cmd = exec.Command(program, append([]string{"-js", "-sd", s.dir, "-a", "127.0.0.1", "-p", strconv.Itoa(s.port)}, s.args...)...)
	require.NoError(s.t, s.cmd.Start())
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *server) access() Access {
	return Access{URL: fmt.Sprintf("nats://127.0.0.1:%d", s.port), Fleet: "test"}
}

// answers is a server under load in memory.
type answers struct {
	takes time.Duration
	ended atomic.Int64
	mu    sync.Mutex
	sent  map[string]int // request id → how often
}

func (a *answers) Do(ctx context.Context, r chat.Request) chat.Result {
	a.mu.Lock()
	a.sent[r.ID]++
	a.mu.Unlock()
	defer a.ended.Add(1)
	res := chat.Result{Sent: time.Now()}
	if !pause(ctx, a.takes) {
		res.Ended, res.Cancelled = time.Now(), true
		return res
	}
	for i := range 4 {
		res.Chunks = append(res.Chunks, chat.Chunk{At: a.takes/2 + time.Duration(i)*a.takes/8, Tokens: 1})
		r.OnChunk(1)
	}
	res.Content, res.Ended = "Answer to "+r.ID, time.Now()
	res.Usage = &chat.Usage{Prompt: 100, Completion: 4}
	return res
}

func (a *answers) Close() {}

// ears note what is heard of a run.
type ears struct {
	mu     sync.Mutex
	active int
	turns  map[string]lane.TurnElsewhere
	twice  []string
	// conversations are how each is, by its number
	conversations map[int64]api.ConversationStatus
	tokens        int
	shadow        *live.Live
}

func newEars() *ears {
	return &ears{turns: map[string]lane.TurnElsewhere{}, conversations: map[int64]api.ConversationStatus{}}
}

func (e *ears) Active(actual, _ int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active = actual
}

func (e *ears) Tokens(_ time.Time, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tokens += n
}

func (e *ears) Conversation(c api.Conversation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conversations[c.Number] = c.Status
}

func (e *ears) Turn(t lane.TurnElsewhere) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.turns[t.Row.RequestID]; ok {
		e.twice = append(e.twice, t.Row.RequestID)
	}
	e.turns[t.Row.RequestID] = t
}

func (e *ears) Shadow() *live.Live { return e.shadow }

// reaches waits until so many are in progress: they are told whenever a lease is renewed, and with
// conversations this short seldom are all there.
func (e *ears) reaches(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return e.now() == n }, soon, 10*time.Millisecond, "%d conversations in progress", n)
}

func (e *ears) now() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.active
}

// kept is a store in memory.
type kept struct {
	mu     sync.Mutex
	turns  map[string]api.Turn
	again  int
	events []string
	fresh  []api.Conversation // that came with a turn
}

func (k *kept) SaveConversation(api.Conversation) {}

func (k *kept) SaveNewConversation(c api.Conversation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fresh = append(k.fresh, c)
}

func (k *kept) SaveEvent(_ context.Context, e api.Event) (api.Event, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, e.Text)
	return e, nil
}

func (k *kept) SaveTurn(t api.Turn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.turns[t.RequestID]; ok {
		k.again++
	}
	k.turns[t.RequestID] = t
}
func (k *kept) LostTurns() int64            { return 0 }
func (k *kept) Flush(context.Context) error { return nil }

// fleet is a coordinator with members in this process.
type fleet struct {
	t     *testing.T
	nats  *server
	out   *answers
	store *kept
	coord *Coordinator
}

func log(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	s := startServer(t)
	return fleetOn(t, s, s.access())
}

// fleetOn is a fleet whose coordinator has a way of its own to the server.
func fleetOn(t *testing.T, s *server, access Access) *fleet {
	t.Helper()
	f := &fleet{t: t, nats: s, out: &answers{takes: 200 * time.Millisecond, sent: map[string]int{}}, store: &kept{turns: map[string]api.Turn{}}}
	c, err := Open(t.Context(), Options{Access: access, Name: "test", Version: "1", FilesEach: 1, Store: f.store, Log: log(t)})
	require.NoError(t, err)
	f.coord = c
	f.goes(func(ctx context.Context) { assert.NoError(f.t, c.Run(ctx)) })
	return f
}

// goes runs something until the end of the test, or of what it returns.
func (f *fleet) goes(run func(context.Context)) (end func()) {
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

func (f *fleet) member(name, version string) (err func() error, end func()) {
	return f.memberThat(name, func(o *MemberOptions) { o.Version = version })
}

func (f *fleet) memberThat(name string, is func(*MemberOptions)) (err func() error, end func()) {
	var failed atomic.Pointer[error]
	end = f.goes(func(ctx context.Context) {
		o := MemberOptions{
			Access: f.nats.access(), Name: name, Version: "1", Log: log(f.t),
			Target:     func(TargetOptions) (Target, error) { return f.out, nil },
			Questioner: func(FollowupOptions) (corpus.Questioner, func(), error) { return corpus.BuiltinQuestioner{}, nil, nil },
			Health:     func(time.Time) api.ClientHealth { return api.ClientHealth{Verdict: api.VerdictFine} },
		}
		is(&o)
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

func (f *fleet) run(concurrency int) (*ears, lane.Runner, func()) {
	f.t.Helper()
	texts, err := corpus.Builtin()
	require.NoError(f.t, err)
	heard := newEars()
	settled := time.Now()
	r := f.coord.Engine(TargetOptions{URL: "http://127.0.0.1:1"}, FollowupOptions{}, nil).Begin(lane.Task{
		Lane: "main", Run: "r1", Seed: 7, Corpus: texts, Heard: heard,
		Step:     api.StepRecord{Lane: "main", ID: 1, Concurrency: concurrency, Settled: &settled},
		Settings: workload.Settings{Concurrency: concurrency, Turns: api.Range{Min: 2, Max: 3}, MaxTokens: 8, StartRate: 1000},
	})
	return heard, r, f.goes(r.Run)
}

// Members hold what is asked for, together; what they measure is heard once, and stored once.
func TestFleet(t *testing.T) {
	f := newFleet(t)
	for i := range 3 {
		f.member(fmt.Sprint("m", i), "1")
	}
	heard, r, stop := f.run(30)
	heard.reaches(t, 30)
	r.Set(workload.Settings{Concurrency: 12, Turns: api.Range{Min: 2, Max: 3}, MaxTokens: 8, StartRate: 1000})
	heard.reaches(t, 12)
	began := time.Now()
	stop()
	t.Logf("stopped after %v", time.Since(began))
	assert.Zero(t, heard.now())
	require.Eventually(t, func() bool {
		f.store.mu.Lock()
		defer f.store.mu.Unlock()
		return len(f.store.turns) == len(f.out.sent)
	}, soon, 10*time.Millisecond, "every turn is stored")
	assert.Empty(t, heard.twice)
	assert.Len(t, heard.turns, len(f.out.sent), "every turn is measured")
	for id, n := range f.out.sent {
		assert.Equal(t, 1, n, id)
	}
	assert.Zero(t, r.Underway(time.Now()).Turns)
}

// A member of another version is told so.
func TestOtherVersion(t *testing.T) {
	f := newFleet(t)
	err, _ := f.member("old", "0")
	require.Eventually(t, func() bool { return err() != nil }, soon, 10*time.Millisecond)
	assert.ErrorIs(t, err(), ErrRefused)
	assert.ErrorContains(t, err(), "it is version 0, and the coordinator is 1")
}

// The server is killed and comes back: members go on, and nothing that they measured is lost or
// counted twice.
func TestServerKilled(t *testing.T) {
	f := newFleet(t)
	for i := range 3 {
		f.member(fmt.Sprint("m", i), "1")
	}
	heard, r, stop := f.run(30)
	heard.reaches(t, 30)
	for range 3 {
		f.nats.kill()
		pause(t.Context(), 600*time.Millisecond) // every member misses a renewal, and has the rest of its lease to come back
		f.nats.start()
		before := time.Now()
		n := r.Pace().Begun
		require.Eventually(t, func() bool { return r.Pace().Begun > n+30 }, soon, 10*time.Millisecond)
		heard.reaches(t, 30)
		t.Logf("back after %v", time.Since(before))
		f.renewed(3, before) // or the next kill may be one outage with this one, longer than a lease
	}
	r.Set(workload.Settings{Concurrency: 12, Turns: api.Range{Min: 2, Max: 3}, MaxTokens: 8, StartRate: 1000})
	heard.reaches(t, 12)
	stop()
	f.allStored()
	assert.Empty(t, heard.twice)
	assert.Len(t, heard.turns, len(f.out.sent), "every turn is measured")
}

// renewed waits until so many members have renewed their lease after a moment.
func (f *fleet) renewed(n int, after time.Time) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		keys, err := f.coord.bus.leases.ListKeys(f.t.Context())
		if err != nil {
			return false
		}
		now := 0
		for key := range keys.Keys() {
			if e, err := f.coord.bus.leases.Get(f.t.Context(), key); key != coordinatorKey && err == nil && e.Created().After(after) {
				now++
			}
		}
		return now == n
	}, soon, 10*time.Millisecond)
}

// allStored waits until every turn that was sent is stored.
func (f *fleet) allStored() {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		f.store.mu.Lock()
		defer f.store.mu.Unlock()
		return len(f.store.turns) == len(f.out.sent)
	}, soon, 10*time.Millisecond, "every turn is stored")
}

// A member that leaves while the server is away waits with the turns that it has not handed over:
// those that are being published, too.
func TestLeavesWithoutServer(t *testing.T) {
	f := newFleet(t)
	f.out.takes = time.Hour // whatever is in flight is cancelled
	_, end := f.member("m0", "1")
	_, _, stop := f.run(3) // fewer than there are hands
	require.Eventually(t, func() bool { return f.requests() == 3 }, soon, time.Millisecond)
	f.nats.kill()
	left := make(chan struct{})
	go func() {
		defer close(left)
		end()
	}()
	require.Eventually(t, func() bool { return f.out.ended.Load() == 3 }, soon, time.Millisecond)
	f.nats.start()
	select {
	case <-left:
	case <-time.After(soon):
		t.Fatal("the member does not end")
	}
	f.allStored()
	stop()
}

// A member that leaves is replaced by those that are left, and what it measured counts.
func TestMemberLeaves(t *testing.T) {
	f := newFleet(t)
	var ends []func()
	for i := range 3 {
		_, end := f.member(fmt.Sprint("m", i), "1")
		ends = append(ends, end)
	}
	heard, _, stop := f.run(30)
	heard.reaches(t, 30)
	ends[0]()
	began := time.Now()
	require.Eventually(t, func() bool {
		all, _ := f.coord.alive(time.Now())
		return len(all) == 2
	}, soon, time.Millisecond)
	require.Eventually(t, func() bool { // of all that are left, and so of what the lane heard when m0 had left
		n := 0
		for _, m := range f.coord.Members(time.Now()) {
			n += m.Conversations
		}
		return n == 30
	}, soon, 10*time.Millisecond)
	heard.reaches(t, 30)
	t.Logf("back after %v", time.Since(began))
	stop()
	f.allStored()
	assert.Empty(t, heard.twice)
	assert.Len(t, heard.turns, len(f.out.sent), "every turn is measured")
	for id, n := range f.out.sent {
		assert.Equal(t, 1, n, id)
	}
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	assert.Contains(t, f.store.events, "m0 has left")
	for _, c := range heard.conversations {
		assert.NotEqual(t, api.ConversationActive, c, "every conversation has ended")
	}
}

// The coordinator is killed: members go on, and the next one takes the run over, with what was
// measured meanwhile.
func TestCoordinatorKilled(t *testing.T) {
	f := newFleet(t)
	for i := range 3 {
		f.member(fmt.Sprint("m", i), "1")
	}
	heard, _, stop := f.run(30)
	heard.reaches(t, 30)
	f.coord.bus.conn.Close() // nothing that it does from now on is heard
	go stop()
	sent := f.requests()
	began := time.Now()
	next, err := Open(t.Context(), Options{Access: f.nats.access(), Name: "next", Version: "1", FilesEach: 1, Store: f.store, Log: log(t)})
	require.NoError(t, err)
	assert.Greater(t, f.requests(), sent+100, "members go on")
	f.coord = next
	f.goes(func(ctx context.Context) { assert.NoError(t, next.Run(ctx)) })
	found, ok := next.Found("main", TargetOptions{URL: "http://127.0.0.1:1"}, FollowupOptions{})
	require.True(t, ok)
	assert.Equal(t, 30, found.Settings.Concurrency)
	texts, err := corpus.Builtin()
	require.NoError(t, err)
	again := newEars()
	found.Heard, found.Corpus, found.Task.Inherited = again, texts, true
	r := next.Engine(TargetOptions{URL: "http://127.0.0.1:1"}, FollowupOptions{}, nil).Begin(found.Task)
	stop = f.goes(r.Run)
	again.reaches(t, 30)
	t.Logf("taken over after %v", time.Since(began))
	settings := found.Settings
	settings.Concurrency = 40
	r.Set(settings)
	again.reaches(t, 40)
	stop()
	f.allStored()
	assert.Empty(t, again.twice)
	assert.Len(t, again.turns, len(f.out.sent), "what was measured before it came is heard, too")
	for id, n := range f.out.sent {
		assert.Equal(t, 1, n, id)
	}
}

// requests is how many have been sent.
func (f *fleet) requests() int {
	f.out.mu.Lock()
	defer f.out.mu.Unlock()
	return len(f.out.sent)
}
