package baseline

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"kvbooth/sidecar/api"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func h200() api.Baseline { return Builtin()[0] }
func h100() api.Baseline { return Builtin()[1] }

func at(t *testing.T, b api.Baseline, mode api.Mode, concurrency int) api.Column {
	t.Helper()
	c, ok := At(b, api.ModeState{Mode: mode, Speculation: api.SpeculationNotRecorded}, api.AtConversations(concurrency))
	require.True(t, ok)
	return c
}

// The settings are those of the technical document and of the report, which has few. The values are the float64 nearest
// to the decimal ones of the tables. The file's itl is TPOT, and its tpot is derived.
func TestBuiltinTables(t *testing.T) {
	for i, want := range []struct {
		name            string
		rows, low, high int
	}{{"h200x3-tp1-llama70b-fp8", 30, 40, 180}, {"h100x8-tp2-llama70b-fp8", 18, 20, 120}} {
		b := Builtin()[i]
		require.NoError(t, Validate(b))
		assert.Equal(t, want.name, b.Name)
		require.Len(t, b.Rows, want.rows)
		assert.Equal(
			t,
			[]int{want.low, want.high},
			[]int{b.Rows[0].Level.Conversations(), b.Rows[want.rows-1].Level.Conversations()},
		)
		golden(t, want.name, b)
	}
}

func TestBuiltinReturnsCopies(t *testing.T) {
	b := h200()
	*b.Rows[0].TTFT.P50 = 99
	b.Workload.MaxTokens = 1
	assert.NotEqual(t, 99.0, *h200().Rows[0].TTFT.P50)
	assert.Equal(t, 1024, h200().Workload.MaxTokens)
}

func TestLookup(t *testing.T) {
	c := at(t, h200(), api.ModeKV, 100)
	assert.Equal(t, api.LookupExact, c.TTFT.P95.Lookup)
	assert.Equal(t, 0.5466, *c.TTFT.P95.Value)
	assert.Equal(t, api.LookupNotRecorded, c.ITL.P50.Lookup)
	assert.Nil(t, c.ITL.P50.Value)

	c = at(t, h200(), api.ModeRoundRobin, 105)
	assert.Equal(t, api.LookupInterpolated, c.TTFT.P50.Lookup)
	assert.InDelta(t, (0.3425+0.3540)/2, *c.TTFT.P50.Value, 1e-12)

	// rps was recorded at 60 and 80, not at the level 70 between them
	c = at(t, h200(), api.ModeKV, 70)
	assert.Equal(t, api.LookupExact, c.TTFT.P50.Lookup)
	assert.Equal(t, api.LookupInterpolated, c.RequestsPerSecond.Lookup)
	assert.InDelta(t, 2.87, *c.RequestsPerSecond.Value, 1e-12)

	// below 60 rps has no level, though the other metrics have
	c = at(t, h200(), api.ModeKV, 50)
	assert.Equal(t, api.LookupExact, c.KVHitRatio.Lookup)
	assert.Equal(t, api.LookupOutside, c.RequestsPerSecond.Lookup)

	for _, outside := range []int{39, 181} {
		c = at(t, h200(), api.ModeKV, outside)
		assert.Equal(t, api.LookedUp{Lookup: api.LookupOutside}, c.TTFT.P50)
		assert.Equal(t, api.LookupNotRecorded, c.ITL.P95.Lookup)
	}
	_, ok := At(
		h200(),
		api.ModeState{Mode: api.ModeLeastLoaded, Speculation: api.SpeculationNotRecorded},
		api.AtConversations(100),
	)
	assert.False(t, ok)
}

func TestColumnsAreOrdered(t *testing.T) {
	row := func(m api.Mode, s api.Speculation) api.BaselineRow {
		return api.BaselineRow{Level: api.AtConversations(10), Mode: m, Speculation: s, N: 7}
	}
	b := api.Baseline{Rows: []api.BaselineRow{
		row(api.ModeLeastLoaded, api.SpeculationOff), row(api.ModeKV, api.SpeculationEagle3),
		row(api.ModeKV, api.SpeculationOff), row(api.ModeRoundRobin, api.SpeculationOff),
	}}
	var got []api.ModeState
	for _, c := range Columns(b, api.AtConversations(10)) {
		got = append(got, api.ModeState{Mode: c.Mode, Speculation: c.Speculation})
		assert.Equal(t, 7, c.N)
	}
	assert.Equal(t, []api.ModeState{
		{Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff},
		{Mode: api.ModeKV, Speculation: api.SpeculationOff},
		{Mode: api.ModeKV, Speculation: api.SpeculationEagle3},
		{Mode: api.ModeLeastLoaded, Speculation: api.SpeculationOff},
	}, got)
	assert.NotNil(t, Columns(api.Baseline{}, api.AtConversations(10)))
}

func quantiles(p50, low, high float64) api.Quantiles {
	return api.Quantiles{P50: &p50, P95: new(2 * p50), N: 100, P50Interval: &[2]float64{low, high}}
}

