//go:build verify

package openings

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	reporting "kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/virtual"
)

// figures are a client's figures of the turns with one number.
type figures struct {
	n    int
	p50  time.Duration // TTFT
	p75  time.Duration
	cold float64 // share of the turns with less than half of their prompt in a cache
}

func byNumber(t *testing.T, turns []virtual.Turn) map[int]figures {
	t.Helper()
	groups := map[int][]virtual.Turn{}
	for _, u := range turns {
		groups[u.Number] = append(groups[u.Number], u)
	}
	all := map[int]figures{}
	for number, group := range groups {
		f := figures{n: len(group)}
		var ttft []time.Duration
		for _, u := range group {
			ttft = append(ttft, u.FirstToken-u.Submitted)
			if 2*u.CachedTokens < u.PromptTokens {
				f.cold += 1 / float64(len(group))
			}
		}
		slices.Sort(ttft)
		f.p50, f.p75 = ttft[len(ttft)/2], ttft[3*len(ttft)/4]
		all[number] = f
	}
	return all
}

// With ten shared texts, every turn hits on every worker. With a text of its own for each conversation, turn 1 is
// prefilled in full under any router, and later turns hit under kv. Under round-robin with three workers, turn n is
// cold if none of the turns before was on its worker, which has the probability (2/3)^(n−1).
func TestFollowUpTurnsHitByRouter(t *testing.T) {
	shared := measure(t, api.ModeKV, 10, 3*time.Minute)
	kv := measure(t, api.ModeKV, workload.OneEach, 3*time.Minute)
	// Under round-robin, the shares of cold turns converge slowly.
	dealt := measure(t, api.ModeRoundRobin, workload.OneEach, 15*time.Minute)

	for number, f := range shared {
		assert.Less(t, f.cold, .1, "ten texts must soon be in every cache: turn %d", number)
	}
	assert.InEpsilon(t, shared[2].p50.Seconds(), shared[1].p50.Seconds(), .25,
		"so that the first turn is as fast as the others")

	assert.InDelta(t, 1, kv[1].cold, 1e-9, "a new text is in no cache")
	assert.InDelta(t, 1, dealt[1].cold, 1e-9)
	for number := 2; number <= 5; number++ {
		assert.Less(t, kv[number].cold, .15, "turn %d", number)
		assert.Greater(t, kv[1].p50.Seconds(), 1.7*kv[number].p50.Seconds(), "turn 1 must be slower than turn %d", number)
		assert.InDelta(t, math.Pow(2./3, float64(number-1)), dealt[number].cold, .2, "turn %d", number)
	}
	assert.Greater(t, dealt[2].p75.Seconds(), 1.7*kv[2].p75.Seconds(), "turn 2 must be slow in two of three cases")
	reporting.Report(t, "turn 2 of texts of their own: %.0f %% cold under kv, %.0f %% under round-robin",
		100*kv[2].cold, 100*dealt[2].cold)
}

func measure(t *testing.T, mode api.Mode, openings workload.Openings, long time.Duration) map[int]figures {
	t.Helper()
	all := byNumber(t, run(t, mode, openings, long))
	for number := 1; number <= 5; number++ {
		f := all[number]
		t.Logf("%s, openings %d, turn %d: %d turns, TTFT p50 %v, p75 %v, %.0f %% cold",
			mode, openings, number, f.n, f.p50.Round(time.Millisecond), f.p75.Round(time.Millisecond), 100*f.cold)
		assert.Greater(t, f.n, 20)
	}
	return all
}
