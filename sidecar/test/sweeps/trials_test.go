package sweeps

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/test/virtual"
)

// A span with an overloaded target counts, also without an answered turn, and is not repeated. The trial pauses if the
// cluster's mode cannot be set, and names it.
func TestFailedTurnsOfTrialCount(t *testing.T) {
	for name, phase := range map[string]api.SweepPhase{
		"some answered": api.SpanCounting, "none answered": api.SpanWarmingUp,
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, b *booth) {
				q := trial()
				q.MaxSeconds = new(1000.) // the target fails for minutes
				s := b.begun(q)
				b.reaches(s.ID, 1, phase)
				b.cluster.Break(&chat.Error{Class: api.ErrorBusy, Message: "busy"})
				s = b.until(s.ID, "the pause", limit, ended)
				assert.Equal(t, api.CauseMode, s.Cause)
				assert.Regexp(t, "^the change to (KV-aware|Round-robin) failed: busy; ", s.Reason)
				require.Len(t, s.Spans, 2)
				assert.Empty(t, s.Spans[1].Spoiled)
				assert.Positive(t, s.Spans[1].Failed)
				b.cluster.Break(nil)
				b.free()
				require.NoError(t,
					second(b.process.desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepRunning})))
				s = b.done(s.ID)
				for i, span := range s.Spans {
					assert.Equal(t, []int{i, 1}, []int{span.Number, span.Attempt}, "no span is repeated")
				}
				of := map[api.TrialArm]api.TrialFailed{"a": s.Trial.Failures.A, "b": s.Trial.Failures.B}
				assert.GreaterOrEqual(t, of[api.TrialArm(s.Spans[1].Arm)].Failed, s.Spans[1].Failed)
				// A doubt about the hit rate of a span may come first.
				assert.Contains(t, strings.Join(s.Words, " "), " of turns failed under ")
				for _, format := range []api.ReportFormat{api.ReportMarkdown, api.ReportHTML, api.ReportJSON} {
					require.NoError(t, b.process.desk.WriteSweepReport(t.Context(), io.Discard, s.ID, format))
				}
			})
		})
	}
}

// A span whose target does not serve decides nothing, also without an answered turn. It is repeated, and a second such
// attempt pauses the trial.
func TestSpanWithoutServerIsRepeated(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(trial())
		for attempt := 1; attempt <= 2; attempt++ {
			b.reaches(s.ID, 1, api.SpanWarmingUp)
			b.cluster.Break(&chat.Error{Class: api.ErrorConnect, Message: "connection refused"})
			s = b.until(s.ID, "the pause", limit, ended)
			require.Len(t, s.Spans, 1+attempt)
			assert.Regexp(t, `^http://\S+ does not serve: \d+ of \d+ turns failed, the latest with connect: connection `+
				"refused$", s.Spans[attempt].Spoiled)
			b.cluster.Break(nil)
			b.free()
			require.NoError(t,
				second(b.process.desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepRunning})))
		}
		assert.Equal(t, api.CauseTarget, s.Cause)
		assert.Regexp(t, "^the target failed twice in a span of Round-robin: .*; fix it and resume: the trial repeats that "+
			"span$", s.Reason)
		s = b.done(s.ID)
		assert.Equal(t, []int{1, 3}, []int{s.Spans[3].Number, s.Spans[3].Attempt})
		assert.Zero(t, s.Trial.Failures.A.Failed+s.Trial.Failures.B.Failed)
	})
}

