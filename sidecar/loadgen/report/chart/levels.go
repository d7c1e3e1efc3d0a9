package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// Classes are the CSS classes of the series, in order. Further series start again at the first.
var Classes = []string{"first", "second", "third", "fourth"}

// Series is a line over concurrencies.
type Series struct {
	Name   string
	Points []Point // ascending
}

// Point is a point of a [Series].
type Point struct {
	Level float64
	Value float64
	Band  *[2]float64 // 95 % interval; nil: not known
	Title string      // tooltip; empty: level and value
}

// logarithmicFrom is the ratio of the largest value to the median from which the axis is logarithmic. A linear axis
// would hide the differences between the smaller values.
const logarithmicFrom = 4

// markSize is half of the size of a mark.
const markSize = 4.0

// Levels draws values over concurrencies, with bands for known intervals. It also draws the limit as the SLO, unless
// that is 0.
func Levels(title, unit string, limitAt float64, all ...Series) Chart {
	c := Chart{Title: title, Unit: unit, XName: "conversations in progress"}
	var values []float64
	var levels []float64
	for _, s := range all {
		for _, p := range s.Points {
			values, levels = append(values, p.Value), append(levels, p.Level)
			if p.Band != nil {
				values = append(values, max(p.Band[0], 0), p.Band[1])
			}
		}
	}
	if len(values) == 0 {
		c.Empty = "nothing was measured"
		return c
	}
	slices.Sort(values)
	slices.Sort(levels)
	axis := c.levelsAxis(values, limitAt)
	scale := func(v float64) float64 { return axis(max(v, 0)) }
	across := c.levelsAcross(slices.Compact(levels))
	for i, s := range all {
		class := Classes[i%len(Classes)]
		c.Legend = append(c.Legend, legend{class, s.Name})
		c.series(class, s, unit, across, scale)
	}
	if limitAt > 0 {
		c.Limit = &limit{Y: scale(limitAt)}
		// In the plot, the label would hide the lines.
		c.Legend = append(c.Legend, legend{"slo", "SLO " + api.Plain(limitAt) + " " + unit})
	}
	return c
}

// zoomFrom is the ratio of the smallest to the largest value from which the axis does not begin at 0. From 0, such
// values, for example hit rates, would be one line.
const zoomFrom = .7

// levelsAxis sets the y axis for values in ascending order, and returns the scale. The axis begins at 0, or just below
// values that are close together, or is logarithmic for values that are far apart.
func (c *Chart) levelsAxis(values []float64, limitAt float64) func(float64) float64 {
	low, top := values[0], max(values[len(values)-1], limitAt)
	if limitAt > 0 {
		low = min(low, limitAt)
	}
	switch {
	case low > 0 && values[len(values)-1] >= logarithmicFrom*values[len(values)/2]:
		return c.logarithmic(low, top)
	case low >= zoomFrom*top && low < top:
		return c.zoomed(low, top)
	}
	return c.yAxis(top)
}

// zoomed sets the ticks of an axis between round numbers around the values, and returns the scale.
func (c *Chart) zoomed(low, top float64) func(float64) float64 {
	step := niceStep(marginOfPlot * (top - low) / ticksDown)
	return c.linear(step*math.Floor(low/step), step*math.Ceil(top/step), step)
}

func (c *Chart) logarithmic(low, top float64) func(float64) float64 {
	c.Unit += ", logarithmic"
	from, to := math.Log10(low*.8), math.Log10(top*1.2)
	scale := func(v float64) float64 {
		return round(plotBottom - plotHeight*(math.Log10(max(v, low*.8))-from)/(to-from))
	}
	for power := math.Floor(from); power <= to; power++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, power); math.Log10(v) >= from && math.Log10(v) <= to {
				c.YTicks = append(c.YTicks, tick{scale(v), api.Plain(v)})
			}
		}
	}
	return scale
}

// levelsAcross sets ticks at the levels for which there is room, and returns the scale.
func (c *Chart) levelsAcross(levels []float64) func(float64) float64 {
	first, last := levels[0], levels[len(levels)-1]
	const inset, room = 16.0, 30.0
	across := func(level float64) float64 {
		if first == last {
			return plotLeft + plotWidth/2
		}
		return round(plotLeft + inset + (plotWidth-2*inset)*(level-first)/(last-first))
	}
	before := -room
	for _, level := range levels {
		if x := across(level); x-before >= room {
			c.XTicks = append(c.XTicks, tick{x, api.Plain(level)})
			before = x
		}
	}
	return across
}