func TestImprovementIsPositiveWhereLiveIsBetter(t *testing.T) {
	live := Live{
		Metrics: api.Metrics{
			TTFT:    quantiles(0.3, 0.28, 0.32),    // recorded 0.3425: better
			TPOT:    quantiles(0.0382, 0.03, 0.05), // recorded 0.0382: the same
			ITL:     quantiles(0.03, 0.02, 0.04),   // not recorded
			Latency: quantiles(40, 39, 41),         // recorded 32.0601: worse
		},
		OutputTokensPerSecond: new(2000.0), OutputInterval: &[2]float64{1900, 2100}, // recorded 2547.5: worse
		KVHitRatio: new(0.9735), HitInterval: &[2]float64{.96, .98}, // recorded 0.885: 10 % better
		N: 100, Seconds: 90,
	}
	c := Compare(live, h200(), api.AtConversations(100))
	require.Len(t, c.Columns, 2)
	rr := c.Columns[0]
	require.Equal(t, api.ModeRoundRobin, rr.Mode)

	assert.InDelta(t, 12.41, rr.TTFT.P50.Improvement.Percent, 0.01)
	assert.Equal(t, api.OutcomeBetter, rr.TTFT.P50.Improvement.Outcome)
	assert.Equal(t, api.OutcomeTooVariable, rr.TTFT.P95.Improvement.Outcome, "no interval, nothing to say")
	assert.Nil(t, rr.TTFT.P95.Improvement.Interval)
	assert.Equal(t, api.OutcomeNoDifference, rr.TPOT.P50.Improvement.Outcome)
	assert.False(t, math.Signbit(rr.TPOT.P50.Improvement.Percent))
	assert.Nil(t, rr.ITL.P50.Improvement)
	assert.InDelta(t, -24.77, rr.Latency.P50.Improvement.Percent, 0.01)
	assert.Equal(t, api.OutcomeWorse, rr.Latency.P50.Improvement.Outcome, "unfavorable ones are reported as well")
	assert.InDelta(t, -21.49, rr.OutputTokensPerSecond.Improvement.Percent, 0.01)
	assert.Equal(t, api.OutcomeWorse, rr.OutputTokensPerSecond.Improvement.Outcome)
	assert.InDelta(t, 10, rr.KVHitRatio.Improvement.Percent, 0.01)
	assert.Equal(t, api.OutcomeBetter, rr.KVHitRatio.Improvement.Outcome)
	assert.Nil(t, rr.RequestsPerSecond.Improvement, "the live side has no value")
	assert.Equal(t, 100, c.N)
	assert.Equal(t, 90.0, c.Seconds)
	assert.Equal(t, live.HitInterval, c.LiveKVInterval)
	assert.Equal(t, *live.Metrics.TTFT.P50, *c.Live.TTFT.P50)
}

// A difference is reported if it exceeds the errors of the live and the recorded value
// together. The error of the recorded value is an estimate.
func TestScatterWidensTheInterval(t *testing.T) {
	const recorded = 2547.5
	compare := func(live, half float64) api.LookedUp {
		l := Live{OutputTokensPerSecond: &live, OutputInterval: &[2]float64{live - half, live + half}}
		return Compare(l, h200(), api.AtConversations(100)).Columns[0].OutputTokensPerSecond
	}
	exact := compare(1.05*recorded, 0)
	assert.True(t, exact.Estimated)
	half := 100 * (exact.Interval[1]/recorded - 1)
	assert.InDelta(t, 3.41, half, .01, "1.74 %, as round_robin scatters in this table, 1.96 times")
	assert.InDelta(t, recorded*(1-half/100), exact.Interval[0], 1e-6)
	assert.Equal(t, api.OutcomeBetter, exact.Improvement.Outcome)
	assert.InDelta(t, 5-half, exact.Improvement.Interval[0], 1e-6)
	assert.InDelta(t, 5+half, exact.Improvement.Interval[1], 1e-6)
	assert.Equal(t, api.OutcomeNoDifference, compare(1.03*recorded, 0).Improvement.Outcome,
		"the recorded value is not known better than that")
	both := compare(1.05*recorded, .036*recorded).Improvement
	assert.InDelta(t, math.Hypot(3.6, half), both.Interval[1]-5, 1e-6)
	assert.InDelta(t, .04, both.Interval[0], .01, "just enough")
	assert.Equal(t, api.OutcomeBetter, both.Outcome)
	assert.Equal(t, api.OutcomeNoDifference, compare(1.05*recorded, .037*recorded).Improvement.Outcome)
	assert.Equal(t, api.OutcomeWorse, compare(.9*recorded, .05*recorded).Improvement.Outcome)
	assert.Equal(t, api.OutcomeNoDifference, compare(recorded*1.0004, 0).Improvement.Outcome,
		"what rounds to 0.0 %% is none")
}

// The time to a decision follows from how fast the live interval narrows; the recorded one is constant.
func TestTimeToADecision(t *testing.T) {
	left := func(live, half, seconds float64) *float64 {
		l := Live{Metrics: api.Metrics{TTFT: quantiles(live, live-half, live+half)}, Seconds: seconds}
		b := api.Baseline{Kind: KindMeasured, Rows: []api.BaselineRow{{
			Level: api.AtConversations(10), Mode: api.ModeKV, TTFT: api.Percentiles{P50: new(.5)},
			Intervals: &api.RowIntervals{TTFT: api.PercentileIntervals{P50: &[2]float64{.47, .53}}},
		}}}
		return Compare(l, b, api.AtConversations(10)).Columns[0].TTFT.P50.Improvement.SecondsLeft
	}
	assert.InDelta(t, 180, *left(.45, .08, 60), 1e-6, "half as wide after four times the time: 4 and 3 make 5")
	assert.InDelta(t, 180, *left(.55, .08, 60), 1e-6, "the other way")
	assert.Nil(t, left(.4, .08, 60), "decided")
	assert.Nil(t, left(.475, .08, 60), "the recorded value is not known better than that")
	assert.Nil(t, left(.45, .08, 0), "not being measured")
}

