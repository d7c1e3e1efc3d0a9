package chart

import (
	"fmt"
	"slices"
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

// Rows draws a difference and its interval in each row. A difference between the boundaries is of no interest.
func Rows(title, unit string, boundaries [2]float64, rows []Row) Chart {
	c := Chart{Title: title, Unit: unit}
	if len(rows) == 0 {
		c.Empty = "nothing was compared"
		return c
	}
	all := []float64{0, boundaries[0], boundaries[1]}
	for _, r := range rows {
		all = append(all, r.Value)
		if r.Band != nil {
			all = append(all, r.Band[0], r.Band[1])
		}
	}
	low, high := slices.Min(all), slices.Max(all)
	across := func(v float64) float64 { return round(plotLeft + (v-low)/(high-low)*plotWidth) }
	step := niceStep((high - low) / ticksAcross)
	for i := range 2*ticksAcross + 1 {
		if v := step * float64(i-ticksAcross); v >= low && v <= high {
			c.XTicks = append(c.XTicks, tick{across(v), boundary(v)})
		}
	}
	c.Bands = append(c.Bands, band{"band field", fmt.Sprintf("M%.1f %.1fH%.1fV%.1fH%.1fZ", across(boundaries[0]), plotTop,
		across(boundaries[1]), plotBottom, across(boundaries[0]))})
	c.Lines = append(c.Lines, line{Class: "zero", Path: fmt.Sprintf("M%.1f %.1fV%.1f", across(0), plotTop, plotBottom)})
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
