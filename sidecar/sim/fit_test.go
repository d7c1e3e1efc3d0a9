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

// result is what a recorded table holds of one concurrency and mode; NaN: not recorded.
type result struct {
	p50, p95 float64 // of TTFT, milliseconds
	tokens   float64 // a second
	gap      float64 // milliseconds, median of the turns' means: TPOT
	hit      float64 // per cent
}

type level struct {
	concurrency int
	mode        api.Mode
}

var bothModes = []api.Mode{api.ModeRoundRobin, api.ModeKV}

// recorded reads the baseline that a profile names.
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
			p50: value("ttft_p50_ms"), p95: value("ttft_p95_ms"), tokens: value("tops"), gap: value("itl_p50_ms"), hit: value("kv_hit_rate_pct"),
		}
	}
	return table
}

// simulated is a sweep over levels of the recorded workload, read as it was recorded.
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
		table[level{point.Concurrency, point.Mode}] = result{1000 * f.TTFT50, 1000 * f.TTFT95, f.TokensPerSecond, 1000 * f.TPOT50, 100 * f.Hit}
	}
	return table
}

// errors are mean absolute errors over some levels: per cent, of the hit rate points.
type errors struct {
	p50, p95, tokens, gap, hit float64
}

// middle is the error over TTFT p50, throughput and TPOT. Throughput times TPOT is
// about the concurrency, so that these two count as one.
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

func logTable(t testing.TB, got, want map[level]result, levels []int) {
	t.Helper()
	for _, mode := range bothModes {
		for _, concurrency := range levels {
			g, w := got[level{concurrency, mode}], want[level{concurrency, mode}]
			percent := func(got, want float64) float64 { return 100 * (got/want - 1) }
			t.Logf("%4d %-11s  TTFT p50 %4.0f (%4.0f) ms %+5.1f %%  p95 %4.0f (%4.0f) ms %+6.1f %%  %4.0f (%4.0f) tok/s %+5.1f %%  TPOT %4.1f (%4.1f) ms %+5.1f %%  hit %4.1f (%4.1f) %% %+4.1f",
				concurrency, mode, g.p50, w.p50, percent(g.p50, w.p50), g.p95, w.p95, percent(g.p95, w.p95),
				g.tokens, w.tokens, percent(g.tokens, w.tokens), g.gap, w.gap, percent(g.gap, w.gap), g.hit, w.hit, g.hit-w.hit)
		}
	}
}

// every pairs levels with modes, but for the cliff: 170 and 180 under kv.
func every(levels ...int) (all []level) {
	for _, mode := range bothModes {
		for _, concurrency := range levels {
			if mode != api.ModeKV || concurrency < 170 {
				all = append(all, level{concurrency, mode})
			}
		}
	}
	return all
}

// onset is the concurrency at which TTFT p95 under kv passes a second, between 150 and 180.
func onset(table map[level]result) float64 {
	for _, from := range []int{150, 160, 170} {
		low, high := table[level{from, api.ModeKV}].p95, table[level{from + 10, api.ModeKV}].p95
		if high > 1000 {
			return float64(from) + 10*max(1000-low, 0)/(high-low)
		}
	}
	return math.Inf(1)
}

// The recorded sweeps went up from 40: the hit rates of 99.7 and 99.2 % that they have
// at 40, in both modes, are what cached tokens (counted when a request ends) over
// input tokens (counted when it starts) give in the first minutes of a cluster, and
// nowhere else. So the levels follow one another here, too.
var wholeTable = []int{40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 160, 170, 180}

