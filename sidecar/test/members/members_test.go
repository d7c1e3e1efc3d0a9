//go:build members && linux

package members

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/members"
)

// number is that of an environment variable.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// Whatever is killed, every turn that was acknowledged is stored once, no conversation number
// is held twice, and what is missing comes back.
func TestKills(t *testing.T) {
	kills := number(t, "MEMBERS_KILLS", 2)
	r := newRig(t, startTarget(t, 1), number(t, "MEMBERS_CONVERSATIONS", 400), 8)
	_, err := r.client.Start(t.Context(), api.DefaultLane, api.StartRequest{})
	require.NoError(t, err)
	r.until("all begin", func() bool { return r.held(r.conversations / 4) })
	t.Logf("%d → %d conversations after %.1f s", r.conversations/4, r.conversations, r.set(r.conversations).Seconds())
	log := &times{}
	defer func() { fmt.Println("\n" + log.table()) }()
	for i := range kills {
		r.memberKilled(r.holder(i), log)
		r.coordinatorKilled(log)
		r.natsKilled(log)
		r.memberStopped(r.holder(i+3), log)
	}
	r.measure(min(r.think, time.Duration(10*kills)*time.Second))
	t.Logf("%d → %d conversations after %.1f s", r.conversations, r.conversations/4, r.set(r.conversations/4).Seconds())
	began := time.Now()
	_, err = r.client.WithoutTimeout().Stop(t.Context(), api.DefaultLane, api.StopRequest{})
	require.NoError(t, err)
	t.Logf("stopped after %.1f s", time.Since(began).Seconds())
	r.audit()
}

// measure says what the processes cost while nothing is killed.
func (r *rig) measure(span time.Duration) {
	r.Helper()
	before, asked, began := r.costs(), len(r.target.all()), time.Now()
	time.Sleep(span)
	took, sum := time.Since(began).Seconds(), 0.0
	for role, d := range r.costs() {
		share := (d - before[role]).Seconds() / took
		sum += share
		r.Logf("CPU of %s: %.1f %% of a core", role, 100*share)
	}
	r.Logf("CPU together: %.1f %% of a core, at %.0f turns a second", 100*sum, float64(len(r.target.all())-asked)/took)
}

// memberKilled kills a member.
func (r *rig) memberKilled(m *part, log *times) {
	r.Helper()
	lost, ok := r.witness.leaseOf(m.name)
	require.True(r, ok)
	killed := time.Now()
	r.kill(m)
	r.start(m)
	r.replaced("member", lost.ID, killed, log)
}

// replaced waits until nothing of a lease is shown any more, and all that it held is replaced.
func (r *rig) replaced(what, id string, since time.Time, log *times) {
	r.Helper()
	blocks := r.witness.holds(id)
	r.until("a lost member is on no screen", func() bool { return r.listed(blocks) == 0 })
	log.note(what+": its conversations are off the screens", time.Since(since))
	known := r.witness.lastOf(id).Add(leaseSpan)
	r.until("what a lost member held is replaced", func() bool { return time.Now().After(known) && r.held(r.conversations) })
	log.note(what+": concurrency is back, from the kill", time.Since(since))
	log.note(what+": concurrency is back, from the end of its lease", time.Since(known))
	r.until("every member is there", func() bool { n, _ := r.witness.present(time.Now()); return n == len(r.members) })
}

// coordinatorKilled kills the coordinator, without which members go on.
func (r *rig) coordinatorKilled(log *times) {
	r.Helper()
	killed := time.Now()
	r.kill(r.coordinator)
	r.start(r.coordinator)
	r.until("the coordinator is back", func() bool { _, err := r.client.Snapshot(r.Context()); return err == nil })
	log.note("coordinator: it answers, from the kill", time.Since(killed))
	ready := time.Now()
	_, active := r.witness.present(ready)
	assert.Greater(r, active, r.conversations*8/10, "members go on without a coordinator") // where one has just ended, the next may be about to begin
	r.until("the run is taken over", func() bool { return r.held(r.conversations) })
	log.note("coordinator: concurrency is back, from its answer", time.Since(ready))
	r.until("the list shows what is in progress", func() bool {
		return r.whole("SELECT count(*) FROM conversations WHERE status = 'active'")[0] == strconv.Itoa(r.conversations)
	})
	log.note("coordinator: its list of conversations is whole, from its answer", time.Since(ready))
}

// natsKilled kills the NATS server.
func (r *rig) natsKilled(log *times) {
	r.Helper()
	killed := time.Now()
	r.kill(r.nats)
	r.start(r.nats)
	r.until("the connection to the NATS server is back", func() bool { return r.witness.isBack().After(killed) })
	back := r.witness.isBack()
	log.note("NATS: it is back, from the kill", back.Sub(killed))
	r.until("members are there again", func() bool {
		return r.witness.renewedSince(back) == len(r.members) && r.held(r.conversations)
	})
	log.note("NATS: concurrency is back, from its return", time.Since(back))
}