// A measured row has its own intervals. Without one, its value is too variable to compare.
func TestMeasuredRowsHaveTheirOwnIntervals(t *testing.T) {
	row := func(concurrency int, ttft float64, in *[2]float64) api.BaselineRow {
		return api.BaselineRow{
			Level: api.AtConversations(concurrency), Mode: api.ModeKV, Speculation: api.SpeculationOff, LagSeconds: new(.004),
			TTFT: api.Percentiles{P50: &ttft}, Intervals: &api.RowIntervals{TTFT: api.PercentileIntervals{P50: in}},
		}
	}
	b := api.Baseline{Kind: KindMeasured, Rows: []api.BaselineRow{
		row(10, .4, &[2]float64{.38, .42}), row(20, .5, &[2]float64{.44, .6}), row(30, .6, nil),
	}}
	live := Live{Metrics: api.Metrics{TTFT: quantiles(.45, .44, .46)}}
	at := func(concurrency int) api.LookedUp {
		return Compare(live, b, api.AtConversations(concurrency)).Columns[0].TTFT.P50
	}
	ten := at(10)
	assert.Equal(t, &[2]float64{.38, .42}, ten.Interval)
	assert.False(t, ten.Estimated)
	assert.Equal(t, api.OutcomeWorse, ten.Improvement.Outcome)
	assert.InDelta(t, -12.5-math.Hypot(1, 2)/40*100, ten.Improvement.Interval[0], 1e-6)
	assert.Equal(t, .004, *Compare(live, b, api.AtConversations(10)).Columns[0].LagSeconds)
	fifteen := at(15)
	assert.Equal(t, api.LookupInterpolated, fifteen.Lookup)
	assert.InDelta(t, .41, fifteen.Interval[0], 1e-9)
	assert.InDelta(t, .51, fifteen.Interval[1], 1e-9)
	assert.Equal(t, api.OutcomeNoDifference, fifteen.Improvement.Outcome)
	assert.Equal(t, api.OutcomeTooVariable, at(25).Improvement.Outcome, "one of the two levels has no interval")
	assert.Equal(t, api.OutcomeTooVariable, at(30).Improvement.Outcome)
	assert.Nil(t, at(30).Interval)
	b.Rows[2].Intervals = nil
	assert.Equal(t, api.OutcomeTooVariable, at(30).Improvement.Outcome, "as rows of former versions")
}

// The load generator's own errors of both sides widen a difference in full, each to the side on which its value may be.
// Only an outcome that they could change is withheld.
func TestErrorsOfBothSides(t *testing.T) {
	for name, row := range map[string]struct {
		live, liveError, wasError float64 // against 0.4, both with intervals of ±0.01 without the error
		tpot                      bool
		want                      api.Outcome
	}{
		"much worse":                       {.45, .005, .005, false, api.OutcomeWorse},
		"worse, but for the live error":    {.42, .01, 0, false, api.OutcomeWithheld},
		"worse, whatever the other error":  {.42, 0, .1, false, api.OutcomeWorse},
		"better, whatever the live error":  {.38, .1, 0, false, api.OutcomeBetter},
		"not certain, by 1 % of error":     {.41424, .00015, 0, false, api.OutcomeNoDifference},
		"better, but for the other error":  {.38, 0, .01, false, api.OutcomeWithheld},
		"no difference is none with error": {.41, .1, .1, false, api.OutcomeNoDifference},
		"TPOT worse, but for the other":    {.43, 0, .02, true, api.OutcomeWithheld},
		"TPOT worse":                       {.43, .002, .002, true, api.OutcomeWorse},
	} {
		t.Run(name, func(t *testing.T) {
			down := func(v, e float64) *[2]float64 {
				if row.tpot {
					return &[2]float64{v - .01 - e, v + .01 + e}
				}
				return &[2]float64{v - .01 - e, v + .01}
			}
			q := quantiles(row.live, down(row.live, row.liveError)[0], down(row.live, row.liveError)[1])
			q.P50Error = &row.liveError
			was := api.Percentiles{P50: new(.4)}
			in := api.PercentileIntervals{P50: down(.4, row.wasError)}
			r := api.BaselineRow{
				Level:     api.AtConversations(10),
				Mode:      api.ModeKV,
				Errors:    &api.RowErrors{},
				Intervals: &api.RowIntervals{},
			}
			live := Live{}
			if row.tpot {
				live.Metrics.TPOT, r.TPOT, r.Intervals.TPOT, r.Errors.TPOT = q, was, in, api.Percentiles{P50: &row.wasError}
			} else {
				live.Metrics.TTFT, r.TTFT, r.Intervals.TTFT, r.Errors.TTFT = q, was, in, api.Percentiles{P50: &row.wasError}
			}
			c := Compare(live, api.Baseline{Kind: KindMeasured, Rows: []api.BaselineRow{r}}, api.AtConversations(10)).Columns[0]
			found := c.TTFT.P50
			if row.tpot {
				found = c.TPOT.P50
			}
			assert.Equal(t, row.want, found.Improvement.Outcome, found.Improvement)
			other := Against(c, api.Column{TTFT: api.LookedUpPair{P50: api.LookedUp{
				Value: q.P50, Interval: q.P50Interval, Error: q.P50Error,
			}}})
			if !row.tpot {
				assert.Equal(t, row.want, other.TTFT.P50.Improvement.Outcome)
			}
		})
	}
}

// improvements counts the decided improvements of TTFT in a comparison.
func improvements(c api.Comparison) (n int) {
	for _, column := range c.Columns {
		for _, figure := range []api.LookedUp{column.TTFT.P50, column.TTFT.P95} {
			if figure.Improvement != nil {
				n++
			}
		}
	}
	return n
}

