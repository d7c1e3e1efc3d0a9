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
