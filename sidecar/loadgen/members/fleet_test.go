package members

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/natstest"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/workload"
)

// Members together hold as many conversations as the slider says, also after one has left. They continue while the
// server is down. Every turn is measured and stored once, and the next run has higher numbers.
func TestFleetHoldsTheConcurrency(t *testing.T) {
	f := newFleet(t, 2)
	_, leave := f.member("leaves", func(*MemberOptions) {})
	receiver, r, stop := f.run(30)
	wait.Eventually(t, "the probes of each member are counted once", func() (probes any, ok bool) {
		receiver.locked(func() { probes, ok = receiver.probes, receiver.probes == 3*3 })
		return probes, ok
	})
	leave()
	wait.Eventually(t, "two members hold 30 conversations", func() (any, bool) {
		n := 0
		all := f.coord.Members(time.Now())
		for _, m := range all {
			n += m.Conversations
		}
		return all, len(all) == 2 && n == 30
	})
	f.nats.Kill()
	sent, _ := f.out.requests()
	wait.Eventually(t, "members send turns", func() (any, bool) { n, _ := f.out.requests(); return n, n > sent+10 })
	f.nats.Restart()
	f.waitBegun(r, 30)
	receiver.waitActive(t, 30)
	r.Set(settingsFor(12))
	receiver.waitActive(t, 12)
	stop()
	assert.Zero(t, receiver.now())
	f.checkEachOnce(receiver)
	_, events := f.store.contents()
	// On a busy machine, the member may miss its renewals, so that its lease ends before it has left.
	ended := []string{"leaves has left", "leaves is lost: its conversations are cancelled and replaced on other members"}
	assert.True(t, slices.Contains(events, ended[0]) || slices.Contains(events, ended[1]), "events: %q", events)
	for number, status := range receiver.conversations {
		assert.NotEqual(t, api.ConversationActive, status, number)
		assert.Greater(t, r.Pace().Next, number)
	}
	assert.Zero(t, r.Underway(time.Now()).Turns)
}

// A member that leaves while the server is down keeps its turns until the server is back, also those that are being
// published.
func TestMemberKeepsItsTurnsUntilTheServerIsBack(t *testing.T) {
	f := newFleet(t, 0)
	f.out.latency = time.Hour // requests in flight are cancelled
	_, end := f.member("m0", func(*MemberOptions) {})
	receiver, _, stop := f.run(3) // fewer than publishers
	wait.Eventually(t, "three turns are in flight", func() (any, bool) { _, n := f.out.requests(); return n, n == 3 })
	f.nats.Kill()
	left := make(chan struct{})
	go func() {
		defer close(left)
		end()
	}()
	wait.Eventually(t, "they are cancelled", func() (any, bool) { _, n := f.out.requests(); return n, n == 0 })
	f.nats.Restart()
	wait.Receive(t, "the end of the member", left)
	stop()
	f.checkEachOnce(receiver)
}

