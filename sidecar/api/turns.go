package api

import (
	"encoding"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// turnColumn is a column of turns.csv: a field of [Turn] with the tag csv, or the one that is computed from others.
type turnColumn struct {
	name  string
	index []int // of the field; nil: computed
}

// turnColumns lists the columns of turns.csv in their order: that of the fields, but those added since follow the
// computed column.
var turnColumns = func() []turnColumn {
	var first, added []turnColumn
	for f := range reflect.TypeFor[Turn]().Fields() {
		switch name, option, _ := strings.Cut(f.Tag.Get("csv"), ","); {
		case name == "":
		case option == "added":
			added = append(added, turnColumn{name, f.Index})
		default:
			first = append(first, turnColumn{name, f.Index})
		}
	}
	return slices.Concat(first, []turnColumn{{name: "counts_in"}}, added)
}()

// requiredColumns lists the columns that [ReadTurns] requires.
var requiredColumns = []string{"conversation", "turn", "status", "started", "ended"}

// countsIn returns the figures that include the turn. "latencies" means all of them, and "rates" only the rates, for an
// answer without text. "span_ttft" means the TTFT of a span, for an answer that was cut short. "errors" means the error
// rate. It is empty if no figure includes the turn.
func countsIn(t *Turn) string {
	switch {
	case t.Status == TurnOK && t.TTFT == nil:
		return "rates"
	case t.Status == TurnOK:
		return "latencies"
	case t.Status == TurnError:
		return "errors"
	case t.TTFT != nil:
		return "span_ttft"
	}
	return ""
}

// cell writes a value. An unknown one is empty, and times are RFC 3339 in UTC.
func cell(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	switch one := v.Interface().(type) {
	case time.Time:
		return one.UTC().Format(time.RFC3339Nano)
	case float64:
		return strconv.FormatFloat(one, 'f', -1, 64)
	default:
		return fmt.Sprint(one)
	}
}

// setCell reads what [cell] has written. After an error, the value is not valid.
func setCell(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if v.Kind() == reflect.String {
		v.SetString(plainText(text))
		return nil
	}
	if one, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return one.UnmarshalText([]byte(text))
	}
	return json.Unmarshal([]byte(text), v.Addr().Interface()) // a number or a flag
}

// TurnsRemark begins a last row of turns.csv that is no turn. It says what is missing.
const TurnsRemark = "#"

// TurnsHeader returns the names of the columns of turns.csv, in their order.
func TurnsHeader() []string {
	names := make([]string, len(turnColumns))
	for i, c := range turnColumns {
		names[i] = c.name
	}
	return names
}

// Cells writes the turn's row of turns.csv into to, which must be as long as [TurnsHeader].
func (t *Turn) Cells(to []string) {
	fields := reflect.ValueOf(t).Elem()
	for i, c := range turnColumns {
		text := countsIn(t)
		if c.index != nil {
			text = cell(fields.FieldByIndex(c.index))
		}
		to[i] = CSVText(Printable(text))
	}
}

// ReadTurns reads a table that [Client.TurnsCSV] has written. It ignores a last remark and unknown columns, and leaves
// the values of missing optional columns unset. The error names the line and the column of an invalid value.
func ReadTurns(r io.Reader) ([]Turn, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("turns.csv: %w", err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("turns.csv is empty")
	}
	if last := rows[len(rows)-1]; strings.HasPrefix(last[0], TurnsRemark) {
		rows = rows[:len(rows)-1]
	}
	for _, name := range requiredColumns {
		if !slices.Contains(rows[0], name) {
			return nil, fmt.Errorf("turns.csv has no column %s", name)
		}
	}
	known := map[string]turnColumn{}
	for _, c := range turnColumns {
		known[c.name] = c
	}
	turns := make([]Turn, len(rows)-1)
	for i, row := range rows[1:] {
		for column, text := range row {
			name := rows[0][column]
			index := known[name].index
			if index == nil || text == "" {
				continue
			}
			if err := setCell(reflect.ValueOf(&turns[i]).Elem().FieldByIndex(index), text); err != nil {
				return nil, fmt.Errorf("turns.csv, line %d, %s: %w", i+2, name, err)
			}
		}
	}
	return turns, nil
}
