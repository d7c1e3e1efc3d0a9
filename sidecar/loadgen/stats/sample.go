package stats

import (
	"cmp"
	"math"
	"slices"
	"time"

	"kvbooth/sidecar/api"
)

// Gap is the time between two content chunks, shared by the tokens of the later one:
// Seconds per token, and the number of tokens.
type Gap struct {
	Seconds float64 `json:"s,omitempty"`
	Tokens  float64 `json:"n"`
}

// valid reports whether the gap is possible.
func (g Gap) valid() bool { return defined(g.Seconds) && defined(g.Tokens) && g.Tokens > 0 }

// Sample is an ended turn. TTFT, TPOT and Latency are seconds, NaN where undefined. ITL is
// read by Add and not kept.
type Sample struct {
	Ended   time.Time
	Turn    int // from 1
	Step    int64
	Counted bool // the turn ended in a settled step, after all turns that began before the step had settled
	Status  api.TurnStatus
	Class   api.ErrorClass // of a failed turn

	TTFT, TPOT, Latency float64
	FirstAnswer         float64 // time to the first token after the reasoning; 0 without reasoning
	ITL                 []Gap
	Chunks              int  // content chunks; 0: one more than there are gaps
	ITLEstimated        bool // the chunks did not report their tokens

	// Tokens, 0 where unknown. CachedTokens is valid only with HasCached.
	PromptTokens, CachedTokens, OutputTokens int
	HasCached                                bool
	OutputEstimated                          bool // the server did not report output tokens: the number is that of chunks
}

// meets reports whether the turn is good: whole, and within both objectives. A value equal to
// the objective meets it. An answer of one token needs no TPOT; an unknown TPOT meets nothing.
func (s *Sample) meets(slo api.SLO) bool {
	meetsTPOT := s.TPOT <= slo.TPOT || math.IsNaN(s.TPOT) && !s.tpotUnknown()
	return s.Status == api.TurnOK && s.TTFT <= slo.TTFT && meetsTPOT
}

// tpotUnknown reports whether the turn's TPOT could not be measured: its tokens came in bursts,
// or in one chunk that may hold any number of them.
func (s *Sample) tpotUnknown() bool {
	return math.IsNaN(s.TPOT) && (s.OutputTokens > 1 || s.OutputEstimated)
}

// turnLabels number the turns of a conversation in metrics and on screens.
var turnLabels = [...]string{"1", "2", "3", "4", "5", "6+"}

// turnIndex returns the index of a turn in turnLabels.
func turnIndex(turn int) int { return min(max(turn, 1), len(turnLabels)) - 1 }

// defined reports whether a duration is valid: not NaN, infinite or negative.
func defined(seconds float64) bool { return seconds >= 0 && !math.IsInf(seconds, 1) }

// Compact converts gaps to the number of tokens by inter-token latency, ascending. Each latency
// is the middle of its bucket, at most 0.4 % from the original. A window has the same buckets
// with the result as with the gaps themselves. Impossible gaps are left out.
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

// GapPercentiles returns the p50 and p95 of one turn's inter-token latency over its tokens, by
// nearest rank; NaN without gaps. It sorts the gaps.
func GapPercentiles(gaps []Gap) (p50, p95 float64) {
	slices.SortFunc(gaps, func(a, b Gap) int { return cmp.Compare(a.Seconds, b.Seconds) })
	total := 0.0
	for _, g := range gaps {
		total += g.Tokens
	}
	return weightedRank(gaps, .5*total), weightedRank(gaps, .95*total)
}

// weightedRank returns the first of the sorted gaps at which the tokens reach rank.
func weightedRank(sorted []Gap, rank float64) float64 {
	value := math.NaN()
	below := 0.0
	for _, g := range sorted {
		value = g.Seconds
		below += g.Tokens
		if below >= rank {
			break
		}
	}
	return value
}
