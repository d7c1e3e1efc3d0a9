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
)

// Two frontends over one set of workers, one with a KV router and one that deals
// round robin: under load the turns are sent there and back and there again, and
// not one of them fails.
func TestTwoFrontends(t *testing.T) {
	d := Start(t, 18000)
	second := startSecondFrontend(t, d)
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

// disturbEachOther has both frontends serve at the same time, each a lane: that the same workers
// are behind them is recognised by their ids and said, and no figure is taken for either router's
// own: nothing is compared, and no row is kept.
func disturbEachOther(t *testing.T, d *local.Dynamo, second string) {
	b := startAgainst(t, d, "--mode-driver=endpoints", "--mode-endpoints=kv="+d.URL()+",round_robin="+second, "--twin-mode-mode=round_robin")
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
	t.Logf("recognised %.1f s after the start", time.Since(began).Seconds())
	instances, err := d.Instances(t.Context())
	require.NoError(t, err)
	slices.Sort(instances)
	if !slices.Equal(v.SharedWorkers, instances) || v.Evidence != api.EvidenceShared || !strings.Contains(v.Caution, "do not show what either router could serve alone") {
		t.Errorf("shared by %v, evidence %s, %q; instances in /health: %v", v.SharedWorkers, v.Evidence, v.Caution, instances)
	}
	b.wait(t, "the word on both lanes", time.Minute, func(api.LaneStatus) bool {
		s, err := b.client.Snapshot(t.Context())
		return err == nil && len(s.Lanes) == 2 && !slices.ContainsFunc(s.Lanes, func(l api.LaneSnapshot) bool {
			return !slices.Equal(l.SharedWorkers, v.SharedWorkers) || !strings.Contains(l.Baseline.Withheld, "3 of the workers also serve lane")
		})
	})
	b.stop(t)
}

// noneFailed looks at the turns of all steps, those that a switch met among them.
func (b *booth) noneFailed(t *testing.T) {
	t.Helper()
	rows, err := readCSV(t.Context(), b.base+"/api/v1/turns.csv")
	require.NoError(t, err)
	count, status := map[string]int{}, slices.Index(rows[0], "status")
	for _, r := range rows[1:] {
		count[r[status]]++
	}
	t.Logf("all turns: %v", count)
	if count[string(api.TurnError)] != 0 || count[string(api.TurnCancelled)] == 0 {
		t.Errorf("all turns: %v; want none that failed, and some that a switch cancelled", count)
	}
}

// settles waits for turns in a mode, and finds none that failed.
func (b *booth) settles(t *testing.T, m api.Mode, url string) {
	t.Helper()
	b.waitOK(t, 200, time.Minute)
	lane := b.status(t).Lanes[0]
	require.Empty(t, lane.Totals.ErrorsByClass, m)
	require.Equal(t, []string{string(m), url}, []string{string(lane.State.Mode), lane.Target.Endpoint})
	turns := b.turns(t)
	count := map[string]int{}
	for _, turn := range turns {
		count[turn.status]++
	}
	workers := perWorker(turns)
	t.Logf("%s: turns %v, per worker %v, %.1f %% cached", m, count, slices.Sorted(maps.Values(workers)),
		100*float64(lane.Totals.CachedTokens)/float64(lane.Totals.InputTokens))
	assert.Zero(t, count[string(api.TurnError)])
	if dealt := slices.Sorted(maps.Values(workers)); m == api.ModeRoundRobin && (len(dealt) != 3 || dealt[2]-dealt[0] > conversations/2) {
		t.Errorf("turns per worker: %v, want three alike, but for those in flight", dealt)
	}
}

// refusesDeadEndpoint asks for a mode whose frontend has gone: the old one stays.
func (b *booth) refusesDeadEndpoint(t *testing.T) {
	t.Helper()
	b.setMode(t, api.ModeRoundRobin)
	b.dynamo.KillFrontend()
	_, err := b.client.SetMode(t.Context(), api.DefaultLane, api.ModeRequest{Mode: api.ModeKV})
	require.NoError(t, err)
	b.wait(t, "a refusal", time.Minute, func(s api.LaneStatus) bool {
		return s.State.ModeChange != nil && s.State.ModeChange.Failed && s.State.Mode == api.ModeRoundRobin
	})
	t.Log(b.status(t).Lanes[0].State.ModeChange.Message)
	b.start(t)
	b.waitOK(t, 30, time.Minute)
	b.drain(t)
	assert.Zero(t, b.status(t).Lanes[0].Totals.Errors, "after a switch that was refused")
}

// started is how many requests a frontend was sent.
func started(t *testing.T, frontend string) float64 {
	t.Helper()
	return scrape(t, frontend)["dynamo_frontend_requests_started_total"]
}

// startSecondFrontend starts a frontend that deals round robin over the workers of
// d, and gives its address when it lists all of them and the model.
func startSecondFrontend(t *testing.T, d *local.Dynamo) string {
	t.Helper()
	url, p := startFrontend(t, d, "round-robin", "second frontend", 18050, func(*process.Command) {})
	wait.Eventually(t, "the second frontend lists all workers", func() (any, bool) {
		select {
		case <-p.Done():
			require.FailNow(t, "the second frontend has ended", "%v", p.Wait())
		default:
		}
		instances, err := cluster.Probe(t.Context(), url, nil)
		return instances, err == nil && len(instances) == len(d.Workers())
	})
	return url
}