// A trial of three modes survives a kill in its first block, ends with a ranking, and restores the lane.
func TestTrialOfThreeModes(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		b.start()
		q := trial()
		q.Modes = []api.ModeState{{Mode: api.ModeRoundRobin}, {Mode: api.ModeKV}, {Mode: api.ModeLeastLoaded}}
		q.Question = new(api.QuestionOrder)
		s := b.begun(q)
		b.counts(s.ID, 2)
		b.kill()
		b.begin()
		s = b.done(s.ID)
		r := s.Trial.Ranking
		require.Len(t, r.Places, 3)
		require.Len(t, r.Pairs, 3)
		assert.Contains(t, []string{"order", "no_difference", "time_over"}, s.Trial.Verdict)
		assert.Equal(t, r.Pairs[0].Primary, *s.Trial.Primary)
		for i, span := range s.Spans {
			assert.Equal(t, i, span.Number, "the span of the kill is run once more, and no other one")
		}
		require.Len(t, s.Rows, 3)
		assert.Equal(t, api.ModeKV, b.free().Mode)
		var report strings.Builder
		require.NoError(t, b.process.desk.WriteSweepReport(t.Context(), &report, s.ID, api.ReportMarkdown))
		assert.Contains(t, report.String(), s.Words[0])
		assert.Contains(t, report.String(), "### Every pair")
		for _, span := range s.Spans {
			assert.Len(t, span.TurnsByWorker, 3)
		}
		assert.Contains(t, report.String(), "## Turns by worker")
	})
}

// A limit that holds the load of a trial down is named in one line for each arm. Without a limit there is no line.
func TestTrialNamesTheLimit(t *testing.T) {
	for name, targetRPS := range map[string]float64{"limited": 5, "not limited": 0} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, b *booth) {
				q := trial()
				q.MaxSeconds = new(1000.)
				s := b.done(b.begun(q).ID)
				var lines []string
				for _, text := range s.Words {
					if strings.Contains(text, "held the load down") {
						lines = append(lines, text)
					}
				}
				if targetRPS == 0 {
					assert.Empty(t, lines)
					return
				}
				n := len(s.Spans)
				assert.Equal(t, []string{fmt.Sprintf("In %d of %d spans of Round-robin and KV-aware: the cap of 5 requests/s "+
					"held the load down.", n, n)}, lines)
			}, func(b *booth) { b.workload.TargetRPS = targetRPS })
		})
	}
}

// A proxy that holds a third of an arm's streams back is named. That arm has no TPOT, neither in its rows nor in the
// trial. The other arms are compared by theirs.
func TestArmWhoseStreamsComeInBursts(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		q := trial()
		q.Modes = []api.ModeState{{Mode: api.ModeRoundRobin}, {Mode: api.ModeKV}, {Mode: api.ModeLeastLoaded}}
		s := b.done(b.begun(q).ID)
		held := 0
		for _, span := range s.Spans {
			bursts := span.Mode.Mode == api.ModeRoundRobin
			assert.Equal(t, bursts, strings.Contains(strings.Join(span.Warnings, ""), "answers came in bursts"))
			assert.Equal(t, bursts, span.Row.TPOT.P95 == nil)
			if bursts {
				held++
			}
		}
		assert.Positive(t, held)
		for _, row := range s.Rows {
			assert.Equal(t, row.Mode == api.ModeRoundRobin, row.TPOT.P50 == nil, row.Mode)
		}
		assert.Equal(t, api.TrialArmA, s.Trial.Ranking.Places[2].Arm, "the held streams have the largest TTFT")
		assert.True(t, slices.ContainsFunc(s.Trial.Others, func(d api.TrialDifference) bool {
			return d.Metric == "tpot_p95"
		}), "of the best arm and the runner-up")
	}, func(b *booth) {
		b.cluster = b.made(virtual.Options{
			Mode: api.ModeKV, Seed: 1, Restart: 5 * time.Second, Holds: api.ModeRoundRobin,
		})
	})
}

