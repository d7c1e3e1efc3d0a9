package chart

import (
	"fmt"
	"math"
	"slices"

	"kvbooth/sidecar/api"
)

// Trace is a curve of a [Pareto] chart, in the order of its levels.
type Trace struct {
	Name  string
	Spots []Spot
}

// Spot is what a level yields for a user and on a GPU.
type Spot struct {
	X, Y  float64
	Label string // the level
}

// digitWidth is about the width of a digit of a label.
const digitWidth = 7

// Pareto draws two quantities of which more is better against each other: a curve for each trace, with its levels at
// the points. A curve that is above and to the right of another one is better at any trade between the two.
func Pareto(title, unit, xName string, all ...Trace) Chart {
	c := Chart{Title: title, Unit: unit, XName: xName}
	var xs, ys []float64
	for _, one := range all {
		for _, s := range one.Spots {
			xs, ys = append(xs, s.X), append(ys, s.Y)
		}
	}
	if len(xs) == 0 {
		c.Empty = "nothing was measured"
		return c
	}
	scale, across := c.yAxis(slices.Max(ys)), c.xAxis(slices.Min(xs), slices.Max(xs))
	for i, one := range all {
		class := Classes[i%len(Classes)]
		c.Legend = append(c.Legend, legend{class, one.Name})
		var through []*dot
		for _, s := range one.Spots {
			at := dot{across(s.X), scale(s.Y)}
			through = append(through, &at)
			title := fmt.Sprintf("%s at %s: %s %s at %s", one.Name, s.Label, number(s.Y), unit, number(s.X))
			c.Marks = append(c.Marks, mark{class, title, shape(class, at.X, at.Y)})
			name := label{round(at.X + 2*markSize), round(at.Y - markSize), s.Label}
			if i%2 == 0 { // below and to the left, away from a curve above it
				name.X = round(at.X - markSize - digitWidth*float64(len(s.Label)))
				name.Y = round(at.Y + 4*markSize)
			}
			if !slices.ContainsFunc(c.Labels, name.covers) {
				c.Labels = append(c.Labels, name)
			}
		}
		path, _ := polyline(through)
		c.Lines = append(c.Lines, line{Class: class, Path: path})
	}
	return c
}

// covers reports whether two labels of levels are too close to be read.
func (l label) covers(other label) bool {
	return math.Abs(l.X-other.X) < 28 && math.Abs(l.Y-other.Y) < 11
}

// xAxis sets the ticks of an axis across from a little below low to a little above high, and returns its scale.
func (c *Chart) xAxis(low, high float64) func(float64) float64 {
	step := niceStep(max(high-low, high/ticksAcross, 1e-9) / ticksAcross)
	first, last := step*math.Floor(low/step*(1-1e-9)), step*math.Ceil(high/step*(1+1e-9))
	across := func(v float64) float64 { return round(plotLeft + plotWidth*(v-first)/(last-first)) }
	for i := range int(math.Round((last-first)/step)) + 1 {
		v := first + float64(i)*step
		c.XTicks = append(c.XTicks, tick{across(v), api.Plain(v)})
	}
	return across
}
