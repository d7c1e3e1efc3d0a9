//go:build verify

package proof

import (
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

const (
	window  = 300. // seconds: what the specification measures of a level
	settled = 600. // from when on a run is looked at
	several = 5    // runs of one setting
)

// judged is what is judged.
var judged = []proof.Metric{proof.TTFT50, proof.TTFT95, proof.Throughput, proof.HitRate}

// The 95 % intervals of one run of 300 s hold the truth between 93 and 97 times in 100. The truth
// is what all runs of the setting say together.
func TestIntervals(t *testing.T) {
	t.Parallel()
	// Of a run: 960 in all, of which a share of 95 % is known to .7 points, so that an honest
	// one hardly leaves the bounds by chance. With half as many, one of twenty does.
	windows := 48
	if os.Getenv("BENCH") != "" {
		windows = 200
	}
	held, n := map[proof.Metric]int{}, 0
	for _, concurrency := range []int{60, 120} {
		for _, mode := range []api.Mode{api.ModeKV, api.ModeRoundRobin} {
			of := coverage(t, concurrency, mode, windows)
			n += several * windows
			for _, m := range judged {
				held[m] += of[m]
				t.Logf("%3d %-11s %s %.1f %%", concurrency, mode, m, share(of[m], several*windows))
			}
		}
	}
	for _, m := range judged {
		figure.Report(t, "95 %% intervals of one run hold the true %s in %.1f %% of %d", m, share(held[m], n), n)
		assert.InDelta(t, 95, share(held[m], n), 2, m)
	}
}

func share(part, whole int) float64 { return 100 * float64(part) / float64(whole) }

// coverage counts the windows of several runs whose intervals hold the truth.
func coverage(t *testing.T, concurrency int, mode api.Mode, windows int) map[proof.Metric]int {
	t.Helper()
	var settings []setting
	for i := range uint64(several) {
		settings = append(settings, setting{concurrency: concurrency, mode: mode, draws: i + 1, system: i + 500, together: true})
	}
	runs := spans(t, settled+float64(windows)*window, settings)
	truth, held := wholes(t, runs), map[proof.Metric]int{}
	for _, r := range runs {
		for i := range windows {
			part := between(r, settled+float64(i)*window)
			row, err := part.Row(0, api.SLO{TTFT: .6, TPOT: .06})
			require.NoError(t, err)
			for _, m := range judged {
				in := proof.Quantity(m).IntervalOf(&row)
				if in != nil && in[0] <= truth[m] && truth[m] <= in[1] {
					held[m]++
				}
			}
		}
	}
	return held
}

// between is a window of a run.
func between(r proof.Recording, from float64) proof.Recording {
	at := func(when float64) int {
		i, _ := slices.BinarySearchFunc(r.Turns, when, func(t proof.Turn, when float64) int { return int(math.Copysign(1, t.FirstToken-when)) })
		return i
	}
	// Turns that end in it had their first token no more than some minutes before.
	return proof.Recording{CountedFrom: from, Until: from + window, Turns: r.Turns[at(from-300):at(from+window)], Tokens: r.Tokens}
}

// wholes are the metrics of all runs together, of what lies behind the settling.
func wholes(t *testing.T, runs []proof.Recording) map[proof.Metric]float64 {
	t.Helper()
	var ttft []float64
	var tokens, seconds, prompt, cached float64
	for _, r := range runs {
		for _, turn := range r.Turns {
			if turn.FirstToken >= settled {
				ttft = append(ttft, turn.FirstToken-turn.Sent)
				prompt += float64(turn.PromptTokens)
				cached += float64(turn.CachedTokens)
			}
		}
		for _, n := range r.Tokens[int(settled):] {
			tokens += n
			seconds++
		}
	}
	slices.Sort(ttft)
	return map[proof.Metric]float64{
		proof.TTFT50: ttft[len(ttft)/2], proof.TTFT95: ttft[len(ttft)*95/100],
		proof.Throughput: tokens / seconds, proof.HitRate: cached / prompt,
	}
}
