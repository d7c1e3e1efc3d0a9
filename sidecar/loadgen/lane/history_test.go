package lane

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// A point a second, each what the snapshot of its moment says: nothing live while
// the lane is stopped, and the mode of the time.
func TestHistoryIsWhatSnapshotsSaid(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		pass(2 * time.Second)
		for _, p := range b.lane.History().Points {
			assert.False(t, p.Running)
			assert.Nil(t, p.TTFTP95)
			assert.Nil(t, p.OutputTokensPerSecond)
		}
		b.start(3)
		pass(30 * time.Second)
		b.switched(roundRobin, true, nil)
		pass(30 * time.Second)

		points := b.lane.History().Points
		require.InDelta(t, 63, len(points), 1)
		modes, asShown := map[api.Mode]int{}, 0
		for i, p := range points {
			modes[p.Mode]++
			if p.Concurrency == 3 {
				asShown++
			}
			if i > 0 {
				assert.InDelta(t, 1, p.Time.Sub(points[i-1].Time).Seconds(), .1)
			}
		}
		assert.InDelta(t, 33, modes[api.ModeKV], 2)
		assert.InDelta(t, 30, modes[api.ModeRoundRobin], 2)

		last, shown := points[len(points)-1], b.snapshot()
		require.NotNil(t, last.TTFTP95)
		assert.True(t, last.Running)
		assert.Equal(t, 3, shown.State.Concurrency.Actual)
		// In virtual time a point can fall into the instant between a conversation and the next.
		assert.InDelta(t, 3, last.Concurrency, 1)
		assert.Greater(t, asShown, 50)
		assert.InDelta(t, *shown.Window.Metrics.TTFT.P95, *last.TTFTP95, 1e-3)
		assert.InDelta(t, shown.Window.OutputTokensPerSecond, *last.OutputTokensPerSecond, .1*shown.Window.OutputTokensPerSecond)
	})
}

// No more is kept than ten minutes, the oldest first; and an answer that holds them
// all is a small one.
func TestHistoryIsBounded(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(1)
		pass(historyLength*time.Second + 75*time.Second)
		b.stop()
		points := b.lane.History().Points
		require.Len(t, points, historyLength)
		for i := range points[1:] {
			require.True(t, points[i+1].Time.After(points[i].Time), "point %d", i)
		}
		assert.WithinDuration(t, time.Now(), points[historyLength-1].Time, 2*time.Second)
		text, err := json.Marshal(b.lane.History())
		require.NoError(t, err)
		assert.Less(t, len(text), 128<<10)
	}, func(o *options) { o.Settings.ThinkTime = time.Second })
}