// Where the comparison is invalid, the figures are shown, and nothing is called better or worse.
func TestNothingIsBetterWhereNotComparable(t *testing.T) {
	for name, test := range map[string]struct {
		change     func(*Live, *api.Baseline)
		withheld   string
		difference []api.Difference // that is among those
	}{
		"the load generator is late": {func(l *Live, _ *api.Baseline) { l.Withheld = "it is late" }, "it is late", nil},
		"the live mode is unknown": {
			func(l *Live, _ *api.Baseline) { l.Mode.Mode = api.ModeUnknown }, "the routing mode of this server is unknown", nil,
		},
		"both: the first spoils the figures": {
			func(l *Live, _ *api.Baseline) { l.Mode.Mode, l.Withheld = api.ModeUnknown, "it is late" }, "it is late", nil,
		},
		"settling, which says enough": {
			func(l *Live, _ *api.Baseline) { l.Mode.Mode, l.Settling = api.ModeUnknown, true }, "", nil,
		},
		"openings of another length": {
			func(l *Live, _ *api.Baseline) { l.Shape.OpeningTokens = 500 },
			"conversations open with texts of 500 tokens here, but of 3,500 to 4,000 tokens in the baseline",
			[]api.Difference{{Field: "opening_tokens", Live: "500 tokens", Baseline: "3,500 to 4,000 tokens"}},
		},
		"openings whose length was not recorded": {
			func(l *Live, b *api.Baseline) { l.Shape.OpeningTokens, b.Workload = 500, nil },
			"conversations open with texts of 500 tokens here; the baseline does not record their length",
			[]api.Difference{{Field: "opening_tokens", Live: "500 tokens", Baseline: "not recorded"}},
		},
		"openings of the recorded length, unlike the baseline's": {
			func(_ *Live, b *api.Baseline) { b.Workload.OpeningTokens = 500 },
			"conversations open with texts of 3,500 to 4,000 tokens here, but of 500 tokens in the baseline", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := h200()
			live := Live{Metrics: api.Metrics{TTFT: quantiles(0.3, 0.28, 0.32)}, Shape: *b.Workload, N: 40, SettlingFor: 12}
			require.NotZero(t, improvements(Compare(live, b, api.AtConversations(60))))
			test.change(&live, &b)
			c := Compare(live, b, api.AtConversations(60))
			assert.Zero(t, improvements(c))
			assert.NotNil(t, c.Columns[0].TTFT.P95.Value)
			assert.Equal(t, test.withheld, c.Withheld)
			assert.Equal(t, []any{live.Settling, 12.0}, []any{c.Settling, c.SettlingFor})
			assert.Subset(t, c.Differences, test.difference)
		})
	}
	own := h200()
	own.Workload.OpeningTokens = 500
	live := Live{Metrics: api.Metrics{TTFT: quantiles(0.3, 0.28, 0.32)}, Shape: *own.Workload}
	assert.NotZero(t, improvements(Compare(live, own, api.AtConversations(60))), "the same length")
}

// Rows that were measured before the target's mode was reported are excluded: only rows of a known mode are compared.
func TestRowsOfAnUnknownModeDoNotCompare(t *testing.T) {
	b := h200()
	for i := range b.Rows {
		if b.Rows[i].Mode == api.ModeRoundRobin {
			b.Rows[i].Mode = api.ModeUnknown
		}
	}
	c := Compare(Live{Metrics: api.Metrics{TTFT: quantiles(0.3, 0.28, 0.32)}, Mode: api.ModeState{Mode: api.ModeKV}}, b,
		api.AtConversations(100))
	require.Len(t, c.Columns, 2)
	assert.Equal(t, api.ModeUnknown, c.Columns[1].Mode, "last")
	assert.NotNil(t, c.Columns[0].TTFT.P50.Improvement)
	assert.Nil(t, c.Columns[1].TTFT.P50.Improvement)
}

// The assumed scatter of small tables is that of the recorded H200 table, rounded up. -v prints it.
func TestScatter(t *testing.T) {
	modes := NewTable(h200()).rows
	few := scatters([][]api.BaselineRow{modes[0][:9]})
	for i, s := range values {
		if s.assumed == 0 { // it was recorded nowhere
			continue
		}
		var all []float64
		for _, rows := range modes {
			all = append(all, s.differences(rows)...)
		}
		found := deviationOf(all)
		t.Logf("%-16s %.2f %%, round_robin alone %.2f %%, kv alone %.2f %%; assumed %.1f %%", s.Name,
			100*found, 100*deviationOf(s.differences(modes[0])), 100*deviationOf(s.differences(modes[1])), 100*s.assumed)
		assert.InDelta(t, found, s.assumed, .01, "%s: rounded up by a point at most", s.Name)
		assert.GreaterOrEqual(t, s.assumed, found-.0005, s.Name)
		assert.Equal(t, s.assumed, few[0][i], "%s: too few levels", s.Name)
	}
}

func TestNoImprovementOnAZero(t *testing.T) {
	b := api.Baseline{Rows: []api.BaselineRow{{Level: api.AtConversations(1), Mode: api.ModeKV, KVHitRatio: new(0.0)}}}
	c := Compare(Live{KVHitRatio: new(0.5)}, b, api.AtConversations(1))
	assert.Nil(t, c.Columns[0].KVHitRatio.Improvement)
}

// alikeLive returns a live run that equals the recorded H200 table in every setting.
func alikeLive() Live {
	d := h200().Deployment
	d.Engine, d.Model, d.GPU, d.KVCacheDtype = "TensorRT-LLM", "nvidia/Llama-3.1-70B-Instruct-FP8", "NVIDIA H200", "FP8"
	return Live{Deployment: d, Shape: *h200().Workload}
}

