// Package report writes the reports on a run, on a sweep or trial, on two results, and on the replay of a trace. Every
// report makes a [Document], which is written as a page, as Markdown or for a terminal. Programs read its JSON or its
// table.
//
//   - [Builder] gathers the turns of a run. [Condition] lets a run fail.
//   - [Results] compares results. [Words] describes a sweep in sentences.
//   - [Shadow] compares the cache hits of other routers on a trace.
package report

import (
	"slices"
	"strings"

	"kvbooth/sidecar/loadgen/report/chart"
)

// Document is the readable form of a report.
type Document struct {
	Title    string
	Sections []Section
	Foot     string
}

// Section is a part of a document.
type Section struct {
	Title   string // empty: the section continues the one before it
	Level   int    // heading level, 1 to 3; 0 means 2
	Top     bool   // a page shows the section as its main finding
	Text    []string
	Warning string
	Cards   []Card
	Items   []Item
	Charts  []chart.Chart
	Table   *Table
}

// Item is an entry of a list. Name may be empty, and Text may have several lines.
type Item struct{ Name, Text string }

// Card is a headline figure of a page. Below is a note under the value. Class is good, bad or empty.
type Card struct{ Name, Value, Below, Class string }

// Table holds the cells of a table. A page aligns the first column and the columns in Words, which holds their indexes,
// to the left. All other columns hold numbers.
type Table struct {
	Words []int
	Head  []string
	Rows  [][]string
}

// Left reports whether a column holds text, which is aligned to the left.
func (t *Table) Left(column int) bool { return slices.Contains(t.Words, column) }

// Main returns the part of a number's cell before its brackets. For a text column it returns the whole cell.
func (t *Table) Main(column int, cell string) string {
	if t.Left(column) || !strings.HasSuffix(cell, ")") {
		return cell
	}
	main, _, _ := strings.Cut(cell, " (")
	return main
}

// Small returns the part of a cell that [Table.Main] leaves out. A page shows it in a line below.
func (t *Table) Small(column int, cell string) string {
	return strings.TrimSpace(strings.TrimPrefix(cell, t.Main(column, cell)))
}
