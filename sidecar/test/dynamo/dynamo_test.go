//go:build dynamo

package dynamo

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"kvbooth/sidecar/api"
)

const conversations = 24

// The whole life of a run on one Dynamo: the parts build on each other, and a
// Dynamo takes half a minute to start.
func TestRealDynamo(t *testing.T) {
	b := startBooth(t)
	t.Run("the frontend answers what is kept of it", b.answersAsKept)
	t.Run("kv counts what the frontend counts", b.countsAgree)
	t.Run("round robin is dealt evenly, without a restart", b.dealsEvenly)
	t.Run("a worker is killed", b.losesWorker)
	t.Run("the frontend is killed and comes back", b.losesFrontend)
}

// After a drain the tokens of usage are those that the frontend counted, and
// every worker was seen.
func (b *booth) countsAgree(t *testing.T) {
	before := b.frontendCounts(t)
	b.start(t)
	b.waitOK(t, 200, time.Minute)
	b.drain(t)
	after := b.frontendCounts(t)
	totals := b.status(t).Lanes[0].Totals
	if totals.Errors != 0 {
		t.Fatalf("%d errors: %v", totals.Errors, totals.ErrorsByClass)
	}
	same(t, "prompt tokens", float64(totals.InputTokens), after.prompt-before.prompt)
	same(t, "cached tokens", float64(totals.CachedTokens), after.cached-before.cached)
	turns := b.turns(t)
	instances, err := b.dynamo.Instances(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := slices.Sorted(maps.Keys(perWorker(turns)))
	if slices.Sort(instances); !slices.Equal(seen, instances) {
		t.Errorf("workers seen in answers: %v, instances in /health: %v", seen, instances)
	}
	printTTFT(t, turns)
}

// same holds two counts within 0.1 % of each other.
func same(t *testing.T, what string, client, server float64) {
	t.Helper()
	t.Logf("%s: %.0f by usage, %.0f by the frontend", what, client, server)
	if server == 0 || math.Abs(client-server) > .001*server {
		t.Errorf("%s: %.0f by usage, %.0f by the frontend's counter: more than 0.1 %% apart", what, client, server)
	}
}

// printTTFT prints what the client adds to the frontend's own first token.
func printTTFT(t *testing.T, turns []turn) {
	t.Helper()
	var gaps []float64
	for _, turn := range turns {
		if turn.serverTTFT > 0 {
			gaps = append(gaps, 1000*(turn.ttft-turn.serverTTFT))
		}
	}
	if len(gaps) == 0 {
		t.Fatal("no turn carries nvext.timing.ttft_ms")
	}
	slices.Sort(gaps)
	t.Logf("client's TTFT minus nvext.timing.ttft_ms over %d turns: median %.2f ms, p95 %.2f ms (to reach: median ≤ 5 ms)",
		len(gaps), gaps[len(gaps)/2], gaps[len(gaps)*95/100])
}

// Under pinned round robin each worker gets as many turns as the others, within one.
func (b *booth) dealsEvenly(t *testing.T) {
	workers, uptime := b.dynamo.Workers(), b.uptime(t)
	b.setMode(t, api.ModeRoundRobin)
	b.start(t)
	b.waitOK(t, 150, time.Minute)
	b.drain(t)
	counts := perWorker(b.turns(t))
	dealt := slices.Collect(maps.Values(counts))
	if len(dealt) != len(workers) || slices.Max(dealt)-slices.Min(dealt) > 1 {
		t.Errorf("turns per worker: %v, want %d workers and at most 1 apart", counts, len(workers))
	}
	t.Logf("turns per worker: %v", dealt)
	if !slices.Equal(workers, b.dynamo.Workers()) || b.uptime(t) < uptime {
		t.Error("a process of Dynamo was restarted")
	}
	b.setMode(t, api.ModeKV)
}

// The turns on a killed worker end with a class; conversations go on.
func (b *booth) losesWorker(t *testing.T) {
	b.start(t)
	b.waitOK(t, 30, time.Minute)
	b.dynamo.KillWorker(0)
	ok := b.status(t).Lanes[0].Totals.OK
	b.waitOK(t, ok+150, time.Minute)
	b.stop(t)
	s := b.status(t)
	t.Logf("errors after the loss of a worker: %v", s.Lanes[0].Totals.ErrorsByClass)
	for _, turn := range b.turns(t) {
		if turn.status == string(api.TurnError) && !slices.Contains(api.ErrorClasses, api.ErrorClass(turn.class)) {
			t.Errorf("turn %s failed with class %q", turn.id, turn.class)
		}
	}
	if s.Lanes[0].State.Concurrency.Actual != 0 {
		t.Errorf("%d conversations hang after the stop", s.Lanes[0].State.Concurrency.Actual)
	}
	if err := b.dynamo.RestartWorker(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
}

// A killed frontend fails turns with a class; when it is ready again, the
// workload recovers by itself.
func (b *booth) losesFrontend(t *testing.T) {
	b.start(t)
	b.waitOK(t, 30, time.Minute)
	b.dynamo.KillFrontend()
	b.wait(t, "turns that fail to connect", time.Minute, func(s api.LaneStatus) bool {
		return s.Totals.ErrorsByClass[api.ErrorConnect] > 0 && !s.Target.Reachable
	})
	if err := b.dynamo.StartFrontend(t.Context()); err != nil {
		t.Fatal(err)
	}
	ready := time.Now()
	ok := b.status(t).Lanes[0].Totals.OK
	b.waitOK(t, ok+1, 30*time.Second)
	t.Logf("first whole turn %.1f s after the frontend's readiness (to reach: 10 s)", time.Since(ready).Seconds())
	b.wait(t, "all conversations", time.Minute, func(s api.LaneStatus) bool {
		return s.State.Concurrency.Actual == conversations && s.Target.Problem == ""
	})
	b.stop(t)
}

func perWorker(turns []turn) map[string]int {
	counts := map[string]int{}
	for _, t := range turns {
		if t.worker != "" {
			counts[t.worker]++
		}
	}
	return counts
}
