package shadow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/sim"
)

// Worker 11 holds six of the prompt's ten blocks, has another request of three blocks and 35 tokens to
// prefill, and five of its own blocks are in no cache yet.
func TestCandidateCosts(t *testing.T) {
	s := start(t)
	turn(s, 0, Request{Blocks: path(1, 0, 6), PromptTokens: 65, Worker: 11})
	s.Begin(time.Minute, Request{Blocks: path(9, 0, 3), PromptTokens: 35, Worker: 11})
	s.Begin(2*time.Minute, Request{ID: "2-1", Blocks: path(1, 0, 10), PromptTokens: 105, Worker: 22})
	all := s.Decisions()
	d := all[len(all)-1]
	assert.Equal(t, "2-1", d.ID)
	assert.Equal(t, []sim.Candidate{
		{Worker: 11, OverlapBlocks: 6, Requests: 1, PrefillTokens: 35 + 105 - 60, DecodeBlocks: 3 + 10, Cost: 8 + 13},
		{Worker: 22, PrefillTokens: 105, DecodeBlocks: 10, Cost: 10.5 + 10},
	}, d.Candidates)
	assert.Equal(t, 1, d.Chosen)
	assert.Equal(t, 1, d.Actual)
	assert.Equal(t, .5, d.Margin)
	assert.True(t, d.Agrees())
	assert.False(t, d.Settled)
	s.Figures(3 * time.Minute)
	assert.True(t, d.Clear, "no other event within the skew")
}

// A choice is not clear if its margin is at most what the other requests within the skew can have moved.
func TestClearChoices(t *testing.T) {
	for _, gap := range []time.Duration{20 * time.Millisecond, 200 * time.Millisecond} {
		s := start(t)
		s.Begin(time.Second, Request{Blocks: path(9, 0, 3), PromptTokens: 35, Worker: 11})
		s.Begin(time.Second+gap, Request{Blocks: path(1, 0, 10), PromptTokens: 105, Worker: 22})
		f := s.Figures(time.Minute)
		all, beyond := s.Decisions(), gap > s.options.Skew
		require.Len(t, all, 2)
		assert.True(t, all[0].Tied)
		assert.Equal(t, 6.5, all[1].Margin)
		assert.Equal(t, beyond, all[1].Clear, "after %s: the other request has moved the costs by as much", gap)
		assert.Equal(t, 2, f.Choices.Turns)
		assert.Equal(t, 1, f.Choices.Tied)
		if beyond {
			assert.Equal(t, Choices{Turns: 2, Agreed: 2, Tied: 1, Clear: 1, ClearOnes: 1}, f.Choices)
		}
	}
}

// The cache of a worker that goes is lost, and a new worker starts with an empty cache.
func TestWorkersComeAndGo(t *testing.T) {
	s := start(t)
	r := Request{Blocks: path(1, 0, 10), PromptTokens: 105, Conversation: 3, Worker: 22}
	turn(s, 0, r)
	f := s.Begin(time.Minute, r)
	s.SetWorkers([]sim.WorkerID{11})
	s.First(time.Minute+time.Second, f)
	s.End(2*time.Minute, f, 20, 0)
	r.Worker = 33
	turn(s, 3*time.Minute, r)
	assert.Equal(t, []sim.WorkerID{11, 33}, s.workers)
	r.Worker = 22
	turn(s, 4*time.Minute, r)
	turn(s, 5*time.Minute, r)
	figures := s.Figures(6 * time.Minute)
	assert.EqualValues(t, 5, figures.Policies[0].Total.Requests)
	assert.EqualValues(t, 200, figures.Policies[0].Total.HitTokens,
		"of the second turn, which had found it, and of the last")
	assert.Equal(t, 3, figures.Workers)
}

// A capacity that becomes known later evicts the excess blocks.
func TestCapacityBecomesKnown(t *testing.T) {
	s := start(t, func(o *Options) { o.Capacity = 0 })
	assert.Equal(t, UnknownCapacity, s.Figures(0).Capacity)
	r := Request{Blocks: path(1, 0, 10), PromptTokens: 105, Worker: 11}
	turn(s, 0, r)
	s.SetCapacity(4)
	turn(s, time.Minute, r)
	f := s.Figures(2 * time.Minute)
	assert.Equal(t, 4, f.Capacity)
	assert.EqualValues(t, 40, f.Policies[0].Total.HitTokens)
	assert.EqualValues(t, 1, f.Policies[0].Total.Crowded, "eleven blocks do not fit into four")
}

// The window holds the last minute.
func TestWindow(t *testing.T) {
	s := start(t)
	for i := range 10 {
		turn(s, time.Duration(i)*30*time.Second, Request{Blocks: path(1, 0, 10), PromptTokens: 105, Worker: 11})
	}
	f := s.Figures(271 * time.Second).Policies[0]
	assert.EqualValues(t, 10, f.Total.Requests)
	assert.EqualValues(t, 2, f.Window.Requests)
	assert.InDelta(t, 100/105., f.Window.HitRatio(), 1e-9)
	assert.InDelta(t, 1/30., f.Window.Spread(), .01, "one request for a second in thirty")
}