func (c *Chart) series(class string, s Series, unit string, across func(float64) float64, scale func(float64) float64) {
	var through, upper, lower []*dot
	whiskers := ""
	for _, p := range s.Points {
		x, y := across(p.Level), scale(p.Value)
		through = append(through, &dot{x, y})
		title := fmt.Sprintf("%s at %v: %s %s", s.Name, p.Level, number(p.Value), unit)
		if p.Band != nil {
			title += fmt.Sprintf(" (%s to %s)", number(p.Band[0]), number(p.Band[1]))
			low, high := &dot{x, scale(p.Band[0])}, &dot{x, scale(p.Band[1])}
			upper, lower = append(upper, high), append(lower, low)
			whisker, _ := polyline([]*dot{low, high})
			whiskers += whisker
		}
		c.Marks = append(c.Marks, mark{class, cmp.Or(p.Title, title), shape(class, x, y)})
	}
	if len(lower) > 1 && len(lower) == len(s.Points) {
		slices.Reverse(lower)
		area, _ := polyline(append(upper, lower...))
		c.Bands = append(c.Bands, band{"band " + class, area + "Z"})
	}
	c.Bands = append(c.Bands, band{class, whiskers})
	path, _ := polyline(through)
	c.Lines = append(c.Lines, line{Class: class, Path: path})
}

// shape returns a mark's outline, a different one for each class, so that series stay
// distinguishable in grayscale print.
func shape(class string, x, y float64) string {
	const s = markSize
	switch class {
	case "second":
		return fmt.Sprintf("M%.1f %.1fh%.1fv%.1fh-%.1fZ", x-s*.9, y-s*.9, 1.8*s, 1.8*s, 1.8*s)
	case "third":
		return fmt.Sprintf("M%.1f %.1fl%.1f %.1fh-%.1fZ", x, y-1.2*s, 1.2*s, 2*s, 2.4*s)
	case "fourth":
		return fmt.Sprintf("M%.1f %.1fl%.1f %.1fl-%.1f %.1fl-%.1f -%.1fZ", x, y-1.3*s, 1.3*s, 1.3*s, 1.3*s, 1.3*s,
			1.3*s, 1.3*s)
	}
	return fmt.Sprintf("M%.1f %.1fa%.1f %.1f 0 1 0 %.1f 0a%.1f %.1f 0 1 0 -%.1f 0Z", x-s, y, s, s, 2*s, s, s, 2*s)
}

// Looks draws a difference and its interval at each look of a trial. The level of a point is the number of blocks of
// spans, in ascending order. A difference between the boundaries is of no interest.
func Looks(title, unit string, boundaries [2]float64, s Series) Chart {
	c := Chart{Title: title, Unit: unit, XName: "blocks of spans"}
	if len(s.Points) == 0 {
		c.Empty = "nothing was measured"
		return c
	}
	low, high := looksRange(boundaries, s.Points)
	axis := c.zoomed(low, high)
	scale := func(v float64) float64 { return axis(min(max(v, low), high)) }
	for i, t := range c.YTicks {
		if !strings.HasPrefix(t.Text, "−") && t.Text != "0" {
			c.YTicks[i].Text = "+" + t.Text
		}
	}
	pairs := make([]float64, len(s.Points))
	for i, p := range s.Points {
		pairs[i] = p.Level
	}
	across := c.levelsAcross(pairs)
	c.Bands = append(c.Bands, band{"band field", fmt.Sprintf("M%.1f %.1fH%.1fV%.1fH%.1fZ", plotLeft,
		scale(boundaries[0]), plotRight, scale(boundaries[1]), plotLeft)})
	c.Lines = append(c.Lines, line{Class: "zero", Path: fmt.Sprintf("M%.1f %.1fH%.1f", plotLeft, scale(0), plotRight)})
	c.series(Classes[0], s, unit, across, scale)
	c.Legend = []legend{{Classes[0], s.Name}, {
		"field",
		"of no interest: " + boundary(boundaries[0]) + " to " + boundary(boundaries[1]) + " " + unit,
	}}
	return c
}

// boundary formats a boundary with its sign and at most three significant digits.
func boundary(v float64) string {
	text := strconv.FormatFloat(v, 'g', 3, 64)
	if v > 0 {
		return "+" + text
	}
	return strings.Replace(text, "-", "−", 1)
}

// looksRange returns the range of the axis. It contains 0, all differences, the boundaries and the last interval.
// Earlier intervals may be much wider. They extend the range by at most its size in each direction.
func looksRange(boundaries [2]float64, looks []Point) (low, high float64) {
	must := []float64{0, boundaries[0], boundaries[1]}
	var may []float64
	for i, p := range looks {
		must = append(must, p.Value)
		if p.Band != nil {
			may = append(may, p.Band[0], p.Band[1])
			if i == len(looks)-1 {
				must = append(must, p.Band[0], p.Band[1])
			}
		}
	}
	low, high = slices.Min(must), slices.Max(must)
	if room := high - low; len(may) > 0 {
		low, high = min(low, max(slices.Min(may), low-room)), max(high, min(slices.Max(may), high+room))
	}
	return low, high
}
