//go:build verify

package proof

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

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

// The 95 % intervals of one run of 300 s, and of six repeats, hold the truth between 93 and
// 97 times in 100. The truth is what all runs of the setting say together.
func TestIntervals(t *testing.T) {
	t.Parallel()
	// Of a run: 960 in all, of which a share of 95 % is known to .7 points, so that an honest
	// one hardly leaves the bounds by chance. With half as many, one of twenty does.
	windows := 48
	if os.Getenv("BENCH") != "" {
		windows = 200
	}
	one, six, n, sixes := map[proof.Metric]int{}, map[proof.Metric]int{}, 0, 0
	for _, concurrency := range []int{60, 120} {
		for _, mode := range []api.Mode{api.ModeKV, api.ModeRoundRobin} {
			c := judge(t, concurrency, mode, windows)
			line := fmt.Sprintf("%3d %-11s", concurrency, mode)
			for _, m := range judged {
				one[m] += c.one[m]
				six[m] += c.six[m]
				line += fmt.Sprintf(" | %s %.1f %%, repeats %.1f %%", m, share(c.one[m], c.n), share(c.six[m], c.sixes))
			}
			n, sixes = n+c.n, sixes+c.sixes
			t.Log(line)
		}
	}
	for _, m := range judged {
		t.Logf("%-24s one run %.1f %% of %d, six repeats %.1f %% of %d", m, share(one[m], n), n, share(six[m], sixes), sixes)
		assert.InDelta(t, 95, share(one[m], n), 2, m)
	}
}

func share(part, whole int) float64 { return 100 * float64(part) / float64(whole) }

// coverage counts the intervals that hold the truth.
type coverage struct {
	one, six map[proof.Metric]int
	n, sixes int
}

func judge(t *testing.T, concurrency int, mode api.Mode, windows int) coverage {
	t.Helper()
	c := coverage{one: map[proof.Metric]int{}, six: map[proof.Metric]int{}}
	runs := make([]proof.Recording, several)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range runs {
		group.Go(func() (err error) {
			runs[i], err = span(setting{concurrency: concurrency, mode: mode, draws: uint64(i + 1), system: uint64(i + 500), together: true}, settled+float64(windows)*window)
			return err
		})
	}
	require.NoError(t, group.Wait())
	truth := wholes(t, runs)
	slo := api.SLO{TTFT: .6, TPOT: .06}
	holds := func(all []proof.Estimate, err error, count map[proof.Metric]int) {
		require.NoError(t, err)
		for _, e := range all {
			if e.Interval[0] <= truth[e.Metric] && truth[e.Metric] <= e.Interval[1] {
				count[e.Metric]++
			}
		}
	}
	var parts []proof.Recording
	for _, r := range runs {
		for i := range windows {
			part := between(r, settled+float64(i)*window)
			all, err := proof.Describe(part, slo)
			holds(all, err, c.one)
			c.n++
			parts = append(parts, part)
		}
	}
	for i := 0; i+6 <= len(parts); i += 6 {
		// Six that lie far apart.
		var repeats []proof.Recording
		for j := range 6 {
			repeats = append(repeats, parts[(i/6+j*len(parts)/6)%len(parts)])
		}
		all, err := proof.Repeats(repeats, slo)
		holds(all, err, c.six)
		c.sixes++
	}
	return c
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
