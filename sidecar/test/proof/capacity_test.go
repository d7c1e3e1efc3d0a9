//go:build verify

package proof

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// cell is a level in a mode.
type cell struct {
	concurrency int
	mode        api.Mode
}

// truths computes on demand the percentiles of long runs, and spans from which searches are drawn.
type truths struct {
	t     *testing.T
	runs  int // long runs per cell, of 3,000 s each
	size  int // spans per cell
	long  map[cell]map[proof.Metric]float64
	pools map[cell][]proof.Recording
}

// of returns TTFT p95 and TPOT p95 of a cell, over all its long runs.
func (w *truths) of(c cell) map[proof.Metric]float64 {
	if found, ok := w.long[c]; ok {
		return found
	}
	var settings []setting
	for i := range w.runs {
		settings = append(settings,
			setting{concurrency: c.concurrency, mode: c.mode, draws: uint64(i + 70_000), system: uint64(i + 80_000)})
	}
	var ttft, tpot []float64
	for _, r := range spans(w.t, 3000, settings) {
		for _, turn := range r.Turns {
			if turn.FirstToken < r.CountedFrom || turn.Ended == 0 {
				continue
			}
			ttft = append(ttft, turn.FirstToken-turn.Sent)
			if turn.TPOT > 0 {
				tpot = append(tpot, turn.TPOT)
			}
		}
	}
	slices.Sort(ttft)
	slices.Sort(tpot)
	found := map[proof.Metric]float64{proof.TTFT95: ttft[len(ttft)*95/100], proof.TPOT95: tpot[len(tpot)*95/100]}
	w.long[c] = found
	return found
}

// span returns a span of a cell's pool. Spans at one place have the same conversations in all modes.
func (w *truths) span(c cell, place int) proof.Recording {
	if _, ok := w.pools[c]; !ok {
		var settings []setting
		for i := range w.size {
			s := setting{
				concurrency: c.concurrency, mode: c.mode, draws: uint64(c.concurrency*1000 + i),
				system: uint64(c.concurrency*1000 + i),
			}
			if c.mode == api.ModeKV {
				s.system += 500
			}
			settings = append(settings, s)
		}
		w.pools[c] = spans(w.t, 2.4*long(c.concurrency), settings) // a search plans 16 median latencies
	}
	return w.pools[c][place]
}

// crosses returns the lowest concurrency at which a function of the long runs reaches zero from below: by the levels
// of the scan, then by bisection, then by interpolation. It is 0 if the function is positive at the lowest level, and
// infinite if it is positive at none.
func (w *truths) crosses(tested []api.Level, excess func(concurrency int) float64) float64 {
	var levels []int
	for _, level := range tested {
		levels = append(levels, level.Conversations())
	}
	first := slices.IndexFunc(levels, func(n int) bool { return excess(n) > 0 })
	switch first {
	case 0:
		return 0
	case -1:
		return math.Inf(1)
	}
	low, high := levels[first-1], levels[first]
	for high-low > 4 {
		if middle := (low + high) / 2; excess(middle) > 0 {
			high = middle
		} else {
			low = middle
		}
	}
	return float64(low) + float64(high-low)*excess(low)/(excess(low)-excess(high))
}

// sought collects the results of many searches for one question.
type sought struct {
	truth     float64
	held      int // intervals that cover the truth
	open      int // intervals without an upper end
	estimates []float64
	widths    []float64
}

func (s *sought) take(level *api.Level, interval *[2]api.Level, above bool) {
	in := *interval
	if in[0].Value <= s.truth && (above || s.truth <= in[1].Value) {
		s.held++
	}
	if above {
		s.open++
	}
	if level != nil {
		s.estimates = append(s.estimates, level.Value)
	}
	s.widths = append(s.widths, in[1].Value-in[0].Value)
}

func (s *sought) String() string {
	return fmt.Sprintf("truly %.1f: held by %d of %d (%d open above), estimates %.0f to %.0f (nine of ten), width "+
		"%.0f (median)",
		s.truth, s.held, len(s.widths), s.open,
		quantile(s.estimates, .05), quantile(s.estimates, .95), quantile(s.widths, .5))
}

