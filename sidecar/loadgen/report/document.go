// Package report writes the reports on a run, on a sweep or trial, on two results, and on the replay of a trace. Every
// report makes a [Document], which is written as a page, as Markdown or for a terminal. Programs read its JSON or its
// table.
//
//   - [Builder] gathers the turns of a run. [Condition] lets a run fail.
//   - [Results] compares results. [Words] describes a sweep in sentences.
//   - [Shadow] compares the cache hits of other routers on a trace.
package report

import (
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"kvbooth/sidecar/api"
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
	Figures []Figure
	Items   []Item
	Charts  []chart.Chart
	Table   *Table
}

// add adds an entry of some lines to the list. It leaves out an entry without text.
func (s *Section) add(name string, lines ...string) {
	if text := strings.Join(lines, "\n"); text != "" {
		s.Items = append(s.Items, Item{name, text})
	}
}

// filled returns the sections that have content besides their title.
func filled(all []Section) []Section {
	return slices.DeleteFunc(all, func(s Section) bool {
		return len(s.Text)+len(s.Figures)+len(s.Items)+len(s.Charts) == 0 && s.Warning == "" &&
			(s.Table == nil || len(s.Table.Rows) == 0)
	})
}

// Item is an entry of a list. Name may be empty, and Text may have several lines.
type Item struct{ Name, Text string }

// Figure is a headline figure. A page shows it as a card, and other formats as an entry of a list. Value is empty where
// it is not known, and Note then says why. Class is good, bad or empty.
type Figure struct{ Name, Value, Note, Class string }

// text returns the value with its note.
func (f *Figure) text() string {
	if f.Value == "" || f.Note == "" {
		return f.Value + f.Note
	}
	return f.Value + " (" + f.Note + ")"
}

// Table holds the cells of a table. A page aligns the first column and the columns in Words, which holds their indexes,
// to the left. All other columns hold numbers.
type Table struct {
	Words []int
	Head  []string
	Rows  [][]string
}

// add adds a row.
func (t *Table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

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

// Readable is a report that [Write] writes. Its JSON is that of encoding/json.
type Readable interface {
	Formats() Formats
	Document() Document
	Records() [][]string // table for programs; the first row is the head
}

// Write writes a report in a format. The error is an *[api.FieldError] if the report does not have the format.
func Write(w io.Writer, r Readable, format api.ReportFormat) error {
	if format == Series && !slices.Contains(r.Formats(), Series) {
		format = CSV
	}
	if err := api.OneOf("format", format, r.Formats()); err != nil {
		return err
	}
	switch r := r.(type) {
	case *Run:
		switch format {
		case JUnit:
			return writeJUnit(w, r)
		case Prometheus:
			return r.writeMetrics(w)
		case Series:
			return csv.NewWriter(w).WriteAll(r.seriesRecords())
		}
	case *Results:
		if format == JUnit {
			return writeJUnit(w, r)
		}
	}
	d := r.Document()
	switch format {
	case api.ReportJSON:
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case CSV:
		return csv.NewWriter(w).WriteAll(r.Records())
	case api.ReportTSV:
		return writeTSV(w, r.Records())
	case api.ReportMarkdown:
		return d.WriteMarkdown(w)
	}
	return d.WriteHTML(w)
}

func writeTSV(w io.Writer, records [][]string) error {
	var b strings.Builder
	for _, fields := range records {
		for i := range fields {
			fields[i] = oneLine(fields[i])
		}
		fmt.Fprintln(&b, strings.Join(fields, "\t"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

//go:embed page.html.tmpl
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// WriteHTML writes the document as one HTML page. The page contains its styles and charts, and has no script.
func (d *Document) WriteHTML(w io.Writer) error {
	return page.Execute(w, struct {
		*Document
		Style template.CSS
	}{d, chart.CSS})
}

// WriteMarkdown writes the document as Markdown.
func (d *Document) WriteMarkdown(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "# %s\n", inline(d.Title)); err != nil {
		return err
	}
	return WriteSections(w, d.Sections)
}

// WriteSections writes sections as Markdown, without a title of the document.
func WriteSections(w io.Writer, all []Section) error {
	var b strings.Builder
	for _, s := range all {
		if s.Title != "" {
			fmt.Fprintf(&b, "\n%s %s\n", strings.Repeat("#", s.level()), inline(s.Title))
		}
		for _, text := range s.Text {
			fmt.Fprintf(&b, "\n%s\n", inline(text))
		}
		if s.Warning != "" {
			fmt.Fprintf(&b, "\n%s\n", inline(s.Warning))
		}
		for i, it := range s.list() {
			if i == 0 {
				b.WriteString("\n")
			}
			name := ""
			if it.Name != "" {
				name = "**" + inline(it.Name) + "**: "
			}
			fmt.Fprintf(&b, "- %s%s\n", name, inline(it.Text))
		}
		if s.Table != nil {
			fmt.Fprintf(&b, "\n| %s |\n|%s\n", cells(s.Table.Head), strings.Repeat(":---:|", len(s.Table.Head)))
			for _, row := range s.Table.Rows {
				fmt.Fprintf(&b, "| %s |\n", cells(row))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// list returns the figures as entries of the list, and the list itself.
func (s *Section) list() (all []Item) {
	for _, f := range s.Figures {
		all = append(all, Item{f.Name, f.text()})
	}
	return append(all, s.Items...)
}

func (s *Section) level() int {
	if s.Level == 0 {
		return 2
	}
	return s.Level
}

// markdownEscaper escapes links, HTML and code in text of users and servers.
var markdownEscaper = strings.NewReplacer("\\", "\\\\", "|", "\\|", "<", "&lt;", "`", "\\`", "[", "\\[", "*", "\\*")

// inline formats a text for a line of Markdown.
func inline(text string) string { return markdownEscaper.Replace(oneLine(text)) }

// oneLine replaces line breaks, tabs and repeated blanks with single blanks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func cells(row []string) string {
	all := make([]string, len(row))
	for i, c := range row {
		all[i] = inline(c)
	}
	return strings.Join(all, " | ")
}

// WriteText writes the document for a terminal or a log. It leaves out charts, warnings, and titles below level 1.
func (d *Document) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", d.Title)
	for _, s := range d.Sections {
		if s.Level == 1 {
			fmt.Fprintf(&b, "\n%s\n", s.Title)
		}
		for _, text := range s.Text {
			fmt.Fprintln(&b, text)
		}
		if s.Table != nil {
			b.WriteString("\n")
			t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
			for _, row := range append([][]string{s.Table.Head}, s.Table.Rows...) {
				fmt.Fprintf(t, "%s\t\n", strings.Join(row, "\t"))
			}
			_ = t.Flush()
		}
		if items := s.list(); len(items) > 0 {
			b.WriteString("\n")
			t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
			for _, it := range items {
				fmt.Fprintf(t, "%s\t%s\n", it.Name, strings.ReplaceAll(it.Text, "\n", "\n\t"))
			}
			_ = t.Flush()
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
