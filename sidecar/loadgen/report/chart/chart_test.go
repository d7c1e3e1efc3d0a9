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
	for seconds, want := range map[float64]string{
		.5: "0.5 s", 40: "40 s", 120: "2 min", 150: "2:30 min", 7200: "2 h",
		5400: "1:30 h",
	} {
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
		Series{"<kv>", []Point{{Level: 60, Value: 446, Band: &[2]float64{430, 462}}, {
			Level: 120, Value: 530, Band: &[2]float64{500, 560},
		}, {Level: 180, Value: 3143, Band: &[2]float64{2000, 4300}}}},
		Series{"round_robin", []Point{{Level: 60, Value: 655}, {Level: 120, Value: 643}}})
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
	hits := Levels("", "%", 0, Series{"kv", []Point{{Level: 60, Value: 96.2}, {Level: 80, Value: 93.4}}}, Series{
		"rr",
		[]Point{{Level: 60, Value: 81.8}},
	})
	assert.Equal(t, tick{plotBottom, "80"}, hits.YTicks[0])
	assert.Equal(t, tick{plotTop, "100"}, hits.YTicks[len(hits.YTicks)-1])
	linear := Levels("", "%", 0, Series{"kv", []Point{{Level: 60, Value: 90}}})
	assert.NotContains(t, linear.Unit, "logarithmic")
	assert.Len(t, linear.XTicks, 1)
	assert.NotEmpty(t, Levels("", "", 0).Empty)
}

// A chart of looks has zero and both boundaries in its plot, and an interval that is far wider
// than the last one does not press that flat.
func TestLooks(t *testing.T) {
	c := Looks("TTFT p95", "%", [2]float64{-4.76, 5}, Series{"KV-aware", []Point{
		{Level: 1, Value: -22, Band: &[2]float64{-60, 900}, Title: "after 1 pair"},
		{Level: 2, Value: -20, Band: &[2]float64{-28, -12}},
	}})
	assert.Equal(t, "after 1 pair", c.Marks[0].Title)
	assert.Equal(t, "KV-aware at 2: −20.0 % (−28.0 to −12.0)", c.Marks[1].Title)
	assert.Equal(t, []tick{{round(plotLeft + 16), "1"}, {round(plotRight - 16), "2"}}, c.XTicks)
	var texts []string
	for _, y := range c.YTicks {
		texts = append(texts, y.Text)
		assert.GreaterOrEqual(t, y.At, plotTop)
		assert.LessOrEqual(t, y.At, plotBottom)
	}
	assert.Equal(t, []string{"−100", "−50", "0", "+50"}, texts,
		"as much again as the last interval, zero and the boundaries need, not 900")
	html, err := c.HTML()
	require.NoError(t, err)
	assert.Contains(t, html, "of no interest: −4.76 to &#43;5 %")
	assert.NotContains(t, html, "NaN")
	one := Looks("", "points", [2]float64{-1, 1}, Series{"kv", []Point{{Level: 1, Value: 0, Band: &[2]float64{-1, 1}}}})
	assert.Len(t, one.Marks, 1)
	assert.NotEmpty(t, Looks("", "", [2]float64{}, Series{}).Empty)
}