func quantile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	values = slices.Clone(values)
	slices.Sort(values)
	return values[int(p*float64(len(values)-1)+.5)]
}

// The interval of a capacity search covers the true capacity of either mode, and their true crossing, in at least 95
// of 100 searches: with the recorded SLOs, which round-robin misses at all levels, and with a TTFT that both can
// meet.
func TestCapacityIntervalsCoverTruth(t *testing.T) {
	t.Parallel()
	searches, w := 100, &truths{
		t: t, runs: 4, size: 20, long: map[cell]map[proof.Metric]float64{}, pools: map[cell][]proof.Recording{},
	}
	if os.Getenv("BENCH") != "" {
		searches, w.runs, w.size = 200, 12, 60
	}
	for _, ttft := range []float64{.6, .7} {
		t.Run(fmt.Sprintf("%.0f ms", 1000*ttft), func(t *testing.T) {
			w.t = t
			w.search(t, searches, api.SLO{TTFT: ttft, TPOT: .06})
		})
	}
}

func (w *truths) search(t *testing.T, searches int, slo api.SLO) {
	t.Helper()
	modes := []api.Mode{api.ModeRoundRobin, api.ModeKV}
	var of [3]sought
	plan := proof.CapacityPlan{
		Levels: api.LevelsOf(60, 90, 120, 150, 180), Resolution: 8, Seconds: 60, MaxTime: 6 * 3600,
		SLO: api.SLO{TTFT: .6, TPOT: .06}, Seed: 1,
	}
	for i, mode := range modes {
		plan.Modes = append(plan.Modes, api.ModeState{Mode: mode, Speculation: api.SpeculationNotRecorded})
		of[i].truth = w.crosses(plan.Levels, func(n int) float64 {
			p := w.of(cell{n, mode})
			return max(math.Log(p[proof.TTFT95]/slo.TTFT), math.Log(p[proof.TPOT95]/slo.TPOT))
		})
	}
	of[2].truth = w.crosses(plan.Levels, func(n int) float64 {
		return math.Log(w.of(cell{n, modes[1]})[proof.TTFT95] / w.of(cell{n, modes[0]})[proof.TTFT95])
	})
	plan.SLO = slo
	var hours, lengths []float64
	ends := map[proof.CapacityEnd]int{}
	for i := range searches {
		plan.Seed = uint64(i)
		c, err := proof.NewCapacity(plan)
		require.NoError(t, err)
		used := 0.
		drawn := map[cell]int{}
		for {
			s, ok := c.Next()
			if !ok {
				break
			}
			at := cell{s.Level.Conversations(), s.Mode.Mode}
			order := rand.New(rand.NewPCG(uint64(i), uint64(s.Level.Value))).Perm(w.size)
			r := cut(t, w.span(at, order[drawn[at]]), s)
			drawn[at]++
			used += restart.Seconds() + r.Until
			require.Empty(t, c.Add(proof.Result{Elapsed: restart.Seconds() + r.Until, Recording: r}))
		}
		ends[c.Over()]++
		hours, lengths = append(hours, used/3600), append(lengths, float64(len(c.Done)))
		state := c.State()
		for j, m := range state.Modes {
			of[j].take(m.Level, m.Interval, m.Above)
		}
		require.NotNil(t, state.Crossing)
		of[2].take(state.Crossing.Level, state.Crossing.Interval, state.Crossing.Above)
	}
	for i, name := range []string{"round-robin sustains", "kv sustains", "they cross at"} {
		figure.Report(t, "capacity search, TTFT p95 of %.0f ms, %s, %v", 1000*slo.TTFT, name, &of[i])
		assert.GreaterOrEqual(t, of[i].held, searches*95/100, name)
	}
	t.Logf("%.0f spans, %.1f hours (median; nine of ten by %.1f); %v", quantile(lengths, .5), quantile(hours, .5),
		quantile(hours, .9), ends)
}
