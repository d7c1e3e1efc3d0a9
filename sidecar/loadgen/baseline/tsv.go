package baseline

import (
	"fmt"
	"slices"

	"kvbooth/sidecar/api"
)

// reportColumns are the columns of a report's table.
var reportColumns = slices.Concat(
	[]column{ignored("side"), ignored("baseline")}, keyColumns,
	[]column{countColumn, {name: "seconds", allowed: "a number", set: setSeconds}}, reportValues(),
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
