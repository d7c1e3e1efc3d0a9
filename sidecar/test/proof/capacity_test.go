//go:build verify

package proof

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/test/montecarlo"
	"kvbooth/sidecar/test/virtual"
)

// cell is a level in a mode.
type cell struct {
	concurrency int
	mode        api.Mode
}

// truths computes on demand the percentiles of long runs, and spans from which searches are drawn.
type truths struct {
	mu    sync.Mutex
	runs  int // long runs per cell, of 3,000 s each
	size  int // spans per cell
	long  map[cell]map[proof.Metric]float64
	pools map[cell][]proof.Recording
}

// of returns TTFT p95 and TPOT p95 of a cell, over all its long runs.
func (w *truths) of(t *testing.T, c cell) map[proof.Metric]float64 {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if found, ok := w.long[c]; ok {
		return found
	}
	var settings []virtual.Setting
	for i := range w.runs {
		settings = append(settings, virtual.Setting{
			Concurrency: c.concurrency, Mode: c.mode, Draws: uint64(i + 70_000), System: uint64(i + 80_000), Ramped: true,
		})
	}
	var ttft, tpot []float64
	for _, r := range spans(t, 3000, settings) {
		for _, turn := range r.Turns {
			if turn.FirstToken() < r.CountedFrom || !turn.OK() {
				continue
			}
			ttft = append(ttft, turn.TTFT)
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
func (w *truths) span(t *testing.T, c cell, place int) proof.Recording {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.pools[c]; !ok {
		var settings []virtual.Setting
		for i := range w.size {
			seed := uint64(c.concurrency*1000 + i)
			s := virtual.Setting{Concurrency: c.concurrency, Mode: c.mode, Draws: seed, System: seed, Ramped: true}
			if c.mode == api.ModeKV {
				s.System += 500
			}
			settings = append(settings, s)
		}
		w.pools[c] = spans(t, 2.4*long(c.concurrency), settings) // a search plans 16 median latencies
	}
	return w.pools[c][place]
}

// crosses returns the lowest concurrency at which a function of the long runs reaches zero from below: by the levels
// of the scan, then by bisection, then by interpolation. It is 0 if the function is positive at the lowest level, and
// infinite if it is positive at none.
func crosses(tested []api.Level, excess func(concurrency int) float64) float64 {
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

// The interval of a capacity search covers the true capacity of either mode, and their true crossing, in at least 95
// of 100 searches: with the recorded SLOs, which round-robin misses at all levels, and with a TTFT that both can
// meet.
func TestCapacityIntervalsCoverTruth(t *testing.T) {
	t.Parallel()
	searches, w := 100, &truths{
		runs: 4, size: 20, long: map[cell]map[proof.Metric]float64{}, pools: map[cell][]proof.Recording{},
	}
	if os.Getenv("BENCH") != "" {
		searches, w.runs, w.size = 200, 12, 60
	}
	montecarlo.Run(t, "capacity search", montecarlo.Each("TTFT p95 of %g s", .6, .7),
		func(t *testing.T, limit float64, r *montecarlo.Results) {
			w.search(t, searches, api.SLO{TTFT: limit, TPOT: .06}, r)
		})
}

func (w *truths) search(t *testing.T, searches int, slo api.SLO, r *montecarlo.Results) {
	t.Helper()
	modes := []api.Mode{api.ModeRoundRobin, api.ModeKV}
	plan := proof.CapacityPlan{
		Levels: api.LevelsOf(60, 90, 120, 150, 180), Resolution: 8, Seconds: 60, MaxTime: 6 * 3600, SLO: slo,
	}
	var truth [3]float64
	for i, mode := range modes {
		plan.Modes = append(plan.Modes, api.ModeState{Mode: mode, Speculation: api.SpeculationNotRecorded})
		truth[i] = crosses(plan.Levels, func(n int) float64 {
			p := w.of(t, cell{n, mode})
			return max(math.Log(p[proof.TTFT95]/slo.TTFT), math.Log(p[proof.TPOT95]/slo.TPOT))
		})
	}
	truth[2] = crosses(plan.Levels, func(n int) float64 {
		return math.Log(w.of(t, cell{n, modes[1]})[proof.TTFT95] / w.of(t, cell{n, modes[0]})[proof.TTFT95])
	})
	var cells [3]*montecarlo.Cell
	for i, name := range []string{"round-robin sustains", "kv sustains", "they cross at"} {
		cells[i] = r.Cell(fmt.Sprintf("%s %.1f", name, truth[i]))
	}
	for i := range searches {
		plan.Seed = uint64(i)
		c, err := proof.NewCapacity(plan)
		require.NoError(t, err)
		used, drawn := 0., map[cell]int{}
		for {
			s, ok := c.Next()
			if !ok {
				break
			}
			at := cell{s.Level.Conversations(), s.Mode.Mode}
			order := rand.New(rand.NewPCG(uint64(i), uint64(s.Level.Value))).Perm(w.size)
			span := cut(t, w.span(t, at, order[drawn[at]]), s)
			drawn[at]++
			used += restart.Seconds() + span.Until
			require.Empty(t, c.Add(proof.Result{Elapsed: restart.Seconds() + span.Until, Recording: span}))
		}
		all := r.Cell("search")
		all.Sample("hours", used/3600)
		all.Sample("spans", float64(len(c.Done)))
		all.Count("ends by its time limit", c.Over() == proof.CapacityTimeOver)
		state := c.State()
		for j, m := range state.Modes {
			cells[j].Search(m.Level, m.Interval, m.Above, truth[j])
		}
		require.NotNil(t, state.Crossing)
		cells[2].Search(state.Crossing.Level, state.Crossing.Interval, state.Crossing.Above, truth[2])
	}
	for _, c := range cells {
		c.AtLeast(t, montecarlo.Covers, searches*95/100)
	}
}
