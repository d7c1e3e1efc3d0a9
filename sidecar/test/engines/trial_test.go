//go:build engines

package engines

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/test/boothtest"
)

const (
	conversations = 6
	spanSeconds   = 20.
)

// minutes names the variable with the time limit of a trial.
const minutes = "ENGINES_MINUTES"

// limit returns the time limit of a trial: 8 minutes, or as many as the variable says.
func limit(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(minutes)
	if text == "" {
		return 8 * time.Minute
	}
	number, err := strconv.Atoi(text)
	require.NoError(t, err, minutes)
	return time.Duration(number) * time.Minute
}

// cache_aware routing is not found worse than round-robin, and equal arms, which take a long run, differ only by
// chance. The results agree with a separate computation over the stored turns.
func TestTrialsAgreeWithStoredTurns(t *testing.T) {
	bin := boothtest.Programs(t)
	workers := engines(t, bin)
	client := loadgen(t, bin, sglang(t, "cache_aware", workers...), sglang(t, "round_robin", workers...))
	for _, test := range []struct {
		name string
		a, b api.Mode
	}{
		{"round_robin and cache_aware", api.ModeRoundRobin, api.ModeKV},
		{"equal arms", api.ModeKV, api.ModeKV},
	} {
		if test.a == test.b && os.Getenv(minutes) == "" {
			continue
		}
		s := boothtest.Trial(t, client, limit(t), api.SweepRequest{
			Levels: api.LevelsOf(conversations), Modes: []api.ModeState{{Mode: test.a}, {Mode: test.b}},
			Seconds: new(spanSeconds), Seed: new(uint64(1)),
		})
		require.NotEmpty(t, s.Trial.Looks, "two blocks fit into its time")
		figure.Report(t, "%s: %s", test.name, strings.Join(s.Words, " "))
		if test.a != test.b {
			assert.NotEqual(t, "a_better", s.Trial.Verdict, test.name)
			assert.Negative(t, s.Trial.Primary.Difference, "mean TTFT under cache_aware")
		}
		agrees(t, s, boothtest.Turns(t, client, api.DefaultLane, 0))
	}
}

// The same two routers in one run whose arm changes every slot, on the caches that both share, and each on cold caches:
// both say that cache_aware is not later, and their intervals overlap. Equal arms switched so differ only by chance.
func TestSwitchbackAgreesWithColdTrial(t *testing.T) {
	if os.Getenv(minutes) == "" {
		t.Skipf("skipped: three trials on real engines; set %s to the minutes of each, such as 25", minutes)
	}
	bin := boothtest.Programs(t)
	workers := engines(t, bin)
	client := loadgen(t, bin, sglang(t, "cache_aware", workers...), sglang(t, "round_robin", workers...))
	var intervals [][2]float64
	for _, test := range []struct {
		name   string
		a      api.Mode
		caches api.TrialCaches
		span   float64
	}{
		{"round_robin and cache_aware, each on cold caches", api.ModeRoundRobin, api.TrialCachesCold, spanSeconds},
		{"round_robin and cache_aware, switched on warm caches", api.ModeRoundRobin, api.TrialCachesWarm, 2 * spanSeconds},
		{"equal arms, switched on warm caches", api.ModeKV, api.TrialCachesWarm, 2 * spanSeconds},
	} {
		s := boothtest.Trial(t, client, limit(t), api.SweepRequest{
			Levels: api.LevelsOf(conversations), Modes: []api.ModeState{{Mode: test.a}, {Mode: api.ModeKV}},
			Seconds: new(test.span), Seed: new(uint64(2)), Caches: new(test.caches),
		})
		p := s.Trial.Primary
		require.NotNil(t, p)
		require.NotNil(t, p.Interval)
		took := 0.
		for i := range s.Spans {
			took += s.Spans[i].Elapsed / 60
		}
		figure.Report(t, "%s: %+.1f %% (%+.1f to %+.1f %%), %s after %.0f min and %d looks", test.name,
			100*p.Difference, 100*p.Interval[0], 100*p.Interval[1], s.Trial.Verdict, took, len(s.Trial.Looks))
		if test.a == api.ModeKV {
			assert.True(t, p.Interval[0] <= 0 && 0 <= p.Interval[1], "equal arms")
			continue
		}
		assert.Negative(t, p.Difference, "mean TTFT under cache_aware")
		intervals = append(intervals, *p.Interval)
	}
	cold, warm := intervals[0], intervals[1]
	assert.Less(t, max(cold[0], warm[0]), min(cold[1], warm[1]), "the intervals overlap")
}

// run has the figures of a span's stored turns.
type run struct {
	b       bool
	block   int
	at      float64 // position of the run's middle in its block
	log     float64 // of the mean TTFT
	elapsed float64
}

