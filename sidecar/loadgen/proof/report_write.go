package proof

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/report/chart"
)

// Write writes the report. Another format than the four is an *[api.FieldError].
func (r *Report) Write(w io.Writer, f api.ReportFormat) error {
	switch f {
	case api.ReportJSON:
		return r.WriteJSON(w)
	case api.ReportTSV:
		return r.WriteTSV(w)
	case api.ReportMarkdown:
		return r.WriteMarkdown(w)
	case api.ReportHTML:
		return r.WriteHTML(w)
	}
	return api.OneOf("format", f, api.ReportFormats)
}

// WriteJSON writes the report with all its digits.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteTSV writes the rows of all sides as a table of tab-separated values: times in seconds,
// shares from 0 to 1, all digits of what was measured and six of what is computed from
// it, an empty field for what is not known. Intervals are _low and _high. Advantages are over
// the first side at the same level.
func (r *Report) WriteTSV(w io.Writer) error {
	var b strings.Builder
	b.WriteString("side\tbaseline\tconcurrency\tmode\tspeculation\tn\tseconds")
	all := r.quantities()
	for _, q := range all {
		fmt.Fprintf(&b, "\t%s\t%[1]s_low\t%[1]s_high\tadvantage_%[1]s\tadvantage_%[1]s_low\tadvantage_%[1]s_high\toutcome_%[1]s", q.name)
	}
	b.WriteString("\terror_ratio")
	for _, c := range clusterColumns {
		b.WriteString("\t" + c.field)
	}
	b.WriteByte('\n')
	for i := range r.Sides {
		s := &r.Sides[i]
		for j := range s.Rows {
			row := &s.Rows[j]
			fmt.Fprintf(&b, "%s\t%s\t%d\t%s\t%s\t%d\t%s", api.CSVText(oneLine(s.Name)), api.CSVText(oneLine(s.Baseline)), row.Concurrency, row.Mode, row.Speculation, row.N, digits(&row.Seconds, -1))
			for _, q := range all {
				f := r.overFirst(i, row.Concurrency)[q.name]
				low, high := ends(q.intervalOf(row))
				from, to := ends(f.Interval)
				fmt.Fprintf(&b, "\t%s\t%s\t%s\t%s\t%s\t%s\t%s", digits(*q.of(row), -1), digits(low, -1), digits(high, -1), digits(f.Advantage, 6), digits(from, 6), digits(to, 6), f.Outcome)
			}
			b.WriteString("\t" + digits(row.ErrorRatio, -1))
			for _, c := range clusterColumns {
				b.WriteString("\t" + digits(*c.of(&row.ClusterFigures), -1))
			}
			b.WriteByte('\n')
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// overFirst are a side's figures beside the first one's at a level; nil where it has none.
func (r *Report) overFirst(side, level int) map[Quantity]Figure {
	for i := range r.Pairs {
		if p := &r.Pairs[i]; p.A == 0 && p.B == side {
			for _, l := range p.Levels {
				if l.Concurrency == level {
					return l.Figures
				}
			}
		}
	}
	return nil
}

func ends(v *[2]float64) (low, high *float64) {
	if v == nil {
		return nil, nil
	}
	return &v[0], &v[1]
}

func digits(v *float64, n int) string {
	if v == nil || !finite(*v) {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', n, 64)
}

// oneLine takes out what would break a line or a column.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// WriteMarkdown writes the report to be read: setup, methodology, tables, what the SLOs
// allow, summary, inputs.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	f := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	f("# %s\n", inline(r.Title))
	for _, s := range r.sections() {
		if s.Title != "" {
			f("\n%s %s\n", map[bool]string{true: "###", false: "##"}[s.Sub], inline(s.Title))
		}
		for _, text := range s.Text {
			f("\n%s\n", inline(text))
		}
		for i, it := range s.Items {
			if i == 0 {
				f("\n")
			}
			f("- **%s**: %s\n", inline(it.Name), inline(it.Text))
		}
		if s.Table != nil {
			f("\n| %s |\n|%s\n", cells(s.Table.Head), strings.Repeat(":---:|", len(s.Table.Head)))
			for _, row := range s.Table.Rows {
				f("| %s |\n", cells(row))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// markdown is what people's words may not say to a reader of Markdown: links, HTML, code.
var markdown = strings.NewReplacer("\\", "\\\\", "|", "\\|", "<", "&lt;", "`", "\\`", "[", "\\[", "*", "\\*")

// inline is a text within a line of Markdown.
func inline(text string) string { return markdown.Replace(oneLine(text)) }

func cells(row []string) string {
	all := make([]string, len(row))
	for i, c := range row {
		all[i] = inline(c)
	}
	return strings.Join(all, " | ")
}

//go:embed report.html.tmpl
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

// WriteHTML writes one page that needs nothing else and no script: its styles and charts
// are in it, and it prints.
func (r *Report) WriteHTML(w io.Writer) error {
	return page.Execute(w, struct {
		*Report
		Style    template.CSS
		Top      section
		Sections []section
	}{r, chart.CSS, r.sections()[0], r.sections()[1:]})
}
