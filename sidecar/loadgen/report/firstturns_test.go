package report

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
)

// Cached tokens of the span's own turns, or of the text before every opening, are no sign of warm caches.
func TestColdness(t *testing.T) {
	first := func(opening int64, sent, token float64, prompt, cached int) FirstTurn {
		return FirstTurn{opening, sent, token, prompt, cached, true}
	}
	for name, row := range map[string]struct {
		turns  []FirstTurn
		tokens int // 0: as recorded
		want   *api.SweepFirstTurns
	}{
		"nothing":                         {},
		"no answer reports cached tokens": {turns: []FirstTurn{{opening: 1, token: 2}}},
		"cold, and shared by a later conversation": {
			turns: []FirstTurn{first(1, 0, 1, 3900, 0), first(1, 3, 4, 3900, 3840)}, want: &api.SweepFirstTurns{Openings: 1},
		},
		"sent together, the second was computed first": {
			turns: []FirstTurn{first(1, 0, 2, 3900, 3840), first(1, .1, 1, 3900, 0)}, want: &api.SweepFirstTurns{Openings: 1},
		},
		"one of those that were sent together was cut short": {
			turns: []FirstTurn{first(1, 0, 2, 3900, 3840), {opening: 1, sent: .1, token: math.Inf(1)}},
		},
		"a system prompt in front of every opening": {
			turns: []FirstTurn{first(1, 0, 1, 5900, 2048), first(2, 0, 1, 5800, 2048)}, want: &api.SweepFirstTurns{Openings: 2},
		},
		"half of an opening": {
			turns: []FirstTurn{first(1, 0, 1, 3900, 1664), first(2, 0, 1, 3900, 0)},
			want:  &api.SweepFirstTurns{Openings: 2, Warm: 1, Cached: 1664},
		},
		"a short opening in one block": {
			turns: []FirstTurn{first(1, 0, 1, 250, 64)}, tokens: 200, want: &api.SweepFirstTurns{Openings: 1},
		},
		"a short opening": {
			turns: []FirstTurn{first(1, 0, 1, 450, 400)}, tokens: 400,
			want: &api.SweepFirstTurns{Openings: 1, Warm: 1, Cached: 400},
		},
		"a question of a set, behind a system prompt": {turns: []FirstTurn{first(1, 0, 1, 1000, 896)}},
		"a tokenizer that counts fewer": {
			turns: []FirstTurn{first(1, 0, 1, 3000, 64)}, want: &api.SweepFirstTurns{Openings: 1},
		},
	} {
		assert.Equal(t, row.want, Coldness(row.turns, row.tokens), name)
	}
}

// Zeros that the cluster's counters contradict, which are unknown in the run, show no cold caches.
func TestDoubtedZerosShowNothing(t *testing.T) {
	b := Builder{firsts: []FirstTurn{{opening: 1, token: 1, prompt: 3900, known: true}}}
	r := Run{Turns: Turns{OK: 30}, Tokens: Tokens{CachedUnknown: 27}}
	assert.Equal(t, "cold", b.caches(&r).State)
	r.Tokens.CachedUnknown = 30
	assert.Equal(t, "unknown", b.caches(&r).State)
}
