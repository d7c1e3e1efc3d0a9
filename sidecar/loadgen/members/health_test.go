package members

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// receives makes a coordinator without a server process a member's presence.
func (c *Coordinator) receives(t *testing.T, p presence) {
	t.Helper()
	data, err := json.Marshal(p)
	require.NoError(t, err)
	c.receivePresence(p.ID, data)
}

// presenceOf returns the presence of a member of the coordinator's version.
func presenceOf(id string) presence {
	return presence{Member: api.Member{ID: id, Name: id, Version: "1", State: api.MemberPresent}}
}

func coordinatorAlone(t *testing.T, store Store) *Coordinator {
	return &Coordinator{
		opts: Options{Version: "1", FilesEach: 1, Store: store}, log: log(t), members: map[string]*member{},
		runs: map[string]*remote{},
	}
}

// A member that leaves announces it with its last presence. One whose lease ends without that is lost.
func TestMemberThatLeavesIsNotLost(t *testing.T) {
	for name, row := range map[string]struct {
		state api.MemberState // in its last presence
		want  string
	}{
		"leaves": {api.MemberLeaving, "m has left"},
		"lost":   {api.MemberPresent, "m is lost: its conversations are cancelled and replaced on other members"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newMemoryStore()
				c := coordinatorAlone(t, store)
				c.receives(t, presenceOf("m"))
				last := presenceOf("m")
				last.State, last.Gone = row.state, row.state == api.MemberLeaving
				c.receives(t, last)
				m := c.members["m"]
				assert.Equal(t, last.Gone, m.lastReport.IsZero(), "its lease is over at once")
				c.mu.Lock()
				c.expire(m, time.Now())
				c.mu.Unlock()
				synctest.Wait()
				_, events := store.contents()
				assert.Contains(t, events, row.want)
			})
		})
	}
}

// A member whose lease has ended stays expired for an hour, so that a late report does not make it a new member. That
// applies to one that left, one that is silent, and one that held a share and has not reported to this process.
func TestExpiredMemberStaysExpired(t *testing.T) {
	for name, ends := range map[string]func(*testing.T, *Coordinator){
		"left": func(t *testing.T, c *Coordinator) {
			p := presenceOf("m")
			p.State, p.Gone = api.MemberLeaving, true
			c.receives(t, p)
		},
		"silent": func(*testing.T, *Coordinator) { wait.Advance(leaseSpan) },
		"holder": func(t *testing.T, c *Coordinator) {
			delete(c.members, "m")
			r := &remote{
				Coordinator: c, receiver: newRunRecorder(), tally: newTally(nil, false),
				holders: map[string]*holding{"m": {}},
			}
			r.noteMembers(time.Now(), nil)
			assert.True(t, r.holders["m"].expired)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := coordinatorAlone(t, newMemoryStore())
				c.closed, c.knownSince = true, time.Now()
				present := func() int {
					c.mu.Lock()
					defer c.mu.Unlock()
					return len(c.unexpired(time.Now()))
				}
				c.receives(t, presenceOf("m"))
				assert.Equal(t, 1, present())
				ends(t, c)
				for range 2 {
					assert.Zero(t, present())
					wait.Advance(time.Minute)
					c.receives(t, presenceOf("m"))
				}
				assert.Zero(t, present())
				wait.Advance(time.Hour)
				assert.Zero(t, present())
				assert.Empty(t, c.members)
			})
		})
	}
}

// A member that has been late for lateAfter is reported, and others get its share.
func TestLateMemberLosesItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore()
		c := coordinatorAlone(t, store)
		r := &remote{Coordinator: c, wanted: orderOf("main", "r")}
		excluded := func() []bool {
			all := r.candidates([]*member{c.members["quick"], c.members["slow"]})
			return []bool{all[0].Excluded, all[1].Excluded}
		}
		late := api.ClientHealth{Verdict: api.VerdictFine, LagSeconds: .007, Reason: "it is 7.0 ms late"}
		c.opts.Noticeable = func(l *stats.Lag) bool { return l.Quantile(.95) > .005 }
		report := func(health api.ClientHealth, active int) {
			var lag stats.Lag
			for range 100 {
				lag.Timer.Add(time.Duration(health.LagSeconds * float64(time.Second)))
				lag.Stream.Add(0)
			}
			quick, slow := presenceOf("quick"), presenceOf("slow")
			quick.Client, quick.Conversations = api.ClientHealth{Verdict: api.VerdictFine}, 30-active
			slow.Client, slow.Conversations, slow.Lag = health, active, lag
			c.receives(t, quick)
			c.receives(t, slow)
		}
		before := time.Now()
		wait.Advance(time.Second)
		report(api.ClientHealth{Verdict: api.VerdictFine, LagSeconds: .001, Reason: "at most 1.0 ms late"}, 15)
		assert.Equal(t, api.VerdictFine, c.Health(api.ClientHealth{}).Verdict)
		for range int(lateAfter / time.Second) {
			wait.Advance(time.Second)
			report(late, 15)
			assert.Equal(t, "slow: it is 7.0 ms late", c.Health(api.ClientHealth{}).Reason)
			assert.Equal(t, []bool{false, false}, excluded())
		}
		wait.Advance(time.Second)
		report(late, 15)
		assert.Equal(t, []bool{false, true}, excluded())
		report(late, 0)
		slow := c.Members(time.Now())[1]
		assert.Equal(t, api.MemberLate, slow.State)
		assert.Equal(t, "it is 7.0 ms late", slow.Reason)
		assert.Equal(t, api.VerdictFine, c.Health(api.ClientHealth{}).Verdict, "one without conversations measures nothing")
		lag, known := c.Lag(before, time.Now())
		assert.True(t, known)
		assert.InDelta(t, .007, lag.Quantile(.95), .0008, "the spans of that time have its error all the same")
		assert.Equal(t, 4, testutil.CollectAndCount(c, "loadgen_members"), "each state")
		assert.Equal(t, 2, testutil.CollectAndCount(c, "loadgen_member_conversations"))
		c.wg.Wait()
		_, events := store.contents()
		assert.Contains(t, events, "slow is late: it is 7.0 ms late")
	})
}

