package lane

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// rows returns the stored rows of this target.
func (b *booth) rows() map[level]api.BaselineRow {
	rows := map[level]api.BaselineRow{}
	for _, r := range b.store.own().Rows {
		rows[level{r.Level.Conversations(), r.Mode}] = r
	}
	return rows
}

// recorded is a built-in baseline.
const recorded = "h200x3-tp1-llama70b-fp8"

type level struct {
	concurrency int
	mode        api.Mode
}

// column returns one mode of a comparison.
func column(t *testing.T, c api.Comparison, m api.Mode) api.Column {
	t.Helper()
	i := slices.IndexFunc(c.Columns, func(o api.Column) bool { return o.Mode == m })
	require.GreaterOrEqual(t, i, 0, "no column of %s in %v", m, c.Columns)
	return c.Columns[i]
}

// A step is stored as a row after 60 s of counted turns, then each minute and at its end.
func TestRowIsKept(t *testing.T) {
	var begun atomic.Pointer[time.Time] // the engines accept drafted tokens from then on
	engines := func(o *options) {
		o.Deployment.GPUHour = 3.6
		origin := time.Now()
		o.Cluster = func() api.Cluster {
			since := time.Since(origin).Seconds()
			t := &api.EngineTotals{
				Drafted: 100 * since,
				Energy:  &api.EnergyTotals{Joules: 300 * since, Seconds: since, GPUs: 2},
			}
			if start := begun.Load(); start != nil {
				t.Accepted = 75 * time.Since(*start).Seconds()
			}
			return api.Cluster{Engines: t}
		}
	}
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		kept := level{3, api.ModeKV}
		begun.Store(new(time.Now()))
		b.start(3)
		pass(59 * time.Second)
		assert.Empty(t, b.rows(), "not settled")
		assert.True(t, b.lane.State().Settling)
		assert.InDelta(t, 2, b.snapshot().Baseline.SettlingFor, .5)
		pass(3 * time.Second)
		assert.False(t, b.lane.State().Settling)
		row := b.rows()[kept]
		assert.Equal(t, api.SpeculationOff, row.Speculation)
		// three turns of 400 ms at a time, each of 6 tokens
		assert.InDelta(t, .2, *row.TTFT.P50, 1e-9)
		assert.InDelta(t, .2, *row.TTFT.P95, 1e-9)
		assert.InDelta(t, .04, *row.TPOT.P95, 1e-9)
		assert.InDelta(t, .04, *row.ITL.P95, 1e-3)
		assert.InDelta(t, .4, *row.Latency.P50, 1e-9)
		assert.InDelta(t, 7.5, *row.RequestsPerSecond, .3)
		assert.InDelta(t, 45, *row.OutputTokensPerSecond, 2)
		assert.InDelta(t, .4, *row.KVHitRatio, 1e-9)
		assert.InDelta(t, .75, *row.AcceptanceRate, 1e-6)
		assert.InDelta(t, .75, row.Intervals.AcceptanceRate[0], 1e-6)
		assert.InDelta(t, 450, row.N, 20)
		tokens := *row.OutputTokensPerSecond
		assert.InDelta(t, 300/tokens*1e6, *row.JoulesPerMillionTokens, 1e-3)
		assert.InDelta(t, 300/7.5, *row.JoulesPerGoodTurn, 2, "all turns are within the SLOs")
		assert.InDelta(t, .002/tokens*1e6, *row.DollarsPerMillionTokens, 1e-9)
		assert.InDelta(t, tokens/2, *row.TokensPerGPU, 1e-9)
		assert.InDelta(t, 25, *row.TokensPerUser, 1e-9)
		assert.NotNil(t, row.Intervals.JoulesPerMillionTokens)
		live := b.snapshot()
		assert.InDelta(t, 300/live.Window.OutputTokensPerSecond*1e6, *live.Cost.JoulesPerMillionTokens, 1e-3)
		assert.WithinDuration(t, time.Now(), *row.Measured, 2*time.Second)

		pass(50 * time.Second)
		assert.Equal(t, row.Measured, b.rows()[kept].Measured, "not before a minute has passed")
		pass(11 * time.Second)
		assert.WithinDuration(t, row.Measured.Add(time.Minute), *b.rows()[kept].Measured, 2*time.Second)
		pass(10 * time.Second)
		b.stop()
		synctest.Wait()
		assert.Equal(t, time.Now(), b.rows()[kept].Measured.Local(), "at the end of the step")
		own := b.store.own()
		assert.Equal(t, &api.TargetID{URL: "http://gpu.example:8000", Model: "test-model"}, own.Target)
		assert.Equal(t, "measured", own.Kind)
		assert.Equal(t, "test-model", own.Deployment.Model)
		assert.Equal(t, b.lane.State().Shape, *own.Workload)
	}, engines)
}

