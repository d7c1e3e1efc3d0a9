package chart

import (
	_ "embed"
	"html/template"
	"strconv"
	"strings"
)

//go:embed style.css
var style string

// CSS is the style sheet of a page with charts: dark and light as its reader's system is,
// and on paper. Curves, bars and bands may be of the classes first to fourth, rest and bad.
var CSS = template.CSS(style)

//go:embed chart.html.tmpl
var drawing string

var parsed = template.Must(template.New("chart").Parse(drawing))

// HTML is the chart with its legend, or the words why it is empty. Names are escaped.
func (c Chart) HTML() (template.HTML, error) {
	var b strings.Builder
	err := parsed.Execute(&b, c)
	return template.HTML(b.String()), err // the template above escapes
}

// Number writes a number with three figures, or all those in front of its point.
func Number(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