func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Live)
		want   []api.Difference
	}{
		{"equal under other spellings", func(*Live) {}, []api.Difference{}},
		{"unknown on the live side", func(l *Live) { l.Deployment.GPU, l.Deployment.Workers = "", 0 }, []api.Difference{
			{Field: "gpu", Live: "not known", Baseline: "H200"}, {Field: "workers", Live: "not known", Baseline: "3"},
		}},
		{"other settings", func(l *Live) {
			l.Deployment.MaxBatchSize, l.Deployment.ChunkedPrefill, l.Deployment.FreeGPUMemoryFraction = 128, new(false), .85
		}, []api.Difference{
			{Field: "max_batch_size", Live: "128", Baseline: "64"},
			{Field: "chunked_prefill", Live: "off", Baseline: "on"},
			{Field: "free_gpu_memory_fraction", Live: "0.85", Baseline: "0.9"},
		}},
		{"settings that the live side does not report", func(l *Live) {
			l.Deployment.Dynamo, l.Deployment.BlockSize = "", 0
		}, []api.Difference{{Field: "settings", Live: "not known", Baseline: "Dynamo 0.9.0, block size 32"}}},
		{"another model", func(l *Live) { l.Deployment.Model = "Llama 3.3 70B Instruct FP8" }, []api.Difference{
			{Field: "model", Live: "Llama 3.3 70B Instruct FP8", Baseline: "Llama 3.1 70B Instruct FP8"},
		}},
		{"speculation that was not recorded", func(l *Live) { l.Mode.Speculation = api.SpeculationOff }, []api.Difference{
			{Field: "speculation", Live: "off", Baseline: "not recorded"},
		}},
		{"the booth's own workload", func(l *Live) {
			l.Shape = api.WorkloadShape{
				Turns: api.Range{Min: 3, Max: 5}, MaxTokens: 1024, Openings: new(10),
				OutputTokens: &api.Distribution{Mean: 830, CV: .15}, Corpus: "built-in articles", Followup: api.RecordedFollowup,
			}
		}, []api.Difference{
			{Field: "turns", Live: "3–5", Baseline: "5"},
			{Field: "output_tokens", Live: "mean 830, cv 0.15", Baseline: "as the model ends them"},
			{Field: "corpus", Live: "built-in articles", Baseline: "10 Wikipedia articles"},
		}},
		{"a text of its own for every conversation", func(l *Live) { l.Shape.Openings = new(0) }, []api.Difference{
			{Field: "openings", Live: "one for each conversation", Baseline: "10"},
		}},
		{"texts that are not counted", func(l *Live) { l.Shape.Openings = nil }, []api.Difference{
			{Field: "openings", Live: "not known", Baseline: "10"},
		}},
		{"settings that no recorded result has", func(l *Live) {
			l.Shape.ThinkTime, l.Shape.TargetRPS, l.Shape.Timeouts = new(0.), new(25.), &api.Timeouts{Turn: 600}
		}, []api.Difference{}},
		{"fields that no recorded request has", func(l *Live) { l.Shape.Request = `{"ignore_eos":true}` }, []api.Difference{
			{Field: "request", Live: `{"ignore_eos":true}`, Baseline: "no further fields"},
		}},
		{"a session that no recorded request has", func(l *Live) {
			l.Shape.Session, l.Shape.NoRequestID = "header:X-Session-Id", true
		}, []api.Difference{
			{Field: "session", Live: "header:X-Session-Id", Baseline: "no session"},
			{Field: "request_id", Live: "without X-Request-Id", Baseline: "with X-Request-Id"},
		}},
		{"users who think", func(l *Live) { l.Shape.ThinkTime = new(2.5) }, []api.Difference{
			{Field: "think_time", Live: "2.5 s", Baseline: "not recorded"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := alikeLive()
			c.change(&live)
			assert.EqualValues(t, c.want, Compare(live, h200(), api.AtConversations(100)).Differences)
		})
	}
}

func TestDifferencesOfSparseBaseline(t *testing.T) {
	b := api.Baseline{Rows: []api.BaselineRow{
		{Level: api.AtConversations(1), Mode: api.ModeKV, Speculation: api.SpeculationDraft},
		{Level: api.AtConversations(1), Mode: api.ModeKV, Speculation: api.SpeculationOff},
	}}
	live := Live{Mode: api.ModeState{Speculation: api.SpeculationOff}, Shape: api.WorkloadShape{Turns: api.Range{
		Min: 5, Max: 5,
	}, MaxTokens: 9}}
	assert.EqualValues(t, []api.Difference{{Field: "workload", Live: "turns 5, max_tokens 9", Baseline: "not recorded"}},
		Compare(live, b, api.AtConversations(1)).Differences, "one of the rows has the live speculation")
	live.Mode.Speculation = api.SpeculationEagle3
	assert.Contains(t, Compare(live, b, api.AtConversations(1)).Differences,
		api.Difference{Field: "speculation", Live: "eagle3", Baseline: "draft, off"})
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		value, threshold float64
		want             SLOColor
	}{
		{0.5399, 0.6, SLOMet},
		{0.54, 0.6, SLONear}, // 90 % exactly
		{0.054, 0.06, SLONear},
		{0.6, 0.6, SLONear},         // met at the threshold itself
		{0.1 + 0.2, 0.3, SLONear},   // the same in decimal
		{0.601, 0.6, SLOMissed},     // above it
		{math.NaN(), 1, SLOMissed},  // not a number
		{math.Inf(1), 1, SLOMissed}, // nor finite
	} {
		assert.Equal(t, c.want, Judge(c.value, c.threshold), "%v of %v", c.value, c.threshold)
	}
}

// Both recorded tables have known sustained levels, under the booth's SLOs and under those of the report on 8 H100. The
// report's answer is 50 for kv and none for round-robin.
// listOf returns levels as the API lists them, never nil.
func listOf(conversations []int) api.List[api.Level] {
	return append(api.List[api.Level]{}, api.LevelsOf(conversations...)...)
}

