package baseline

import (
	"cmp"
	"slices"

	"kvbooth/sidecar/api"
)

// At looks up every metric of one mode at a level. A metric that was recorded at exactly this level is exact.
// Between two levels that have it, it is interpolated linearly between the nearest of them. Beyond them it is
// outside_range, and where no level has it, not_recorded. N, Measured and LagSeconds are those of the level itself,
// where there is one. A value has the interval that was measured with it, or, where its baseline is not a measured one,
// an estimate. The second result is false if the baseline has no row of this mode and speculation.
func At(b api.Baseline, mode api.ModeState, level api.Level) (api.Column, bool) {
	t := NewTable(b)
	return t.At(mode, level)
}

// Table is a baseline by its modes, for many look-ups: the scatter of its values is computed once. It is safe for
// concurrent use.
type Table struct {
	modes    []api.ModeState
	rows     [][]api.BaselineRow // of each mode, by ascending level
	scatters [][]float64         // of each mode; nil: its values have the intervals that were measured with them, or none
}

// NewTable sorts a baseline.
func NewTable(b api.Baseline) (t Table) {
	t.modes = modesOf(b)
	for _, m := range t.modes {
		t.rows = append(t.rows, rowsOf(b, m))
	}
	if b.Kind != KindMeasured {
		t.scatters = scatters(t.rows)
	}
	return t
}

// At is the function [At] for this baseline.
func (t *Table) At(mode api.ModeState, level api.Level) (api.Column, bool) {
	i := slices.Index(t.modes, mode)
	if i < 0 {
		return columnAt(nil, mode, level), false
	}
	return t.at(i, level), true
}

// at looks up a mode, by its index, at a level.
func (t *Table) at(mode int, level api.Level) api.Column {
	return t.estimated(columnAt(t.rows[mode], t.modes[mode], level), mode)
}

// exactly returns the column of a row of the table.
func (t *Table) exactly(r *api.BaselineRow) api.Column {
	m := keyOf(*r).ModeState
	return t.estimated(columnAt([]api.BaselineRow{*r}, m, r.Level), slices.Index(t.modes, m))
}

func (t *Table) estimated(c api.Column, mode int) api.Column {
	if t.scatters != nil {
		estimate(&c, t.scatters[mode])
	}
	return c
}

// columnAt looks up every metric in the rows of one mode.
func columnAt(rows []api.BaselineRow, m api.ModeState, level api.Level) api.Column {
	c := api.Column{Arm: m.Arm, Mode: m.Mode, Speculation: m.Speculation}
	for _, q := range values {
		l := lookUp(rows, level, func(r *api.BaselineRow) (*float64, *[2]float64) { return *q.In(r), q.IntervalOf(r) })
		e := lookUp(rows, level, func(r *api.BaselineRow) (*float64, *[2]float64) { return q.errorOf(r), nil })
		l.Error = e.Value
		if !q.optional || l.Lookup != api.LookupNotRecorded {
			*q.LookedUpIn(&c) = l
		}
	}
	if i := slices.IndexFunc(rows, func(r api.BaselineRow) bool { return r.Level == level }); i >= 0 {
		c.N, c.Measured, c.LagSeconds = rows[i].N, rows[i].Measured, rows[i].LagSeconds
	}
	return c
}

// Columns looks up every mode and speculation that the baseline has: round_robin first, then kv, then the rest. It is
// never nil.
func Columns(b api.Baseline, level api.Level) []api.Column {
	columns := []api.Column{}
	t := NewTable(b)
	for i := range t.modes {
		columns = append(columns, t.at(i, level))
	}
	return columns
}

