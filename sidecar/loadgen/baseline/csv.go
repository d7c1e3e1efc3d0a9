package baseline

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"kvbooth/sidecar/api"
)

// ReadCSV reads a table in the format of the recorded ones. Lines that begin with # are comments. Comments before the
// header may contain metadata as "# key: value" (title, workload and runs as JSON, and the other fields of
// [api.Deployment] and [api.Provenance] by their names in JSON); any other becomes a note. The header names the columns
// in any order. concurrency and mode are required. Optional are speculation, n, measured (RFC 3339), the columns of the
// recorded tables, gap_itl_p50_ms and gap_itl_p95_ms for ITL proper, acceptance_rate_pct, tokens_per_step,
// gpu_memory_bytes and achieved_share, and the columns of the cluster's figures, from queue_ms to inflight_skew.
// Latencies are in milliseconds, hit and acceptance rates in per cent. An empty field was not recorded. Rows without a
// speculation take the metadata's, else not_recorded.
//
// A header with tabs makes it a table of tab-separated values. One with the column side is the table of a report (times
// in seconds, ratios from 0 to 1), of which the rows with their intervals are read, and not the comparison.
//
// At most 1 MiB and 10,000 rows are read. Rows are sorted by concurrency and mode, and the kind is [KindImported].
// Invalid input returns an [api.FieldError] that names line, column, value and what is allowed; other errors are those
// of r.
func ReadCSV(r io.Reader, name string) (api.Baseline, error) {
	text, err := readBounded(r)
	if err != nil {
		return api.Baseline{}, err
	}
	if bytes.HasPrefix(text, []byte("{")) {
		return api.Baseline{}, cmp.Or(refuseOthers(text),
			api.Refuse("file", "JSON", "CSV or TSV; or a file of JSON whose name ends in .json"))
	}
	b := api.Baseline{Name: name, Title: name, Kind: KindImported}
	if err := readMetadata(text, &b); err != nil {
		return api.Baseline{}, err
	}
	if b.Rows, err = readRows(text, rowSpeculation(b)); err != nil {
		return api.Baseline{}, err
	}
	slices.SortFunc(b.Rows, compareRows)
	return b, Validate(b)
}

// readBounded reads UTF-8 of at most 1 MiB, without a byte order mark.
func readBounded(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading a baseline: %w", err)
	}
	if len(text) > maxBytes {
		return nil, api.Refuse("file", fmt.Sprintf("more than %d bytes", maxBytes), fmt.Sprintf("at most %d bytes", maxBytes))
	}
	if !utf8.Valid(text) {
		return nil, api.Refuse("file", "its encoding", "UTF-8")
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil
}

// rowSpeculation returns the speculation of rows that name none.
func rowSpeculation(b api.Baseline) api.Speculation {
	if s := b.Deployment.Speculation; s != "" {
		return s
	}
	return api.SpeculationNotRecorded
}

func readRows(text []byte, speculation api.Speculation) ([]api.BaselineRow, error) {
	t := table{reader: csv.NewReader(bytes.NewReader(text)), speculation: speculation, seen: make(map[key]bool)}
	t.reader.Comment = '#'
	if strings.Contains(headerOf(text), "\t") {
		t.reader.Comma = '\t'
	}
	t.reader.FieldsPerRecord = -1 // checked here, with a message that names both numbers
	if err := t.readHeader(); err != nil {
		return nil, err
	}
	var rows []api.BaselineRow
	for {
		row, err := t.readRow()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if rows = append(rows, row); len(rows) > maxRows {
			return nil, api.Refuse("file", "more rows", fmt.Sprintf("at most %d rows", maxRows))
		}
	}
}

// headerOf returns the first line that is no comment.
func headerOf(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			return line
		}
	}
	return ""
}

// table reads the records of one file.
type table struct {
	reader      *csv.Reader
	columns     []column
	speculation api.Speculation
	seen        map[key]bool
}

// column is a field of a row in a file.
type column struct {
	name    string
	needed  bool                                         // whether it must not be empty
	set     func(row *api.BaselineRow, text string) bool // false: the text is not allowed
	allowed string
	text    func(row *api.BaselineRow) string // formats the value; nil: it is not written
}

