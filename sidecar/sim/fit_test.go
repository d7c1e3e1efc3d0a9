package sim_test

import (
	"encoding/csv"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"
)

// result is the entry of a recorded table for one concurrency and mode. NaN means not recorded.
type result struct {
	p50, p95 float64 // of TTFT, milliseconds
	tokens   float64 // per second
	gap      float64 // milliseconds, median of the turns' means: TPOT
	hit      float64 // percent
}

type level struct {
	concurrency int
	mode        api.Mode
}

var bothModes = []api.Mode{api.ModeRoundRobin, api.ModeKV}

// recorded reads the baseline of a profile.
func recorded(t testing.TB, p sim.Profile) map[level]result {
	t.Helper()
	data, err := os.ReadFile("../loadgen/baseline/data/" + p.Baseline + ".csv")
	require.NoError(t, err)
	reader := csv.NewReader(strings.NewReader(string(data)))
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	require.NoError(t, err)
	table := map[level]result{}
	for _, row := range rows[1:] {
		value := func(column string) float64 {
			text := row[slices.Index(rows[0], column)]
			if text == "" {
				return math.NaN()
			}
			v, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err, column)
			return v
		}
		table[level{int(value("concurrency")), api.Mode(row[1])}] = result{
			p50: value("ttft_p50_ms"), p95: value("ttft_p95_ms"), tokens: value("tops"),
			gap: value("itl_p50_ms"), hit: value("kv_hit_rate_pct"),
		}
	}
	return table
}

// simulated runs a sweep over levels of the recorded workload and evaluates it like the recorded one.
func simulated(t testing.TB, p sim.Profile, levels []int, seeds int) map[level]result {
	t.Helper()
	g := study.Grid{
		Cluster: sim.DefaultOptions(p), Workload: closedloop.Recorded(),
		Levels: levels, Modes: bothModes, Sweep: true,
	}
	for seed := range seeds {
		g.Seeds = append(g.Seeds, uint64(seed)+1)
	}
	points, err := g.Run(t.Context(), runtime.GOMAXPROCS(0), nil)
	require.NoError(t, err)
	table := map[level]result{}
	for _, point := range points {
		f := point.Mean()
		table[level{point.Concurrency, point.Mode}] = result{
			p50: 1000 * f.TTFT50, p95: 1000 * f.TTFT95, tokens: f.TokensPerSecond, gap: 1000 * f.TPOT50, hit: 100 * f.Hit,
		}
	}
	return table
}

// errors are mean absolute errors over some levels, in percent; for the hit rate in percentage points.
type errors struct {
	p50, p95, tokens, gap, hit float64
}

// middle returns the error over TTFT p50, throughput and TPOT. Throughput times TPOT is about the concurrency, so
// these two count as one.
func (e errors) middle() float64 { return (e.p50 + (e.tokens+e.gap)/2) / 2 }

func compare(got, want map[level]result, over []level) (e errors) {
	n := float64(len(over))
	off := func(got, want float64) float64 { return 100 * math.Abs(got/want-1) / n }
	for _, at := range over {
		g, w := got[at], want[at]
		e.p50 += off(g.p50, w.p50)
		e.p95 += off(g.p95, w.p95)
		e.tokens += off(g.tokens, w.tokens)
		e.gap += off(g.gap, w.gap)
		e.hit += math.Abs(g.hit-w.hit) / n
	}
	return e
}

// every combines levels with both modes.
func every(levels ...int) (all []level) {
	for _, mode := range bothModes {
		for _, concurrency := range levels {
			all = append(all, level{concurrency, mode})
		}
	}
	return all
}

// TestSimulationMatchesRecordedTable compares the H200 profile with its recorded table at some levels.
// docs/calibration.md has the errors over the whole table and over that of the H100; sidecar/test/calibration checks
// them.
func TestSimulationMatchesRecordedTable(t *testing.T) {
	got, want := simulated(t, sim.H200(), []int{50, 60, 80, 120, 160}, 3), recorded(t, sim.H200())
	e := compare(got, want, every(60, 80, 120, 160))
	t.Logf("mean errors: %.1f %% (TTFT p50 %.1f, throughput %.1f, TPOT %.1f), TTFT p95 %.1f %%, hit rate %.1f points",
		e.middle(), e.p50, e.tokens, e.gap, e.p95, e.hit)
	assert.Less(t, e.middle(), 3.5)
	assert.Less(t, e.p95, 8.0, "of three seeds")
	assert.Less(t, e.hit, 3.5)
	// At 60, TTFT p95 exceeds the objective of 600 ms under round-robin and is below nine tenths of it under kv.
	assert.Greater(t, got[level{60, api.ModeRoundRobin}].p95, 600.0)
	assert.Less(t, got[level{60, api.ModeKV}].p95, 540.0)
}

// loop runs the recorded workload with a change and evaluates it after two and a half minutes.
func loop(t *testing.T, at level, seconds int, change func(*sim.Options, *closedloop.Workload)) closedloop.Figures {
	t.Helper()
	o, w := sim.DefaultOptions(sim.H200()), closedloop.Recorded()
	o.Mode, o.Seed, w.Concurrency = at.mode, 1, at.concurrency
	if change != nil {
		change(&o, &w)
	}
	l, err := closedloop.New(o, w)
	require.NoError(t, err)
	require.NoError(t, l.Run(duration(seconds)))
	return l.Between(duration(150), duration(seconds))
}

func duration(seconds int) time.Duration { return time.Duration(seconds) * time.Second }

