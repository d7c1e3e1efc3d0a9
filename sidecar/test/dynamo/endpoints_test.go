//go:build dynamo

package dynamo

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// Two frontends, one with a KV router and one with round robin, share the workers. Under load, the mode is switched
// several times without a failed turn.
func TestSwitchBetweenFrontendsFailsNoTurn(t *testing.T) {
	d := Start(t, 18000)
	second := startServing(t, d, "round-robin")
	b := startAgainst(t, d, "--mode-driver=endpoints", "--mode-endpoints=kv="+d.URL()+",round_robin="+second)
	b.start(t)
	b.settles(t, api.ModeKV, d.URL())
	for _, to := range []struct {
		mode      api.Mode
		url, idle string
	}{
		{api.ModeRoundRobin, second, d.URL()},
		{api.ModeKV, d.URL(), second},
		{api.ModeRoundRobin, second, d.URL()},
		{api.ModeKV, d.URL(), second},
	} {
		_, err := b.client.SetMode(t.Context(), api.DefaultLane, api.ModeRequest{Mode: to.mode})
		require.NoError(t, err)
		began := time.Now()
		b.wait(t, "turns at the address of "+string(to.mode), time.Minute, func(s api.LaneStatus) bool {
			return s.State.Mode == to.mode && s.State.ModeChange == nil && s.Totals.OK > 0
		})
		t.Logf("%s: the first whole turn after %.1f s", to.mode, time.Since(began).Seconds())
		before := started(t, to.idle)
		b.settles(t, to.mode, to.url)
		assert.Zero(t, started(t, to.idle)-before, "turns to the other frontend")
	}
	b.drain(t)
	b.noneFailed(t)
	disturbEachOther(t, d, second)
	b.refusesDeadEndpoint(t)
}

// disturbEachOther uses both frontends at the same time, one per lane. The load generator must detect by the worker
// IDs that they share workers and report it, and must not compare the lanes or keep a row.
func disturbEachOther(t *testing.T, d *local.Dynamo, second string) {
	b := startAgainst(t, d, "--mode-driver=endpoints", "--mode-endpoints=kv="+d.URL()+",round_robin="+second,
		"--twin-mode-mode=round_robin")
	v, err := b.client.Twin(t.Context())
	if err != nil || v.A.Target != d.URL() || v.B.Target != second || len(v.SharedWorkers) != 0 {
		t.Fatalf("two lanes before a turn: %+v, %v", v, err)
	}
	b.start(t)
	began := time.Now()
	b.wait(t, "the same workers on both lanes", time.Minute, func(api.LaneStatus) bool {
		v, err = b.client.Twin(t.Context())
		return err == nil && len(v.SharedWorkers) == len(d.Workers())
	})
	t.Logf("recognized %.1f s after the start", time.Since(began).Seconds())
	instances, err := d.Instances(t.Context())
	require.NoError(t, err)
	slices.Sort(instances)
	const caution = "do not show what either router could serve alone"
	if !slices.Equal(v.SharedWorkers, instances) || v.Evidence != api.EvidenceShared ||
		!strings.Contains(v.Caution, caution) {
		t.Errorf("shared by %v, evidence %s, %q; instances in /health: %v", v.SharedWorkers, v.Evidence, v.Caution, instances)
	}
	b.wait(t, "the word on both lanes", time.Minute, func(api.LaneStatus) bool {
		s, err := b.client.Snapshot(t.Context())
		return err == nil && len(s.Lanes) == 2 && !slices.ContainsFunc(s.Lanes, func(l api.LaneSnapshot) bool {
			return !slices.Equal(l.SharedWorkers, v.SharedWorkers) || !strings.Contains(l.Baseline.Withheld,
				"3 of the workers also serve lane")
		})
	})
	b.stop(t)
}

// noneFailed requires that no turn of any step failed.
func (b *booth) noneFailed(t *testing.T) {
	t.Helper()
	count := byStatus(boothtest.Turns(t, b.client, api.DefaultLane, 0))
	t.Logf("all turns: %v", count)
	assert.Zero(t, count[api.TurnError])
	assert.NotZero(t, count[api.TurnCancelled], "a switch cancels turns")
}

func byStatus(turns []api.Turn) map[api.TurnStatus]int {
	count := map[api.TurnStatus]int{}
	for _, turn := range turns {
		count[turn.Status]++
	}
	return count
}

// settles waits for turns in a mode, and requires that none failed.
func (b *booth) settles(t *testing.T, m api.Mode, url string) {
	t.Helper()
	b.waitOK(t, 200, time.Minute)
	lane := b.status(t).Lanes[0]
	require.Empty(t, lane.Totals.ErrorsByClass, m)
	require.Equal(t, []string{string(m), url}, []string{string(lane.State.Mode), lane.Target.Endpoint})
	turns := b.turns(t)
	count, dealt := byStatus(turns), slices.Sorted(maps.Values(perWorker(turns)))
	t.Logf("%s: turns %v, per worker %v, %.1f %% cached", m, count, dealt,
		100*float64(lane.Totals.CachedTokens)/float64(lane.Totals.InputTokens))
	assert.Zero(t, count[api.TurnError])
	if m == api.ModeRoundRobin && (len(dealt) != 3 || dealt[2]-dealt[0] > conversations/2) {
		t.Errorf("turns per worker: %v, want three equal numbers except for turns in flight", dealt)
	}
}

// refusesDeadEndpoint requests a mode whose frontend is not running: the mode must not change.
func (b *booth) refusesDeadEndpoint(t *testing.T) {
	t.Helper()
	b.setMode(t, api.ModeRoundRobin)
	b.dynamo.Frontend.Process().Kill()
	_, err := b.client.SetMode(t.Context(), api.DefaultLane, api.ModeRequest{Mode: api.ModeKV})
	require.NoError(t, err)
	b.wait(t, "a refusal", time.Minute, func(s api.LaneStatus) bool {
		return s.State.ModeChange != nil && s.State.ModeChange.Failed && s.State.Mode == api.ModeRoundRobin
	})
	t.Log(b.status(t).Lanes[0].State.ModeChange.Message)
	b.start(t)
	b.waitOK(t, 30, time.Minute)
	b.drain(t)
	assert.Zero(t, b.status(t).Lanes[0].Totals.Errors, "a refused switch fails no turn")
}

// started returns the number of requests that a frontend has received.
func started(t *testing.T, frontend string) float64 {
	t.Helper()
	return scrape(t, frontend)["dynamo_frontend_requests_started_total"]
}

// startServing starts a further frontend in a mode over the workers of d, and returns its address when it lists all
// workers.
func startServing(t *testing.T, d *local.Dynamo, mode string) string {
	t.Helper()
	url := startFrontend(t, d, mode, "second frontend", 18050, func(*process.Command) {})
	wait.Eventually(t, "the second frontend lists all workers", func() (any, bool) {
		instances, err := cluster.Probe(t.Context(), url, nil)
		return instances, err == nil && len(instances) == len(d.Workers())
	})
	return url
}
