package members

import (
	"context"
	"fmt"
	"log/slog"
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
)

// booth is a coordinator and members, each with a link of its own to a NATS server, and a target in memory.
type booth struct {
	*testing.T

	nats  *natstest.Server
	link  *natstest.Link // the coordinator's
	links []*natstest.Link
	fleet *Fleet

	mu    sync.Mutex
	sent  map[string]int           // requests by id
	ended map[string]chan struct{} // closed by the test to end an answer
	by    map[string]string        // the member of a request

	cancelled map[string]bool
}

func newBooth(t *testing.T) *booth {
	b := &booth{
		T: t, nats: natstest.Start(t), sent: map[string]int{}, ended: map[string]chan struct{}{}, by: map[string]string{},
		cancelled: map[string]bool{},
	}
	b.link = b.linked()
	var err error
	b.fleet, err = Open(t.Context(), b.options(b.link))
	require.NoError(t, err)
	t.Cleanup(b.fleet.Close)
	return b
}

func (b *booth) linked() *natstest.Link {
	l := natstest.NewLink(b.T)
	l.Lead(b.nats.Address)
	b.links = append(b.links, l)
	return l
}

func (b *booth) options(l *natstest.Link) Options {
	return Options{
		Access: Access{URL: l.URL(), Fleet: "f"}, Name: "here:1", Version: "1", FilesEach: 1,
		Log: slog.New(slog.DiscardHandler),
	}
}

// served is the target as one member has it.
type served struct {
	b    *booth
	name string
}

func (s served) Probes() int64 { return 1 }
func (s served) Close()        {}

// Do sends a first token, and the rest when the test ends the answer.
func (s served) Do(ctx context.Context, r chat.Request) chat.Result {
	assert.Equal(s.b, "of "+r.ID, r.TraceParent)
	s.b.mu.Lock()
	s.b.sent[r.ID]++
	s.b.by[r.ID] = s.name
	end := s.b.end(r.ID)
	s.b.mu.Unlock()
	res := chat.Result{Sent: time.Now(), Worker: "w1"}
	if r.OnPrompt != nil {
		r.OnPrompt([]uint32{7, 8})
	}
	r.Live.Mirror(res.Sent, 50*time.Millisecond, "w1", "hel")
	res.Chunks = append(res.Chunks, chat.Chunk{At: 50 * time.Millisecond, Tokens: 2})
	r.OnChunk(2)
	select {
	case <-ctx.Done():
		s.b.mu.Lock()
		s.b.cancelled[r.ID] = true
		s.b.mu.Unlock()
		res.Ended, res.Cancelled = time.Now(), true
		return res
	case <-end:
	}
	res.Chunks = append(res.Chunks, chat.Chunk{At: 90 * time.Millisecond})
	r.OnChunk(1)
	res.Content, res.Ended = "hello "+r.Messages[0].Text, res.Sent.Add(90*time.Millisecond)
	return res
}

// end returns the channel that ends an answer. The lock is held.
func (b *booth) end(id string) chan struct{} {
	if b.ended[id] == nil {
		b.ended[id] = make(chan struct{})
	}
	return b.ended[id]
}

// finish ends the answer of a turn.
func (b *booth) finish(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.end(id))
}

// member is a member with its own link; end stops it.
func (b *booth) member(name string, change func(*MemberOptions)) (l *natstest.Link, end func() error) {
	l = b.linked()
	o := MemberOptions{
		Access: Access{URL: l.URL(), Fleet: "f"}, Name: name, Version: "1", Log: slog.New(slog.DiscardHandler),
		Health: func(time.Time) api.ClientHealth { return api.ClientHealth{Verdict: api.VerdictFine} },
		Target: func(to TargetOptions) (Target, error) {
			assert.Equal(b, "http://x/v1 m", to.URL+" "+to.Model)
			return served{b, name}, nil
		},
	}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- RunMember(ctx, o) }()
	end = sync.OnceValue(func() error { cancel(); return <-done })
	b.Cleanup(func() { _ = end() })
	return l, end
}

// present waits for members.
func (b *booth) present(n int) {
	b.Helper()
	wait.Eventually(b, "members are present", func() (any, bool) {
		all := b.fleet.Members(time.Now())
		return all, len(all) == n
	})
}