// The lane counts every stored turn once, before and after a takeover: also those of members that are lost or have
// left, those without a report, and those whose reports the server has deleted.
func TestTotalsCountEveryMember(t *testing.T) {
	f := newFleet(t, 1)
	_, leave := f.member("leaves", func(*MemberOptions) {})
	killed := natstest.NewLink(t)
	killed.Lead(f.nats.Address)
	f.member("killed", func(o *MemberOptions) { o.Access = accessOf(killed) })
	receiver, _, stop := f.run(30)
	turns := func() int { all, _ := f.store.contents(); return len(all) }
	before := turns()
	wait.Eventually(t, "turns are stored", func() (any, bool) { return turns(), turns() > before+60 })
	killed.Lead("")
	leave()
	wait.Eventually(t, "one member is left", func() (any, bool) {
		all, known := f.coord.present(time.Now())
		return len(all), known && len(all) == 1
	})
	unreported := func(number int64) {
		id := fmt.Sprintf("main-r1-%d", number)
		f.coord.storeTurn("killed", &handedTurn{
			Run:          "r1",
			Conversation: api.Conversation{ID: id, Lane: "main", Number: number},
			Turn: workload.Turn{Draw: workload.Draw{Number: number}, Turn: api.Turn{
				Lane: "main", Conversation: id, Number: 1, RequestID: id + "-1", Status: api.TurnOK, UserMessage: "text",
			}},
		})
	}
	counts := func(e *runRecorder) {
		t.Helper()
		stored, _ := f.store.contents()
		e.mu.Lock()
		defer e.mu.Unlock()
		assert.Empty(t, e.twice)
		for id := range stored {
			assert.Contains(t, e.turns, id)
		}
		assert.Len(t, e.turns, len(stored))
	}
	unreported(10_000)
	f.coord.bus.conn.Close() // the coordinator writes nothing more
	stop()
	counts(receiver)
	f.store.SaveTurn(api.Turn{Lane: "main", Conversation: "main-r0-1", Number: 1, RequestID: "of another run"})
	f.runCoordinator(accessOf(f.nats.Link))
	found, ok := f.coord.Found("main", loopback, FollowupOptions{})
	require.True(t, ok)
	again := newRunRecorder()
	found.Receiver, found.Corpus, found.Task.Resumed = again, task(t, "r1", 30).Corpus, true
	stop = f.spawn(f.coord.Engine(loopback, FollowupOptions{}, nil).Begin(found.Task).Run)
	again.waitActive(t, 30)
	unreported(10_001)
	stop()
	f.store.locked(func() { delete(f.store.turns, "of another run") })
	counts(again)
	assert.Equal(t, int64(10_001), again.turns["main-r1-10001-1"].Draw.Number)
	assert.Empty(t, again.turns["main-r1-10001-1"].UserMessage)
}

// A coordinator that was disconnected for longer than a lease lasts finds its members again and reports none as lost.
func TestCoordinatorDisconnected(t *testing.T) {
	f, k := newFleetBehindLink(t, 2)
	receiver, r, stop := f.run(10)
	k.Lead("")
	wait.Eventually(t, "its claim has run out", func() (any, bool) {
		_, known := f.coord.present(time.Now())
		return known, !known && !f.coord.claim.holds()
	})
	k.Lead(f.nats.Address)
	f.waitBegun(r, 10)
	receiver.waitActive(t, 10)
	stop()
	f.checkEachOnce(receiver)
	_, events := f.store.contents()
	for _, e := range events {
		assert.NotContains(t, e, "lost")
	}
}

// A run that ends while the coordinator is disconnected ends on its members after the reconnect.
func TestRunEndsWhileDisconnected(t *testing.T) {
	f, k := newFleetBehindLink(t, 1)
	receiver, _, stop := f.run(10)
	k.Lead("")
	stop()
	assert.Zero(t, receiver.now())
	sent, _ := f.out.requests()
	wait.Eventually(t, "the member sends turns", func() (any, bool) { n, _ := f.out.requests(); return n, n > sent+20 })
	k.Lead(f.nats.Address)
	wait.Eventually(t, "the member holds no run", func() (any, bool) {
		_, inside := f.out.requests()
		return inside, inside == 0 && f.coord.idle(t.Context(), "main", "r1")
	})
	receiver.locked(func() {
		assert.NotContains(t, slices.Collect(maps.Values(receiver.conversations)), api.ConversationActive)
	})
}

// A run is only resumed for the same target and follow-ups. Any other run is ended, and no member holds it when Discard
// returns.
func TestRunOfAnotherTargetIsEnded(t *testing.T) {
	f := newFleet(t, 1)
	_, _, stop := f.run(5)
	f.coord.bus.conn.Close()
	go stop()
	next, err := Open(t.Context(), f.options(accessOf(f.nats.Link)))
	require.NoError(t, err)
	t.Cleanup(next.bus.close)
	for _, row := range []struct {
		target TargetOptions
		asker  FollowupOptions
		found  bool
	}{
		{loopback, FollowupOptions{}, true},
		{TargetOptions{URL: "http://whole", Endpoint: func() string { return loopback.URL }}, FollowupOptions{}, true},
		{TargetOptions{URL: "http://127.0.0.1:2"}, FollowupOptions{}, false},
		{TargetOptions{URL: loopback.URL, Model: "m"}, FollowupOptions{}, false},
		{loopback, FollowupOptions{Text: "go on"}, false},
	} {
		_, ok := next.Found(api.DefaultLane, row.target, row.asker)
		assert.Equal(t, row.found, ok, "%+v", row)
	}
	require.NoError(t, next.Discard(t.Context(), api.DefaultLane))
	_, inside := f.out.requests()
	assert.Zero(t, inside)
	assert.True(t, next.idle(t.Context(), api.DefaultLane, "r1"))
}

