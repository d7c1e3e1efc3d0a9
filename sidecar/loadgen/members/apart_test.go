package members

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// link is a way to a server that can be cut for the one who uses it.
type link struct {
	to string
	net.Listener

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	k := &link{to: to, Listener: l}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { k.join(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		k.set(true)
		wg.Wait()
	})
	return k
}

// join copies both ways until one of them ends.
func (k *link) join(c net.Conn) {
	defer c.Close()
	server, err := net.Dial("tcp", k.to)
	if err != nil {
		return
	}
	defer server.Close()
	k.mu.Lock()
	cut := k.cut
	k.conns = append(k.conns, c, server)
	k.mu.Unlock()
	if cut {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, c)
		_ = server.Close()
	}()
	_, _ = io.Copy(c, server)
	_ = c.Close()
	<-done
}

// set cuts the link, or mends it.
func (k *link) set(cut bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut = cut
	for _, c := range k.conns {
		_ = c.Close()
	}
	k.conns = nil
}

// apart is a fleet whose coordinator alone reaches the server by a link.
func apart(t *testing.T) (*fleet, *link) {
	t.Helper()
	s := startServer(t)
	access := s.access()
	k := newLink(t, access.URL[len("nats://"):])
	access.URL = "nats://" + k.Addr().String()
	return fleetOn(t, s, access), k
}

// deaf waits until the coordinator has been cut off for longer than leases last.
func (f *fleet) deaf() {
	f.t.Helper()
	began := time.Now()
	require.Eventually(f.t, func() bool {
		_, known := f.coord.alive(time.Now())
		return !known && time.Since(began) > leaseSpan+time.Second
	}, soon, 10*time.Millisecond)
}

// A coordinator that was cut off finds its members again, and takes none of them for lost.
func TestCoordinatorCutOff(t *testing.T) {
	f, k := apart(t)
	for _, name := range []string{"m0", "m1"} {
		f.member(name, "1")
	}
	heard, r, stop := f.run(10)
	heard.reaches(t, 10)
	for range 2 {
		k.set(true)
		f.deaf()
		k.set(false)
		n := r.Pace().Begun
		require.Eventually(t, func() bool { return r.Pace().Begun > n+10 }, soon, 10*time.Millisecond)
		heard.reaches(t, 10)
	}
	stop()
	f.allStored()
	assert.Empty(t, heard.twice)
	assert.Len(t, heard.turns, len(f.out.sent), "what was measured meanwhile is heard")
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	for _, e := range f.store.events {
		assert.NotContains(t, e, "lost")
	}
}

// Members that could not be told of the end of a run are told as soon as they can be.
func TestStoppedWhileCutOff(t *testing.T) {
	f, k := apart(t)
	f.member("m", "1")
	heard, _, stop := f.run(10)
	heard.reaches(t, 10)
	k.set(true)
	stop()
	assert.Zero(t, heard.now(), "nothing is shown as in progress")
	n := f.requests()
	require.Eventually(t, func() bool { return f.requests() > n+20 }, soon, 10*time.Millisecond, "the member hears the server, and goes on")
	k.set(false)
	require.Eventually(t, func() bool { // no request within ten times as long as one takes
		n := f.requests()
		return pause(t.Context(), 10*f.out.takes) && f.requests() == n
	}, soon, 10*time.Millisecond, "the member stops")
	heard.mu.Lock()
	defer heard.mu.Unlock()
	for number, status := range heard.conversations {
		assert.NotEqual(t, api.ConversationActive, status, number)
	}
}

// One that comes back when another one has been there, and is gone, does not go on with what it knew.
func TestClaimOfAnotherEpoch(t *testing.T) {
	f := &fleet{t: t, nats: startServer(t), store: &kept{}}
	open := func(owner string) *Coordinator {
		c, err := Open(t.Context(), Options{Access: f.nats.access(), Name: "at " + owner, Version: "1", Owner: owner, FilesEach: 1, Store: f.store, Log: log(t)})
		require.NoError(t, err)
		t.Cleanup(c.bus.close)
		return c
	}
	first := open("a") // and hears nothing while its lease runs out
	open("b")          // takes it, and is killed
	require.Eventually(t, func() bool {
		_, err := first.bus.leases.Get(t.Context(), coordinatorKey)
		return err != nil
	}, soon, 10*time.Millisecond, "the other one's lease ends")
	holder, err := first.claim.renew(t.Context())
	require.NoError(t, err)
	assert.NotEmpty(t, holder)
	assert.ErrorContains(t, first.claim.refusal(holder), "at b; stop it")
	again := open("a") // the same owner, in another process
	holder, err = again.claim.renew(t.Context())
	require.NoError(t, err)
	assert.Empty(t, holder)
}

// A run is taken over for the same target and follow-ups alone; any other is ended, and nobody holds
// it any more when that returns.
func TestFoundForTheSameTarget(t *testing.T) {
	f := newFleet(t)
	f.member("m", "1")
	heard, _, stop := f.run(5)
	heard.reaches(t, 5)
	f.coord.bus.conn.Close()
	go stop()
	next, err := Open(t.Context(), Options{Access: f.nats.access(), Name: "next", Version: "1", FilesEach: 1, Store: f.store, Log: log(t)})
	require.NoError(t, err)
	t.Cleanup(next.bus.close)
	same := TargetOptions{URL: "http://127.0.0.1:1"}
	for _, other := range []struct {
		target TargetOptions
		asker  FollowupOptions
	}{{TargetOptions{URL: "http://127.0.0.1:2"}, FollowupOptions{}}, {TargetOptions{URL: same.URL, Model: "m"}, FollowupOptions{}}, {same, FollowupOptions{Text: "go on"}}} {
		_, ok := next.Found(api.DefaultLane, other.target, other.asker)
		assert.False(t, ok, other)
	}
	_, ok := next.Found(api.DefaultLane, same, FollowupOptions{})
	assert.True(t, ok)
	_, ok = next.Found(api.DefaultLane, TargetOptions{URL: "http://whole", Endpoint: func() string { return same.URL }}, FollowupOptions{})
	assert.True(t, ok, "its address is that of its mode")
	require.NoError(t, next.Discard(t.Context(), api.DefaultLane))
	n := f.requests()
	pause(t.Context(), 2*f.out.takes)
	assert.Equal(t, n, f.requests(), "nothing is sent any more")
}

// The next run goes on behind every number that the run before may have used.
func TestNextRunGoesOnBehind(t *testing.T) {
	f := newFleet(t)
	for _, name := range []string{"m0", "m1"} {
		f.member(name, "1")
	}
	heard, r, stop := f.run(10)
	heard.reaches(t, 10)
	require.Eventually(t, func() bool { return r.Pace().Begun > 30 }, soon, 10*time.Millisecond)
	stop()
	highest := int64(0)
	heard.mu.Lock()
	defer heard.mu.Unlock()
	for number := range heard.conversations {
		highest = max(highest, number)
	}
	assert.Greater(t, r.Pace().Next, highest)
}
