package members

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// A member that is late is named, others get its share, and it is trusted again after a while.
func TestLateMember(t *testing.T) {
	f := newFleet(t)
	f.out.takes = time.Second // so that nearly always all conversations are there
	var late atomic.Bool
	f.memberThat("quick", func(*MemberOptions) {})
	f.memberThat("slow", func(o *MemberOptions) {
		o.Health = func(time.Time) api.ClientHealth {
			if late.Load() {
				return api.ClientHealth{Verdict: api.VerdictBottleneck, LagSeconds: 0.007, Reason: "it is 7.0 ms late"}
			}
			return api.ClientHealth{Verdict: api.VerdictFine, LagSeconds: 0.001, Reason: "at most 1.0 ms late"}
		}
	})
	heard, _, stop := f.run(30)
	held := func() map[string]api.Member {
		all := map[string]api.Member{}
		for _, m := range f.coord.Members(time.Now()) {
			all[m.Name] = m
		}
		return all
	}
	require.Eventually(t, func() bool { m := held(); return m["slow"].Conversations == 15 && m["quick"].Conversations == 15 }, soon, 10*time.Millisecond)
	before := time.Now()
	assert.Equal(t, api.VerdictFine, f.coord.Health(api.ClientHealth{}).Verdict)
	late.Store(true)
	require.Eventually(t, func() bool {
		h := f.coord.Health(api.ClientHealth{})
		return h.Verdict == api.VerdictBottleneck && h.Reason == "slow: it is 7.0 ms late"
	}, soon, 10*time.Millisecond)
	require.Eventually(t, func() bool { m := held(); return m["slow"].Conversations == 0 && m["quick"].Conversations == 30 }, soon, 10*time.Millisecond)
	assert.Equal(t, api.MemberLate, held()["slow"].State)
	assert.Equal(t, "it is 7.0 ms late", held()["slow"].Reason)
	heard.reaches(t, 30)
	assert.Equal(t, api.VerdictFine, f.coord.Health(api.ClientHealth{}).Verdict, "who holds nothing measures nothing")
	lag, known := f.coord.Lag(before, time.Now())
	assert.True(t, known)
	assert.Equal(t, 7*time.Millisecond, lag, "the spans before that are spoiled all the same")
	assert.Equal(t, 5, testutil.CollectAndCount(f.coord, "loadgen_members")+testutil.CollectAndCount(f.coord, "loadgen_member_conversations")-1)
	stop()
	f.eventually("slow is late: it is 7.0 ms late")
}

// eventually waits for an event.
func (f *fleet) eventually(text string) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		f.store.mu.Lock()
		defer f.store.mu.Unlock()
		for _, e := range f.store.events {
			if e == text {
				return true
			}
		}
		return false
	}, soon, 10*time.Millisecond, text)
}

func TestLateness(t *testing.T) {
	var l lateness
	at := time.Unix(1000, 0)
	says := func(after time.Duration, v api.Verdict) bool { return l.note(at.Add(after), v) }
	assert.False(t, says(0, api.VerdictBottleneck), "once is not enough")
	assert.False(t, says(14*time.Second, api.VerdictBottleneck))
	assert.False(t, says(14500*time.Millisecond, api.VerdictFine), "nor is it with a pause")
	assert.False(t, says(15*time.Second, api.VerdictBottleneck))
	assert.True(t, says(30*time.Second, api.VerdictBottleneck))
	assert.True(t, says(31*time.Second, api.VerdictFine))
	assert.True(t, says(60*time.Second, api.VerdictFine))
	assert.False(t, says(61*time.Second, api.VerdictFine))
}

// Nobody is asked for more than open files allow.
func TestOpenFiles(t *testing.T) {
	f := newFleet(t)
	f.out.takes = time.Second // as above
	f.memberThat("small", func(o *MemberOptions) { o.Files = 4 })
	assert.NoError(t, f.coord.Check("concurrency", 1_000_000), "nobody knows yet who will come")
	require.Eventually(t, func() bool { return len(f.coord.Members(time.Now())) == 1 }, soon, 10*time.Millisecond)
	err := f.coord.Check("concurrency", 5)
	require.ErrorAs(t, err, new(*api.FieldError))
	assert.ErrorContains(t, err, "at most 4, which the open-file limit of the 1 members present allows")
	f.memberThat("large", func(*MemberOptions) {})
	require.Eventually(t, func() bool { return f.coord.Check("concurrency", 30) == nil }, soon, 10*time.Millisecond)
	_, _, stop := f.run(30)
	require.Eventually(t, func() bool { // one that has ended is replaced a moment later
		held := map[string]int{}
		for _, m := range f.coord.Members(time.Now()) {
			held[m.Name] = m.Conversations
		}
		assert.LessOrEqual(t, held["small"], 4)
		return held["small"] == 4 && held["large"] == 26
	}, soon, 10*time.Millisecond)
	stop()
}