// Tokens count as they arrive, corrected by the usage of the answer. The rate by chunks and the rate by whole turns
// agree.
func TestOutputTokensAreCorrectedByUsage(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		f.set(func(f *fake) { f.perChunk = 2 })
		b.start(3)
		pass(65 * time.Second)
		assert.InDelta(t, 90, b.snapshot().Window.OutputTokensPerSecond, 3)
		assert.InDelta(t, 90, *b.snapshot().Baseline.LiveOutput, 3)
		assert.Equal(t, 12*b.totals().OK, b.totals().OutputTokens)
	})
}

// A row has the settings and the mode of its step, not those that ended the step.
func TestRowHasTheSettingsOfItsStep(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.start(3)
		pass(65 * time.Second)
		b.start(6)
		pass(20 * time.Second)
		assert.NotContains(t, b.rows(), level{6, api.ModeKV})
		assert.InDelta(t, 7.5, *b.rows()[level{3, api.ModeKV}].RequestsPerSecond, .3)
		pass(60 * time.Second)
		b.setMode(roundRobin)
		b.patch(api.WorkloadPatch{Level: new(api.AtConversations(9))})
		b.driver.called(t).answer(true, nil)
		pass(20 * time.Second)
		rows := b.rows()
		assert.Len(t, rows, 2)
		assert.InDelta(t, 15, *rows[level{6, api.ModeKV}].RequestsPerSecond, .5)
		pass(60 * time.Second)
		assert.Contains(t, b.rows(), level{9, api.ModeRoundRobin})
	})
}

// A run of a minute leaves a row, also if its turns are so long that they only count in its second half. A shorter run
// leaves none, nor does one whose turns count for less than half a minute, or which never reaches its concurrency. The
// load generator's own error, and failures after the row, prevent none.
func TestRunOfAMinuteLeavesARow(t *testing.T) {
	turns := func(length time.Duration) func(*booth, *fake) {
		return func(b *booth, f *fake) {
			f.set(func(f *fake) { f.ttft = length })
			b.start(3)
		}
	}
	for name, row := range map[string]struct {
		runs  time.Duration
		begin func(b *booth, f *fake)
		want  int // rows
	}{
		"short turns":     {60 * time.Second, turns(400 * time.Millisecond), 1},
		"long turns":      {60 * time.Second, turns(14 * time.Second), 1},
		"very long turns": {60 * time.Second, turns(40 * time.Second), 0},
		"a shorter run":   {59 * time.Second, turns(400 * time.Millisecond), 0},
		"never reached its concurrency": {200 * time.Second, func(b *booth, _ *fake) {
			b.start(3)
			b.patch(api.WorkloadPatch{Level: new(api.AtConversations(200)), StartRate: new(.01)})
		}, 0},
		"the load generator's own error is not known": {200 * time.Second, func(b *booth, _ *fake) {
			b.judge(api.VerdictUnknown)
			b.delay(-1)
			b.start(3)
		}, 1},
		"it is noticeable": {200 * time.Second, func(b *booth, _ *fake) {
			b.delay(50 * time.Millisecond)
			b.start(3)
		}, 1},
		"the target fails after the row": {200 * time.Second, func(b *booth, f *fake) {
			b.start(3)
			pass(65 * time.Second)
			f.set(func(f *fake) { f.turnError = broken })
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, b *booth, f *fake) {
				row.begin(b, f)
				pass(row.runs)
				b.stop()
				synctest.Wait()
				assert.Len(t, b.rows(), row.want, "%v", b.snapshot().Baseline.NotKept)
				for _, kept := range b.rows() {
					assert.Positive(t, kept.N)
					assert.NotNil(t, kept.TTFT.P95)
				}
			})
		})
	}
}