func (t *table) readHeader() error {
	names, err := t.record()
	if errors.Is(err, io.EOF) {
		return api.Refuse("file", "an empty table", "a header line with at least concurrency and mode")
	}
	if err != nil {
		return err
	}
	columns := columns
	if slices.Contains(names, "side") {
		columns = reportColumns
	}
	used := make(map[string]bool)
	for i, name := range names {
		at := slices.IndexFunc(columns, func(c column) bool { return c.name == name })
		if at < 0 || used[name] {
			return api.Refuse(t.place(i)+", header", quote(name), "each of these once: "+columnNames(columns))
		}
		used[name] = true
		t.columns = append(t.columns, columns[at])
	}
	for _, needed := range []string{"concurrency", "mode"} {
		if !used[needed] {
			return api.Refuse(t.place(0)+", header", "no column "+needed, "a header with the columns concurrency and mode")
		}
	}
	return nil
}

func (t *table) readRow() (api.BaselineRow, error) {
	row := api.BaselineRow{Speculation: t.speculation}
	fields, err := t.record()
	if err != nil {
		return row, err
	}
	if len(fields) != len(t.columns) {
		return row, api.Refuse(t.place(0), fmt.Sprintf("%d fields", len(fields)),
			fmt.Sprintf("%d fields, as the header has", len(t.columns)))
	}
	for i, c := range t.columns {
		if fields[i] == "" && !c.needed || c.set(&row, fields[i]) {
			continue
		}
		allowed := c.allowed
		if !c.needed {
			allowed += ", or empty"
		}
		return row, api.Refuse(t.place(i)+", column "+c.name, quote(fields[i]), allowed)
	}
	if m, median := disordered(&row); m != nil {
		return row, api.Refuse(t.place(0)+", column "+m.column, formatShifted(**m.In(&row), m.shift),
			"at least the median, "+formatShifted(median, m.shift))
	}
	if t.seen[keyOf(row)] {
		return row, api.Refuse(t.place(0), describe(row), "each concurrency, mode and speculation once")
	}
	t.seen[keyOf(row)] = true
	return row, nil
}

// record reads one record and trims the space around its fields.
func (t *table) record() ([]string, error) {
	fields, err := t.reader.Read()
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return nil, api.Refuse(fmt.Sprintf("line %d, character %d", parse.Line, parse.Column), "this text",
			"CSV as RFC 4180 has it: "+parse.Err.Error())
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return fields, err
}

// place names the line of field i of the last record.
func (t *table) place(i int) string {
	line, _ := t.reader.FieldPos(i)
	return fmt.Sprintf("line %d", line)
}

// keyColumns identify a row.
var keyColumns = []column{
	{
		name: "concurrency", needed: true, allowed: wholeAllowed(1, maxConcurrency),
		set:  func(r *api.BaselineRow, text string) bool { return setLevel(&r.Level, text) },
		text: func(r *api.BaselineRow) string { return r.Level.String() },
	},
	{
		name: "mode", needed: true, allowed: oneOf(modes),
		set:  func(r *api.BaselineRow, text string) bool { return setOne(&r.Mode, text, modes) },
		text: func(r *api.BaselineRow) string { return string(r.Mode) },
	},
	{
		name: "speculation", allowed: oneOf(speculations),
		set:  func(r *api.BaselineRow, text string) bool { return setOne(&r.Speculation, text, speculations) },
		text: func(r *api.BaselineRow) string { return string(r.Speculation) },
	},
	{
		name: "arm", allowed: api.AllowedArm,
		set: func(r *api.BaselineRow, text string) bool {
			r.Arm = text
			return api.IsArmName(text)
		},
		text: func(r *api.BaselineRow) string { return r.Arm },
	},
}

var countColumn = column{
	name: "n", allowed: wholeAllowed(0, maxCount),
	set:  func(r *api.BaselineRow, text string) bool { return setWhole(&r.N, text, 0, maxCount) },
	text: func(r *api.BaselineRow) string { return count(r.N) },
}

// columns are all columns of a file, in the order in which they are written.
var columns = slices.Concat(keyColumns, quantityColumns(), []column{
	countColumn,
	{name: "measured", allowed: timeAllowed, set: setMeasured, text: formatMeasured},
})

