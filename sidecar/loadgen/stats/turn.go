package stats

import (
	"math"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// turn is the part of an ended turn that figures are computed from. A window keeps thousands of them, so that it has no
// pointers to values and no texts. Times are seconds, NaN where they are unknown.
type turn struct {
	ended  time.Duration // since the window's start
	number int           // from 1
	step   int64
	status api.TurnStatus
	class  api.ErrorClass // of a failed turn

	ttft, tpot, latency float64
	firstAnswer         float64 // 0 without reasoning

	// Tokens, 0 where unknown. cachedTokens is valid only with hasCached.
	promptTokens, cachedTokens, outputTokens int

	hasCached       bool
	inBursts        bool
	outputEstimated bool // the server did not report output tokens: the number is that of chunks
	counted         bool
}

// newTurn returns the part of a turn that ended at a time since the start.
func newTurn(t *api.Turn, ended time.Duration) turn {
	one := turn{
		ended: ended, number: t.Number, step: t.Step, status: t.Status, class: t.ErrorClass,
		ttft: orNaN(t.TTFT), tpot: orNaN(t.TPOT), latency: orNaN(t.Latency),
		hasCached: t.CachedTokens != nil, inBursts: t.InBursts,
		outputEstimated: t.TokenSource == "chunks", counted: t.Counted,
	}
	api.Patch(&one.firstAnswer, t.FirstAnswer)
	api.Patch(&one.promptTokens, t.PromptTokens)
	api.Patch(&one.cachedTokens, t.CachedTokens)
	api.Patch(&one.outputTokens, t.OutputTokens)
	return one
}

// meets reports whether the turn is good: whole, and within both objectives. A value equal to
// the objective meets it. An answer of one token needs no TPOT; an unknown TPOT meets nothing.
func (t *turn) meets(slo api.SLO) bool {
	meetsTPOT := t.tpot <= slo.TPOT || math.IsNaN(t.tpot) && !t.tpotUnknown()
	return t.status == api.TurnOK && t.ttft <= slo.TTFT && meetsTPOT
}

// tpotUnknown reports whether the turn's TPOT could not be measured: its tokens came in bursts,
// or in one chunk that may hold any number of them.
func (t *turn) tpotUnknown() bool {
	return math.IsNaN(t.tpot) && (t.outputTokens > 1 || t.outputEstimated)
}

// turnLabels number the turns of a conversation in metrics and on screens.
var turnLabels = [...]string{"1", "2", "3", "4", "5", "6+"}

func turnIndex(turn int) int { return min(max(turn, 1), len(turnLabels)) - 1 }

// defined reports whether a duration is valid: not NaN, infinite or negative.
func defined(seconds float64) bool { return seconds >= 0 && !math.IsInf(seconds, 1) }

func possible(g chat.Gap) bool { return defined(g.Seconds) && defined(g.Tokens) && g.Tokens > 0 }

// Compact converts gaps to the number of tokens by inter-token latency, ascending. Each latency
// is the middle of its bucket, at most 0.4 % from the original. A window has the same buckets
// with the result as with the gaps themselves. Impossible gaps are left out.
func Compact(gaps []chat.Gap) []chat.Gap {
	var b buckets
	b.addGaps(gaps, false)
	var all []chat.Gap
	if b.zero > 0 {
		all = append(all, chat.Gap{Tokens: b.zero})
	}
	for o, parts := range b.octave {
		if parts == nil {
			continue
		}
		for i, tokens := range parts {
			if tokens > 0 {
				all = append(all, chat.Gap{Seconds: middle(o, i), Tokens: tokens})
			}
		}
	}
	return all
}

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