// A member that no coordinator steers any more ends what it holds.
func TestAlone(t *testing.T) {
	f := newFleet(t)
	registry := prometheus.NewRegistry()
	f.memberThat("m", func(o *MemberOptions) { o.Alone, o.Registry = time.Second, registry })
	heard, _, stop := f.run(3)
	heard.reaches(t, 3)
	active := func() float64 {
		all, err := registry.Gather()
		require.NoError(t, err)
		for _, family := range all {
			if family.GetName() == "loadgen_member_active_conversations" {
				return family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return 0
	}
	require.Eventually(t, func() bool { return active() == 3 }, soon, 10*time.Millisecond)
	f.coord.bus.conn.Close()
	go stop()
	require.Eventually(t, func() bool { return active() == 0 }, soon, 10*time.Millisecond)
}

// One coordinator at a time has the members; the next of the same data directory waits for nothing.
func TestClaim(t *testing.T) {
	f := &fleet{t: t, nats: startServer(t), store: &kept{}}
	open := func(owner string) (*Coordinator, error) {
		return Open(t.Context(), Options{Access: f.nats.access(), Name: "at " + owner, Version: "1", Owner: owner, FilesEach: 1, Store: f.store, Log: log(t)})
	}
	first, err := open("a")
	require.NoError(t, err)
	var ended atomic.Pointer[error]
	end := f.goes(func(ctx context.Context) {
		err := first.Run(ctx)
		ended.Store(&err)
	})
	_, err = open("b")
	require.ErrorIs(t, err, ErrCoordinated)
	assert.ErrorContains(t, err, "at a; stop it, or give this one its own members.fleet")
	end()
	assert.NoError(t, *ended.Load())

	_, err = open("c") // and is killed: nobody renews its claim
	require.NoError(t, err)
	began := time.Now()
	next, err := open("c")
	require.NoError(t, err)
	if took := time.Since(began); took > leaseSpan {
		t.Errorf("it waited %v for the end of a lease that is its own", took)
	}
	ended.Store(nil)
	f.goes(func(ctx context.Context) {
		err := next.Run(ctx)
		ended.Store(&err)
	})
	_, err = next.bus.leases.PutString(t.Context(), coordinatorKey, "d somebody else")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return ended.Load() != nil }, soon, 10*time.Millisecond)
	assert.ErrorIs(t, *ended.Load(), ErrCoordinated)
}

// Whoever has no credential of the run is refused, and told so.
func TestCredential(t *testing.T) {
	f := &fleet{t: t, nats: startServer(t, "--auth", "a-token-of-the-run"), store: &kept{}}
	access := f.nats.access()
	access.Token = "a-token-of-the-run"
	c, err := Open(t.Context(), Options{Access: access, Name: "test", Version: "1", FilesEach: 1, Store: f.store, Log: log(t)})
	require.NoError(t, err)
	f.goes(func(ctx context.Context) { assert.NoError(t, c.Run(ctx)) })
	refused, _ := f.member("stranger", "1")
	require.Eventually(t, func() bool { return refused() != nil }, soon, 10*time.Millisecond)
	assert.ErrorContains(t, refused(), "rejects")
	assert.ErrorContains(t, refused(), "check members.nats.token or members.nats.nkey_file")
}

func TestAccess(t *testing.T) {
	for _, test := range []struct {
		access Access
		says   string // "": it is fine
	}{
		{Access{URL: "nats://127.0.0.1:4222"}, ""},
		{Access{URL: "nats://localhost:4222", Token: "t"}, ""},
		{Access{URL: "tls://nats.example:4222", Token: "t"}, ""},
		{Access{URL: "nats://nats.example:4222", NKeyFile: "seed"}, ""},
		{Access{URL: "nats://nats.example:4222", Token: "t"}, "tls:// with a token"},
		{Access{URL: "nats://nats.example:4222"}, "a loopback address, or set members.nats.nkey_file or members.nats.token"},
		{Access{URL: "tls://nats.example:4222"}, "a loopback address, or"},
		{Access{URL: "nats://127.0.0.1:4222", Token: "t", NKeyFile: "seed"}, "not both"},
		{Access{URL: "http://127.0.0.1:4222"}, "nats:// or tls://"},
		{Access{URL: "nats://u:p@127.0.0.1:4222"}, "nats:// or tls://"},
	} {
		err := test.access.Check()
		if test.says == "" {
			assert.NoError(t, err, test.access.URL)
			continue
		}
		assert.True(t, errors.As(err, new(*api.FieldError)))
		assert.ErrorContains(t, err, test.says)
	}
}