func TestSustainedConcurrency(t *testing.T) {
	none := []int{}
	h100Levels := []int{20, 30, 40, 50, 60, 70, 80, 100, 120} // TPOT was not recorded at any
	booth, report := api.SLO{TTFT: 0.6, TPOT: 0.06}, api.SLO{TTFT: 0.4, TPOT: 0.06}
	for _, c := range []struct {
		name       string
		b          api.Baseline
		slo        api.SLO
		rr, kv     int
		rrIsolated []int
		ttftOnly   []int
	}{
		{"H200 at 600/60", h200(), booth, 0, 130, []int{130}, none}, // round-robin misses 600 ms at its lowest level
		{"H200 at 400/60", h200(), report, 0, 0, none, none},
		{"H100 at 600/60", h100(), booth, 120, 120, none, h100Levels},
		{"H100 at 400/60", h100(), report, 0, 50, none, h100Levels}, // kv meets it at the threshold itself
		{"H200, TPOT alone", h200(), api.SLO{TTFT: 1, TPOT: 0.03}, 60, 70, none, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, []api.Sustained{
				{
					Mode:        api.ModeRoundRobin,
					Speculation: api.SpeculationNotRecorded,
					SLO:         c.slo,
					Level:       new(api.AtConversations(c.rr)),
					Isolated:    listOf(c.rrIsolated),
					TTFTOnly:    listOf(c.ttftOnly),
					Untested:    listOf(none),
				},
				{
					Mode:        api.ModeKV,
					Speculation: api.SpeculationNotRecorded,
					SLO:         c.slo,
					Level:       new(api.AtConversations(c.kv)),
					Isolated:    listOf(none),
					TTFTOnly:    listOf(c.ttftOnly),
					Untested:    listOf(none),
				},
			}, Sustained(c.b, c.slo))
		})
	}
	assert.False(t, Meets(api.BaselineRow{}, booth), "nothing recorded, nothing met")
}

func TestSustainedReportsUntestedLevels(t *testing.T) {
	row := func(concurrency int, ttft *float64) api.BaselineRow {
		return api.BaselineRow{
			Level:       api.AtConversations(concurrency),
			Mode:        api.ModeKV,
			Speculation: api.SpeculationOff,
			TTFT:        api.Percentiles{P95: ttft},
		}
	}
	slo := api.SLO{TTFT: 0.6, TPOT: 0.06}
	of := func(rows ...api.BaselineRow) api.Sustained { return Sustained(api.Baseline{Rows: rows}, slo)[0] }
	got := of(row(10, new(0.5)), row(20, nil), row(30, new(0.6)))
	assert.Equal(t, api.AtConversations(30), *got.Level)
	assert.EqualValues(t, api.LevelsOf(20), got.Untested)
	assert.Nil(t, of(row(10, nil)).Level, "no level was tested")
	late := row(20, new(.605))
	late.Errors = &api.RowErrors{TTFT: api.Percentiles{P95: new(.01)}}
	assert.EqualValues(t, api.LevelsOf(20), of(row(10, new(.5)), late).Untested,
		"5 ms above the SLO, of which 10 may be the load generator's own")
	late.Errors.TTFT.P95 = new(.004)
	assert.Empty(t, of(row(10, new(.5)), late).Untested)
	cut := row(20, new(.5))
	cut.AtLeast = []string{"ttft_p95"}
	assert.EqualValues(
		t,
		api.LevelsOf(20),
		of(row(10, new(.5)), cut).Untested,
		"turns that were cut may have missed the SLO",
	)
	cut.TTFT.P95 = new(.7)
	assert.Empty(t, of(row(10, new(.5)), cut).Untested, "it misses the SLO in any case")
	assert.Equal(t, []api.Sustained{}, Sustained(api.Baseline{}, slo))
}

func TestMergeReplacesAndSorts(t *testing.T) {
	var b api.Baseline
	put := func(concurrency int, mode api.Mode, n int) {
		Merge(&b, api.BaselineRow{Level: api.AtConversations(concurrency), Mode: mode, Speculation: api.SpeculationOff, N: n})
	}
	put(80, api.ModeKV, 1)
	put(40, api.ModeKV, 2)
	put(40, api.ModeRoundRobin, 3)
	before := b
	put(40, api.ModeKV, 4)
	var got []int
	for _, r := range b.Rows {
		got = append(got, r.N)
	}
	assert.Equal(t, []int{3, 4, 1}, got)
	assert.Equal(t, 2, before.Rows[1].N, "an earlier copy stays as it was")
}

func TestDefaultFor(t *testing.T) {
	all := append(Builtin(), api.Baseline{Name: "mine", Kind: KindImported, Deployment: h100().Deployment})
	h200Live := api.Deployment{
		GPU: "NVIDIA H200", Workers: 3, TensorParallel: 1, Model: "meta-llama/Meta-Llama-3.1-70B-FP8",
	}
	h100Live := api.Deployment{
		GPU: "NVIDIA H100 80GB HBM3", Workers: 4, TensorParallel: 2, Model: "nvidia/Llama-3.1-70B-Instruct-FP8",
	}
	with := func(d api.Deployment, change func(*api.Deployment)) api.Deployment { change(&d); return d }
	for _, c := range []struct {
		deployment api.Deployment
		configured string
		want       string
	}{
		{h200Live, "", h200().Name},
		{h100Live, "", h100().Name},
		{h100Live, "mine", "mine"},
		{h100Live, "gone", h100().Name}, // a configured one that does not exist is ignored
		{h100Live, api.ThisTarget, api.ThisTarget},
		{api.Deployment{}, "", api.ThisTarget}, // nothing known
		{with(h200Live, func(d *api.Deployment) { d.Workers = 4 }), "", api.ThisTarget},
		{with(h200Live, func(d *api.Deployment) { d.GPU = "NVIDIA H100 NVL" }), "", api.ThisTarget},
		{with(h200Live, func(d *api.Deployment) { d.GPU = "NVIDIA GH200 480GB" }), "", api.ThisTarget},
		// not FP8
		{with(h200Live, func(d *api.Deployment) { d.Model = "meta-llama/Llama-3.1-70B-Instruct" }), "", api.ThisTarget},
		{with(h200Live, func(d *api.Deployment) { d.Model = "Llama-3.1-8B-Instruct-FP8" }), "", api.ThisTarget},
	} {
		assert.Equal(t, c.want, DefaultFor(c.deployment, all, c.configured), "%+v, %q", c.deployment, c.configured)
	}
}