// After a first trial on a target, the detectable difference is known before the next trial starts, and whether its
// time is too short.
func TestOutlookBeforeTrial(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		outlook := func(q api.SweepRequest) (api.SweepOutlook, error) {
			return b.process.desk.SweepOutlook(t.Context(), api.DefaultLane, q)
		}
		short := trial()
		short.MaxSeconds = new(91.)
		_, err := outlook(short)
		require.ErrorContains(t, err, "the switch, the openings and the warm-up")
		before, err := outlook(trial())
		require.NoError(t, err)
		assert.Nil(t, before.Detectable)
		assert.EqualValues(t, []string{
			"Each span begins on cold caches.",
			"What it can find is known after its first block: no such trial of these arms was run on this target.",
			"A block takes at least 51 seconds, so that at most 4 fit into 4 minutes. The first look comes after block 2, 102 " +
				"seconds after the start at the earliest.",
		}, before.Words)

		first := b.done(b.begun(trial()).ID)
		b.free()
		after, err := outlook(trial())
		require.NoError(t, err)
		require.NotNil(t, after.Detectable)
		assert.Nil(t, before.Soonest)
		q := trial()
		q.Levels, q.Seconds, q.MaxSeconds = api.LevelsOf(20), new(20.), new(86_400.)
		elsewhere, err := outlook(q)
		require.NoError(t, err)
		require.NotNil(t, elsewhere.Soonest, "known from another level and length")
		assert.Positive(t, elsewhere.Soonest.After)
		assert.Equal(t, []any{first.ID, api.AtConversations(40), 10.},
			[]any{elsewhere.Soonest.Trial, elsewhere.Soonest.Level, elsewhere.Soonest.Seconds})
		assert.Contains(t, strings.Join(elsewhere.Words, " "),
			"answered soonest at 40 conversations with a span length of 10 seconds: after ")
		q.Modes = []api.ModeState{{Mode: api.ModeKV}, {Mode: api.ModeLeastLoaded}}
		elsewhere, err = outlook(q)
		require.NoError(t, err)
		assert.Nil(t, elsewhere.Soonest, "nothing is known of other arms")
		assert.Equal(t, first.ID, after.Detectable.Trial)
		assert.Positive(t, after.Detectable.Difference)
		assert.InDelta(t, first.Trial.BlockSeconds, after.Detectable.BlockSeconds, 1e-9)
		assert.Contains(t, after.Words[1], "in mean TTFT within 4 minutes in 80 % of trials, judged by the last such trial")
		of := func(modes ...api.Mode) *api.TrialDetectable {
			q := trial()
			for _, m := range modes {
				q.Modes = append(q.Modes, api.ModeState{Mode: m})
			}
			o, err := outlook(q)
			require.NoError(t, err)
			return o.Detectable
		}
		assert.NotNil(t, of(api.ModeKV, api.ModeRoundRobin), "the same arms")
		assert.Nil(t, of(api.ModeKV, api.ModeKV), "scatter belongs to the arm")

		q = trial()
		q.Primary = new("ttft_p95")
		p95, err := outlook(q)
		require.NoError(t, err)
		assert.Contains(t, p95.Words[1], "in TTFT p95 within 4 minutes")
		assert.NotEqual(t, after.Detectable.Difference, p95.Detectable.Difference, "each metric has its own scatter")
		q.MaxSeconds = new(95.)
		_, err = outlook(q)
		var refused *api.FieldError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "max_time", refused.Field)
		assert.Contains(t, refused.Allowed, fmt.Sprintf("one took %.0f s", first.Trial.BlockSeconds))

		q = trial()
		q.Modes = []api.ModeState{{Mode: api.ModeKV}, {Mode: api.ModeRoundRobin}, {Mode: api.ModeLeastLoaded}}
		q.MaxSeconds = new(95.)
		_, err = outlook(q)
		require.ErrorAs(t, err, &refused)
		least := math.Inf(1)
		for _, s := range first.Spans {
			least = min(least, s.Elapsed-s.Until.Sub(s.CountedFrom).Seconds())
		}
		assert.Greater(t, least, 1.)
		assert.Contains(t, refused.Allowed, fmt.Sprintf("%.0f to 604800", math.Ceil(6*(10+least))), "six spans of 10 s")

		q = trial()
		q.Seed = nil
		again := b.begun(q)
		assert.NotEqual(t, *first.Request.Seed, *again.Request.Seed, "drawn")
		assert.Equal(t, first.ID, again.Trial.Detectable.Trial)
	})
}