// sending is a turn of the coordinator with what was observed of it.
type sending struct {
	live   chat.Live
	tokens atomic.Int64
	prompt atomic.Bool
	cancel context.CancelFunc
	result chan chat.Result
}

// send sends a turn and waits until the target has it.
func (b *booth) send(id string) *sending {
	b.Helper()
	t := &sending{result: make(chan chat.Result, 1)}
	ctx, cancel := context.WithCancel(b.Context())
	t.cancel = cancel
	go func() {
		t.result <- b.fleet.Send(ctx, TargetOptions{URL: "http://x/v1", Model: "m"}, chat.Request{
			ID: id, Messages: []chat.Message{{Role: "user", Text: "you"}}, Live: &t.live,
			TraceParent: "of " + id,
			OnChunk:     func(n int) { t.tokens.Add(int64(n)) }, OnPrompt: func(ids []uint32) { t.prompt.Store(len(ids) == 2) },
		})
	}()
	wait.Eventually(b, "its first token", func() (any, bool) { n := t.tokens.Load(); return n, n == 2 })
	return t
}

func (b *booth) result(t *sending) chat.Result {
	b.Helper()
	select {
	case r := <-t.result:
		return r
	case <-time.After(time.Minute):
		b.Fatal("no result")
		return chat.Result{}
	}
}

// A turn that a member sends has the result, the tokens, the ids and the text of one that this process sends.
func TestTurn(t *testing.T) {
	t.Parallel()
	b := newBooth(t)
	early := make(chan *sending, 1) // sent before there is a member
	go func() { early <- b.send("early") }()
	b.member("m1", nil)
	b.present(1)
	one := <-early
	wait.Eventually(t, "its text", func() (any, bool) { text := one.live.Text(); return text, text == "hel" })
	b.finish("early")
	r := b.result(one)
	assert.Equal(t, "hello you", r.Content)
	assert.Equal(t, []chat.Chunk{{At: 50 * time.Millisecond, Tokens: 2}, {At: 90 * time.Millisecond}}, r.Chunks)
	assert.EqualValues(t, 3, one.tokens.Load())
	assert.True(t, one.prompt.Load())
	assert.Equal(t, "w1", one.live.Worker())
	assert.EqualValues(t, 1, r.Probes)
	assert.Equal(t, 90*time.Millisecond, r.Ended.Sub(r.Sent))
	assert.WithinDuration(t, time.Now(), r.Ended, time.Minute)
	assert.Zero(t, b.fleet.Members(time.Now())[0].Turns)
}

