package stats

import (
	"math"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/workload"
)

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
	of      func(*workload.Outcome) float64 // nil for inter-token latencies, of which a turn has many
	unknown func(*workload.Outcome) bool    // whether a whole turn counts as one without a known value
	buckets []float64                       // classic ones of its histogram, in seconds
}

// times are all of them, in the order of [api.Times].
var times = func() (all [api.NumTimes]turnTime) {
	for i, f := range api.Times {
		all[i] = turnTime{Figure: f, buckets: latencyBuckets}
		all[i].of, all[i].unknown = workload.TimeOf(f)
		switch i {
		case api.TimeTTFT:
			all[i].buckets = ttftBuckets
		case api.TimeTPOT, api.TimeITL:
			all[i].buckets = gapBuckets
		}
	}
	return all
}()

// histogram and summary return the names of the metrics.
func (t *turnTime) histogram() string { return "loadgen_" + t.Metric }
func (t *turnTime) summary() string   { return "loadgen_" + t.Key + "_all_seconds" }