// Three trials of two arms give the next one of them a prior, and a look after its first block. So does a trial on
// another machine, whose arms, level, spans and workload must be the same.
func TestPriorOfSameArms(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		outlook := func(q api.SweepRequest) (api.SweepOutlook, error) {
			return b.process.desk.SweepOutlook(t.Context(), api.DefaultLane, q)
		}
		var last api.Sweep
		for seed := range uint64(3) {
			q := trial()
			q.Seed = &seed
			last = b.done(b.begun(q).ID)
			b.free()
			require.Equal(t, 2, last.Trial.FirstLook)
			require.NotEmpty(t, last.Trial.Variances)
		}
		o, err := outlook(trial())
		require.NoError(t, err)
		require.NotNil(t, o.Prior)
		assert.Equal(t, 3, o.Prior.Trials)
		assert.Less(t, o.Detectable.Difference, *o.Prior.Without)
		assert.Regexp(t, `The scatter of 3 earlier trials counts; without it, \d+\.\d % or more\. .* after block 1, .*\.$`, o.Words[1])
		q := trial()
		q.Modes = []api.ModeState{{Mode: api.ModeKV}, {Mode: api.ModeKV}}
		o, err = outlook(q)
		require.NoError(t, err)
		assert.Nil(t, o.Prior, "of other arms")

		twice := q.Modes
		like := api.TrialLike{
			ID: "elsewhere", Modes: last.Request.Modes, Levels: api.LevelsOf(40), Seconds: 10, Workload: last.Workload,
			Variances: last.Trial.Variances, BlockSeconds: 60,
		}
		q.Modes, q.Like = nil, &like
		s := b.done(b.begun(q).ID)
		assert.Equal(t, 4, s.Trial.Prior.Trials)
		assert.Equal(t, 1, s.Trial.Looks[0].Blocks)
		assert.Contains(t, strings.Join(s.Words, " "), "4 earlier trials of these arms")
		b.free()
		for field, change := range map[string]func(*api.TrialLike){
			"like.modes":               func(l *api.TrialLike) { l.Modes = twice },
			"like.levels":              func(l *api.TrialLike) { l.Levels = api.LevelsOf(60) },
			"like.span":                func(l *api.TrialLike) { l.Seconds = 60 },
			"like.together":            func(l *api.TrialLike) { l.Together = true },
			"like.workload.max_tokens": func(l *api.TrialLike) { l.Workload.MaxTokens++ },
			"like.variances":           func(l *api.TrialLike) { l.Variances = nil },
		} {
			other := like
			change(&other)
			q.Like = &other
			_, err := outlook(q)
			var refused *api.FieldError
			require.ErrorAs(t, err, &refused, field)
			assert.Equal(t, field, refused.Field)
		}
	})
}

// Where many openings warm the caches slowly, the spans of the first block wait for the hit rate, and those that follow
// as long. Where no answer reports cached tokens, none waits.
func TestRunInFollowsHitRate(t *testing.T) {
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprint(silent), func(t *testing.T) {
			in(t, func(t *testing.T, b *booth) {
				q := trial()
				q.Levels, q.MaxSeconds = api.LevelsOf(16), new(1200.)
				s := b.begun(q)
				waits := map[int]bool{}
				s = b.until(s.ID, "two blocks", limit, func(s api.Sweep) bool {
					now := s.Progress.Span
					if now != nil && now.Message == "waiting until the KV cache hit rate no longer rises" {
						waits[now.Number] = true
					}
					return len(s.Spans) == 6
				})
				assert.Equal(t, !silent, waits[0] || waits[1] || waits[2])
				assert.Equal(t, !silent, s.Trial.RunIn > 0)
				assert.False(t, waits[3] || waits[4] || waits[5], "the first block fixes it")
				for _, span := range s.Spans[3:] {
					assert.GreaterOrEqual(t, span.Until.Sub(span.CountedFrom).Seconds(), 2*s.Trial.RunIn, "span %d", span.Number)
				}
				var report strings.Builder
				require.NoError(t, b.process.desk.WriteSweepReport(t.Context(), &report, s.ID, api.ReportMarkdown))
				assert.Equal(t, !silent, strings.Contains(report.String(), "hit rate no longer rose in the first block"))
			}, func(b *booth) {
				b.workload.Openings = 200
				b.cluster = b.made(virtual.Options{Mode: api.ModeKV, Seed: 1, Restart: 5 * time.Second, Silent: silent})
			})
		})
	}
}

