package lane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// There is one point a second, with the figures of the snapshot at that time. A stopped lane has none.
func TestHistoryAgreesWithSnapshots(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		pass(2 * time.Second)
		for _, p := range b.lane.History().Points {
			assert.Equal(t, api.HistoryPoint{Time: p.Time, Mode: kv.Mode, Speculation: kv.Speculation}, p)
		}
		b.start(3)
		pass(30 * time.Second)
		b.changeMode(roundRobin, true, nil)
		pass(30 * time.Second)

		points := b.lane.History().Points
		require.InDelta(t, 63, len(points), 1)
		modes := map[api.Mode]int{}
		for _, p := range points {
			modes[p.Mode]++
		}
		assert.InDelta(t, 33, modes[api.ModeKV], 2)
		last, shown := points[len(points)-1], b.snapshot()
		assert.True(t, last.Running)
		assert.Equal(t, shown.State.Settling, last.Settling)
		assert.True(t, last.Settling)
		assert.InDelta(t, shown.State.Concurrency.Actual, last.Concurrency, 1)
		assert.InDelta(t, *shown.Window.Metrics.TTFT.P50, *last.TTFTP50, 1e-3)
		assert.InDelta(t, *shown.Window.Metrics.TTFT.P95, *last.TTFTP95, 1e-3)
		assert.InDelta(t, *shown.KV.HitRatio, *last.KVHitRatio, 1e-3)
		rate := shown.Window.OutputTokensPerSecond
		assert.InDelta(t, rate, *last.OutputTokensPerSecond, .1*rate)
	})
}

// The history keeps the latest ten minutes, the oldest first.
func TestHistoryIsBounded(t *testing.T) {
	var h history
	for i := range historyLength + 75 {
		h.add(api.HistoryPoint{Time: at(float64(i))})
	}
	points := h.list()
	require.Len(t, points, historyLength)
	for i, p := range points {
		require.Equal(t, at(float64(75+i)), p.Time)
	}
}

// At a rate, growth without end is found at looks that are some time apart, and from the load that has filled up.
func TestHistoryFindsGrowth(t *testing.T) {
	step := api.Step{Started: at(0), Settled: new(at(60))}
	for name, row := range map[string]struct {
		active func(second int) int
		now    int
		want   bool
	}{
		"growing":           {func(s int) int { return s }, 125, true},
		"before a look":     {func(s int) int { return s }, 119, false},
		"steady":            {func(s int) int { return 60 + s%7 }, 400, false},
		"filling up":        {func(s int) int { return min(s, 85) }, 125, false},
		"no longer growing": {func(s int) int { return min(s, 900) }, 1700, false},
		"growing for long":  {func(s int) int { return s }, 1700, true},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			for s := range row.now {
				h.add(api.HistoryPoint{Time: at(float64(s)), Concurrency: row.active(s)})
			}
			assert.Equal(t, row.want, h.grows(step, at(float64(row.now))))
		})
	}
	assert.False(t, (&history{}).grows(api.Step{}, at(9)), "not settled")
}
