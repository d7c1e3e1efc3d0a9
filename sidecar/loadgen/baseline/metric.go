package baseline

import (
	"cmp"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// metric is one recorded value of a row: its names, its limits, its place.
type metric struct {
	column string  // in a CSV file
	path   string  // in a row's JSON
	shift  int     // decimal places from the column's unit to the row's: ms to s is −3
	max    float64 // of the row's value; 0: no upper limit
	of     func(*api.BaselineRow) **float64
}

// metrics are the values of a row in the order of the CSV columns.
var metrics = slices.Concat(
	pair("ttft", "ttft", func(r *api.BaselineRow) *api.Percentiles { return &r.TTFT }),
	pair("tpot", "tpot_derived", func(r *api.BaselineRow) *api.Percentiles { return &r.TPOTDerived }),
	pair("itl", "tpot", func(r *api.BaselineRow) *api.Percentiles { return &r.TPOT }),
	pair("gap_itl", "itl", func(r *api.BaselineRow) *api.Percentiles { return &r.ITL }),
	pair("latency", "latency", func(r *api.BaselineRow) *api.Percentiles { return &r.Latency }),
	[]metric{
		{"tops", "output_tokens_per_second", 0, 0, func(r *api.BaselineRow) **float64 { return &r.OutputTokensPerSecond }},
		{"kv_hit_rate_pct", "kv_hit_ratio", -2, 1, func(r *api.BaselineRow) **float64 { return &r.KVHitRatio }},
		{"rps", "requests_per_second", 0, 0, func(r *api.BaselineRow) **float64 { return &r.RequestsPerSecond }},
		{"inflight_spread_min", "inflight_spread_min", 0, 0, func(r *api.BaselineRow) **float64 { return &r.InflightSpreadMin }},
		{"inflight_spread_max", "inflight_spread_max", 0, 0, func(r *api.BaselineRow) **float64 { return &r.InflightSpreadMax }},
	},
)

// pair gives the p50 and p95 of one latency.
func pair(column, path string, of func(*api.BaselineRow) *api.Percentiles) []metric {
	return []metric{
		{column + "_p50_ms", path + ".p50", -3, 0, func(r *api.BaselineRow) **float64 { return &of(r).P50 }},
		{column + "_p95_ms", path + ".p95", -3, 0, func(r *api.BaselineRow) **float64 { return &of(r).P95 }},
	}
}

// field is the metric's name in a row's list of values by another definition.
func (m metric) field() string { return strings.ReplaceAll(m.path, ".", "_") }

// allowed describes the values of m in the unit of its column (inColumn) or of the row.
func (m metric) allowed(inColumn bool) string {
	switch {
	case m.max == 0:
		return "a finite number from 0"
	case inColumn:
		return "a number from 0 to 100"
	default:
		return "a number from 0 to 1"
	}
}

// modes and speculations in the order in which they are listed.
var (
	modes        = []api.Mode{api.ModeRoundRobin, api.ModeKV, api.ModeLeastLoaded, api.ModeUnknown}
	speculations = []api.Speculation{
		api.SpeculationOff, api.SpeculationDraft, api.SpeculationEagle3, api.SpeculationNotRecorded,
	}
)

// key is what no two rows of a baseline share.
type key struct {
	concurrency int
	api.ModeState
}

func keyOf(r api.BaselineRow) key {
	return key{r.Concurrency, api.ModeState{Mode: r.Mode, Speculation: r.Speculation}}
}

// compareModes puts round-robin first, then kv, then the rest.
func compareModes(a, b api.ModeState) int {
	return cmp.Or(
		cmp.Compare(slices.Index(modes, a.Mode), slices.Index(modes, b.Mode)),
		cmp.Compare(slices.Index(speculations, a.Speculation), slices.Index(speculations, b.Speculation)),
	)
}

func compareRows(a, b api.BaselineRow) int {
	x, y := keyOf(a), keyOf(b)
	return cmp.Or(cmp.Compare(x.concurrency, y.concurrency), compareModes(x.ModeState, y.ModeState))
}