// kept is a trial in the format of earlier versions.
const kept = `{"sweep":{"id":"%[1]s","lane":"main","state":"%[2]s","by":"ann","asked":"2026-01-02T03:04:05Z",
"request":{"kind":"trial","title":"","modes":[{"mode":"round_robin","speculation":"not_recorded"},{"mode":"kv","speculation":"not_recorded"}],
"levels":[40],"primary":"ttft_p95","smallest":0.05,"span_seconds":10,"max_seconds":240,"together":false,"slo":{"ttft":0.6,"tpot":0.06},"seed":"1"},
"progress":{"spans":3,"spoiled":0,"seconds_used":90,"seconds_left":60},"words":["KV-aware is better."],"program":"old",
"target":{"url":"http://virtual.invalid"},"deployment":{},"workload":{"turns":{"min":3,"max":5},"max_tokens":1024},"rows":[],
"spans":[{"number":0,"attempt":1,"arm":"pilot","mode":{"mode":"kv","speculation":"not_recorded"},"concurrency":40,"seed":"5","step":1,
"started":"2026-01-02T03:04:05Z","counted_from":"2026-01-02T03:04:15Z","until":"2026-01-02T03:04:35Z","elapsed_seconds":30,"turns":90,"failed":0,"cold":"emptied"}],
"trial":{"verdict":"%[3]s","pairs":1,"looks":[{"pairs":1,"difference":-0.4,"interval":[-0.5,-0.3]}],"boundaries":[-0.0476,0.05],"others":[],
"primary":{"metric":"ttft_p95","a":0.5,"b":0.3,"difference":-0.4,"interval":[-0.5,-0.3],"outcome":"%[3]s","basis":"sections"}}},
"machine":{"plan":{"a":{"mode":"round_robin"}},"done":[]}%[4]s}`

// A stored trial of an earlier version can be read, with the method by which it was decided. An unfinished one ends
// and releases the lane.
func TestTrialsOfEarlierVersionsAreReadable(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		before := `,"before":{"mode":{"mode":"round_robin","speculation":"not_recorded"},"concurrency":5,"running":true}`
		for id, row := range map[string][3]string{"old": {"done", "b_better", ""}, "older": {"running", "running", before}} {
			require.NoError(t,
				b.process.Store.SaveSweep(t.Context(), id, fmt.Appendf(nil, kept, id, row[0], row[1], row[2]), 0, nil))
		}
		b.kill()
		b.begin()
		b.until("older", "the lane is given back", limit, func(api.Sweep) bool {
			state := b.process.lane.State()
			return state.Mode == api.ModeRoundRobin && state.Concurrency.Target == api.AtConversations(5) && state.Sweep == nil
		})
		old, err := b.process.desk.Sweep(t.Context(), "old")
		require.NoError(t, err)
		assert.Equal(t, api.TrialOnPairs, old.Trial.Method)
		assert.EqualValues(t, []string{
			"KV-aware is better.", "Decided by the method of earlier versions, which looked after each pair of spans.",
		}, old.Words)
		var report strings.Builder
		require.NoError(t, b.process.desk.WriteSweepReport(t.Context(), &report, "old", api.ReportMarkdown))
		for _, want := range []string{
			old.Words[0], old.Words[1], "By the method of earlier versions, on 1 pair of spans.",
			"| −40.0 % | −50.0 to −30.0 % | KV-aware is better |", "Pair by pair",
		} {
			assert.Contains(t, report.String(), want)
		}
		older, err := b.process.desk.Sweep(t.Context(), "older")
		require.NoError(t, err)
		assert.Equal(t, api.SweepFailed, older.State)
		assert.Contains(t, older.Reason, "it was left unfinished by an earlier version")
		assert.Nil(t, older.Progress.SecondsLeft)
		require.ErrorIs(t,
			second(b.process.desk.PatchSweep(t.Context(), "bob", "older", api.SweepPatch{State: api.SweepRunning})),
			api.ErrConflict)
	})
}

