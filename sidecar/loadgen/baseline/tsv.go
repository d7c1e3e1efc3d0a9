package baseline

import (
	"slices"

	"kvbooth/sidecar/api"
)

// reportColumns are those of a report's table.
var reportColumns = slices.Concat(
	[]column{
		ignored("side"), ignored("baseline"),
		{"concurrency", setConcurrency, wholeAllowed(1, maxConcurrency)},
		{"mode", setMode, oneOf(modes)},
		{"speculation", setSpeculation, oneOf(speculations) + ", or empty"},
		{"n", setN, wholeAllowed(0, maxCount) + ", or empty"},
		{"seconds", setSeconds, "a number, or empty"},
	},
	reportValues(),
)

func setSeconds(row *api.BaselineRow, text string) bool {
	if text == "" {
		return true
	}
	v, err := parseShifted(text, 0)
	row.Seconds = v
	return err == nil && validateValue("", v, maxCount) == nil
}

// ignored is a column that nothing is read from.
func ignored(name string) column {
	return column{name, func(*api.BaselineRow, string) bool { return true }, ""}
}

// reportValues are the columns of all metrics; those that a report compares each with its interval and what the report
// makes of it.
func reportValues() (list []column) {
	for _, m := range metrics {
		name := m.field()
		m.shift = 0 // a report has the units of a row
		list = append(list, column{name, func(row *api.BaselineRow, text string) bool {
			return setMetric(m, row, text)
		}, m.allowed(false) + ", or empty"})
		at := slices.IndexFunc(values, func(v value) bool { return v.name == name })
		if at < 0 {
			continue
		}
		in := values[at].interval
		list = append(list,
			bound(name+"_low", in, 0), bound(name+"_high", in, 1),
			ignored("advantage_"+name), ignored("advantage_"+name+"_low"), ignored("advantage_"+name+"_high"),
			ignored("outcome_"+name))
	}
	return list
}

// bound is a column with one end of an interval.
func bound(name string, of func(*api.RowIntervals) **[2]float64, end int) column {
	return column{name, func(row *api.BaselineRow, text string) bool {
		if text == "" {
			return true
		}
		v, err := parseShifted(text, 0)
		if err != nil {
			return false
		}
		if row.Intervals == nil {
			row.Intervals = &api.RowIntervals{}
		}
		in := of(row.Intervals)
		if *in == nil {
			*in = &[2]float64{}
		}
		(*in)[end] = v
		return true
	}, "a number, or empty"}
}