// The H200 profile reproduces the recorded table. With KVBOOTH_SIM_FIT=full all of it,
// with twelve seeds; without, a part with few. -v prints both.
func TestReproducesTheRecordedTable(t *testing.T) {
	want := recorded(t, sim.H200())
	if os.Getenv("KVBOOTH_SIM_FIT") != "full" {
		levels := []int{50, 60, 80, 120, 160}
		got := simulated(t, sim.H200(), levels, 3)
		logTable(t, got, want, levels)
		e := compare(got, want, every(60, 80, 120, 160))
		t.Logf("mean errors: %.1f %% (TTFT p50 %.1f, throughput %.1f, TPOT %.1f), TTFT p95 %.1f %%, hit rate %.1f points", e.middle(), e.p50, e.tokens, e.gap, e.p95, e.hit)
		assert.Less(t, e.middle(), 3.5)
		assert.Less(t, e.p95, 8.0, "of three seeds")
		assert.Less(t, e.hit, 3.5)
		assertColours(t, got)
		return
	}
	got := simulated(t, sim.H200(), wholeTable, 12)
	logTable(t, got, want, wholeTable)
	fitted := compare(got, want, every(60, 80, 100, 120, 140, 160, 180))
	t.Logf("fitted on: %.2f %% (TTFT p50 %.2f, throughput %.2f, TPOT %.2f), TTFT p95 %.2f %%, hit rate %.2f points", fitted.middle(), fitted.p50, fitted.tokens, fitted.gap, fitted.p95, fitted.hit)
	assert.LessOrEqual(t, fitted.middle(), 3.0)
	assert.LessOrEqual(t, fitted.p95, 5.5)
	assert.LessOrEqual(t, fitted.hit, 3.0)
	others := compare(got, want, every(40, 50, 70, 90, 110, 130, 150))
	t.Logf("not fitted on: %.2f %% (TTFT p50 %.2f, throughput %.2f, TPOT %.2f), TTFT p95 %.2f %%, hit rate %.2f points", others.middle(), others.p50, others.tokens, others.gap, others.p95, others.hit)
	assert.LessOrEqual(t, others.middle(), 4.0)
	assert.LessOrEqual(t, others.p95, 7.0)
	t.Logf("TTFT p95 under kv passes 1 s at %.1f (%.1f)", onset(got), onset(want))
	assert.InDelta(t, onset(want), onset(got), 5)
	assertColours(t, got)
}

// At 60, TTFT p95 misses its objective of 600 ms under round-robin, and is below nine
// tenths of it under kv: red and green.
func assertColours(t *testing.T, got map[level]result) {
	t.Helper()
	assert.Greater(t, got[level{60, api.ModeRoundRobin}].p95, 600.0)
	assert.Less(t, got[level{60, api.ModeKV}].p95, 540.0)
}

// The H100 profile is scaled and not fitted: its error is reported, and only that the
// figures are of the right size is asserted.
func TestTheOtherRecordedTable(t *testing.T) {
	p, err := sim.LoadProfile("h100-tp2")
	require.NoError(t, err)
	want := recorded(t, p)
	levels := []int{20, 30, 40, 50, 60, 70, 80, 100, 120}
	got := simulated(t, p, levels, 2)
	logTable(t, got, want, levels)
	e := compare(got, want, every(levels...))
	t.Logf("mean errors: TTFT p50 %.1f %%, p95 %.1f %%, hit rate %.1f points", e.p50, e.p95, e.hit)
	assert.Less(t, e.p50, 25.0)
	assert.Less(t, e.p95, 25.0)
	assert.Less(t, e.hit, 5.0)
}

// loop runs the recorded workload, changed, for so long, and reads it from the third
// minute on.
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