// Members pin turns evenly to the driver's instances, also when these change. A run is sent to the endpoint that is in
// use when it begins.
func TestMembersPinTurnsToInstances(t *testing.T) {
	f := newFleet(t, 0)
	f.out.latency = 50 * time.Millisecond
	var mu sync.Mutex
	var asked []string
	f.join(3, func(o *MemberOptions) {
		o.Target = func(o TargetOptions) (Target, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, o.URL)
			return f.out, nil
		}
	})
	var instances atomic.Pointer[[]string]
	var inUse atomic.Pointer[string]
	instances.Store(&[]string{"11", "22"})
	inUse.Store(new("http://kv"))
	e := f.coord.Engine(
		TargetOptions{URL: "http://whole", Endpoint: func() string { return *inUse.Load() }}, FollowupOptions{},
		func() []string { return *instances.Load() },
	)
	stop := f.spawn(e.Begin(task(t, "r1", 30)).Run)
	seen := map[string]int{}
	wait.Eventually(t, "1000 turns are sent", func() (any, bool) {
		for id, n := range f.out.takeByInstance() {
			seen[id] += n
		}
		return seen, seen["11"]+seen["22"] > 1000
	})
	assert.InDelta(t, seen["11"], seen["22"], 5, "as many as there are members, and two that are being counted")
	assert.Len(t, seen, 2)
	for _, now := range [][]string{{"22", "33"}, nil} {
		instances.Store(&now)
		f.out.takeByInstance()
		wait.Eventually(t, fmt.Sprintf("turns are pinned to %v alone", now), func() (any, bool) {
			turns := f.out.takeByInstance()
			for id, n := range turns {
				if n > 0 && !slices.Contains(append(now, ""), id) {
					return turns, false
				}
			}
			return turns, len(now) == 0 && turns[""] > 0 && len(turns) == 1 || len(now) == 2 && turns["33"] > 0
		})
	}
	stop()
	inUse.Store(new("http://round-robin"))
	f.spawn(e.Begin(task(t, "r2", 30)).Run)
	wait.Eventually(t, "members ask the first endpoint, and then the second alone", func() (any, bool) {
		mu.Lock()
		defer mu.Unlock()
		inOrder := slices.Compact(slices.Clone(asked))
		return inOrder, slices.Equal(inOrder, []string{"http://kv", "http://round-robin"})
	})
}

// A member that had no contact with a coordinator for too long ends its conversations.
func TestMemberWithoutCoordinatorEndsItsConversations(t *testing.T) {
	f := newFleet(t, 0)
	registry := prometheus.NewRegistry()
	f.member("m", func(o *MemberOptions) { o.Alone, o.Registry = time.Second, registry })
	active := func(n string) (any, bool) {
		const name = "loadgen_member_active_conversations"
		err := testutil.GatherAndCompare(registry, strings.NewReader("# HELP "+name+" Conversations in progress that this "+
			"member holds.\n# TYPE "+name+" gauge\n"+name+"{lane=\"main\"} "+n+"\n"), name)
		return err, err == nil
	}
	_, _, stop := f.run(3)
	wait.Eventually(t, "the metric shows three conversations", func() (any, bool) { return active("3") })
	f.coord.bus.conn.Close()
	go stop()
	wait.Eventually(t, "the member holds nothing", func() (any, bool) { return active("0") })
}

