// Package chart draws the charts of HTML reports as inline SVG. They need no script and no other file. Their colors
// come from the style sheet of the page ([CSS]), so that they fit a dark page, a light page and paper.
package chart

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// The dimensions of the plot in units of the view box. The labels of the axes are to its left and below it.
const (
	plotLeft, plotRight                  = 52.0, 628.0
	plotTop, plotBottom                  = 14.0, 216.0
	plotWidth, plotHeight                = plotRight - plotLeft, plotBottom - plotTop
	ticksDown, ticksAcross, marginOfPlot = 4, 6, 1.06
)

// Chart is an SVG: lines, bands, bars and a limit over one pair of axes. [Chart.HTML] writes it.
type Chart struct {
	Title, Unit    string
	Legend         []legend
	Bands          []band
	Lines          []line
	Marks          []mark
	Bars           []bar
	Limit          *limit
	YTicks, XTicks []tick
	Labels         []label
	XName          string
	Note           string // how to read it
	Empty          string // reason for a chart without values; empty: there are values
}

type legend struct{ Class, Name string }

// line is a curve with gaps for unknown values. A single value between gaps is a dot.
type line struct {
	Class, Path string
	Dots        []dot
}

type dot struct{ X, Y float64 }

// band is the area of the intervals around a line, or their whiskers.
type band struct{ Class, Path string }

// mark is a point of a line. Its title is a tooltip, and part of the text alternative for screen readers.
type mark struct{ Class, Title, Path string }

type bar struct {
	Class, Title        string
	X, Y, Width, Height float64
}

type limit struct {
	Y    float64
	Text string
}

type tick struct {
	At   float64
	Text string
}

// Curve holds the values of a line at equal distances. A nil value is not known. Class is a class of [CSS].
type Curve struct {
	Class, Name string
	Values      []*float64
}

// OverTime draws curves over the middles of equal spans of a run. It also draws the limit, unless that is 0.
func OverTime(title, unit string, seconds float64, objective float64, curves ...Curve) Chart {
	c := Chart{Title: title, Unit: unit, XTicks: timeTicks(seconds), XName: "time since the start"}
	top, known := objective, false
	for _, one := range curves {
		for _, v := range one.Values {
			if v != nil {
				top, known = max(top, *v), true
			}
		}
	}
	if !known {
		c.Empty = "nothing was measured"
		return c
	}
	scale := c.yAxis(top)
	for _, one := range curves {
		c.Legend = append(c.Legend, legend{one.Class, one.Name})
		c.Lines = append(c.Lines, drawn(one, scale))
	}
	if objective > 0 {
		c.Limit = &limit{scale(objective), "SLO " + api.Plain(objective) + " " + unit}
	}
	return c
}

func drawn(one Curve, scale func(float64) float64) line {
	spots := make([]*dot, len(one.Values))
	for i, v := range one.Values {
		if v != nil {
			spots[i] = &dot{plotLeft + plotWidth*(float64(i)+.5)/float64(len(one.Values)), scale(*v)}
		}
	}
	l := line{Class: one.Class}
	l.Path, l.Dots = polyline(spots)
	return l
}

// polyline returns the path through spots, with gaps for nil spots, and the single spots between gaps.
func polyline(spots []*dot) (path string, alone []dot) {
	known := func(i int) bool { return i >= 0 && i < len(spots) && spots[i] != nil }
	for i, s := range spots {
		switch {
		case s == nil:
		case known(i - 1):
			path += fmt.Sprintf("L%.1f %.1f", s.X, s.Y)
		case known(i + 1):
			path += fmt.Sprintf("M%.1f %.1f", s.X, s.Y)
		default:
			alone = append(alone, *s)
		}
	}
	return path, alone
}

// yAxis sets the ticks from 0 to a round number above the top, and returns the scale.
func (c *Chart) yAxis(top float64) func(float64) float64 {
	if top <= 0 {
		top = 1
	}
	step := niceStep(marginOfPlot * top / ticksDown)
	return c.linear(0, step*math.Ceil(marginOfPlot*top/step), step)
}

// linear sets the ticks of a linear axis, and returns the scale.
func (c *Chart) linear(low, high, step float64) func(float64) float64 {
	scale := func(v float64) float64 { return round(plotBottom - plotHeight*(v-low)/(high-low)) }
	for i := range int(math.Round((high-low)/step)) + 1 {
		v := low + float64(i)*step
		c.YTicks = append(c.YTicks, tick{scale(v), api.Plain(v)})
	}
	return scale
}

// niceStep returns the smallest number that is 1, 2 or 5 times a power of ten, and at least least.
func niceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*power >= least*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// XTime labels the x axis with times of a run of so many seconds.
func (c *Chart) XTime(seconds float64) { c.XTicks = timeTicks(seconds) }

