//go:build verify

package intervals

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/test/montecarlo"
	"kvbooth/sidecar/test/virtual"
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
func measure(t *testing.T, s virtual.Setting, looked time.Duration) (m measured) {
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
	return virtual.Outcomes(step, b, api.AtConversations(1))
}

// On the simulated cluster, a step is compared with a row of the same setting every minute for an hour, and is hardly
// ever called different in any metric.
func TestStepsOfOneSettingDoNotDiffer(t *testing.T) {
	const n, most = 20, 4
	cases := map[string]virtual.Setting{}
	for _, concurrency := range []int{60, 120, 180} {
		for _, mode := range []api.Mode{api.ModeRoundRobin, api.ModeKV} {
			cases[fmt.Sprintf("%d %s", concurrency, mode)] = virtual.Setting{Concurrency: concurrency, Mode: mode}
		}
	}
	montecarlo.Run(t, "steps of one setting within an hour", cases,
		func(t *testing.T, s virtual.Setting, r *montecarlo.Results) {
			for seed := range uint64(n) {
				s.Draws, s.System = seed+1, seed+1
				m, found := measure(t, s, time.Hour), map[string]bool{}
				for i := range m.looks {
					for name, of := range outcomes(&m.looks[i], m.row) {
						found[name] = found[name] || of == api.OutcomeBetter || of == api.OutcomeWorse
					}
				}
				for _, name := range slices.Sorted(maps.Keys(found)) {
					r.Cell("called different").Count(name, found[name])
				}
				r.Cell("called different").Count("some metric", slices.Contains(slices.Collect(maps.Values(found)), true))
			}
			r.Cell("called different").AtMost(t, "some metric", most)
		})
}

// A true difference of 10 % in throughput at 120 is found.
func TestTrueDifferenceIsFound(t *testing.T) {
	const n = 20
	montecarlo.Run(t, "10 % less throughput", map[string]virtual.Setting{
		"kv":          {Concurrency: 120, Mode: api.ModeKV, Slower: 1.111},
		"round-robin": {Concurrency: 120, Mode: api.ModeRoundRobin, Slower: 1.113},
	}, func(t *testing.T, slower virtual.Setting, r *montecarlo.Results) {
		before := slower
		before.Slower = 1
		for seed := range uint64(n) {
			before.Draws, before.System = seed+1, seed+1
			slower.Draws, slower.System = n+seed+1, n+seed+1
			was := measure(t, before, 0)
			first := slices.IndexFunc(measure(t, slower, 20*time.Minute).looks, func(step stats.Report) bool {
				return outcomes(&step, was.row)[virtual.Output] == api.OutcomeWorse
			})
			if first < 0 {
				first = math.MaxInt - 1
			}
			r.Cell(virtual.Output).Sample("minutes until it is found", float64(first+1))
		}
		assert.LessOrEqual(t, r.Cell(virtual.Output).Quantile("minutes until it is found", .9), 20.)
	})
}
