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
				} else if l.GetValue() != "" { // as a query sees it
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

// The gauges and counters agree with the snapshot, and the metrics pass the linter. Package stats tests the summaries.
func TestMetricsAgreeWithTheSnapshot(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		assert.Zero(t, b.scraped().value(t, "loadgen_workload_running"))
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
			assert.InDelta(t, want, got.value(t, name), 1e-9, name)
		}
		ok := 0
		for _, turn := range b.store.allTurns() {
			if turn.Status == api.TurnOK {
				ok++
			}
		}
		assert.EqualValues(t, ok, got.value(t, "loadgen_requests_total status=ok"), "counters go on over starts")
		assert.Less(t, s.Totals.OK, int64(ok))

		_, err := b.catalog.PatchSettings(t.Context(), ann, api.SettingsPatch{DefaultBaseline: new(recorded)})
		require.NoError(t, err)
		const own = "loadgen_baseline_itl_seconds baseline=this target," + of
		assert.InDelta(t, .04, b.scraped().value(t, own), 1e-3, "own rows stand beside a recorded baseline")
		b.start(1)
		assert.Equal(t, 1., b.scraped().value(t, "loadgen_settling"))
	})
}

// info is the series of a lane's mode.
func info(mode api.Mode, speculation api.Speculation) string {
	return fmt.Sprintf("loadgen_info mode=%s,model=test-model,speculation=%s,target=http://gpu.example:8000,version=1.2.3",
		mode, speculation)
}