// A row has its span, its intervals and the load generator's own error, which widens the intervals of latencies.
func TestRowHasIntervalsAndOwnError(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		b.delay(5 * time.Millisecond)
		b.start(3)
		pass(65 * time.Second)
		row := b.rows()[level{3, api.ModeKV}]
		require.NotNil(t, row.LagSeconds)
		assert.InDelta(t, .005, *row.LagSeconds, .0005, "to an eighth of an octave")
		assert.InDelta(t, 60, row.Seconds, 1)
		assert.InDelta(t, .2, *row.TTFT.P50, 1e-9)
		assert.InDelta(t, 1.25*.0051, *row.Errors.TTFT.P50, .0003)
		assert.InDelta(t, .2-*row.Errors.TTFT.P50, row.Intervals.TTFT.P50[0], 1e-9, "lower by the error")
		assert.InDelta(t, .2, row.Intervals.TTFT.P50[1], 1e-9, "and never higher")
		assert.InDelta(t, .0387, row.Intervals.TPOT.P95[0], .0001, "five gaps share it")
		assert.InDelta(t, .0413, row.Intervals.TPOT.P95[1], .0001, "either end of which may be late")
		assert.InDelta(t, .0464, row.Intervals.ITL.P50[1], .001)
		in := row.Intervals
		for _, interval := range []*[2]float64{in.OutputTokensPerSecond, in.RequestsPerSecond, in.KVHitRatio} {
			require.NotNil(t, interval)
			assert.LessOrEqual(t, interval[0], interval[1])
		}
		pass(5 * time.Minute)
		row = b.rows()[level{3, api.ModeKV}]
		assert.InDelta(t, 300, row.Seconds, 1)
		assert.InDelta(t, 2250, row.N, 20)
		b.changeMode(roundRobin, true, nil)
		pass(65 * time.Second)
		was := column(t, b.snapshot().Baseline, api.ModeKV)
		assert.Equal(t, *row.LagSeconds, *was.LagSeconds)
		assert.Equal(t, row.Errors.TTFT.P95, was.TTFT.P95.Error)
	})
}

// The comparison with this target's own rows names the latest row that was not kept, with the reason, until a row of
// that level and mode exists.
func TestNotKeptIsReported(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		notKept := func() *api.NotKept { return b.snapshot().Baseline.NotKept }
		b.start(3)
		assert.Nil(t, notKept())
		pass(30 * time.Second)
		b.start(4)
		synctest.Wait()
		n := notKept()
		require.NotNil(t, n)
		assert.Equal(t, level{3, api.ModeKV}, level{n.Level.Conversations(), n.Mode})
		assert.WithinDuration(t, time.Now(), n.Time, time.Second)
		const reason = `^the step ended after (29|30) s of counted turns; ` +
			`a row takes 60 s, or 30 s in a step that lasted 60 s$`
		assert.Regexp(t, reason, n.Reason)

		b.delay(110 * time.Millisecond)
		pass(65 * time.Second)
		n = notKept()
		require.NotNil(t, n)
		assert.Equal(t, api.AtConversations(4), n.Level)
		assert.Regexp(t, `^TTFT cannot be judged: up to 14\d ms of its 200 ms \(p50\) may be the load generator's own; `+
			`run fewer conversations, give it more cores, or add members$`, n.Reason)
		assert.Empty(t, b.rows())
		chosen, err := b.lane.Comparison(recorded)
		require.NoError(t, err)
		assert.Nil(t, chosen.NotKept, "a recorded table has no rows of this target")

		b.delay(0)
		pass(65 * time.Second)
		assert.Contains(t, b.rows(), level{4, api.ModeKV})
		assert.Nil(t, notKept())
	})
}

// A draining lane has no steady concurrency, and its figures are in no row.
func TestDrainIsNotInTheRow(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(3)
		pass(65 * time.Second)
		f.set(func(f *fake) { f.ttft = 30 * time.Second })
		pass(time.Second)
		before := time.Now()
		b.drain()
		pass(time.Minute)
		require.Equal(t, api.PhaseStopped, b.lane.State().Phase)
		row := b.rows()[level{3, api.ModeKV}]
		assert.WithinDuration(t, before, *row.Measured, 0)
		assert.InDelta(t, 7.5, *row.RequestsPerSecond, .3)
		assert.InDelta(t, .2, *row.TTFT.P95, 1e-9)
	})
}

