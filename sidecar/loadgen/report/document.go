// Package report is everything that is written of what was measured: of a run that has ended, of sweeps and trials, of
// any two results, and of the shadow of a trace. Each makes a [Document], which is written as a page, as Markdown or
// for a terminal; what programs read of it is its JSON and its table.
//
//   - [Builder] gathers the turns of a run, and [Condition] says what makes one fail.
//   - [Results] compares results, and [Words] says what a sweep shows.
//   - [Shadow] is what other routers would have found in the caches.
package report

import (
	"slices"
	"strings"

	"kvbooth/sidecar/loadgen/report/chart"
)

// Document is a report as it is read.
type Document struct {
	Title    string
	Sections []Section
	Foot     string
}

// Section is a part of a document.
type Section struct {
	Title   string // empty: it belongs to what stands above
	Level   int    // of the title: 1 to 3; 0: 2
	Top     bool   // what is to be read first
	Text    []string
	Warning string
	Cards   []Card
	Items   []Item
	Charts  []chart.Chart
	Table   *Table
}

// Item is one of a list, of several lines where it has any. It may have no name.
type Item struct{ Name, Text string }

// Card is a headline figure of a page. Its class is good, bad or empty.
type Card struct{ Name, Value, Below, Class string }

// Table has a head. Its first column and those of Words are text, the others numbers.
type Table struct {
	Words []int
	Head  []string
	Rows  [][]string
}

// Left says whether a column is text.
func (t *Table) Left(column int) bool { return slices.Contains(t.Words, column) }

// Main is what a number's cell has in front of its brackets; all of it, where it is text.
func (t *Table) Main(column int, cell string) string {
	if t.Left(column) || !strings.HasSuffix(cell, ")") {
		return cell
	}
	main, _, _ := strings.Cut(cell, " (")
	return main
}

// Small is the rest of it, which a page sets below.
func (t *Table) Small(column int, cell string) string {
	return strings.TrimSpace(strings.TrimPrefix(cell, t.Main(column, cell)))
}
