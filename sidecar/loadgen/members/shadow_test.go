package members

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/shadow/live"
	"kvbooth/sidecar/loadgen/workload"
)

// The turns that a lost member had in flight are removed from the shadow.
func TestShadowRemovesTurnsOfLostMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := api.Cluster{
			Available: true, CacheBlocks: new(100.), BlockTokens: new(32.), Workers: []api.Worker{{ID: "11"}, {ID: "22"}},
		}
		l := live.New(live.Options{
			Lane: "main", Log: log(t), Router: func() string { return "" },
			Cluster:      func() api.Cluster { return cluster },
			State:        func() api.State { return api.State{Mode: api.ModeKV} },
			Capabilities: func() (ids, workers bool) { return true, true },
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		wg.Go(func() { l.Run(ctx) })
		synctest.Wait()
		report := func(member string) {
			var n live.Recorder
			n.Use(l.BlockSpec())
			turn := n.Follow(live.Sent{ID: member, Conversation: member, Concurrency: 2})
			turn.Routed(make([]uint32, 100))
			turn.FirstToken("11")
			wait.Advance(time.Second)
			l.Receive(member, n.Take(), 0, 0)
		}
		report("lost")
		r := &remote{
			tally:       newTally(nil, false),
			Coordinator: coordinatorAlone(t, nil), receiver: &runRecorder{shadow: l},
			holders: map[string]*holding{"lost": {}},
		}
		r.noteMembers(time.Now(), nil)
		report("other")
		wait.Advance(5 * time.Second)
		list := l.Decisions(1)
		require.Len(t, list.Decisions, 1)
		require.Equal(t, "other", list.Decisions[0].RequestID)
		for _, c := range list.Decisions[0].Candidates {
			assert.Zero(t, c.Requests)
		}
	})
}

// The shadow's events are divided with their report, in order. Only the last piece is marked as the last report.
func TestShadowIsDividedWithItsReport(t *testing.T) {
	var n live.Recorder
	n.Use(&live.BlockSpec{Serial: 1, Tokens: 32, IDs: true})
	for k := range 50 {
		n.Follow(live.Sent{ID: "r", Conversation: fmt.Sprint(k)}).Routed(make([]uint32, 100))
	}
	whole := report{Turns: make([]workload.Turn, 13), Shadow: n.Take(), Last: true}
	var pieces []report
	var divide func(r report)
	divide = func(r report) {
		if !r.divides() {
			pieces = append(pieces, r)
			return
		}
		first, second := r.halves()
		divide(first)
		divide(second)
	}
	divide(whole)
	var events []live.Event
	var until time.Time
	turns := 0
	for i, p := range pieces {
		assert.Equal(t, i == len(pieces)-1, p.Last)
		turns += len(p.Turns)
		if s := p.Shadow; s != nil {
			assert.False(t, s.Until.Before(until))
			events, until = append(events, s.Events...), s.Until
		}
	}
	assert.Equal(t, 13, turns)
	assert.Equal(t, whole.Shadow.Events, events)
	assert.Equal(t, whole.Shadow.Until, until)
}