// Turns go to the member with the fewest, within its open files, and to those that are on time.
func TestShares(t *testing.T) {
	t.Parallel()
	b := newBooth(t)
	b.member("m1", nil)
	b.member("m2", func(o *MemberOptions) { o.Files = 1 })
	b.present(2)
	for i := range 4 {
		b.send(fmt.Sprint(i))
	}
	n := map[string]int{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.by {
		n[m]++
	}
	assert.Equal(t, map[string]int{"m1": 3, "m2": 1}, n)
	require.NoError(t, b.fleet.Check("concurrency", 1000), "m1 has no limit")
}

// The turns of a lost member end as cancelled, in a class of their own, after 3 s of silence, and its late results are
// not counted again. A turn whose cancellation is not confirmed ends, too.
func TestLostMember(t *testing.T) {
	t.Parallel()
	b := newBooth(t)
	link, _ := b.member("m1", nil)
	b.present(1)
	lost, cancelled := b.send("lost"), b.send("cancelled")
	link.Lead("")
	cancelled.cancel()
	r := b.result(cancelled)
	assert.True(t, r.Cancelled)
	assert.Nil(t, r.Err)
	r = b.result(lost)
	assert.True(t, r.Cancelled)
	require.NotNil(t, r.Err)
	assert.Equal(t, api.ErrorMember, r.Err.Class)
	assert.Contains(t, r.Err.Message, "m1")
	assert.Empty(t, b.fleet.Members(time.Now()))
	b.finish("lost")
	link.Lead(b.nats.Address)
	b.present(1)
	assert.EqualValues(t, 1, b.fleet.Members(time.Now())[0].LostTurns)
	assert.Equal(t, map[string]int{"lost": 1, "cancelled": 1}, b.sent)
}

// While the server is away, for longer than a member may be silent, turns go on. Their results come with it, and a turn
// that began meanwhile is sent once.
func TestServerAway(t *testing.T) {
	t.Parallel()
	b := newBooth(t)
	b.member("m1", nil)
	b.present(1)
	ended, going := b.send("ended"), b.send("going")
	b.nats.Kill()
	b.finish("ended")
	began := make(chan *sending, 1)
	go func() { began <- b.send("began") }()
	select {
	case <-time.After(silentFor + aloneFor):
	case r := <-going.result:
		t.Errorf("the turn ended while the server was away: %+v", r)
	}
	b.nats.Restart()
	for _, l := range b.links {
		l.Lead(b.nats.Address)
	}
	assert.Equal(t, "hello you", b.result(ended).Content)
	b.finish("going")
	assert.Equal(t, "hello you", b.result(going).Content)
	b.finish("began")
	assert.Equal(t, "hello you", b.result(<-began).Content)
	assert.Equal(t, map[string]int{"ended": 1, "going": 1, "began": 1}, b.sent)
	assert.Zero(t, b.fleet.Members(time.Now())[0].LostTurns)
}

// A cancelled turn is cancelled at its member, whose result has what had arrived.
func TestCancel(t *testing.T) {
	t.Parallel()
	b := newBooth(t)
	b.member("m1", nil)
	b.present(1)
	one := b.send("x")
	one.cancel()
	r := b.result(one)
	assert.True(t, r.Cancelled)
	assert.Nil(t, r.Err)
	assert.Len(t, r.Chunks, 1)
}

// A member that is stopped hands over its turns, cancelled, before it ends.
func TestLeave(t *testing.T) {
	t.Parallel()
	b := newBooth(t)
	_, end := b.member("m1", nil)
	b.present(1)
	one := b.send("x")
	require.NoError(t, end())
	r := b.result(one)
	assert.True(t, r.Cancelled)
	assert.Nil(t, r.Err)
	assert.Len(t, r.Chunks, 1)
}

// Without a coordinator for 5 s, a member cancels its turns.
func TestAlone(t *testing.T) {
	t.Parallel()
	b := newBooth(t)
	b.member("m1", nil)
	b.present(1)
	b.send("x")
	b.link.Lead("")
	wait.Eventually(t, "the turn is cancelled", func() (any, bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.cancelled, b.cancelled["x"]
	})
}

// Another version, and a second coordinator of a fleet, are refused.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBooth(t)
	_, err := Open(t.Context(), b.options(b.link))
	require.ErrorContains(t, err, `members.fleet: "f" is the fleet of the load generator at here:1`)
	b.member("m1", nil)
	b.present(1)
	o := MemberOptions{
		Access: Access{URL: b.nats.URL(), Fleet: "f"}, Version: "2", Log: slog.New(slog.DiscardHandler),
		Health: func(time.Time) api.ClientHealth { return api.ClientHealth{} },
	}
	err = RunMember(t.Context(), o)
	require.ErrorIs(t, err, ErrRefused)
	assert.ErrorContains(t, err, "its version is 1, and this one's 2")
}

func TestAccessNeedsACredentialBeyondLoopback(t *testing.T) {
	for _, row := range []struct {
		access Access
		want   string // of the error; empty: none
	}{
		{Access{URL: "nats://127.0.0.1:4222"}, ""},
		{Access{URL: "nats://localhost:4222", Token: "t"}, ""},
		{Access{URL: "tls://nats.example:4222", Token: "t"}, ""},
		{Access{URL: "nats://nats.example:4222", NKeyFile: "seed"}, ""},
		{Access{URL: "nats://nats.example:4222", Token: "t"}, "tls:// with a token"},
		{Access{URL: "nats://nats.example:4222"}, "or set members.nats.nkey_file or members.nats.token"},
		{Access{URL: "tls://nats.example:4222"}, "a loopback address, or"},
		{Access{URL: "nats://127.0.0.1:4222", Token: "t", NKeyFile: "seed"}, "not both"},
		{Access{URL: "http://127.0.0.1:4222"}, "nats:// or tls://"},
		{Access{URL: "nats://u:p@127.0.0.1:4222"}, "nats:// or tls://"},
	} {
		err := row.access.Check()
		if row.want == "" {
			require.NoError(t, err, row.access.URL)
			continue
		}
		require.ErrorAs(t, err, new(*api.FieldError))
		require.ErrorContains(t, err, row.want)
	}
}