func TestValidateRefuses(t *testing.T) {
	for _, c := range []struct {
		field string // of the error
		spoil func(*api.Baseline)
	}{
		{"name", func(b *api.Baseline) { b.Name = "../x" }},
		{"kind", func(b *api.Baseline) { b.Kind = "guessed" }},
		{"title", func(b *api.Baseline) { b.Title = "two\nlines" }},
		{"notes", func(b *api.Baseline) { b.Notes = strings.Repeat("x", maxNotes+1) }},
		{"deployment.workers", func(b *api.Baseline) { b.Deployment.Workers = -1 }},
		{"deployment.speculation", func(b *api.Baseline) { b.Deployment.Speculation = "some" }},
		{"workload.turns.max", func(b *api.Baseline) { b.Workload.Turns.Max = 1 }},
		{"workload.output_tokens.cv", func(b *api.Baseline) { b.Workload.OutputTokens = &api.Distribution{CV: math.Inf(1)} }},
		{"rows", func(b *api.Baseline) { b.Rows = nil }},
		{"rows[1].concurrency", func(b *api.Baseline) { b.Rows[1].Level = api.AtConversations(0) }},
		{"rows[1].mode", func(b *api.Baseline) { b.Rows[1].Mode = "round-robin" }},
		{"rows[1].speculation", func(b *api.Baseline) { b.Rows[1].Speculation = "" }},
		{"rows[1].ttft.p95", func(b *api.Baseline) { b.Rows[1].TTFT.P95 = new(math.NaN()) }},
		{"rows[1].tpot.p50", func(b *api.Baseline) { b.Rows[1].TPOT.P50 = new(-1.0) }},
		{"rows[1].latency.p95", func(b *api.Baseline) { b.Rows[1].Latency.P95 = new(1e305) }},
		{"rows[1].ttft.p95", func(b *api.Baseline) { b.Rows[1].TTFT.P95 = new(*b.Rows[1].TTFT.P50 / 2) }},
		{"rows[1].requests_per_second", func(b *api.Baseline) { b.Rows[1].RequestsPerSecond = new(math.MaxFloat64) }},
		{"rows[1].seconds", func(b *api.Baseline) { b.Rows[1].Seconds = 1e308 }},
		{"rows[1].intervals.ttft.p50", func(b *api.Baseline) {
			b.Rows[1].Intervals = &api.RowIntervals{TTFT: api.PercentileIntervals{P50: &[2]float64{0, 1e308}}}
		}},
		{"workload.think_time", func(b *api.Baseline) { b.Workload.ThinkTime = new(1e308) }},
		{"rows[1].kv_hit_ratio", func(b *api.Baseline) { b.Rows[1].KVHitRatio = new(1.01) }},
		{"rows[1].n", func(b *api.Baseline) { b.Rows[1].N = -1 }},
		{"rows[1].measured", func(b *api.Baseline) { b.Rows[1].Measured = &time.Time{} }},
		{"rows[1]", func(b *api.Baseline) { b.Rows[1] = b.Rows[0] }},
	} {
		b := h200()
		c.spoil(&b)
		refused := refusal(t, Validate(b))
		assert.Equal(t, c.field, refused.Field)
		assert.NotEmpty(t, refused.Value)
		assert.NotEmpty(t, refused.Allowed)
	}
}

func TestReadJSON(t *testing.T) {
	text, err := json.Marshal(h200())
	require.NoError(t, err)
	got, err := ReadJSON(strings.NewReader(string(text)), "", api.ModeState{})
	require.NoError(t, err)
	want := h200()
	want.Kind = KindImported
	assert.Equal(t, want, got)

	short, err := ReadJSON(
		strings.NewReader(`{"name":"x","deployment":{"speculation":"draft"},"rows":[{"concurrency":1,"mode":"kv"}],
		"sustained":[{"mode":"kv"}]}`),
		"other",
		api.ModeState{},
	)
	require.NoError(t, err)
	assert.Equal(t, "other", short.Name)
	assert.Equal(t, "other", short.Title)
	assert.Nil(t, short.Sustained, "that depends on the SLOs in force")
	assert.Equal(t, api.SpeculationDraft, short.Rows[0].Speculation)
}

func TestReadJSONRefuses(t *testing.T) {
	for _, c := range []struct{ text, field, says string }{
		{`{"name":"x","color":1}`, "line 1, baseline", "color"},
		{"{\"name\":\"x\",\n\"deployment\":{\n\"color\":1}}", "line 3, baseline", "color"},
		{"{\"name\":\"x\",\n\"rows\":[{\"color\":1},\n{\"color\":2}]}", "baseline", "color"}, // whichever it is
		{"{\"name\":\"x\",\n\"rows\":[]}\n{}", "line 3, baseline", "one JSON object"},
		{"{\n\"name\":1}", "line 2, name", "string"},
		{"{\n\"name\":\"x\"\n,,}", "line 3, baseline", "JSON"},
		{"{\n\"name\":\"x\"\n", "line 3, baseline", "EOF"},
		{`[]`, "line 1, baseline", "api.Baseline"},
		{
			"{\"name\":\"x\",\"rows\":[\n{\"concurrency\":1,\"mode\":\"kv\"},\n" +
				"{\"concurrency\":2,\n\"mode\":\"kv\",\n\"kv_hit_ratio\":50}]}",
			"line 5, rows[1].kv_hit_ratio", "0 to 1",
		},
		{ // the field is missing
			"{\"name\":\"x\",\"rows\":[\n{\"concurrency\":1,\"mode\":\"kv\"},\n{\"concurrency\":2}]}",
			"line 3, rows[1].mode", "one of",
		},
		{"{\"title\":\"x\",\n\"rows\":[{\"concurrency\":1,\"mode\":\"kv\"}]}", "name", "letters"},
		{"{\"name\":\"\xff\"}", "file", "UTF-8"},
		{strings.Repeat(" ", maxBytes+1), "file", "at most"},
	} {
		_, err := ReadJSON(strings.NewReader(c.text), "", api.ModeState{})
		assert.Equal(t, c.field, refusal(t, err).Field, c.text[:min(40, len(c.text))])
		assert.Contains(t, err.Error(), c.says)
	}
}