// Rows of another target, model or workload are neither shown as this target's nor mixed with its own. Rows of the
// same target remain after a restart.
func TestRowsOfAnotherTargetAreNotMixed(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*options)
		shown  bool // before anything new is measured
		rows   int  // after
	}{
		"the same": {func(*options) {}, true, 2},
		"the same, as former versions stored it": {func(o *options) {
			o.store.edit(func(own *api.Baseline) { own.Target = nil })
		}, true, 2},
		"the same, whatever the notes say": {func(o *options) {
			o.store.edit(func(own *api.Baseline) { own.Notes = "In other words" })
		}, true, 2},
		"another URL, as former versions stored it": {func(o *options) {
			o.store.edit(func(own *api.Baseline) { own.Target = nil })
			o.Client.(*fake).url = "http://other.example:8000"
		}, false, 1},
		"another URL":        {func(o *options) { o.Client.(*fake).url = "http://other.example:8000" }, false, 1},
		"another model":      {func(o *options) { o.Client.(*fake).model = "other-model" }, false, 1},
		"another workload":   {func(o *options) { o.Settings.MaxTokens = 65 }, true, 1}, // the difference is named
		"another think time": {func(o *options) { o.Settings.ThinkTime = time.Millisecond }, true, 1},
		"another name of the model in the cluster": {func(o *options) {
			o.Cluster = func() api.Cluster { return api.Cluster{Model: "models/test"} }
		}, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, first *booth, _ *fake) {
				first.start(3)
				pass(65 * time.Second)
				first.stop()
				first.end()
				second := newBooth(t, newFake(), func(o *options) { o.store = first.store }, row.change)
				pass(time.Second)
				comparison := second.snapshot().Baseline
				assert.Equal(t, api.ThisTarget, comparison.Name)
				assert.Equal(t, row.shown, len(comparison.Columns) > 0)
				differs := name == "another workload" || name == "another think time"
				assert.Equal(t, differs, len(comparison.Differences) > 0, comparison.Differences)
				second.start(6)
				pass(65 * time.Second)
				assert.Len(t, second.rows(), row.rows)
				assert.Contains(t, second.rows(), level{6, api.ModeKV})
			})
		})
	}
}

// The live step is compared with the other mode that was measured here before, once it has settled.
func TestComparisonWithTheOtherMode(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.start(3)
		pass(65 * time.Second)
		f.set(func(f *fake) { f.ttft = 600 * time.Millisecond })
		b.changeMode(roundRobin, false, nil)
		pass(30 * time.Second)
		c := b.snapshot().Baseline
		assert.True(t, c.Settling)
		assert.InDelta(t, 30, c.SettlingFor, 1)
		assert.Positive(t, c.N)
		assert.Nil(t, column(t, c, api.ModeKV).TTFT.P95.Improvement)

		pass(32 * time.Second)
		c = b.snapshot().Baseline
		assert.Empty(t, c.Withheld)
		assert.False(t, c.Settling)
		assert.Zero(t, c.SettlingFor)
		assert.Equal(t, api.AtConversations(3), c.Level)
		assert.InEpsilon(t, .6, *c.Live.TTFT.P95, .004)
		was := column(t, c, api.ModeKV)
		assert.Equal(t, api.LookupExact, was.TTFT.P95.Lookup)
		assert.InDelta(t, .2, *was.TTFT.P95.Value, 1e-9)
		require.NotNil(t, was.TTFT.P95.Improvement)
		assert.InDelta(t, -200, was.TTFT.P95.Improvement.Percent, 1, "three times as long")
		assert.Equal(t, api.OutcomeWorse, was.TTFT.P95.Improvement.Outcome)
		assert.Equal(t, api.OutcomeTooVariable, was.RequestsPerSecond.Improvement.Outcome, "two batches")
		assert.InDelta(t, -50, was.RequestsPerSecond.Improvement.Percent, 2)
		assert.NotNil(t, was.Measured)
		column(t, c, api.ModeRoundRobin) // its own row is there as well
		assert.Empty(t, c.Differences)

		pass(2 * time.Minute)
		c = b.snapshot().Baseline
		assert.Equal(t, api.OutcomeWorse, column(t, c, api.ModeKV).TTFT.P95.Improvement.Outcome, "of three minutes")
		assert.InDelta(t, 180, c.Seconds, 1)

		b.start(4)
		pass(time.Second)
		c = b.snapshot().Baseline
		assert.True(t, c.Settling, "a new step settles anew")
		assert.Equal(t, api.AtConversations(4), c.Level)
		assert.Equal(t, api.LookupOutside, column(t, c, api.ModeKV).TTFT.P95.Lookup)
	})
}

