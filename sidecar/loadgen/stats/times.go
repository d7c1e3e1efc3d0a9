package stats

import (
	"math"

	"kvbooth/sidecar/api"
)

// turnTime is one of the times of a turn: its figure, and how it is computed.
type turnTime struct {
	*api.Figure
	histogram, summary string // names of its metrics

	of      func(*turn) float64 // nil for inter-token latencies, of which a turn has many
	unknown func(*turn) bool    // whether a whole turn counts as one without a known value
	buckets []float64           // classic ones of its histogram, in seconds
}

// The indexes of [times].
const (
	timeTTFT = iota
	timeTPOT
	timeITL
	timeLatency
	numTimes
)

// times are all of them, in the order of [api.Times].
var times = [numTimes]turnTime{
	timeTTFT: {
		Figure: api.FigureOf("ttft"), histogram: "loadgen_ttft_seconds", summary: "loadgen_ttft_all_seconds",
		of:      func(t *turn) float64 { return t.ttft },
		unknown: firstTokenUnknown, buckets: ttftBuckets,
	},
	timeTPOT: {
		Figure: api.FigureOf("tpot"), histogram: "loadgen_tpot_seconds", summary: "loadgen_tpot_all_seconds",
		of:      func(t *turn) float64 { return t.tpot },
		unknown: (*turn).tpotUnknown, buckets: gapBuckets,
	},
	timeITL: {
		Figure: api.FigureOf("itl"), histogram: "loadgen_itl_seconds", summary: "loadgen_itl_all_seconds",
		unknown: (*turn).tpotUnknown, buckets: gapBuckets,
	},
	timeLatency: {
		Figure: api.FigureOf("latency"), histogram: "loadgen_latency_seconds", summary: "loadgen_latency_all_seconds",
		of:      func(t *turn) float64 { return t.latency },
		unknown: firstTokenUnknown, buckets: latencyBuckets,
	},
}

func firstTokenUnknown(t *turn) bool { return math.IsNaN(t.ttft) }
