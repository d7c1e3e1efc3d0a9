//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// at says whether n conversations are asked for and have been in progress at once.
// When it is asked, some may just have ended, and their successors not begun.
func (p *program) at(n int) func() bool {
	return func() bool {
		s := p.lane().State
		return s.Step.Settled != nil && s.Concurrency.Target == n && s.Concurrency.Actual <= n && s.Concurrency.Actual >= n-n/10
	}
}

// goroutines counts those of the program, with one connection to the test.
func (p *program) goroutines() float64 {
	p.t.Helper()
	p.http.CloseIdleConnections()
	return p.metric("go_goroutines")
}

// 1 → 180 → 60 → 180 → stop: one process all the way, which has what it is asked
// for each time, and in the end nothing more than at the beginning.
func TestConcurrencyMoves(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	server.words.Store(5)
	server.gap.Store(int64(400 * time.Millisecond))
	p := start(t, server.URL, "--start-rate=1000", "--target-rps=0")
	p.until("it is ready", p.ready)
	idle, born := p.goroutines(), p.metric("process_start_time_seconds")
	var last api.Totals
	for i, n := range []int{1, 180, 60, 180} {
		state, err := p.client.Start(t.Context(), "", api.StartRequest{Concurrency: &n})
		require.NoError(t, err)
		assert.Equal(t, n, state.Concurrency.Target)
		assert.EqualValues(t, i+1, state.Step.ID)
		p.until("as many are in progress as were asked for", p.at(n))
		p.until("the target answers about as many at once", func() bool {
			inside := int(server.inside.Load()) // its book lags behind
			return inside > n/2 && inside <= n+n/5
		})
		p.until("turns count", func() bool { return p.lane().State.Step.Counted > 0 })
		now := p.lane()
		assert.Equal(t, state.Step.ID, now.State.Step.ID)
		assert.Equal(t, state.Started, now.State.Started, "no restart")
		assert.Greater(t, now.Totals.OK, last.OK)
		assert.Zero(t, now.Totals.Errors)
		assert.Zero(t, now.Totals.Cancelled, "who is one too many ends at a turn's boundary")
		last = now.Totals
	}
	assert.GreaterOrEqual(t, p.metric("loadgen_conversations_total", "status", "retired"), 1.)

	state, err := p.client.Stop(t.Context(), "", api.StopRequest{})
	require.NoError(t, err)
	assert.False(t, state.Running)
	assert.Zero(t, state.Concurrency.Actual)
	assert.Zero(t, p.metric("loadgen_active_conversations"))
	assert.Zero(t, p.metric("loadgen_inflight_requests"))
	p.until("the target is left in peace", func() bool { return server.inside.Load() == 0 })
	p.until("no goroutine is left", func() bool { return p.goroutines() <= idle })
	assert.InDelta(t, born, p.metric("process_start_time_seconds"), 0)
	assert.GreaterOrEqual(t, p.lane().Totals.OK, last.OK)
	p.endsWell()
}

// After kill -9 everything that was listed is there, what was in progress is
// cancelled, and steps and settings go on where they were.
func TestKilled(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	p := start(t, server.URL, "--concurrency=4", "--start-rate=100", "--turns-min=2", "--start")
	title := "Kept"
	_, err := p.client.PatchSettings(t.Context(), api.SettingsPatch{Title: &title, SLO: &api.SLO{TTFT: .5, TPOT: .05}})
	require.NoError(t, err)
	concurrency := 5
	_, err = p.client.Patch(t.Context(), "", api.WorkloadPatch{Concurrency: &concurrency})
	require.NoError(t, err)
	var before []api.Conversation
	p.until("a page of conversations is listed", func() bool {
		before = p.conversations()
		return len(before) > 50
	})
	events, err := p.client.Events(t.Context(), "", 0)
	require.NoError(t, err)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGKILL))
	p.code()

	again := start(t, server.URL, "--data-dir="+p.dir)
	after := map[string]api.Conversation{}
	for _, c := range again.conversations() {
		assert.NotEqual(t, api.ConversationActive, c.Status, c.ID)
		assert.NotNil(t, c.Ended, c.ID)
		after[c.ID] = c
	}
	cut := 0
	for _, c := range before {
		now, ok := after[c.ID]
		require.True(t, ok, "%s was listed", c.ID)
		assert.GreaterOrEqual(t, now.TurnsDone, c.TurnsDone, c.ID)
		if c.Ended != nil {
			assert.Equal(t, c, now)
		}
	}
	for _, c := range after {
		if c.Status == api.ConversationCancelled {
			cut++
		}
	}
	assert.NotZero(t, cut, "some were in progress")
	whole, err := again.client.Conversation(t.Context(), before[len(before)-1].ID)
	require.NoError(t, err)
	assert.Len(t, whole.Turns, whole.TurnsDone)
	assert.True(t, strings.HasPrefix(whole.Turns[0].AssistantMessage, "word "))

	settings := again.status().Settings
	assert.Equal(t, title, settings.Title)
	assert.Equal(t, api.SLO{TTFT: .5, TPOT: .05}, settings.SLO)
	assert.False(t, again.lane().State.Running, "without --start it waits for an operator")
	state, err := again.client.Start(t.Context(), "", api.StartRequest{})
	require.NoError(t, err)
	assert.EqualValues(t, 3, state.Step.ID, "the third after two")
	again.until("new conversations are listed beside the old ones", func() bool { return len(again.conversations()) > len(after) })
	kept, err := again.client.Events(t.Context(), "", 0)
	require.NoError(t, err)
	assert.Subset(t, kept.Events, events.Events)
	again.endsWell()
}