// The default baseline is the recorded one of the deployment as the configuration and the cluster report it.
func TestDefaultBaselineMatchesTheDeployment(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, _ *fake) {
		c := b.snapshot().Baseline
		assert.Equal(t, recorded, c.Name)
		assert.NotEmpty(t, c.Title)
		assert.NotEmpty(t, c.Columns)
		_, err := b.catalog.PatchSettings(t.Context(), ann, api.SettingsPatch{DefaultBaseline: new(api.ThisTarget)})
		require.NoError(t, err)
		assert.Equal(t, api.ThisTarget, b.snapshot().Baseline.Name)
	}, func(o *options) {
		o.Settings.Level = api.AtConversations(100)
		o.Deployment = api.Deployment{TensorParallel: 1, Model: "nvidia/Llama-3.1-70B-Instruct-FP8"}
		o.Cluster = func() api.Cluster { return api.Cluster{GPU: "H200", Workers: make([]api.Worker, 3)} }
	})
}

// A baseline that is chosen by name is compared with the same live step as the default one. This target's own can be
// chosen before it has a row.
func TestComparisonWithAChosenBaseline(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		empty, err := b.lane.Comparison(api.ThisTarget)
		require.NoError(t, err)
		assert.Equal(t, api.ThisTarget, empty.Name)
		assert.NotEmpty(t, empty.Title)
		assert.Empty(t, empty.Columns)
		assert.Empty(t, empty.Differences, "nothing to differ from")
		f.setLatency(5 * time.Second)
		b.start(100)
		pass(75 * time.Second)
		byDefault, err := b.lane.Comparison("")
		require.NoError(t, err)
		assert.Equal(t, b.snapshot().Baseline, byDefault)
		assert.NotNil(t, byDefault.Headline)
		byDefault.Headline = nil // only the comparison with the default baseline has one
		own, err := b.lane.Comparison(api.ThisTarget)
		require.NoError(t, err)
		assert.Equal(t, byDefault, own)
		chosen, err := b.lane.Comparison(recorded)
		require.NoError(t, err)
		assert.Equal(t, recorded, chosen.Name)
		assert.Equal(t, api.AtConversations(100), chosen.Level)
		assert.Equal(t, byDefault.Live, chosen.Live)
		assert.NotNil(t, column(t, chosen, api.ModeRoundRobin).TTFT.P95.Improvement)
		assert.NotEmpty(t, chosen.Differences, "another deployment than the recorded one")

		_, err = b.lane.Comparison("none")
		require.ErrorIs(t, err, api.ErrNotFound)
	})
}

// After a change of the shape a step settles only when the conversations of the former shape have ended, so that no
// figure mixes the two.
func TestStepSettlesAfterShapeChange(t *testing.T) {
	virtual(t, func(t *testing.T, b *booth, f *fake) {
		b.patch(api.WorkloadPatch{Turns: &api.Range{Min: 5, Max: 5}})
		f.set(func(f *fake) { f.ttft = 5 * time.Second })
		b.start(3)
		pass(7 * time.Second)
		b.patch(api.WorkloadPatch{MaxTokens: new(17)})
		b.start(4) // in a step of its own, which is mixed too
		pass(10 * time.Second)
		assert.Equal(t, 4, b.lane.State().Concurrency.Actual)
		assert.Nil(t, b.lane.State().Step.Settled)
		pass(30 * time.Second)
		settled := b.lane.State().Step.Settled
		require.NotNil(t, settled)
		counted := 0
		for _, turn := range b.store.allTurns() {
			if turn.Counted && turn.Step == 3 {
				assert.False(t, turn.Started.Before(*settled))
				assert.Equal(t, api.AtConversations(4), turn.Level)
				counted++
			}
		}
		assert.Positive(t, counted)
		for _, r := range f.requests[len(f.requests)-4:] {
			assert.Equal(t, 17, r.maxTokens)
		}

		b.patch(api.WorkloadPatch{StartRate: new(5.0)})
		synctest.Wait()
		assert.NotNil(t, b.lane.State().Step.Settled, "the start rate shapes no conversation")
	})
}
