//go:build verify

package intervals

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/stats"
)

const (
	warmUp = 7 * time.Minute // more than five turns of the slowest conversation
	rowOf  = 5 * time.Minute // length of the step that leaves a row
	apart  = 4 * time.Minute // from its end to the step that is compared with it: the longest conversations
)

var (
	began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	slo   = api.SLO{TTFT: .6, TPOT: .06}
)

// measured is a run with a step that leaves a row, and a later step that is compared every minute.
type measured struct {
	row   api.BaselineRow
	looks []stats.Report
}

// measure runs a setting until the second step has lasted for looked.
func measure(t *testing.T, s setting, looked time.Duration) (m measured) {
	t.Helper()
	window, meter := stats.NewWindow(began, slo), stats.NewMeter(began)
	first, second := warmUp+rowOf, warmUp+rowOf+apart
	next := first // look
	look := func(at time.Duration) {
		for ; next <= at; next += time.Minute {
			switch {
			case next == first:
				r := window.CountedAsArrived(meter, began.Add(next), 1)
				m.row = r.Row()
			case next > second:
				m.looks = append(m.looks, window.Live(meter, began.Add(next), 2))
			}
		}
	}
	window.BeginStep(2, nil)
	window.CountFrom(began.Add(second))
	require.NoError(t, run(s, second+looked+time.Minute, func(at time.Duration, n int) { meter.Add(began.Add(at), n) },
		func(at, ttft time.Duration) { window.FirstToken(2, began.Add(at), ttft.Seconds()) },
		func(t api.Turn, gaps []chat.Gap) {
			at := t.Ended.Sub(began)
			look(at)
			t.Counted = warmUp <= at && at < first || second <= at
			t.Step = 1
			if second <= at {
				t.Step = 2
			}
			window.Add(&t, gaps)
		}))
	m.row.Level, m.row.Mode, m.row.Speculation = api.AtConversations(1), api.ModeKV, api.SpeculationOff
	return m
}

// outcomes compares a step with a row of the same target.
func outcomes(step *stats.Report, row api.BaselineRow) map[string]api.Outcome {
	b := api.Baseline{Name: api.ThisTarget, Kind: baseline.KindMeasured, Rows: []api.BaselineRow{row}}
	column := baseline.Compare(lane.Compared(step), b, api.AtConversations(1)).Columns[0]
	found := map[string]api.Outcome{}
	for name, value := range map[string]api.LookedUp{
		"TTFT p50": column.TTFT.P50, "TTFT p95": column.TTFT.P95, "TPOT p50": column.TPOT.P50, "TPOT p95": column.TPOT.P95,
		"ITL p50": column.ITL.P50, "ITL p95": column.ITL.P95, "latency p50": column.Latency.P50,
		"latency p95": column.Latency.P95,
		output:        column.OutputTokensPerSecond, "requests/s": column.RequestsPerSecond, "hit rate": column.KVHitRatio,
	} {
		found[name] = value.Improvement.Outcome
	}
	return found
}

const output = "output tokens/s"

// On the simulated cluster, a step is compared with a row of the same setting every minute for an hour, and is hardly
// ever called different in any metric.
func TestStepsOfOneSettingDoNotDiffer(t *testing.T) {
	const n, most = 20, 4
	for _, concurrency := range []int{60, 120, 180} {
		for _, mode := range []api.Mode{api.ModeRoundRobin, api.ModeKV} {
			t.Run(fmt.Sprintf("%d %s", concurrency, mode), func(t *testing.T) {
				t.Parallel()
				some, differ := 0, map[string]int{}
				for seed := range uint64(n) {
					m, found := measure(t, setting{concurrency: concurrency, mode: mode, seed: seed + 1}, time.Hour), map[string]bool{}
					for i := range m.looks {
						for name, of := range outcomes(&m.looks[i], m.row) {
							if (of == api.OutcomeBetter || of == api.OutcomeWorse) && !found[name] {
								found[name] = true
								differ[name]++
							}
						}
					}
					if len(found) > 0 {
						some++
					}
				}
				figure.Report(t, "steps of one setting within an hour: %d of %d called different in something: %v", some, n, differ)
				assert.LessOrEqual(t, some, most)
			})
		}
	}
}

// A true difference of 10 % in throughput at 120 is found.
func TestTrueDifferenceIsFound(t *testing.T) {
	const n = 20
	for mode, slower := range map[api.Mode]float64{api.ModeKV: 1.111, api.ModeRoundRobin: 1.113} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			var minutes []float64
			for seed := range uint64(n) {
				was := measure(t, setting{concurrency: 120, mode: mode, seed: seed + 1}, 0)
				m := measure(t, setting{concurrency: 120, mode: mode, seed: n + seed + 1, slower: slower}, 20*time.Minute)
				first := slices.IndexFunc(m.looks, func(r stats.Report) bool {
					return outcomes(&r, was.row)[output] == api.OutcomeWorse
				})
				if first < 0 {
					first = math.MaxInt - 1
				}
				minutes = append(minutes, float64(first+1))
			}
			slices.Sort(minutes)
			figure.Report(t, "10 %% less throughput: found after %.0f minutes (median), nine of ten by %.0f", minutes[n/2],
				minutes[n*9/10-1])
			assert.LessOrEqual(t, minutes[n*9/10-1], 20.)
		})
	}
}