// timeTicks returns ticks at round times of a run.
func timeTicks(seconds float64) (ticks []tick) {
	step := seconds
	for _, s := range []float64{
		.1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400,
		43200, 86400, 172800, 604800,
	} {
		if seconds/s <= ticksAcross {
			step = s
			break
		}
	}
	for i := 0; step > 0 && float64(i)*step <= seconds*(1+1e-9); i++ {
		ticks = append(ticks, tick{round(plotLeft + plotWidth*float64(i)*step/seconds), clock(float64(i) * step)})
	}
	return ticks
}

// clock formats a time as 40 s, 2:30 min or 1:30 h.
func clock(seconds float64) string {
	s := int(math.Round(seconds))
	switch {
	case seconds < 1 && seconds > 0:
		return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600 && s%60 == 0:
		return fmt.Sprintf("%d min", s/60)
	case s < 3600:
		return fmt.Sprintf("%d:%02d min", s/60, s%60)
	case s%3600 == 0:
		return fmt.Sprintf("%d h", s/3600)
	}
	return fmt.Sprintf("%d:%02d h", s/3600, s%3600/60)
}

// Stack is a bar of parts, the lowest first. Label is the text below it.
type Stack struct {
	Label string
	Parts []Part
}

// Part is a part of a [Stack]. Class is a class of [CSS].
type Part struct {
	Class, Name string
	Value       float64
}

// Stacks draws a bar for each stack.
func Stacks(title, unit, xName string, gap float64, stacks []Stack) Chart {
	c := Chart{Title: title, Unit: unit, XName: xName}
	top, seen := 0.0, map[string]bool{}
	for _, s := range stacks {
		height := 0.0
		for _, p := range s.Parts {
			height += p.Value
			if p.Value > 0 && !seen[p.Class] {
				seen[p.Class] = true
				c.Legend = append(c.Legend, legend{p.Class, p.Name})
			}
		}
		top = max(top, height)
	}
	if top == 0 {
		c.Empty = "nothing was measured"
		return c
	}
	scale := c.yAxis(top)
	width := plotWidth / float64(len(stacks))
	for i, s := range stacks {
		below := 0.0
		x := plotLeft + width*float64(i)
		for _, p := range s.Parts {
			if p.Value <= 0 {
				continue
			}
			y := scale(below + p.Value)
			c.Bars = append(c.Bars, bar{
				p.Class, fmt.Sprintf("%s %s %s", number(p.Value), unit, p.Name),
				round(x + gap/2), y, round(width - gap), round(scale(below) - y),
			})
			below += p.Value
		}
		if s.Label != "" {
			c.XTicks = append(c.XTicks, tick{round(x + width/2), s.Label})
		}
	}
	return c
}

const histogramBars = 48

// Histogram draws the distribution of values in seconds over a logarithmic axis in milliseconds. The values must be in
// ascending order.
func Histogram(title string, values []float64) Chart {
	c := Chart{Title: title, Unit: "turns", XName: "milliseconds, logarithmic"}
	first := 0
	for first < len(values) && values[first] <= 0 {
		first++
	}
	if values = values[first:]; len(values) == 0 {
		c.Empty = "nothing was measured"
		return c
	}
	low := math.Log10(1000*values[0]) - .02
	high := max(math.Log10(1000*values[len(values)-1])+.02, low+.3)
	counts := [histogramBars]float64{}
	for _, v := range values {
		at := (math.Log10(1000*v) - low) / (high - low)
		counts[min(int(at*histogramBars), histogramBars-1)]++
	}
	stacks := make([]Stack, histogramBars)
	for i, n := range counts {
		stacks[i].Parts = []Part{{"first", "", n}}
	}
	drawn := Stacks(title, c.Unit, c.XName, 1, stacks)
	drawn.Legend = nil
	steps := []float64{1, 2, 5}
	if high-low < 1 {
		steps = []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8}
	}
	for power := math.Floor(low); power <= high; power++ {
		for _, m := range steps {
			v := m * math.Pow(10, power)
			if at := (math.Log10(v) - low) / (high - low); at >= 0 && at <= 1 {
				drawn.XTicks = append(drawn.XTicks, tick{round(plotLeft + plotWidth*at), strconv.FormatFloat(v, 'f', -1, 64)})
			}
		}
	}
	return drawn
}

// round rounds to a tenth, which is finer than a pixel.
func round(v float64) float64 { return math.Round(10*v) / 10 }

//go:embed style.css
var style string

// CSS is the style sheet of a page with charts, for dark and light screens and for paper. The classes of curves, bars
// and bands are first to fourth, rest and bad.
var CSS = template.CSS(style)

//go:embed chart.html.tmpl
var drawing string

var parsed = template.Must(template.New("chart").Parse(drawing))

// HTML returns the chart with its legend, or the reason why it is empty. Names are escaped.
func (c Chart) HTML() (template.HTML, error) {
	var b strings.Builder
	err := parsed.Execute(&b, c)
	return template.HTML(b.String()), err // the template above escapes
}

// number formats a value in the unit of a chart: as [api.InMS] does, with two decimals below 1.
func number(v float64) string {
	if math.Abs(v) < 1 {
		return api.Number(v, 2)
	}
	return api.InMS(v / 1000)
}