// The rows at a concurrency contain exactly the columns found there.
func TestRowsAt(t *testing.T) {
	for _, b := range Builtin() {
		for _, concurrency := range []int{1, 60, 70, 120, 180, 10_000} {
			rows, columns := RowsAt(b, api.AtConversations(concurrency)), Columns(b, api.AtConversations(concurrency))
			require.Len(t, rows, len(columns))
			for i, c := range columns {
				assert.Equal(t, api.BaselineRow{
					Level:                 api.AtConversations(concurrency),
					Mode:                  c.Mode,
					Speculation:           c.Speculation,
					TTFT:                  found(c.TTFT),
					TPOT:                  found(c.TPOT),
					ITL:                   found(c.ITL),
					Latency:               found(c.Latency),
					TPOTDerived:           rows[i].TPOTDerived,
					OutputTokensPerSecond: c.OutputTokensPerSecond.Value,
					RequestsPerSecond:     c.RequestsPerSecond.Value,
					KVHitRatio:            c.KVHitRatio.Value,
				}, rows[i])
			}
		}
	}
	assert.Empty(t, RowsAt(api.Baseline{}, api.AtConversations(60)))
}

func found(p api.LookedUpPair) api.Percentiles {
	return api.Percentiles{P50: p.P50.Value, P95: p.P95.Value}
}

// Rows without intervals get the estimates of a look-up. The others keep theirs, and the baseline is unchanged.
func TestWithIntervals(t *testing.T) {
	b := Builtin()[0]
	own := &api.RowIntervals{OutputTokensPerSecond: &[2]float64{1, 2}}
	b.Rows[0].Intervals = own
	got := WithIntervals(b)
	assert.Same(t, own, got.Rows[0].Intervals)
	assert.Nil(t, b.Rows[1].Intervals)
	at, _ := At(b, b.Rows[1].InMode(), b.Rows[1].Level)
	require.NotNil(t, at.TTFT.P95.Interval)
	assert.Equal(t, at.TTFT.P95.Interval, got.Rows[1].Intervals.TTFT.P95)
	assert.Equal(t, at.OutputTokensPerSecond.Interval, got.Rows[1].Intervals.OutputTokensPerSecond)
	assert.Nil(t, got.Rows[1].Intervals.ITL.P50, "recorded nowhere")
}

// Two results are compared by their deployments, their speculation and all of their workload, and not at all if the
// length of the openings differs or was not recorded.
func TestUnlike(t *testing.T) {
	of := func(w *api.WorkloadShape, workers int, spec api.Speculation) api.Baseline {
		return api.Baseline{Deployment: api.Deployment{Workers: workers}, Workload: w, Rows: []api.BaselineRow{
			{Level: api.AtConversations(60), Mode: api.ModeKV, Speculation: spec},
		}}
	}
	load := func(turns int, think, rps, turn float64) *api.WorkloadShape {
		return &api.WorkloadShape{
			Turns: api.Range{Min: turns, Max: 5}, ThinkTime: &think, TargetRPS: &rps,
			Timeouts: &api.Timeouts{FirstToken: 1, Stall: 2, Turn: turn},
		}
	}
	off := api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}
	draft := api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationDraft}
	same, why := Unlike(of(nil, 3, off.Speculation), of(nil, 3, off.Speculation), off, off)
	assert.Equal(t, []api.Difference{}, same)
	assert.Empty(t, why)
	a, b := of(load(3, 0, 25, 600), 3, off.Speculation), of(load(5, 3, 0, 60), 4, draft.Speculation)
	found, why := Unlike(a, b, off, draft)
	assert.Empty(t, why)
	assert.Equal(t, []api.Difference{
		{Field: "workers", Live: "3", Baseline: "4"},
		{Field: "speculation", Live: "off", Baseline: "draft"},
		{Field: "turns", Live: "3–5", Baseline: "5"},
		{Field: "think_time", Live: "0 s", Baseline: "3 s"},
		{Field: "target_rps", Live: "25 requests/s", Baseline: "no cap"},
		{
			Field: "timeouts", Live: "first token 1 s, stall 2 s, turn 600 s", Baseline: "first token 1 s, stall 2 s, turn 60 s",
		},
	}, found)
	long := &api.WorkloadShape{OpeningTokens: 9000}
	for _, c := range [][2]*api.WorkloadShape{{long, nil}, {nil, long}, {long, {}}} {
		_, why = Unlike(of(c[0], 0, ""), of(c[1], 0, ""), api.ModeState{Mode: api.ModeKV}, api.ModeState{Mode: api.ModeKV})
		assert.NotEmpty(t, why)
	}
}

// Every level that both modes have is judged, by the rule of every comparison.
func TestAdvantages(t *testing.T) {
	all := Advantages(h100())
	require.Len(t, all, 9)
	assert.Equal(
		t,
		[]int{20, 50, 120},
		[]int{all[0].Level.Conversations(), all[3].Level.Conversations(), all[8].Level.Conversations()},
	)
	assert.Len(t, all[0].Of, 3, "TTFT p50 and p95, and the hit ratio were recorded")
	assert.Equal(t, api.OutcomeBetter, all[3].Of["ttft_p95"].Outcome, "the H100 table scatters by 3 % at most")
	assert.InDelta(t, 9.7, all[3].Of["ttft_p95"].Percent, .05)
	assert.Equal(t, api.OutcomeNoDifference, all[8].Of["ttft_p95"].Outcome)

	one := h100()
	one.Rows = rowsOf(one, api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationNotRecorded})
	assert.Empty(t, Advantages(one), "there is nothing to compare with")
}