// memberStopped stops a member for longer than its lease and has it wake.
func (r *rig) memberStopped(m *part, log *times) {
	r.Helper()
	lost, ok := r.witness.leaseOf(m.name)
	require.True(r, ok)
	stopped := time.Now()
	require.NoError(r, syscall.Kill(m.process.PID(), syscall.SIGSTOP))
	blocks := r.witness.holds(lost.ID)
	r.until("a stopped member is on no screen", func() bool { return r.listed(blocks) == 0 })
	log.note("stopped member: its conversations are off the screens", time.Since(stopped))
	known := r.witness.lastOf(lost.ID).Add(leaseSpan)
	r.until("what a stopped member held is replaced", func() bool { return time.Now().After(known) && r.held(r.conversations) })
	log.note("stopped member: concurrency is back, from the end of its lease", time.Since(known))
	woken, before := time.Now(), len(r.target.all())
	require.NoError(r, syscall.Kill(m.process.PID(), syscall.SIGCONT))
	r.until("the stopped member comes back as another", func() bool {
		l, ok := r.witness.leaseOf(m.name)
		return ok && l.ID != lost.ID && r.held(r.conversations)
	})
	log.note("stopped member: it is back and concurrency, too, from its waking", time.Since(woken))
	for _, a := range r.target.all()[before:] {
		if a.by == m.key() && slices.ContainsFunc(blocks, func(b members.Block) bool { return b.From <= a.number && a.number < b.To }) {
			assert.Fail(r, "a member that woke after its lease goes on", "%s, %v after it woke", a.id, a.at.Sub(woken))
		}
	}
}

// audit holds what was acknowledged and what the target saw against what is stored.
func (r *rig) audit() {
	r.Helper()
	stored := map[string]bool{}
	r.witness.mu.Lock()
	acked := r.witness.acked
	r.witness.mu.Unlock()
	require.Greater(r, len(acked), len(r.target.all())/2, "the witness hears what is acknowledged")
	missing := func() (n int) {
		clear(stored)
		for _, key := range r.whole("SELECT conversation || '/' || number FROM turns") {
			stored[key] = true
		}
		for key := range acked {
			if !stored[key] {
				n++
			}
		}
		return n
	}
	r.until("every acknowledged turn is stored", func() bool { return missing() == 0 })
	assert.Empty(r, r.whole("SELECT conversation || '/' || number FROM turns GROUP BY conversation, number HAVING count(*) > 1"), "turns twice")
	assert.Empty(r, r.whole("SELECT number FROM conversations GROUP BY lane, number HAVING count(*) > 1"), "conversation numbers twice")
	r.until("no conversation is left that nobody holds", func() bool {
		return len(r.whole("SELECT id FROM conversations WHERE status = 'active'")) == 0
	})
	r.witness.eachOnce(r.T)
	asked, holders, twice, moved := r.target.all(), map[int64]string{}, map[string]int{}, 0
	for _, a := range asked {
		if twice[a.id]++; twice[a.id] > 1 {
			assert.Fail(r, "the target was asked twice", a.id)
		}
		if by, ok := holders[a.number]; ok && by != a.by {
			moved++
		}
		holders[a.number] = a.by
	}
	assert.Zero(r, moved, "conversations that changed their member")
	again := 0
	for _, n := range acked {
		again += n - 1
	}
	lost := 0
	for id := range r.target.answered {
		if cut := lastDash(id); !stored[id[:cut]+"/"+id[cut+1:]] {
			lost++
		}
	}
	assert.Empty(r, r.whole("SELECT DISTINCT conversation FROM turns WHERE conversation NOT IN (SELECT id FROM conversations)"), "turns of no conversation")
	fmt.Printf("%d turns asked, %d answered, %d acknowledged (%d of them more than once), %d stored; acknowledged and not stored: %d; answered to a member that then died or was stopped, and so never acknowledged: %d\n",
		len(asked), len(r.target.answered), len(acked), again, len(stored), missing(), lost)
}

func lastDash(id string) int {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i] == '-' {
			return i
		}
	}
	return 0
}

// times are how long recoveries took, by what came back.
type times struct {
	order []string
	took  map[string][]time.Duration
}

func (l *times) note(what string, took time.Duration) {
	if l.took == nil {
		l.took = map[string][]time.Duration{}
	}
	if l.took[what] == nil {
		l.order = append(l.order, what)
	}
	l.took[what] = append(l.took[what], took)
}

func (l *times) table() string {
	text := fmt.Sprintf("%-66s %3s %8s %8s %8s\n", "seconds", "n", "least", "median", "most")
	for _, what := range l.order {
		all := slices.Sorted(slices.Values(l.took[what]))
		text += fmt.Sprintf("%-66s %3d %8.2f %8.2f %8.2f\n", what, len(all), all[0].Seconds(), all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
	}
	return text
}
