package chart

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAxes(t *testing.T) {
	for least, want := range map[float64]float64{.9: 1, 1: 1, 1.1: 2, 3: 5, 6: 10, 170: 200, .003: .005} {
		assert.InDelta(t, want, niceStep(least), 1e-9, "%v", least)
	}
	for seconds, want := range map[float64]string{.5: "0.5 s", 40: "40 s", 120: "2 min", 150: "2:30 min", 7200: "2 h", 5400: "1:30 h"} {
		assert.Equal(t, want, clock(seconds))
	}
	for _, seconds := range []float64{.3, 1, 59, 3600, 1e6} {
		ticks := timeTicks(seconds)
		assert.GreaterOrEqual(t, len(ticks), 2, "%v", seconds)
		assert.LessOrEqual(t, len(ticks), ticksAcross+1, "%v", seconds)
	}
	one := Histogram("", []float64{0, .25})
	assert.Len(t, one.Bars, 1)
	assert.NotEmpty(t, one.XTicks)
	assert.False(t, math.IsNaN(one.Bars[0].X))
}

// A chart over levels draws what it is given, escaped, and nothing outside of its plot.
func TestLevels(t *testing.T) {
	c := Levels("TTFT", "ms", 600,
		Series{"<kv>", []Point{{60, 446, &[2]float64{430, 462}}, {120, 530, &[2]float64{500, 560}}, {180, 3143, &[2]float64{2000, 4300}}}},
		Series{"round_robin", []Point{{60, 655, nil}, {120, 643, nil}}})
	assert.Contains(t, c.Unit, "logarithmic")
	assert.Len(t, c.Marks, 5)
	assert.Equal(t, "<kv> at 60: 446 ms (430 to 462)", c.Marks[0].Title)
	html, err := c.HTML()
	require.NoError(t, err)
	assert.Contains(t, html, "&lt;kv&gt; at 60")
	assert.Contains(t, html, "SLO 600 ms")
	assert.NotContains(t, html, "ZgotmplZ")
	for _, tick := range c.YTicks {
		assert.GreaterOrEqual(t, tick.At, plotTop)
		assert.LessOrEqual(t, tick.At, plotBottom)
	}
	hits := Levels("", "%", 0, Series{"kv", []Point{{60, 96.2, nil}, {80, 93.4, nil}}}, Series{"rr", []Point{{60, 81.8, nil}}})
	assert.Equal(t, tick{plotBottom, "80"}, hits.YTicks[0])
	assert.Equal(t, tick{plotTop, "100"}, hits.YTicks[len(hits.YTicks)-1])
	linear := Levels("", "%", 0, Series{"kv", []Point{{60, 90, nil}}})
	assert.NotContains(t, linear.Unit, "logarithmic")
	assert.Len(t, linear.XTicks, 1)
	assert.NotEmpty(t, Levels("", "", 0).Empty)
}