func TestLatenessBeginsAndEndsWithDelay(t *testing.T) {
	var l lateness
	at := time.Unix(1000, 0)
	late := func(after time.Duration, noticeable bool) bool { return l.note(at.Add(after), noticeable) }
	assert.False(t, late(0, true), "once is not enough")
	assert.False(t, late(14*time.Second, true))
	assert.False(t, late(14500*time.Millisecond, false), "nor is it with a pause")
	assert.False(t, late(15*time.Second, true))
	assert.True(t, late(30*time.Second, true))
	assert.True(t, late(31*time.Second, false))
	assert.True(t, late(60*time.Second, false))
	assert.False(t, late(61*time.Second, false))
}

// No member gets more conversations than its open-file limit allows. More than all limits allow are refused.
func TestOpenFilesLimitConversations(t *testing.T) {
	c := coordinatorAlone(t, newMemoryStore())
	require.NoError(t, c.Check("concurrency", 1_000_000), "there is no member yet")
	small := presenceOf("small")
	small.Files = 4
	c.receives(t, small)
	err := c.Check("concurrency", 5)
	require.ErrorAs(t, err, new(*api.FieldError))
	require.ErrorContains(t, err, "at most 4, which the open-file limit of the 1 members present allows")
	require.NoError(t, c.Check("concurrency", 4))
	c.receives(t, presenceOf("large"))
	require.NoError(t, c.Check("concurrency", 30))
	c.wg.Wait()

	r := &remote{Coordinator: c, wanted: orderOf("main", "r")}
	shares := newAllotment("r").divide(
		workload.Settings{Concurrency: 30}, r.candidates([]*member{c.members["large"], c.members["small"]}),
	)
	assert.Equal(t, []int{26, 4}, []int{shares["large"].Concurrency, shares["small"].Concurrency})
}

// Only one coordinator has the members at a time. The next one of the same owner takes a claim at once.
func TestOneCoordinatorHoldsTheClaim(t *testing.T) {
	f := emptyFleet(t)
	run := func(c *Coordinator) (ended chan error, end func()) {
		ended = make(chan error, 1)
		return ended, f.spawn(func(ctx context.Context) { ended <- c.Run(ctx) })
	}
	first, err := f.open("a")
	require.NoError(t, err)
	ended, end := run(first)
	_, err = f.open("b")
	require.ErrorIs(t, err, ErrCoordinated)
	require.ErrorContains(t, err, "at a; stop it, or give this one its own members.fleet")
	end()
	require.NoError(t, wait.Receive(t, "the end of the first", ended))

	killed, err := f.open("c") // does not renew its claim
	require.NoError(t, err)
	t.Cleanup(killed.bus.close)
	err = newClaim(killed.bus, Options{Owner: "c", Name: "at c"}).renew(t.Context())
	require.NoError(t, err, "a coordinator of the same owner does not wait")
	next, err := f.open("c")
	require.NoError(t, err)
	ended, _ = run(next)
	_, err = next.bus.leases.PutString(t.Context(), coordinatorKey, "d another one")
	require.NoError(t, err)
	assert.ErrorIs(t, wait.Receive(t, "the end of the next", ended), ErrCoordinated)
}

// A coordinator loses its claim if another one held it meanwhile.
func TestClaimIsLostToAnotherEpoch(t *testing.T) {
	f := emptyFleet(t)
	open := func(owner string) *Coordinator {
		c, err := f.open(owner)
		require.NoError(t, err)
		t.Cleanup(c.bus.close)
		return c
	}
	first := open("a") // does not renew its claim
	open("b")          // takes the expired claim, and does not renew it either
	wait.Eventually(t, "the second claim runs out", func() (any, bool) {
		_, err := first.bus.leases.Get(t.Context(), coordinatorKey)
		return err, err != nil
	})
	require.ErrorContains(t, first.claim.renew(t.Context()), "at b; stop it")
	again := open("a") // the same owner, in another process
	require.NoError(t, again.claim.renew(t.Context()))
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
