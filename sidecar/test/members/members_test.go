//go:build members && linux

package members

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/members"
)

// number returns the value of an environment variable, or a default.
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

// After kills of every part and a stop of a member, each acknowledged turn is stored once, no conversation number is
// on two members, and the concurrency is restored. The log has the duration of each recovery.
func TestKillsLoseNoAcknowledgedTurn(t *testing.T) {
	r := newRig(t, number(t, "MEMBERS_CONVERSATIONS", 400), 8)
	_, err := r.client.Start(t.Context(), api.DefaultLane, api.StartRequest{})
	require.NoError(t, err)
	r.until("all begin", func() bool { return r.held(r.conversations / 4) })
	r.set(r.conversations)
	for i := range number(t, "MEMBERS_KILLS", 2) {
		r.memberKilled(r.holder(i))
		r.coordinatorKilled()
		r.natsKilled()
		r.memberStopped(r.holder(i + 3))
	}
	r.set(r.conversations / 4)
	_, err = r.client.WithoutTimeout().Stop(t.Context(), api.DefaultLane, api.StopRequest{})
	require.NoError(t, err)
	counted := r.lane().Totals
	stored := r.whole("SELECT count(*) FROM turns")[0]
	assert.Equal(t, stored, strconv.FormatInt(counted.OK+counted.Errors+counted.Cancelled, 10),
		"the totals count every stored turn")
	r.Logf("totals after the takeovers: %d turns, %s stored", counted.OK+counted.Errors+counted.Cancelled, stored)
	r.audit()
}

// took logs the duration of a recovery.
func (r *rig) took(what string, since time.Time) {
	r.Logf("%s after %.2f s", what, time.Since(since).Seconds())
}

// lost waits until no conversation of a lease is listed, and all are replaced.
func (r *rig) lost(what, id string) (blocks []members.Block) {
	r.Helper()
	began := time.Now()
	blocks = r.recorder.holds(id)
	r.until("the conversations of a "+what+" have ended", func() bool { return r.listed(blocks) == 0 })
	r.took(what+": its conversations have ended", began)
	known := r.recorder.lastOf(id).Add(leaseSpan)
	r.until("what a "+what+" held is replaced", func() bool { return time.Now().After(known) && r.held(r.conversations) })
	r.took(what+": the concurrency is back, from the end of its lease", known)
	return blocks
}

func (r *rig) memberKilled(m *part) {
	r.Helper()
	lease, ok := r.recorder.leaseOf(m.name)
	require.True(r, ok)
	m.process.Kill()
	r.start(m)
	r.lost("killed member", lease.ID)
	r.until("every member is there", func() bool { n, _ := r.recorder.present(time.Now()); return n == len(r.members) })
}

// coordinatorKilled kills the coordinator. Members continue without it, and the next coordinator takes over the run.
func (r *rig) coordinatorKilled() {
	r.Helper()
	killed := time.Now()
	r.coordinator.process.Kill()
	r.startCoordinator()
	r.until("the coordinator is back", func() bool { _, err := r.client.Snapshot(r.Context()); return err == nil })
	_, active := r.recorder.present(time.Now())
	// a conversation may have just ended, and the next not begun
	assert.Greater(r, active, r.conversations*8/10, "members must continue")
	r.until("the run is taken over", func() bool { return r.held(r.conversations) })
	r.took("coordinator: the concurrency is back", killed)
	r.until("the store lists what is in progress", func() bool {
		return r.whole("SELECT count(*) FROM conversations WHERE status = 'active'")[0] == strconv.Itoa(r.conversations)
	})
	r.took("coordinator: its list of conversations is whole", killed)
}

func (r *rig) natsKilled() {
	r.Helper()
	killed := time.Now()
	r.nats.Kill()
	r.nats.Restart()
	r.until("the connection is back", func() bool { return r.recorder.isBack().After(killed) })
	back := r.recorder.isBack()
	r.until("members are there again", func() bool {
		return r.recorder.renewedSince(back) == len(r.members) && r.held(r.conversations)
	})
	r.took("NATS server: the concurrency is back", killed)
}

// memberStopped stops a member for longer than its lease and continues it. It must send nothing more of its
// conversations.
func (r *rig) memberStopped(m *part) {
	r.Helper()
	lease, ok := r.recorder.leaseOf(m.name)
	require.True(r, ok)
	require.NoError(r, syscall.Kill(m.process.PID(), syscall.SIGSTOP))
	blocks := r.lost("stopped member", lease.ID)
	woken, before := time.Now(), len(r.target.all())
	require.NoError(r, syscall.Kill(m.process.PID(), syscall.SIGCONT))
	r.until("the stopped member comes back as another", func() bool {
		l, ok := r.recorder.leaseOf(m.name)
		return ok && l.ID != lease.ID && r.held(r.conversations)
	})
	r.took("stopped member: it is back, from its waking", woken)
	for _, a := range r.target.all()[before:] {
		held := slices.ContainsFunc(blocks, func(b members.Block) bool { return b.From <= a.number && a.number < b.To })
		if a.by == m.key() && held {
			assert.Fail(r, "a member sends after its lease has ended", a.id)
		}
	}
}

// audit compares acknowledgements and received requests with what is stored.
func (r *rig) audit() {
	r.Helper()
	r.recorder.mu.Lock()
	acked := r.recorder.acked
	r.recorder.mu.Unlock()
	asked := r.target.all()
	require.Greater(r, len(acked), len(asked)/2, "the recorder must receive the acknowledgements")
	stored := map[string]bool{}
	r.until("every acknowledged turn is stored", func() bool {
		clear(stored)
		for _, key := range r.whole("SELECT conversation || '/' || number FROM turns") {
			stored[key] = true
		}
		for key := range acked {
			if !stored[key] {
				return false
			}
		}
		return true
	})
	assert.Empty(
		r, r.whole("SELECT conversation || '/' || number FROM turns GROUP BY conversation, number HAVING count(*) > 1"),
		"turns twice",
	)
	assert.Empty(
		r, r.whole("SELECT number FROM conversations GROUP BY lane, number HAVING count(*) > 1"),
		"conversation numbers twice",
	)
	assert.Empty(
		r, r.whole("SELECT DISTINCT conversation FROM turns WHERE conversation NOT IN (SELECT id FROM conversations)"),
		"turns of no conversation",
	)
	r.until("every conversation has ended", func() bool {
		return len(r.whole("SELECT id FROM conversations WHERE status = 'active'")) == 0
	})
	r.recorder.eachOnce(r.T)
	holders, times := map[int64]string{}, map[string]int{}
	for _, a := range asked {
		times[a.id]++
		assert.Equal(r, 1, times[a.id], "the target received %s twice", a.id)
		if by, ok := holders[a.number]; ok {
			assert.Equal(r, by, a.by, "conversation %d changed its member", a.number)
		}
		holders[a.number] = a.by
	}
	lost := 0
	for id := range r.target.answered {
		if cut := strings.LastIndexByte(id, '-'); !stored[id[:cut]+"/"+id[cut+1:]] {
			lost++
		}
	}
	r.Logf("%d turns asked, %d answered, %d acknowledged, %d stored; "+
		"%d were answered to a member that was killed or stopped before it had an acknowledgement",
		len(asked), len(r.target.answered), len(acked), len(stored), lost)
}
