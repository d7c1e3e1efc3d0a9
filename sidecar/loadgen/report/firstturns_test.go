package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

// Zeros that the cluster's counters contradict, which are unknown in the run, show no cold caches.
func TestDoubtedZerosShowNothing(t *testing.T) {
	turn := api.Turn{TTFT: new(1.), PromptTokens: new(3900), CachedTokens: new(0)}
	b := Builder{firsts: []stats.FirstTurn{stats.NewFirstTurn(&turn, 1, turn.Started)}}
	r := Run{Turns: Turns{OK: 30}, Tokens: Tokens{CachedUnknown: 27}}
	assert.Equal(t, api.CachesWereCold, b.caches(&r).State)
	r.Tokens.CachedUnknown = 30
	assert.Equal(t, api.CachesWereUnknown, b.caches(&r).State)
}
