package lane

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// scraped returns the counters and gauges of the lane by name and labels, without the label lane, which every metric
// must have. The linter must find nothing.
func (b *booth) scraped() map[string]float64 {
	b.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(b.lane.Collector())
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(b.t, err)
	assert.Empty(b.t, problems)
	families, err := registry.Gather()
	require.NoError(b.t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			lane := ""
			for _, l := range m.GetLabel() {
				if l.GetName() == "lane" {
					lane = l.GetValue()
				} else if l.GetValue() != "" { // as a query sees it
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			assert.Equal(b.t, api.DefaultLane, lane, f.GetName())
			name := strings.TrimSuffix(f.GetName()+" "+strings.Join(labels, ","), " ")
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

// The gauges and counters agree with the snapshot, and the metrics pass the linter. Package stats tests the summaries.
func TestMetricsAgreeWithTheSnapshot(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		assert.Zero(t, b.scraped()["loadgen_workload_running"])
		b.store.lost = 4
		b.start(3)
		pass(65 * time.Second)
		b.changeMode(roundRobin, false, nil)
		pass(30 * time.Second)
		f.set(func(f *fake) { f.turnError = broken })
		pass(time.Second)
		f.set(func(f *fake) { f.turnError = nil })
		pass(40*time.Second + 50*time.Millisecond) // in mid-turn

		got, s := b.scraped(), b.snapshot()
		assert.Positive(t, s.Totals.Errors)
		const of = "mode=kv,percentile=95,speculation=off"
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
			"loadgen_errors_total class=http_5xx":   float64(s.Totals.Errors),
			info("round_robin", api.SpeculationOff): 1,
			// in force and by level: what this target measured under kv
			"loadgen_baseline_ttft_seconds baseline=this target," + of:                     .2,
			"loadgen_baseline_level_ttft_seconds baseline=this target,concurrency=3," + of: .2,
		} {
			require.Contains(t, got, name)
			assert.InDelta(t, want, got[name], 1e-9, name)
		}
		ok := 0
		for _, turn := range b.store.allTurns() {
			if turn.Status == api.TurnOK {
				ok++
			}
		}
		assert.EqualValues(t, ok, got["loadgen_requests_total status=ok"], "counters go on over starts")
		assert.Less(t, s.Totals.OK, int64(ok))

		_, err := b.catalog.PatchSettings(t.Context(), ann, api.SettingsPatch{DefaultBaseline: new(recorded)})
		require.NoError(t, err)
		const own = "loadgen_baseline_itl_seconds baseline=this target," + of
		assert.InDelta(t, .04, b.scraped()[own], 1e-3, "own rows stand beside a recorded baseline")
		b.start(1)
		assert.Equal(t, 1., b.scraped()["loadgen_settling"])
	})
}

// info is the series of a lane's mode.
func info(mode api.Mode, speculation api.Speculation) string {
	return fmt.Sprintf("loadgen_info mode=%s,model=test-model,speculation=%s,target=http://gpu.example:8000,version=1.2.3",
		mode, speculation)
}
