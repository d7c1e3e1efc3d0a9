package baseline

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// WriteCSV writes a baseline so that [ReadCSV] returns it: the same values bit by bit, metadata and notes included. Not
// written are the kind and the target, since a file that is read is an import, the intervals, span, lag and errors of
// measured rows, and space around the lines of the notes. Columns without a value are omitted. A baseline that
// [Validate] refuses returns its error; other errors are those of w.
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
			fields[i] = c.text(&row)
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

// usedColumns returns the columns for which any row has a value.
func usedColumns(rows []api.BaselineRow) []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		return !slices.ContainsFunc(rows, func(r api.BaselineRow) bool { return c.text(&r) != "" })
	})
}

func formatMeasured(r *api.BaselineRow) string {
	if r.Measured == nil {
		return ""
	}
	return r.Measured.UTC().Format(time.RFC3339Nano)
}
