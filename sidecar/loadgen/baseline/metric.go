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
	max    float64 // of the row's value
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
		{"tops", "output_tokens_per_second", 0, maxCount, func(r *api.BaselineRow) **float64 { return &r.OutputTokensPerSecond }},
		{"kv_hit_rate_pct", "kv_hit_ratio", -2, 1, func(r *api.BaselineRow) **float64 { return &r.KVHitRatio }},
		{"rps", "requests_per_second", 0, maxCount, func(r *api.BaselineRow) **float64 { return &r.RequestsPerSecond }},
		{"error_rate_pct", "error_ratio", -2, 1, func(r *api.BaselineRow) **float64 { return &r.ErrorRatio }},
		clusterFigure("queue_ms", "queue_seconds", -3,
			func(c *api.ClusterFigures) **float64 { return &c.QueueSeconds }),
		clusterFigure("queue_max_ms", "queue_largest", -3,
			func(c *api.ClusterFigures) **float64 { return &c.QueueLargest }),
		clusterFigure("queue_second_ms", "queue_second", -3,
			func(c *api.ClusterFigures) **float64 { return &c.QueueSecond }),
		clusterFigure("queue_least_ms", "queue_least", -3,
			func(c *api.ClusterFigures) **float64 { return &c.QueueLeast }),
		clusterFigure("queue_skew", "queue_skew", 0, func(c *api.ClusterFigures) **float64 { return &c.QueueSkew }),
		clusterFigure("waiting", "waiting", 0, func(c *api.ClusterFigures) **float64 { return &c.Waiting }),
		clusterFigure("engine_ttft_p95_ms", "engine_ttft_seconds", -3,
			func(c *api.ClusterFigures) **float64 { return &c.EngineTTFT }),
		clusterFigure("engine_ttft_max_ms", "engine_ttft_largest", -3,
			func(c *api.ClusterFigures) **float64 { return &c.EngineTTFTLargest }),
		clusterFigure("inflight_max", "inflight_largest", 0,
			func(c *api.ClusterFigures) **float64 { return &c.InflightLargest }),
		clusterFigure("inflight_spread", "inflight_spread", 0,
			func(c *api.ClusterFigures) **float64 { return &c.InflightSpread }),
		clusterFigure("inflight_spread_min", "inflight_spread_min", 0,
			func(c *api.ClusterFigures) **float64 { return &c.InflightSpreadMin }),
		clusterFigure("inflight_spread_max", "inflight_spread_max", 0,
			func(c *api.ClusterFigures) **float64 { return &c.InflightSpreadMax }),
		clusterFigure("inflight_skew", "inflight_skew", 0,
			func(c *api.ClusterFigures) **float64 { return &c.InflightSkew }),
		{"acceptance_rate_pct", "acceptance_rate", -2, 1, func(r *api.BaselineRow) **float64 { return &r.AcceptanceRate }},
		{"tokens_per_step", "tokens_per_step", 0, maxCount, func(r *api.BaselineRow) **float64 { return &r.TokensPerStep }},
		{"gpu_memory_bytes", "gpu_memory_bytes", 0, maxMemory, func(r *api.BaselineRow) **float64 { return &r.GPUMemoryBytes }},
	},
)

// clusterFigure is a time where the column is in milliseconds, else a count or a ratio.
func clusterFigure(column, path string, shift int, of func(*api.ClusterFigures) **float64) metric {
	limit := float64(maxCount)
	if shift != 0 {
		limit = maxSeconds
	}
	return metric{column, path, shift, limit, func(r *api.BaselineRow) **float64 { return of(&r.ClusterFigures) }}
}

// pair gives the p50 and p95 of one latency.
func pair(column, path string, of func(*api.BaselineRow) *api.Percentiles) []metric {
	return []metric{
		{column + "_p50_ms", path + ".p50", -3, maxSeconds, func(r *api.BaselineRow) **float64 { return &of(r).P50 }},
		{column + "_p95_ms", path + ".p95", -3, maxSeconds, func(r *api.BaselineRow) **float64 { return &of(r).P95 }},
	}
}

// disordered gives the first p95 of a row that is below its median; nil: none is.
func disordered(r *api.BaselineRow) (p95 *metric, median float64) {
	for i := range metrics[1:] { // those of a pair follow each other
		low, high := metrics[i], &metrics[i+1]
		if strings.HasSuffix(low.path, ".p50") && *low.of(r) != nil && *high.of(r) != nil && **high.of(r) < **low.of(r) {
			return high, **low.of(r)
		}
	}
	return nil, 0
}

// field is the metric's name in a row's list of values by another definition.
func (m metric) field() string { return strings.ReplaceAll(m.path, ".", "_") }

// allowed describes the values of m in the unit of its column (inColumn) or of the row.
func (m metric) allowed(inColumn bool) string {
	if inColumn {
		return "a number from 0 to " + formatShifted(m.max, m.shift)
	}
	return "a number from 0 to " + formatShifted(m.max, 0)
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