// What the collapse at 180 under kv hangs on: places in the batch, and nothing
// that the overlap weight could mend.
func TestCollapse(t *testing.T) {
	for _, row := range []struct {
		intent    string
		change    func(*sim.Options)
		low, high float64 // of TTFT p95, seconds
	}{
		{"as it is", func(*sim.Options) {}, 1.5, 10},
		{"twice the places", func(o *sim.Options) { o.Profile.MaxSequences = 128 }, .4, 1},
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

// With a thousand starters, caches cannot hold all of them, and the modes part.
func TestManyStarters(t *testing.T) {
	thousand := func(_ *sim.Options, w *closedloop.Workload) {
		w.Openings = 1000
		w.Turns, w.QuestionTokens = api.Range{Min: 3, Max: 5}, api.Distribution{Mean: 150, CV: .3}
	}
	kv := loop(t, level{180, api.ModeKV}, 400, thousand)
	rr := loop(t, level{180, api.ModeRoundRobin}, 400, thousand)
	t.Logf("kv: hit %.1f %%, TTFT p95 %.1f s, %.0f tok/s; round_robin: %.1f %%, %.1f s, %.0f tok/s", 100*kv.Hit, kv.TTFT95, kv.TokensPerSecond, 100*rr.Hit, rr.TTFT95, rr.TokensPerSecond)
	assert.InDelta(t, .70, kv.Hit, .10)
	assert.InDelta(t, .20, rr.Hit, .08)
	assert.Greater(t, rr.TTFT95, 10.0)
	assert.Greater(t, rr.TTFT95, 4*kv.TTFT95)
	assert.Greater(t, kv.TokensPerSecond, 1.2*rr.TokensPerSecond)
}

// As Dynamo's mock workers have it, answers are prefilled once more: 84.6 % were
// seen there, with questions of 150 tokens and conversations of three to five turns.
func TestForgottenAnswers(t *testing.T) {
	f := loop(t, level{60, api.ModeKV}, 400, func(o *sim.Options, w *closedloop.Workload) {
		o.ForgetAnswers = true
		w.Turns, w.QuestionTokens = api.Range{Min: 3, Max: 5}, api.Distribution{Mean: 150, CV: .3}
	})
	assert.InDelta(t, .846, f.Hit, .03)
}

// Speculation changes what one iteration gives, and what it costs.
func TestSpeculationAtWork(t *testing.T) {
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
	assert.InEpsilon(t, throughput[api.SpeculationNotRecorded], throughput[api.SpeculationEagle3], .1, "nearly the same steps")
}

// GPUs show 40 to 80 % at the recorded levels, less below, nothing when idle: in
// every mode, each worker's over a minute.
func TestUtilisation(t *testing.T) {
	for _, mode := range []api.Mode{api.ModeKV, api.ModeRoundRobin} {
		least, most := 1.0, 0.0 // of the recorded levels
		for _, concurrency := range []int{60, 80, 100, 120, 140, 160, 180} {
			for _, u := range utilisation(t, mode, concurrency) {
				least, most = min(least, u), max(most, u)
			}
		}
		t.Logf("%s: %.0f to %.0f %% at 60 to 180", mode, 100*least, 100*most)
		assert.Greater(t, least, .4, mode)
		assert.Less(t, most, .8, mode)
		for _, concurrency := range []int{1, 2, 3, 5} {
			mean := 0.0
			for _, u := range utilisation(t, mode, concurrency) {
				mean += u / 3
			}
			t.Logf("%s: %.0f %% at %d", mode, 100*mean, concurrency)
			assert.Greater(t, mean, .05, "%s at %d", mode, concurrency)
			assert.Less(t, mean, .45, "%s at %d: hardly more than reading the weights over and over", mode, concurrency)
			assert.Less(t, mean, least, "%s at %d", mode, concurrency)
		}
	}
}

// utilisation is the share of a minute, after two that settle it, in which each
// worker's GPUs run kernels.
func utilisation(t *testing.T, mode api.Mode, concurrency int) (shares []float64) {
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

// Virtual seconds of 180 conversations that a second of one core can simulate.
func BenchmarkCluster(b *testing.B) {
	const seconds = 750
	for b.Loop() {
		w := closedloop.Recorded()
		w.Concurrency = 180
		l, err := closedloop.New(sim.DefaultOptions(sim.H200()), w)
		require.NoError(b, err)
		require.NoError(b, l.Run(duration(seconds)))
	}
	b.ReportMetric(float64(b.N)*seconds/b.Elapsed().Seconds(), "virtual-s/s")
	b.ReportMetric(0, "ns/op")
}
