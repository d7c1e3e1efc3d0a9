package lane

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// series are the metrics of a scrape by name and labels. The label lane is checked and left out.
type series map[string]*dto.Metric

func scrape(t testing.TB, g prometheus.Gatherer) series {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	all := series{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			lane := ""
			for _, l := range m.GetLabel() {
				if l.GetName() == "lane" {
					lane = l.GetValue()
				} else {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			assert.Equal(t, api.DefaultLane, lane, f.GetName())
			all[strings.TrimSuffix(f.GetName()+" "+strings.Join(labels, ","), " ")] = m
		}
	}
	return all
}

// scraped scrapes the metrics of the lane.
func (b *booth) scraped() series {
	b.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(b.lane.Collector())
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(b.t, err)
	assert.Empty(b.t, problems)
	return scrape(b.t, registry)
}

// value returns the value of a counter or gauge.
func (s series) value(t *testing.T, name string) float64 {
	t.Helper()
	m := s[name]
	require.NotNil(t, m, "there is no %s", name)
	if m.GetCounter() != nil {
		return m.GetCounter().GetValue()
	}
	return m.GetGauge().GetValue()
}

// agrees compares the quantiles of a summary with those of the snapshot.
func (s series) agrees(t *testing.T, name string, q api.Quantiles) {
	t.Helper()
	require.NotNil(t, s[name], "there is no %s", name)
	got := map[float64]float64{}
	for _, one := range s[name].GetSummary().GetQuantile() {
		got[one.GetQuantile()] = one.GetValue()
	}
	assert.Equal(t, map[float64]float64{.5: *q.P50, .95: *q.P95, .99: *q.P99}, got, name)
}

// The scrape and the snapshot of one moment agree, and the metrics pass the linter.
func TestCollector(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		idle := b.scraped()
		assert.Zero(t, idle.value(t, "loadgen_workload_running"))
		assert.Zero(t, idle.value(t, "loadgen_active_conversations"))

		b.store.lost = 4
		b.start(3)
		pass(65 * time.Second)
		b.switched(roundRobin, false, nil)
		pass(30 * time.Second)
		f.set(func(f *fake) { f.ill = broken })
		pass(time.Second)
		f.set(func(f *fake) { f.ill = nil })
		pass(40*time.Second + 50*time.Millisecond) // in mid-turn

		got, s := b.scraped(), b.snapshot()
		const of = "mode=kv,percentile=95,speculation=off"
		got.agrees(t, "loadgen_ttft_all_seconds", s.Window.Metrics.TTFT)
		got.agrees(t, "loadgen_tpot_all_seconds", s.Window.Metrics.TPOT)
		got.agrees(t, "loadgen_itl_all_seconds", s.Window.Metrics.ITL)
		got.agrees(t, "loadgen_latency_all_seconds", s.Window.Metrics.Latency)
		for name, want := range map[string]float64{
			"loadgen_target_concurrency":            3,
			"loadgen_active_conversations":          float64(s.State.Concurrency.Actual),
			"loadgen_inflight_requests":             3,
			"loadgen_awaiting_first_token_requests": float64(s.Window.Awaiting.N),
			"loadgen_workload_running":              1,
			"loadgen_settling":                      0,
			"loadgen_step":                          float64(s.State.Step.ID),
			"loadgen_store_lost_turns_total":        4,
			"loadgen_slo_seconds metric=ttft":       .6,
			"loadgen_slo_seconds metric=tpot":       .06,
			info("round_robin", api.SpeculationOff): 1,
			// in force and by level: what this target measured under kv
			"loadgen_baseline_ttft_seconds baseline=this target," + of:                     .2,
			"loadgen_baseline_level_ttft_seconds baseline=this target,concurrency=3," + of: .2,
		} {
			assert.InDelta(t, want, got.value(t, name), 1e-9, name)
		}
		assert.Positive(t, s.Totals.Errors)
		assert.EqualValues(t, s.Totals.Errors, got.value(t, "loadgen_errors_total class=http_5xx"))
		assert.Greater(t, got.value(t, "loadgen_requests_total status=ok"), float64(s.Totals.OK), "counters go on over starts")
		stored := map[api.TurnStatus]int{}
		for _, turn := range b.store.allTurns() {
			stored[turn.Status]++
		}
		for status, n := range stored {
			assert.EqualValues(t, n, got.value(t, "loadgen_requests_total status="+string(status)))
		}
		b.start(1)
		assert.Equal(t, 1., b.scraped().value(t, "loadgen_settling"))

		const sweep = "loadgen_sweep_running id=s1,kind=capacity"
		assert.NotContains(t, b.scraped(), sweep)
		taken := &api.SweepSummary{ID: "s1", State: api.SweepRunning, Request: api.SweepRequest{Kind: api.SweepCapacity}}
		lease, before, err := b.lane.Take(t.Context(), func() *api.SweepSummary { return taken })
		require.NoError(t, err)
		assert.Equal(t, 1., b.scraped().value(t, sweep))
		require.NoError(t, lease.Release(t.Context(), "test", before))

		_, err = b.catalogue.PatchSettings(t.Context(), ann, api.SettingsPatch{DefaultBaseline: new(recorded)})
		require.NoError(t, err)
		b.start(3)
		const own = "loadgen_baseline_itl_seconds baseline=this target," + of
		assert.InDelta(t, .04, b.scraped().value(t, own), 1e-3, "own rows stand beside a recorded baseline")
	})
}

// info is the series of a lane's mode.
func info(mode api.Mode, speculation api.Speculation) string {
	return fmt.Sprintf("loadgen_info mode=%s,model=test-model,speculation=%s,target=http://gpu.example:8000,version=1.2.3",
		mode, speculation)
}
