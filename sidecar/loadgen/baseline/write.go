package baseline

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// WriteCSV writes a baseline so that [ReadCSV] gives it back: the same values
// bit by bit, metadata and notes included. What is lost is the kind and the
// target, since what is read from a file is imported, the intervals, span, lag and errors of
// measured rows, and space around the lines of the notes. Columns without a value are left out. A
// baseline that [Validate] refuses gives its error; other errors are those of w.
func WriteCSV(w io.Writer, b api.Baseline) error {
	if err := Validate(b); err != nil {
		return err
	}
	if err := writeMetadata(w, b); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	written := usedColumns(b.Rows)
	header := make([]string, len(written))
	for i, c := range written {
		header[i] = c.name
	}
	if err := out.Write(header); err != nil {
		return err
	}
	for _, row := range b.Rows {
		fields := make([]string, len(written))
		for i, c := range written {
			fields[i] = c.text(row)
		}
		if err := out.Write(fields); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func writeMetadata(w io.Writer, b api.Baseline) error {
	for _, a := range attributes {
		value := a.get(&b)
		if value == "" && a.key != "title" { // an absent title would become the name
			continue
		}
		if _, err := fmt.Fprintf(w, "# %s: %s\n", a.key, value); err != nil {
			return err
		}
	}
	if b.Notes == "" {
		return nil
	}
	for note := range strings.SplitSeq(b.Notes, "\n") {
		if _, err := fmt.Fprintf(w, "# %s: %s\n", noteKey, strings.TrimSpace(note)); err != nil {
			return err
		}
	}
	return nil
}

// writtenColumn is a column of the file with the text of a row's field.
type writtenColumn struct {
	name string
	text func(api.BaselineRow) string
}

func usedColumns(rows []api.BaselineRow) []writtenColumn {
	used := []writtenColumn{
		{"concurrency", func(r api.BaselineRow) string { return strconv.Itoa(r.Concurrency) }},
		{"mode", func(r api.BaselineRow) string { return string(r.Mode) }},
		{"speculation", func(r api.BaselineRow) string { return string(r.Speculation) }},
	}
	for _, c := range optionalColumns() {
		for _, row := range rows {
			if c.text(row) != "" {
				used = append(used, c)
				break
			}
		}
	}
	return used
}

func optionalColumns() []writtenColumn {
	var list []writtenColumn
	for _, m := range metrics {
		list = append(list, writtenColumn{m.column, func(r api.BaselineRow) string {
			if v := *m.of(&r); v != nil {
				return formatShifted(*v, m.shift)
			}
			return ""
		}})
	}
	return append(list, writtenColumn{"n", formatN}, writtenColumn{"measured", formatMeasured})
}

func formatN(r api.BaselineRow) string {
	if r.N == 0 {
		return ""
	}
	return strconv.Itoa(r.N)
}

func formatMeasured(r api.BaselineRow) string {
	if r.Measured == nil {
		return ""
	}
	return r.Measured.UTC().Format(time.RFC3339Nano)
}
