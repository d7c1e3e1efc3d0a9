package stats

import (
	"cmp"
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
)

// Gap is the time between two content chunks, shared by the tokens of the later
// one: Seconds per token, Tokens of them.
type Gap struct {
	Seconds float64 `json:"s,omitempty"`
	Tokens  float64 `json:"n"`
}

// valid leaves out what no clock and no server can mean.
func (g Gap) valid() bool { return defined(g.Seconds) && defined(g.Tokens) && g.Tokens > 0 }

// Sample is one ended turn. TTFT, TPOT and Latency are seconds, NaN where they
// are undefined. ITL is read while it is added and not kept.
type Sample struct {
	Ended   time.Time
	Turn    int // from 1
	Step    int64
	Counted bool // ended in a settled step, after all turns that had begun before it settled
	Status  api.TurnStatus
	Class   api.ErrorClass // of a failed turn

	TTFT, TPOT, Latency float64
	FirstAnswer         float64 // time to the first token after the reasoning; 0 where there was no reasoning
	ITL                 []Gap
	Chunks              int  // content chunks; 0: one more than there are gaps
	ITLEstimated        bool // the chunks did not tell their tokens

	// Tokens, 0 where not known. CachedTokens counts only with HasCached.
	PromptTokens, CachedTokens, OutputTokens int
	HasCached                                bool
	OutputEstimated                          bool // the server did not count the output tokens: they are the chunks
}

// meets reports whether the turn is good: whole, and within both objectives. A threshold itself is
// met. An answer of one token has no TPOT and needs none; an unknown TPOT meets nothing.
func (s *Sample) meets(slo api.SLO) bool {
	return s.Status == api.TurnOK && s.TTFT <= slo.TTFT && (s.TPOT <= slo.TPOT || math.IsNaN(s.TPOT) && !s.tpotUnknown())
}

// tpotUnknown reports whether the turn has a TPOT that could not be measured: its tokens came in
// bursts, or in one chunk that may hold any number of them.
func (s *Sample) tpotUnknown() bool {
	return math.IsNaN(s.TPOT) && (s.OutputTokens > 1 || s.OutputEstimated)
}

// turnLabels number the turns of a conversation as metrics and screens do.
var turnLabels = [...]string{"1", "2", "3", "4", "5", "6+"}

// turnIndex is the place of a turn among the turnLabels.
func turnIndex(turn int) int { return min(max(turn, 1), len(turnLabels)) - 1 }

// defined says whether a duration is one: not NaN, infinite or negative.
func defined(seconds float64) bool { return seconds >= 0 && !math.IsInf(seconds, 1) }

// Compact gives gaps as how many tokens had which inter-token latency: each is that of the
// middle of its bucket, at most 0.4 % from what it was, ascending. A window that is given these
// has the same buckets as one that is given the gaps themselves. What no clock and no server can mean is left
// out.
func Compact(gaps []Gap) []Gap {
	var b buckets
	b.addGaps(&Sample{ITL: gaps})
	var all []Gap
	if b.zero > 0 {
		all = append(all, Gap{Tokens: b.zero})
	}
	for o, parts := range b.octave {
		if parts == nil {
			continue
		}
		for i, tokens := range parts {
			if tokens > 0 {
				all = append(all, Gap{Seconds: middle(o, i), Tokens: tokens})
			}
		}
	}
	return all
}

// GapPercentiles are the p50 and p95 of one turn's inter-token latency over its
// tokens, by nearest rank; NaN where there is no gap. It sorts the gaps.
func GapPercentiles(gaps []Gap) (p50, p95 float64) {
	slices.SortFunc(gaps, func(a, b Gap) int { return cmp.Compare(a.Seconds, b.Seconds) })
	total := 0.0
	for _, g := range gaps {
		total += g.Tokens
	}
	return weightedRank(gaps, .5*total), weightedRank(gaps, .95*total)
}

// weightedRank is the first of the sorted gaps at which the tokens reach rank.
func weightedRank(sorted []Gap, rank float64) float64 {
	value, below := math.NaN(), 0.0
	for _, g := range sorted {
		value, below = g.Seconds, below+g.Tokens
		if below >= rank {
			break
		}
	}
	return value
}
