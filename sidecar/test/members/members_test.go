//go:build members && linux

package members

import (
	"slices"
	"testing"
	"time"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	conversations = 300
	outage        = 8 * time.Second
)

// Each kind of process and each pair of kinds is killed under load, and the server is away for 8 s, twice. The target's
// own list of requests equals what is stored and what is counted as lost, to the turn: no request is sent twice, and
// each is stored, but for those in flight at the kill of a coordinator, as at the kill of a load generator alone.
func TestNothingIsLostUncounted(t *testing.T) {
	r := newRig(t, conversations, 3)
	r.begin()
	for _, kill := range []struct {
		what  string
		kills []func()
	}{
		{"a member", []func(){r.killMember(0)}},
		{"the NATS server", []func(){r.killNATS}},
		{"the NATS server", []func(){r.killNATS}},
		{"a member and another", []func(){r.killMember(1), r.killMember(2)}},
		{"the NATS server and a member", []func(){r.killMember(0), r.killNATS}},
		{"the coordinator", []func(){r.killCoordinator}},
		{"the coordinator and a member", []func(){r.killMember(1), r.killCoordinator}},
		{"the coordinator and the NATS server", []func(){r.killCoordinator, r.killNATS}},
	} {
		before := time.Now()
		for _, f := range kill.kills {
			f()
		}
		r.until("three members", func() bool { return r.present() == 3 })
		ended := r.lane().Totals.OK
		r.until("turns end again", func() bool {
			return r.held(conversations) && r.lane().Totals.OK >= ended+conversations
		})
		figure.Report(t, "%s killed: all %d conversations go on after %.1f s", kill.what, conversations,
			time.Since(before).Seconds())
	}
	_, err := r.client.WithoutTimeout().Stop(t.Context(), api.DefaultLane, api.StopRequest{})
	require.NoError(t, err)
	r.audit()
}

// begin starts the run and waits until it is whole.
func (r *rig) begin() {
	r.Helper()
	_, err := r.client.Start(
		r.Context(),
		api.DefaultLane,
		api.StartRequest{Level: new(api.AtConversations(conversations))},
	)
	require.NoError(r, err)
	r.until("all begin", func() bool { return r.held(conversations) })
}

func (r *rig) killMember(i int) func() {
	return func() {
		r.Helper()
		r.members[i].process.Kill()
		r.start(r.members[i])
	}
}

// killNATS kills the server, which is back after a while.
func (r *rig) killNATS() {
	r.Helper()
	r.nats.Kill()
	<-time.After(outage)
	r.nats.Restart()
}

// killCoordinator kills it and starts another, which begins a new run.
func (r *rig) killCoordinator() {
	r.Helper()
	r.killed = append(r.killed, time.Now())
	r.coordinator.process.Kill()
	r.startCoordinator()
	r.until("the coordinator is ready", func() bool { return r.client.Ready(r.Context()) == nil })
	r.begin()
}

// audit compares the requests that the target received with what is stored.
func (r *rig) audit() {
	r.Helper()
	const key = "conversation || '-' || number"
	stored := map[string]bool{}
	r.until("the store has the last turn", func() bool { return r.lane().Totals.LostTurns == 0 })
	for _, id := range r.whole("SELECT " + key + " FROM turns") {
		assert.False(r, stored[id], "%s is stored twice", id)
		stored[id] = true
	}
	lost := map[string]bool{}
	for _, id := range r.whole("SELECT " + key + " FROM turns WHERE data ->> 'error_class' = 'member'") {
		lost[id] = true
	}
	asked, times, unsaved := r.target.all(), map[string]int{}, 0
	for _, a := range asked {
		times[a.id]++
		assert.Equal(r, 1, times[a.id], "the target received %s twice", a.id)
		if stored[a.id] {
			continue
		}
		unsaved++
		assert.True(r, r.inFlightAtKill(a.at), "%s was asked at %v and is not stored", a.id, a.at)
	}
	assert.LessOrEqual(r, unsaved, len(r.killed)*conversations)
	cancelled := r.whole("SELECT " + key + " FROM turns WHERE data ->> 'status' = 'cancelled'")
	neverSent := len(stored) - (len(asked) - unsaved)
	for id := range stored {
		assert.True(r, times[id] == 1 || slices.Contains(cancelled, id), "%s was never sent, and is not cancelled", id)
	}
	require.NotEmpty(r, lost)
	assert.Empty(r, r.whole("SELECT data FROM turns WHERE data ->> 'status' = 'error'"), "no fault of the target")
	figure.Report(r.T, "%d turns never sent; %d in flight at %d kills of the coordinator", neverSent, unsaved,
		len(r.killed))
	figure.Headline(r.T, "%d requests received, %d turns stored, %d lost with a member", len(asked), len(stored),
		len(lost))
}

// inFlightAtKill reports whether a request that came then may have been in flight when a coordinator was killed.
func (r *rig) inFlightAtKill(at time.Time) bool {
	const longest, late = 30 * time.Second, 2 * time.Second
	for _, killed := range r.killed {
		if at.After(killed.Add(-longest)) && at.Before(killed.Add(late+aloneFor)) {
			return true
		}
	}
	return false
}

// aloneFor is the time after which members cancel what no coordinator has asked about.
const aloneFor = 5 * time.Second
