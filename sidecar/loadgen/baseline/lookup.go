package baseline

import (
	"slices"

	"kvbooth/sidecar/api"
)

// At looks up every metric of one mode at a concurrency. A metric that was
// recorded at exactly this level is exact; between two levels that have it, it
// is interpolated linearly between the nearest of them; beyond them it is
// outside_range; where no level has it, not_recorded. N and Measured are those
// of the level itself, where there is one. The second result is false if the
// baseline has no row of this mode and speculation.
func At(b api.Baseline, mode api.Mode, speculation api.Speculation, concurrency int) (api.Column, bool) {
	rows := rowsOf(b, api.ModeState{Mode: mode, Speculation: speculation})
	c := api.Column{
		Mode: mode, Speculation: speculation,
		TTFT:    lookUpPair(rows, concurrency, func(r *api.BaselineRow) api.Percentiles { return r.TTFT }),
		TPOT:    lookUpPair(rows, concurrency, func(r *api.BaselineRow) api.Percentiles { return r.TPOT }),
		ITL:     lookUpPair(rows, concurrency, func(r *api.BaselineRow) api.Percentiles { return r.ITL }),
		Latency: lookUpPair(rows, concurrency, func(r *api.BaselineRow) api.Percentiles { return r.Latency }),

		OutputTokensPerSecond: lookUp(rows, concurrency, func(r *api.BaselineRow) *float64 { return r.OutputTokensPerSecond }),
		RequestsPerSecond:     lookUp(rows, concurrency, func(r *api.BaselineRow) *float64 { return r.RequestsPerSecond }),
		KVHitRatio:            lookUp(rows, concurrency, func(r *api.BaselineRow) *float64 { return r.KVHitRatio }),
	}
	if i := slices.IndexFunc(rows, func(r api.BaselineRow) bool { return r.Concurrency == concurrency }); i >= 0 {
		c.N, c.Measured = rows[i].N, rows[i].Measured
	}
	return c, len(rows) > 0
}

// Columns looks up every mode and speculation that the baseline has:
// round_robin first, then kv, then the rest. It is never nil.
func Columns(b api.Baseline, concurrency int) []api.Column {
	columns := []api.Column{}
	for _, m := range modesOf(b) {
		c, _ := At(b, m.Mode, m.Speculation, concurrency)
		columns = append(columns, c)
	}
	return columns
}

// RowsAt gives what [Columns] finds as rows of that concurrency: one for each mode
// and speculation, without what is not recorded or lies outside the range.
func RowsAt(b api.Baseline, concurrency int) []api.BaselineRow {
	var found []api.BaselineRow
	for _, m := range modesOf(b) {
		rows, at := rowsOf(b, m), api.BaselineRow{Concurrency: concurrency, Mode: m.Mode, Speculation: m.Speculation}
		for _, metric := range metrics {
			value := lookUp(rows, concurrency, func(r *api.BaselineRow) *float64 { return *metric.of(r) })
			*metric.of(&at) = value.Value
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

// rowsOf gives the rows of one mode by ascending concurrency.
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

func lookUpPair(rows []api.BaselineRow, concurrency int, of func(*api.BaselineRow) api.Percentiles) api.LookedUpPair {
	return api.LookedUpPair{
		P50: lookUp(rows, concurrency, func(r *api.BaselineRow) *float64 { return of(r).P50 }),
		P95: lookUp(rows, concurrency, func(r *api.BaselineRow) *float64 { return of(r).P95 }),
	}
}

// lookUp finds one value in rows of one mode, sorted by concurrency.
func lookUp(rows []api.BaselineRow, concurrency int, of func(*api.BaselineRow) *float64) api.LookedUp {
	var below, above *api.BaselineRow
	for i := range rows {
		r := &rows[i]
		switch {
		case of(r) == nil:
		case r.Concurrency == concurrency:
			return api.LookedUp{Value: copyOf(*of(r)), Lookup: api.LookupExact}
		case r.Concurrency < concurrency:
			below = r
		case above == nil:
			above = r
		}
	}
	switch {
	case below == nil && above == nil:
		return api.LookedUp{Lookup: api.LookupNotRecorded}
	case below == nil || above == nil:
		return api.LookedUp{Lookup: api.LookupOutside}
	}
	share := float64(concurrency-below.Concurrency) / float64(above.Concurrency-below.Concurrency)
	return api.LookedUp{
		Value:  copyOf(*of(below)*(1-share) + *of(above)*share),
		Lookup: api.LookupInterpolated,
	}
}

func copyOf(v float64) *float64 { return &v }