// TestBatchPlacesLimitHighLoad checks that the collapse at 180 under kv depends on the places in the batch, and not
// on the overlap weight.
func TestBatchPlacesLimitHighLoad(t *testing.T) {
	for _, row := range []struct {
		intent    string
		change    func(*sim.Options)
		low, high float64 // of TTFT p95, seconds
	}{
		{"unchanged", func(*sim.Options) {}, 1.5, 10},
		{"twice the batch size", func(o *sim.Options) { o.Profile.MaxSequences = 128 }, .4, 1},
		{"load alone", func(o *sim.Options) { o.OverlapWeight = 0 }, 1.5, 20},
		{"by number of requests", func(o *sim.Options) { o.Mode = api.ModeLeastLoaded }, .3, 1.1},
	} {
		t.Run(row.intent, func(t *testing.T) {
			f := loop(t, level{180, api.ModeKV}, 600, func(o *sim.Options, _ *closedloop.Workload) { row.change(o) })
			t.Logf("TTFT p95 %.2f s, %.0f tok/s, hit %.1f %%", f.TTFT95, f.TokensPerSecond, 100*f.Hit)
			assert.True(t, row.low < f.TTFT95 && f.TTFT95 < row.high, "TTFT p95 %.2f s", f.TTFT95)
		})
	}
}

// TestModesDifferWithManyOpenings uses a thousand openings, which do not fit into the caches.
func TestModesDifferWithManyOpenings(t *testing.T) {
	thousand := func(_ *sim.Options, w *closedloop.Workload) {
		w.Openings = 1000
		w.Turns, w.QuestionTokens = api.Range{Min: 3, Max: 5}, api.Distribution{Mean: 150, CV: .3}
	}
	kv := loop(t, level{180, api.ModeKV}, 400, thousand)
	rr := loop(t, level{180, api.ModeRoundRobin}, 400, thousand)
	t.Logf("kv: hit %.1f %%, TTFT p95 %.1f s, %.0f tok/s; round_robin: %.1f %%, %.1f s, %.0f tok/s",
		100*kv.Hit, kv.TTFT95, kv.TokensPerSecond, 100*rr.Hit, rr.TTFT95, rr.TokensPerSecond)
	assert.InDelta(t, .70, kv.Hit, .10)
	assert.InDelta(t, .20, rr.Hit, .08)
	assert.Greater(t, rr.TTFT95, 10.0)
	assert.Greater(t, rr.TTFT95, 4*kv.TTFT95)
	assert.Greater(t, kv.TokensPerSecond, 1.2*rr.TokensPerSecond)
}

func TestSpeculationChangesThroughput(t *testing.T) {
	throughput := map[api.Speculation]float64{}
	for kind, s := range sim.H200().Speculation {
		o, w := sim.DefaultOptions(sim.H200()), closedloop.Recorded()
		o.Speculation = kind
		l, err := closedloop.New(o, w)
		require.NoError(t, err)
		require.NoError(t, l.Run(duration(250)))
		throughput[kind] = l.Between(duration(150), duration(250)).TokensPerSecond
		var steps, drafted, accepted float64
		for _, w := range l.Cluster.Workers() {
			steps += float64(w.Steps)
			drafted += float64(w.DraftedTokens)
			accepted += float64(w.AcceptedTokens)
		}
		assert.InEpsilon(t, s.TokensPerStep(), (steps+accepted)/steps, .01, kind)
		assert.Equal(t, float64(s.DraftTokens)*steps, drafted, kind)
		assert.Equal(t, kind == api.SpeculationNotRecorded, l.Cluster.State().Calibrated, kind)
	}
	assert.Greater(t, throughput[api.SpeculationDraft], throughput[api.SpeculationOff])
	assert.Greater(t, throughput[api.SpeculationEagle3], throughput[api.SpeculationDraft])
	assert.InEpsilon(t, throughput[api.SpeculationNotRecorded], throughput[api.SpeculationEagle3], .1,
		"their tokens per step are nearly equal")
}

// TestUtilizationAtRecordedLevels checks that GPUs run kernels 40 to 80 % of the time at the recorded levels and less
// below, in both modes.
func TestUtilizationAtRecordedLevels(t *testing.T) {
	for _, mode := range bothModes {
		var recorded []float64
		for _, concurrency := range []int{60, 120, 180} {
			recorded = append(recorded, utilization(t, mode, concurrency)...)
		}
		least := slices.Min(recorded)
		assert.Greater(t, least, .4, mode)
		assert.Less(t, slices.Max(recorded), .8, mode)
		for _, concurrency := range []int{1, 5} {
			mean := 0.0
			for _, u := range utilization(t, mode, concurrency) {
				mean += u / 3
			}
			assert.Greater(t, mean, .05, "%s at %d", mode, concurrency)
			assert.Less(t, mean, min(.45, least), "%s at %d: little more than reading the weights", mode, concurrency)
		}
	}
}

// utilization returns the share of the third minute in which each worker's GPUs run kernels.
func utilization(t *testing.T, mode api.Mode, concurrency int) (shares []float64) {
	t.Helper()
	o, w := sim.DefaultOptions(sim.H200()), closedloop.Recorded()
	o.Mode, w.Concurrency = mode, concurrency
	l, err := closedloop.New(o, w)
	require.NoError(t, err)
	const settled, over = 120, 60
	require.NoError(t, l.Run(duration(settled)))
	before := l.Cluster.Workers()
	require.NoError(t, l.Run(duration(settled+over)))
	for i, w := range l.Cluster.Workers() {
		kernels := w.Kernels + w.Launched - before[i].Kernels - before[i].Launched
		assert.LessOrEqual(t, w.Kernels, w.Busy)
		shares = append(shares, kernels.Seconds()/over)
	}
	return shares
}
