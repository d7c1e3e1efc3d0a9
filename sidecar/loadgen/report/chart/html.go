package chart

import (
	_ "embed"
	"html/template"
	"strconv"
	"strings"
)

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

// Number formats a number with three significant digits, but with all digits before the decimal point.
func Number(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