// A member of another version and one without the credential are refused with a message that says what to do.
func TestMemberIsRefused(t *testing.T) {
	f := emptyFleet(t, "--auth", "a-token-of-the-run")
	access := accessOf(f.nats.Link)
	access.Token = "a-token-of-the-run"
	f.runCoordinator(access)
	old, _ := f.member("old", func(o *MemberOptions) { o.Access, o.Version = access, "0" })
	stranger, _ := f.member("stranger", func(*MemberOptions) {})
	wait.Eventually(t, "both are refused", func() (any, bool) { return nil, old() != nil && stranger() != nil })
	require.ErrorIs(t, old(), ErrRefused)
	require.ErrorContains(t, old(), "it is version 0, and the coordinator is 1")
	require.ErrorContains(t, stranger(), "rejects")
	require.ErrorContains(t, stranger(), "check members.nats.token or members.nats.nkey_file")
}

// storingObserver stores the turns and conversations of a workload of this process as a lane does.
type storingObserver struct{ *memoryStore }

func (m storingObserver) ConversationStarted(*workload.Conversation) {}
func (m storingObserver) TurnStarted(*workload.LiveTurn)             {}
func (m storingObserver) FirstToken(*workload.LiveTurn)              {}
func (m storingObserver) Arrived(int)                                {}
func (m storingObserver) Active(int, int)                            {}
func (m storingObserver) ConversationEnded(c *workload.Conversation, status api.ConversationStatus, done int) {
	m.SaveConversation(lane.ConversationOf("main", c, status, done, new(time.Now())))
}

func (m storingObserver) TurnEnded(_ *workload.Conversation, t *workload.LiveTurn) {
	m.SaveTurn(t.Turn.Turn)
}

// storingReceiver stores the conversations that members report.
type storingReceiver struct {
	*runRecorder
	store *memoryStore
}

func (s storingReceiver) Conversation(c api.Conversation) { s.store.SaveConversation(c) }

// conversation has the properties of a conversation that depend on the seed, with its questions.
type conversation struct {
	Topic, Starter string
	Planned        int
	Asked          []string
}

// first returns the first n conversations once they have ended.
func (k *memoryStore) first(t *testing.T, n int) (all []conversation) {
	t.Helper()
	wait.Eventually(t, "the first conversations end", func() (any, bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		all = nil
		for number := range int64(n) {
			c := k.latest[number]
			one := conversation{c.Topic, c.Starter, c.TurnsPlanned, nil}
			for i := range c.TurnsDone {
				if turn, ok := k.turns[fmt.Sprintf("%s-%d", c.ID, i+1)]; ok {
					one.Asked = append(one.Asked, turn.UserMessage)
				}
			}
			if c.Ended == nil || len(one.Asked) < c.TurnsDone {
				return number, false
			}
			all = append(all, one)
		}
		return n, true
	})
	return all
}

// The same seed gives the same conversations in one process and on eight members.
func TestMembersHoldTheSameConversations(t *testing.T) {
	const n, together = 120, 40
	f := newFleet(t, 8)
	begun := task(t, "r1", together)
	begun.Seed, begun.Opened, begun.RampedStart, begun.Nonce = 11, 5, together, "again"
	alone := newMemoryStore()
	w := workload.New(workload.Options{
		Lane: begun.Lane, Run: begun.Run, Seed: begun.Seed, Opened: begun.Opened,
		RampedStart: begun.RampedStart, Nonce: begun.Nonce,
		Sender: newFakeTarget(200 * time.Millisecond), Corpus: begun.Corpus, Questioner: corpus.BuiltinQuestioner{},
		Observer: storingObserver{alone},
	}, begun.Settings)
	stop := f.spawn(w.Run)
	want := alone.first(t, n)
	stop()
	topics := map[string]bool{}
	for _, c := range want {
		topics[c.Topic] = true
		assert.Len(t, c.Asked, c.Planned)
	}
	require.Greater(t, len(topics), 3, "conversations differ")

	begun.Receiver = storingReceiver{newRunRecorder(), f.store}
	f.spawn(f.coord.Engine(loopback, FollowupOptions{}, nil).Begin(begun).Run)
	assert.Equal(t, want, f.store.first(t, n))
}
