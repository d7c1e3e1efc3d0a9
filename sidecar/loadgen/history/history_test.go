package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// Twenty nights of two levels. From night 12 on, TTFT is 8 % longer at one of them. One night measured other openings.
func TestSeriesAndChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	start := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)
	var runs []api.RunRecord
	for night := range 20 {
		factor, workload := 1., api.WorkloadShape{OpeningTokens: 4000}
		if night >= 12 {
			factor = 1.08
		}
		if night == 5 {
			workload.OpeningTokens = 100
		}
		rows := api.List[api.BaselineRow]{}
		for level, slower := range map[int]float64{60: factor, 30: 1} {
			row := api.BaselineRow{
				Level: api.AtConversations(level), Mode: api.ModeKV,
				OutputTokensPerSecond: new(1000 * math.Exp(.01*random.NormFloat64())),
			}
			row.TTFT.P95 = new(.5 * slower * math.Exp(.01*random.NormFloat64()))
			rows = append(rows, row)
		}
		runs = append(runs, api.RunRecord{
			ID: fmt.Sprint("night ", night), Kind: api.SingleRun, Ended: start.Add(time.Duration(night) * 24 * time.Hour),
			Result: api.Baseline{Name: "nightly", Workload: &workload, Rows: rows},
		})
	}
	random.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	list := List(runs)
	assert.Equal(t, "night 0", list.Runs[0].ID)
	series := Group(list.Runs)
	require.Len(t, list.Series, 4, "two levels, and those of the other openings")
	for i := range list.Series {
		s := &list.Series[i]
		if len(s.Runs) == 1 {
			assert.Empty(t, s.Changes)
			continue
		}
		assert.Len(t, s.Runs, 19)
		deviation, freedom := series[i].Scatter(baseline.QuantityOf("ttft_p95"))
		assert.InDelta(t, .01, deviation, .005)
		if s.Level.Conversations() == 30 {
			assert.Equal(t, 18, freedom)
			assert.Empty(t, s.Changes)
			continue
		}
		assert.Equal(t, 17, freedom)
		require.Len(t, s.Changes, 1)
		c := s.Changes[0]
		assert.Equal(t, api.RunChange{Figure: "ttft_p95", Run: "night 12", Before: c.Before, After: c.After}, c)
		assert.InDelta(t, 1.08, c.After/c.Before, .01)
	}
	for i := range list.Runs {
		list.Runs[i].Failed = i == 1
	}
	i := slices.IndexFunc(list.Series, func(s api.RunSeries) bool {
		return s.Level.Conversations() == 30 && len(s.Runs) > 1
	})
	_, freedom := series[i].Scatter(baseline.QuantityOf("ttft_p95"))
	assert.Equal(t, 17, freedom, "without the run that failed")
	_, freedom = series[0].Scatter(baseline.QuantityOf("kv_hit_ratio"))
	assert.Zero(t, freedom, "not measured")
}