// An arm that does not serve leaves a trial for the whole order, whether its target fails twice in a row or cannot be
// switched to. It is last, in no pair and in no later span, and the trial of the others goes on.
func TestArmWithoutServerLeaves(t *testing.T) {
	for name, want := range map[string]string{
		"cannot be switched to": "the change to NAME failed: connection refused",
		"fails twice":           `http://\S+ does not serve: \d+ of \d+ turns failed, the latest with connect: connection refused`,
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, b *booth) {
				q := trial()
				q.Modes = []api.ModeState{{Mode: api.ModeRoundRobin}, {Mode: api.ModeKV}, {Mode: api.ModeLeastLoaded}}
				q.Question, q.MaxSeconds = new(api.QuestionOrder), new(2000.)
				s := b.begun(q)
				const number = 4 // in the second block
				gone := b.reaches(s.ID, number, api.SpanWarmingUp).Progress.Span.Mode
				refuse := func() {
					b.cluster.Break(&chat.Error{Class: api.ErrorConnect, Message: "connection refused"}, gone.Mode)
				}
				refuse()
				if name == "fails twice" {
					b.until(s.ID, "the first attempt", limit, func(s api.Sweep) bool { return len(s.Spans) > number })
					b.cluster.Break(nil)
					b.reaches(s.ID, number, api.SpanWarmingUp)
					refuse()
				}
				s = b.done(s.ID)
				k := s.Trial.Ranking
				require.Len(t, k.Pairs, 1)
				last := k.Places[2]
				assert.Equal(t, []any{gone, [2]int{3, 3}, 1, false},
					[]any{last.Mode, last.Place, *last.LeftAfter, last.MayBeBest})
				want = strings.Replace(want, "NAME", gone.Name(), 1)
				assert.Regexp(t, "^"+gone.Name()+" left the trial after 1 whole block, and is last without a comparison: "+
					want+`\.$`, s.Words[0])
				for i, later := range s.Spans[number+1:] {
					assert.True(t, later.Mode != gone || i == 0 && later.Spoiled != "")
				}
				var report strings.Builder
				require.NoError(t, b.process.desk.WriteSweepReport(t.Context(), &report, s.ID, api.ReportMarkdown))
				assert.Contains(t, report.String(), "1 block, then did not serve")
			}, askable)
		})
	}
}

// Where no arm serves, none leaves the trial, which pauses and then has all of them.
func TestOutageRemovesNoArm(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		q := trial()
		q.Modes = []api.ModeState{{Mode: api.ModeRoundRobin}, {Mode: api.ModeKV}, {Mode: api.ModeLeastLoaded}}
		q.Question, q.MaxSeconds = new(api.QuestionOrder), new(2000.)
		s := b.begun(q)
		b.reaches(s.ID, 1, api.SpanWarmingUp)
		b.cluster.Break(&chat.Error{Class: api.ErrorConnect, Message: "connection refused"})
		s = b.until(s.ID, "the pause", limit, ended)
		assert.Equal(t, []any{api.SweepPaused, api.CauseMode}, []any{s.State, s.Cause})
		b.cluster.Break(nil)
		b.free()
		require.NoError(t,
			second(b.process.desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepRunning})))
		assert.Len(t, b.done(s.ID).Trial.Ranking.Pairs, 3)
	}, askable)
}

// askable makes the cluster one that can be asked which modes serve.
func askable(b *booth) {
	b.cluster = b.made(virtual.Options{Mode: api.ModeKV, Seed: 1, Restart: 5 * time.Second, Asked: true})
}
