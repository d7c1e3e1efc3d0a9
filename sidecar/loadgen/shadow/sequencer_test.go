package shadow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The worker of the first request becomes known after the second one has ended: the second is
// held back, and then both count.
func TestSequencerWaitsForTheWorker(t *testing.T) {
	s := start(t)
	f := NewSequencer(s, 10*time.Second)
	zero := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return zero.Add(time.Duration(ms) * time.Millisecond) }
	a := f.Begin(at(0), Request{Blocks: path(1, 0, 10), PromptTokens: 105})
	b := f.Begin(at(100), Request{Blocks: path(1, 0, 10), PromptTokens: 105})
	f.First(at(200), b, 22)
	f.End(at(300), b, 20, 0)
	assert.Zero(t, f.Advance(at(2000)), "the first worker is unknown")
	assert.Zero(t, s.serial)
	f.First(at(2100), a, 11)
	f.Advance(at(2200))
	f.End(at(2150), a, 20, 0)
	f.Advance(at(3000))
	assert.Zero(t, f.Waiting())
	figures := s.Figures(3 * time.Second)
	assert.EqualValues(t, 2, figures.Policies[0].Total.Requests)
	assert.EqualValues(t, 2, figures.Account.Requests)
	assert.Len(t, s.Decisions(), 2)
}

// A request whose worker is never reported delays the others up to the timeout.
func TestSequencerTimesOut(t *testing.T) {
	s := start(t)
	f := NewSequencer(s, 10*time.Second)
	zero := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	f.Begin(zero, Request{Blocks: path(1, 0, 10), PromptTokens: 105})
	b := f.Begin(zero.Add(time.Second), Request{Blocks: path(1, 0, 10), PromptTokens: 105})
	f.First(zero.Add(2*time.Second), b, 22)
	f.End(zero.Add(3*time.Second), b, 20, 0)
	f.Advance(zero.Add(9 * time.Second))
	assert.Zero(t, s.serial)
	f.Advance(zero.Add(11 * time.Second))
	figures := s.Figures(11 * time.Second)
	assert.EqualValues(t, 1, figures.Policies[0].Total.Requests, "the actual world has no worker for the other request")
	assert.EqualValues(t, 1, figures.Account.Requests)
}