// RowsAt returns the results of [Columns] as rows of that level: one for each mode and speculation, without
// values that are not recorded or outside the range.
func RowsAt(b api.Baseline, level api.Level) []api.BaselineRow {
	var found []api.BaselineRow
	for _, m := range modesOf(b) {
		rows, at := rowsOf(b, m), api.BaselineRow{
			Level: level, Arm: m.Arm, Mode: m.Mode, Speculation: m.Speculation,
		}
		for _, q := range quantities {
			value := lookUp(rows, level, func(r *api.BaselineRow) (*float64, *[2]float64) { return *q.In(r), nil })
			*q.In(&at) = value.Value
		}
		found = append(found, at)
	}
	return found
}

// modesOf lists the modes of a baseline, each once, in order.
func modesOf(b api.Baseline) []api.ModeState {
	var list []api.ModeState
	for _, r := range b.Rows {
		list = append(list, keyOf(r).ModeState)
	}
	slices.SortFunc(list, compareModes)
	return slices.Compact(list)
}

// rowsOf returns the rows of one mode by ascending level.
func rowsOf(b api.Baseline, mode api.ModeState) []api.BaselineRow {
	var rows []api.BaselineRow
	for _, r := range b.Rows {
		if keyOf(r).ModeState == mode {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, compareRows)
	return rows
}

// point is one value at a level.
type point struct {
	level    api.Level
	value    float64
	interval *[2]float64 // nil: not known
}

// lookUp finds one value with its interval in rows of one mode, sorted by level.
func lookUp(rows []api.BaselineRow, level api.Level, of func(*api.BaselineRow) (*float64, *[2]float64)) api.LookedUp {
	var below, above *point
	for i := range rows {
		r := &rows[i]
		value, interval := of(r)
		if value == nil || r.Level.Kind != level.Kind {
			continue
		}
		at := &point{level: r.Level, value: *value, interval: interval}
		switch {
		case r.Level == level:
			return api.LookedUp{Value: &at.value, Interval: interval, Lookup: api.LookupExact}
		case r.Level.Below(level):
			below = at
		case above == nil:
			above = at
		}
	}
	switch {
	case below == nil && above == nil:
		return api.LookedUp{Lookup: api.LookupNotRecorded}
	case below == nil || above == nil:
		return api.LookedUp{Lookup: api.LookupOutside}
	}
	share := (level.Value - below.level.Value) / (above.level.Value - below.level.Value)
	found := api.LookedUp{Value: copyOf(between(below.value, above.value, share)), Lookup: api.LookupInterpolated}
	if below.interval != nil && above.interval != nil {
		// The interval is wider than that of two independent values, because a straight line is itself an assumption.
		found.Interval = &[2]float64{
			between(below.interval[0], above.interval[0], share),
			between(below.interval[1], above.interval[1], share),
		}
	}
	return found
}

func between(low, high, share float64) float64 { return low*(1-share) + high*share }

func copyOf(v float64) *float64 { return &v }

// modes and speculations in the order in which they are listed.
var (
	modes        = []api.Mode{api.ModeRoundRobin, api.ModeKV, api.ModeLeastLoaded, api.ModeUnknown}
	speculations = []api.Speculation{
		api.SpeculationOff, api.SpeculationDraft, api.SpeculationEagle3, api.SpeculationNotRecorded,
	}
)

// key identifies a row of a baseline.
type key struct {
	level api.Level
	api.ModeState
}

func keyOf(r api.BaselineRow) key {
	return key{r.Level, r.InMode()}
}

// compareModes puts round-robin first, then kv, then the rest.
func compareModes(a, b api.ModeState) int {
	return cmp.Or(
		cmp.Compare(slices.Index(modes, a.Mode), slices.Index(modes, b.Mode)),
		cmp.Compare(slices.Index(speculations, a.Speculation), slices.Index(speculations, b.Speculation)),
		cmp.Compare(a.Arm, b.Arm),
	)
}

func compareRows(a, b api.BaselineRow) int {
	x, y := keyOf(a), keyOf(b)
	return cmp.Or(x.level.Compare(y.level), compareModes(x.ModeState, y.ModeState))
}
