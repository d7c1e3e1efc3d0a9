package chart

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

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
		if !strings.HasPrefix(t.Text, "-") && t.Text != "0" {
			c.YTicks[i].Text = "+" + t.Text
		}
		c.YTicks[i].Text = strings.Replace(c.YTicks[i].Text, "-", "−", 1)
	}
	pairs := make([]int, len(s.Points))
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