func columnNames(columns []column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

func quantityColumns() (list []column) {
	for _, q := range quantities {
		list = append(list, q.columnIn(q.column, q.shift))
	}
	return list
}

// columnIn returns the column of a quantity in a unit that is this number of decimal places away.
func (q *Quantity) columnIn(name string, shift int) column {
	return column{
		name: name, allowed: numberAllowed(q.max, shift),
		set: func(row *api.BaselineRow, text string) bool {
			v, err := parseShifted(text, shift)
			*q.In(row) = &v
			return err == nil && validateValue("", v, q.max) == nil
		},
		text: func(row *api.BaselineRow) string {
			if v := *q.In(row); v != nil {
				return formatShifted(*v, shift)
			}
			return ""
		},
	}
}

func setWhole(to *int, text string, low, high int) bool {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || int(n) < low || int(n) > high {
		return false
	}
	*to = int(n)
	return true
}

func setLevel(to *api.Level, text string) bool {
	var n int
	ok := setWhole(&n, text, 1, maxConcurrency)
	*to = api.AtConversations(n)
	return ok
}

func setOne[S ~string](to *S, text string, allowed []S) bool {
	*to = S(text)
	return slices.Contains(allowed, *to)
}

func setMeasured(row *api.BaselineRow, text string) bool {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !plausible(t) {
		return false
	}
	t = t.UTC()
	row.Measured = &t
	return true
}

var reportColumns = slices.Concat(
	[]column{ignored("side"), ignored("baseline")}, keyColumns,
	[]column{countColumn, {name: "seconds", allowed: "a number", set: setSeconds}}, reportValues(),
	[]column{ignored("place_from"), ignored("place_to"), ignored("may_be_best")},
)

func setSeconds(row *api.BaselineRow, text string) bool {
	v, err := parseShifted(text, 0)
	row.Seconds = v
	return err == nil && validateValue("", v, maxCount) == nil
}

// ignored is a column that is skipped.
func ignored(name string) column {
	return column{name: name, set: func(*api.BaselineRow, string) bool { return true }}
}

// reportValues returns the columns of all quantities. Those that a report compares have columns for the interval and
// for the result of the comparison.
func reportValues() (list []column) {
	for _, q := range quantities {
		list = append(list, q.columnIn(q.Name, 0)) // a report has the units of a row
		if q.interval == nil {
			continue
		}
		list = append(list, bound(q.Name+"_low", q, 0), bound(q.Name+"_high", q, 1))
		for _, name := range []string{"advantage_%s", "advantage_%s_low", "advantage_%s_high", "outcome_%s"} {
			list = append(list, ignored(fmt.Sprintf(name, q.Name)))
		}
	}
	return list
}

// bound is a column with one end of an interval.
func bound(name string, q *Quantity, end int) column {
	return column{name: name, allowed: "a number", set: func(row *api.BaselineRow, text string) bool {
		v, err := parseShifted(text, 0)
		if err != nil {
			return false
		}
		if row.Intervals == nil {
			row.Intervals = &api.RowIntervals{}
		}
		in := q.IntervalIn(row.Intervals)
		if *in == nil {
			*in = &[2]float64{}
		}
		(*in)[end] = v
		return true
	}}
}

// decimal matches a number in a file: no sign, no hexadecimal, no names of infinities.
var decimal = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)

var errNotDecimal = errors.New("not a decimal number")

// parseShifted reads a decimal number and moves its point by shift places. The
// text is moved, not the value, so that 446.5 ms is exactly the float64 0.4465.
func parseShifted(text string, shift int) (float64, error) {
	if !decimal.MatchString(text) {
		return 0, errNotDecimal
	}
	return parseMoved(text, shift)
}

func parseMoved(text string, shift int) (float64, error) {
	return strconv.ParseFloat(moved(text, shift), 64)
}

// moved returns the decimal text times 10^shift.
func moved(text string, shift int) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	e, _ := strconv.Atoi(exponent) // no exponent counts as 0
	return fmt.Sprintf("%se%d", mantissa, e+shift)
}

// formatShifted is the inverse of [parseShifted] with the same shift: reading
// its text gives v again, bit by bit.
func formatShifted(v float64, shift int) string {
	exact := moved(strconv.FormatFloat(v, 'e', -1, 64), -shift)
	if near, err := strconv.ParseFloat(exact, 64); err == nil {
		plain := strconv.FormatFloat(near, 'f', -1, 64)
		if back, err := parseMoved(plain, shift); err == nil && back == v && len(plain) <= 24 {
			return plain
		}
	}
	return exact
}