// spansPerBlock is the number of spans of ABBA, whose middle is one span.
const spansPerBlock = 3

// runs computes the runs of the counted spans. A turn belongs to the span of its first token.
func runs(t *testing.T, s *api.Sweep, all []api.Turn) (list []run) {
	t.Helper()
	lost := 0.
	for i := range s.Spans {
		v := &s.Spans[i]
		if lost += v.Elapsed; v.Spoiled != "" {
			continue
		}
		require.Zero(t, v.Failed, "span %d", v.Number)
		var waits []float64
		for i := range all {
			turn := &all[i]
			if turn.TTFT == nil || turn.Status == api.TurnError {
				continue
			}
			first := turn.Started.Add(time.Duration(*turn.TTFT * float64(time.Second)))
			if !first.Before(v.CountedFrom) && first.Before(v.Until) {
				waits = append(waits, *turn.TTFT)
			}
		}
		require.NotEmpty(t, waits, "span %d", v.Number)
		place := len(list) % spansPerBlock
		list = append(list, run{
			b: v.Arm == "b", block: len(list) / spansPerBlock, at: []float64{.5, 2, 3.5}[place],
			log: math.Log(stat.Mean(waits, nil)), elapsed: lost,
		})
		lost = 0
	}
	return list[:len(list)/spansPerBlock*spansPerBlock]
}

// regression is an ordinary least squares fit of log TTFT by arm, block and, with slope, the position in the block.
func regression(t *testing.T, list []run, slope bool) (effect, deviation, df float64) {
	t.Helper()
	blocks := list[len(list)-1].block + 1
	columns := 1 + blocks
	if slope {
		columns++
	}
	x, y := mat.NewDense(len(list), columns, nil), mat.NewVecDense(len(list), nil)
	for i, r := range list {
		if r.b {
			x.Set(i, 0, 1)
		}
		x.Set(i, 1+r.block, 1)
		if slope {
			x.Set(i, columns-1, r.at)
		}
		y.SetVec(i, r.log)
	}
	var beta, fitted, residuals mat.VecDense
	var square, inverse mat.Dense
	require.NoError(t, beta.SolveVec(x, y))
	square.Mul(x.T(), x)
	require.NoError(t, inverse.Inverse(&square))
	fitted.MulVec(x, &beta)
	residuals.SubVec(y, &fitted)
	df = float64(len(list) - columns)
	return beta.AtVec(0), math.Sqrt(mat.Dot(&residuals, &residuals) / df * inverse.At(0, 0)), df
}

// agrees compares a trial's figures with the stored turns: the estimate after the last look, and the interval of the
// first look, which has a closed form: 95 % with an error of 5 %, spent by Hwang, Shih and DeCani with γ = −2 on the
// share of the blocks that fit into the time limit.
func agrees(t *testing.T, s api.Sweep, all []api.Turn) {
	t.Helper()
	list := runs(t, &s, all)
	last := s.Trial.Looks[len(s.Trial.Looks)-1]
	require.GreaterOrEqual(t, len(list), last.Blocks*spansPerBlock)
	list = list[:last.Blocks*spansPerBlock]
	effect, _, _ := regression(t, list, last.Blocks > 2)
	assert.InDelta(t, math.Expm1(effect), last.Difference, 1e-3, "difference")

	first, two := s.Trial.Looks[0], list[:2*spansPerBlock]
	effect, deviation, df := regression(t, two, false)
	used, each := 0., 0.
	for i, r := range two {
		used += r.elapsed
		if i >= spansPerBlock {
			each += r.elapsed
		}
	}
	share := used / (used + each*math.Floor((limit(t).Seconds()-used)/each))
	spent := .95 * .05 * math.Expm1(2*share) / math.Expm1(2)
	half := distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(1-spent/2) * deviation
	require.NotNil(t, first.Interval)
	figure.Headline(t, "after two blocks %+.1f %% (%+.1f to %+.1f), by separate code %+.1f %% (%+.1f to %+.1f)",
		100*first.Difference, 100*first.Interval[0], 100*first.Interval[1],
		100*math.Expm1(effect), 100*math.Expm1(effect-half), 100*math.Expm1(effect+half))
	assert.InDelta(t, math.Expm1(effect), first.Difference, 1e-3, "difference")
	assert.LessOrEqual(t, first.Interval[0], math.Expm1(effect-half)+1e-3, "the lower bound")
	assert.GreaterOrEqual(t, first.Interval[1], math.Expm1(effect+half)-1e-3, "the upper bound")
	const lateness = .1 // of log TTFT; the load generator shares two cores with the engines
	assert.InDelta(t, effect-half, math.Log1p(first.Interval[0]), lateness, "the lower bound")
	assert.InDelta(t, effect+half, math.Log1p(first.Interval[1]), lateness, "the upper bound")
}
