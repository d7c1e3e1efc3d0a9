//go:build dynamo

package dynamo

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

const conversations = 24

// The parts depend on each other, since a Dynamo takes half a minute to start.
func TestRealDynamo(t *testing.T) {
	b := startBooth(t)
	t.Run("the frontend answers what is kept of it", b.answersAsKept)
	t.Run("kv counts what the frontend counts", b.countsAgree)
	t.Run("round robin is dealt evenly, without a restart", b.dealsEvenly)
	t.Run("a worker is killed", b.losesWorker)
	t.Run("the frontend is killed and comes back", b.losesFrontend)
}

// After a drain, the tokens of usage equal the frontend's counts, and every worker has served turns.
func (b *booth) countsAgree(t *testing.T) {
	before := scrape(t, b.dynamo.URL())
	b.start(t)
	b.waitOK(t, 200, time.Minute)
	b.drain(t)
	after := scrape(t, b.dynamo.URL())
	counted := func(name string) float64 { return after[name] - before[name] }
	totals := b.status(t).Lanes[0].Totals
	require.Empty(t, totals.ErrorsByClass)
	same(t, "prompt tokens", float64(totals.InputTokens), counted("dynamo_frontend_input_sequence_tokens"))
	same(t, "cached tokens", float64(totals.CachedTokens), counted("dynamo_frontend_cached_tokens"))
	turns := b.turns(t)
	instances, err := b.dynamo.Instances(t.Context())
	require.NoError(t, err)
	seen := slices.Sorted(maps.Keys(perWorker(turns)))
	assert.ElementsMatch(t, instances, seen, "workers seen in answers")
	printTTFT(t, turns)
}

// same requires that two counts differ by less than 0.1 %.
func same(t *testing.T, what string, client, server float64) {
	t.Helper()
	t.Logf("%s: %.0f by usage, %.0f by the frontend", what, client, server)
	assert.InEpsilon(t, server, client, .001, what)
}

// printTTFT prints the difference between the client's TTFT and the frontend's.
func printTTFT(t *testing.T, turns []api.Turn) {
	t.Helper()
	var gaps []float64
	for _, turn := range turns {
		if turn.TTFT != nil && turn.ServerTTFT != nil {
			gaps = append(gaps, 1000*(*turn.TTFT-*turn.ServerTTFT))
		}
	}
	require.NotEmpty(t, gaps, "no turn carries nvext.timing.ttft_ms")
	slices.Sort(gaps)
	t.Logf("client's TTFT minus nvext.timing.ttft_ms over %d turns: median %.2f ms, p95 %.2f ms (to reach: median ≤ 5 ms)",
		len(gaps), gaps[len(gaps)/2], gaps[len(gaps)*95/100])
}

// Under pinned round robin, the workers' numbers of turns differ by at most one.
func (b *booth) dealsEvenly(t *testing.T) {
	const uptime = "dynamo_component_uptime_seconds" // of the frontend; a restart resets it
	workers, before := b.dynamo.Workers(), scrape(t, b.dynamo.URL())[uptime]
	b.setMode(t, api.ModeRoundRobin)
	b.start(t)
	b.waitOK(t, 150, time.Minute)
	b.drain(t)
	counts := perWorker(b.turns(t))
	dealt := slices.Collect(maps.Values(counts))
	require.Len(t, dealt, len(workers))
	assert.LessOrEqual(t, slices.Max(dealt)-slices.Min(dealt), 1, "%v", counts)
	assert.Equal(t, workers, b.dynamo.Workers(), "no worker was restarted")
	assert.GreaterOrEqual(t, scrape(t, b.dynamo.URL())[uptime], before, "nor was the frontend")
	b.setMode(t, api.ModeKV)
}

// The turns of a killed worker end with an error class, and conversations continue.
func (b *booth) losesWorker(t *testing.T) {
	b.start(t)
	b.waitOK(t, 30, time.Minute)
	b.dynamo.Mockers[0].Process().Kill()
	ok := b.status(t).Lanes[0].Totals.OK
	b.waitOK(t, ok+150, time.Minute)
	b.stop(t)
	s := b.status(t)
	t.Logf("errors after the loss of a worker: %v", s.Lanes[0].Totals.ErrorsByClass)
	for _, turn := range b.turns(t) {
		if turn.Status == api.TurnError {
			assert.Contains(t, api.ErrorClasses, turn.ErrorClass, turn.RequestID)
		}
	}
	assert.Zero(t, s.Lanes[0].State.Concurrency.Actual, "no conversation may be active after the stop")
	require.NoError(t, b.dynamo.Mockers[0].Start(t.Context()))
}

// A killed frontend fails turns with an error class. When it is ready again, the workload recovers by itself.
func (b *booth) losesFrontend(t *testing.T) {
	b.start(t)
	b.waitOK(t, 30, time.Minute)
	b.dynamo.Frontend.Process().Kill()
	b.wait(t, "turns that fail to connect", time.Minute, func(s api.LaneStatus) bool {
		return s.Totals.ErrorsByClass[api.ErrorConnect] > 0 && !s.Target.Reachable
	})
	require.NoError(t, b.dynamo.Frontend.Start(t.Context()))
	ready := time.Now()
	ok := b.status(t).Lanes[0].Totals.OK
	b.waitOK(t, ok+1, 30*time.Second)
	t.Logf("first whole turn %.1f s after the frontend's readiness (to reach: 10 s)", time.Since(ready).Seconds())
	b.wait(t, "all conversations", time.Minute, func(s api.LaneStatus) bool {
		return s.State.Concurrency.Actual == conversations && s.Target.Problem == ""
	})
	b.stop(t)
}

func perWorker(turns []api.Turn) map[string]int {
	counts := map[string]int{}
	for _, t := range turns {
		if t.Worker != "" {
			counts[t.Worker]++
		}
	}
	return counts
}
