package chart

import (
	"fmt"
	"math"
	"slices"

	"kvbooth/sidecar/api"
)

// Row is a value with its interval, in a row of its own.
type Row struct {
	Name  string
	Value float64
	Band  *[2]float64 // nil: the value is not bounded
	Title string      // tooltip
}

// label is a text in the plot.
type label struct {
	X, Y float64
	Text string
}

// Reference is the value that rows are compared with. A value within the two others differs too little to be of
// interest.
type Reference struct {
	At     float64
	Within [2]float64
}

// Rows draws a value and its interval in each row, against a reference unless that is nil.
func Rows(title, unit string, against *Reference, rows []Row) Chart {
	c := Chart{Title: title, Unit: unit}
	if len(rows) == 0 {
		c.Empty = "nothing was compared"
		return c
	}
	var all []float64
	if against != nil {
		all = append(all, against.At, against.Within[0], against.Within[1])
	}
	for _, r := range rows {
		all = append(all, r.Value)
		if r.Band != nil {
			all = append(all, r.Band[0], r.Band[1])
		}
	}
	low, high := slices.Min(all), slices.Max(all)
	if margin := .04 * max(high-low, .05*high); margin > 0 {
		low, high = low-margin, high+margin
	}
	across := func(v float64) float64 { return round(plotLeft + (v-low)/(high-low)*plotWidth) }
	step := niceStep((high - low) / ticksAcross)
	for v := step * math.Ceil(low/step); v <= high; v += step {
		c.XTicks = append(c.XTicks, tick{across(v), api.Plain(v)})
	}
	if against != nil {
		c.Bands = append(c.Bands, band{"band field", fmt.Sprintf("M%.1f %.1fH%.1fV%.1fH%.1fZ", across(against.Within[0]),
			plotTop, across(against.Within[1]), plotBottom, across(against.Within[0]))})
		c.Lines = append(c.Lines, line{
			Class: "zero", Path: fmt.Sprintf("M%.1f %.1fV%.1f", across(against.At), plotTop, plotBottom),
		})
	}
	height := plotHeight / float64(len(rows))
	for i, r := range rows {
		y := round(plotTop + (float64(i)+.7)*height)
		c.Labels = append(c.Labels, label{plotLeft, round(y - .3*height), r.Name})
		if r.Band != nil {
			c.Lines = append(c.Lines, line{
				Class: Classes[0], Path: fmt.Sprintf("M%.1f %.1fH%.1f", across(r.Band[0]), y, across(r.Band[1])),
			})
		}
		c.Marks = append(c.Marks, mark{Classes[0], r.Title, shape(Classes[0], across(r.Value), y)})
	}
	return c
}
