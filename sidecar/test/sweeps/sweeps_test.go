package sweeps

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/test/virtual"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// limit is the limit in virtual time of steps without a limit of their own.
const limit = 2 * time.Hour

// in runs a test in virtual time on a booth of its own.
func in(t *testing.T, test func(t *testing.T, b *booth), change ...func(*booth)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBooth(t, short(), change...)
		defer b.end()
		synctest.Wait() // the desk runs
		test(t, b)
	})
}

// withTwin adds a second lane with its own cluster to a booth.
func withTwin(b *booth) {
	b.second = b.made(virtual.Options{Mode: api.ModeRoundRobin, Seed: 2, Restart: 5 * time.Second})
}

// start starts the workload in the current mode and concurrency.
func (b *booth) start() {
	b.t.Helper()
	_, err := b.process.lane.Start(b.t.Context(), "ann", api.StartRequest{})
	require.NoError(b.t, err)
}

// counts waits until a span counts.
func (b *booth) counts(id string, number int) api.Sweep {
	b.t.Helper()
	return b.reaches(id, number, api.SpanCounting)
}

// reaches waits until a span is in a phase.
func (b *booth) reaches(id string, number int, phase api.SweepPhase) api.Sweep {
	b.t.Helper()
	return b.until(id, fmt.Sprintf("span %d is %s", number, phase), limit, func(s api.Sweep) bool {
		return s.Progress.Span != nil && s.Progress.Span.Number == number && s.Progress.Span.Phase == phase
	})
}

// done waits for the end of a sweep, which must not have paused.
func (b *booth) done(id string) api.Sweep {
	b.t.Helper()
	s := b.until(id, "the end", limit, ended)
	require.Equal(b.t, api.SweepDone, s.State, s.Reason)
	return s
}

// free waits until no sweep has the lane.
func (b *booth) free() api.State {
	b.t.Helper()
	var s api.State
	wait.Within(b.t, limit, "the lane is free", func() (any, bool) {
		s = b.process.lane.State()
		return s, s.Sweep == nil
	})
	return s
}

func trial() api.SweepRequest {
	return api.SweepRequest{
		Kind: api.SweepTrial, Levels: api.LevelsOf(40), Seconds: new(10.), MaxSeconds: new(240.), Seed: new(uint64(1)),
		Caches: new(api.TrialCachesCold),
	}
}

func levels() api.SweepRequest {
	return api.SweepRequest{
		Kind:      api.SweepLevels,
		Levels:    api.LevelsOf(20, 40),
		Repeats:   new(2),
		WarmUp:    new(5.),
		Seconds:   new(15.),
		Snapshots: new(3),
	}
}

// Only the sweep steers its lane.
func TestSweepReservesLane(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		b.start()
		s := b.begun(trial())
		ctx, l := t.Context(), b.process.lane
		for what, do := range map[string]func() error{
			"start": func() error {
				_, err := l.Start(ctx, "bob", api.StartRequest{Level: new(api.AtConversations(9))})
				return err
			},
			"patch": func() error {
				_, err := l.Patch(ctx, "bob", api.WorkloadPatch{Level: new(api.AtConversations(9))})
				return err
			},
			"mode":   func() error { _, err := l.SetMode(ctx, "bob", api.ModeRequest{Mode: api.ModeRoundRobin}); return err },
			"cancel": func() error { _, err := l.CancelMode(ctx, "bob"); return err },
			"sweep":  func() error { _, err := b.process.desk.StartSweep(ctx, "bob", api.DefaultLane, trial()); return err },
		} {
			require.ErrorIs(t, do(), api.ErrConflict, what)
		}
		assert.Equal(t, s.ID, l.State().Sweep.ID)

		_, err := l.Stop(ctx, "bob", api.StopRequest{})
		require.NoError(t, err)
		s = b.until(s.ID, "the pause", limit, ended)
		assert.Equal(t, api.SweepPaused, s.State)
		assert.Equal(t, "by bob, who stopped the workload", s.Reason)
		assert.Equal(t, api.CauseOperator, s.Cause)
		state := b.free()
		assert.False(t, state.Running, "the workload remains stopped")
		assert.Equal(t, api.ModeKV, state.Mode)
	})
}

func TestCancel(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		desk := b.process.desk
		s := b.begun(trial())
		require.ErrorIs(t, second(desk.DeleteSweep(t.Context(), "bob", s.ID)), api.ErrConflict)
		s, err := desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepCancelled})
		require.NoError(t, err)
		assert.Equal(t, api.SweepCancelled, s.State)
		assert.NotNil(t, s.Ended)
		b.free()
		for _, state := range []api.SweepState{api.SweepRunning, api.SweepPaused} {
			require.ErrorIs(t, second(desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: state})), api.ErrConflict)
		}
		require.ErrorAs(t, second(desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepDone})),
			new(*api.FieldError))
		require.ErrorIs(t, second(desk.SweepBaseline(t.Context(), "bob", s.ID, api.SweepBaselineRequest{Name: "x"})),
			api.ErrConflict)
		list, err := desk.DeleteSweep(t.Context(), "bob", s.ID)
		require.NoError(t, err)
		assert.Empty(t, list.Sweeps)
		require.ErrorIs(t, second(desk.Sweep(t.Context(), s.ID)), api.ErrNotFound)
	})
}

func second[T any](_ T, err error) error { return err }

// A span with a late client is spoiled and repeated.
func TestLateClientRepeatsSpan(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		b.kill()
		late := time.Second // in the first span only
		b.lag = func(from, to time.Time) (stats.Lag, bool) {
			measured := lagOf(late)
			late = time.Millisecond
			return measured(from, to)
		}
		b.begin()
		synctest.Wait()
		s := b.begun(api.SweepRequest{
			Kind: api.SweepLevels, Levels: api.LevelsOf(20), Modes: kv, Repeats: new(1), WarmUp: new(1.), Seconds: new(10.),
		})
		s = b.done(s.ID)
		require.Len(t, s.Spans, 2)
		assert.Contains(t, s.Spans[0].Spoiled, "TTFT cannot be judged: up to ")
		assert.InDelta(t, .001, *s.Spans[1].Row.LagSeconds, .0002)
		assert.NotNil(t, s.Spans[1].Row.Errors)
		assert.Empty(t, s.Spans[1].Spoiled)
		assert.Equal(t, []int{0, 0, 1, 2},
			[]int{s.Spans[0].Number, s.Spans[1].Number, s.Spans[0].Attempt, s.Spans[1].Attempt})
	})
}

// A span whose first turns hit blocks that the span did not write does not count, and the report names it. If the
// server does not report cached tokens, the report states that the hits are not known.
func TestSpanWithWarmCachesIsSpoiled(t *testing.T) {
	for name, row := range map[string]struct {
		cluster virtual.Options
		spoiled []bool
		report  []string
	}{
		"cold": {virtual.Options{}, []bool{false, false}, []string{"found no unexplained cached tokens in all 2 spans"}},
		"silent": {
			virtual.Options{Silent: true},
			[]bool{false, false},
			[]string{"not known whether cold: no first turn with its cached tokens is recorded"},
		},
		"warm": {virtual.Options{Warm: true}, []bool{false, true, true}, []string{
			"in 1 of 3 spans, some in 2", "span 2, attempt 1 (KV-aware at 20): its caches were not cold: the first turns on",
			"of 10 openings found up to",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			row.cluster.Mode, row.cluster.Seed = api.ModeKV, 1
			in(t, func(t *testing.T, b *booth) {
				s := b.done(b.begun(api.SweepRequest{
					Kind: api.SweepLevels, Levels: api.LevelsOf(20), Modes: kv, Repeats: new(2), WarmUp: new(1.), Seconds: new(10.),
				}).ID)
				var spoiled []bool
				for _, span := range s.Spans {
					spoiled = append(spoiled, span.Spoiled != "")
				}
				assert.Equal(t, row.spoiled, spoiled)
				var out strings.Builder
				require.NoError(t, b.process.desk.WriteSweepReport(t.Context(), &out, s.ID, api.ReportMarkdown))
				for _, want := range row.report {
					assert.Contains(t, out.String(), want)
				}
			}, func(b *booth) { b.cluster = b.made(row.cluster) })
		})
	}
}

// Two targets without worker IDs may share workers: the report states that this is not known. With IDs, it does not.
func TestUnnamedWorkersAreReported(t *testing.T) {
	for name, row := range map[string]struct {
		nameless [2]bool
		doubt    bool
	}{
		"neither": {[2]bool{true, true}, true}, "one": {[2]bool{false, true}, true}, "both": {[2]bool{false, false}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, b *booth) {
				b.start()
				doubt := func() bool {
					twins, err := b.process.twins.Twin()
					require.NoError(t, err)
					return strings.Contains(twins.Caution, "not known whether the same workers serve both lanes")
				}
				assert.False(t, doubt(), "metrics of a target are not read yet")
				for i, name := range []string{api.DefaultLane, api.TwinLane} {
					if !row.nameless[i] {
						b.process.twins.TurnEnded(&workload.Turn{Turn: api.Turn{
							Lane: name, Worker: name, Started: time.Now().Add(time.Minute),
						}})
					}
				}
				wait.Advance(20 * time.Second)
				assert.Equal(t, row.doubt, doubt())
			}, withTwin)
		})
	}
}

// Workers that serve both lanes of a trial are in the first line of its report.
func TestTrialOnSharedWorkers(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(trial())
		for _, name := range []string{api.DefaultLane, api.TwinLane} {
			b.process.twins.TurnEnded(&workload.Turn{Turn: api.Turn{
				Lane: name, Worker: "7", Started: time.Now().Add(time.Hour),
			}})
		}
		s = b.done(s.ID)
		assert.Equal(t, []string{"7"}, s.Spans[0].SharedWorkers)
		assert.Contains(t, s.Words[0], "The two lanes have workers or GPUs in common (7), ")
	}, withTwin)
}

// The figures of a span are those of the turns with its number in the column counts_in: each at the time of its last
// token, TTFT at that of the first. Turns that the end of the span interrupts are in TTFT alone.
func TestFiguresAreThoseOfTurnTable(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		q := trial()
		q.Levels, q.MaxSeconds = api.LevelsOf(20), new(120.)
		s := b.done(b.begun(q).ID)
		b.free()
		cut := 0
		for _, span := range s.Spans {
			cut += b.recomputes(span)
			assert.Equal(t, 1, b.shortest(span), "the first conversations start in their midst; a whole one has three turns")
		}
		assert.Positive(t, cut, "interrupted turns count")
		baseline, err := b.process.desk.SweepBaseline(t.Context(), "ann", s.ID, api.SweepBaselineRequest{Name: "ours"})
		require.NoError(t, err)
		assert.Equal(t, s.Rows, baseline.Rows)
		kept, err := b.process.Catalog.Baseline("ours")
		require.NoError(t, err)
		assert.Equal(t, "measured", kept.Kind)
		var out strings.Builder
		record := api.ReportSide{Baseline: "h200x3-tp1-llama70b-fp8", Mode: api.ModeRoundRobin}
		ours := api.ReportSide{Baseline: "ours", Mode: api.ModeKV}
		require.NoError(t, b.process.desk.WriteReport(t.Context(), &out, record, ours, nil, api.ReportMarkdown))
		assert.Contains(t, out.String(), "KV-aware against Round-robin", "a baseline of a sweep against the record")
	})
}

// shortest returns the smallest number of turns of the conversations with which a span begins.
func (b *booth) shortest(span api.SweepSpan) int {
	b.t.Helper()
	held := map[int]int{} // turns by conversation
	count := func(u *api.Turn) error {
		if u.Step != span.Step {
			return nil
		}
		number, err := strconv.Atoi(u.Conversation[strings.LastIndex(u.Conversation, "-")+1:])
		if number < span.Level.Conversations() {
			held[number]++
		}
		return err
	}
	require.NoError(b.t, b.process.Store.TurnsFrom(b.t.Context(), api.DefaultLane, span.Step, count))
	return slices.Min(slices.Collect(maps.Values(held)))
}

// recomputes compares the figures of a span with the table of turns, and returns how many turns were interrupted after
// their first token.
func (b *booth) recomputes(span api.SweepSpan) (cut int) {
	b.t.Helper()
	var table bytes.Buffer
	require.NoError(b.t, b.process.Store.TurnsCSV(b.t.Context(), &table, cmp.Or(span.Lane, api.DefaultLane), span.Step))
	rows, err := csv.NewReader(&table).ReadAll()
	require.NoError(b.t, err)
	figures := map[string][]float64{}
	var prompt, cached float64
	for _, row := range rows[1:] {
		cell := func(name string) string { return row[slices.Index(rows[0], name)] }
		number := func(name string) float64 {
			v, err := strconv.ParseFloat(cell(name), 64)
			require.NoError(b.t, err, name)
			return v
		}
		sent, err := time.Parse(time.RFC3339Nano, cell("started"))
		require.NoError(b.t, err)
		take := func(name, at string) bool {
			counts := inside(sent.Add(time.Duration(number(at)*1e9)), span)
			if counts {
				figures[name] = append(figures[name], number(name))
			}
			return counts
		}
		switch cell("counts_in") {
		case "span_ttft":
			if take("ttft_seconds", "ttft_seconds") {
				cut++
			}
		case "latencies":
			take("ttft_seconds", "ttft_seconds")
			take("tpot_seconds", "latency_seconds")
			if take("latency_seconds", "latency_seconds") {
				prompt, cached = prompt+number("prompt_tokens"), cached+number("cached_tokens")
			}
		}
	}
	ended := len(figures["latency_seconds"])
	assert.Equal(b.t, ended, span.Turns)
	for name, of := range map[string]api.Percentiles{
		"ttft_seconds": span.Row.TTFT, "tpot_seconds": span.Row.TPOT, "latency_seconds": span.Row.Latency,
	} {
		assert.InDelta(b.t, percentile(figures[name], .5), *of.P50, 1e-9, name)
		assert.InDelta(b.t, percentile(figures[name], .95), *of.P95, 1e-9, name)
	}
	assert.InDelta(b.t, cached/prompt, *span.Row.KVHitRatio, 1e-9)
	assert.InDelta(b.t, .715, *span.Row.AcceptanceRate, .02, "the profile's rate")
	assert.InDelta(b.t, 3.14, *span.Row.TokensPerStep, .06)
	assert.NotNil(b.t, span.Row.Intervals.AcceptanceRate)
	assert.InEpsilon(b.t, float64(ended)/span.Until.Sub(span.CountedFrom).Seconds(), *span.Row.RequestsPerSecond, 1e-9)
	return cut
}

var kv = []api.ModeState{{Mode: api.ModeKV}}

// A full disk delays the sweep without a loss. A request that cannot be stored has no effect: the sweep remains
// paused or running, with its reason.
func TestFullDiskDelaysSweep(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(api.SweepRequest{
			Kind: api.SweepLevels, Levels: api.LevelsOf(20), Modes: kv, Repeats: new(2), WarmUp: new(1.), Seconds: new(10.),
		})
		b.full.Store(true)
		s = b.until(s.ID, "the reason is shown", limit, func(s api.Sweep) bool { return s.Reason != "" })
		assert.Equal(t, api.SweepRunning, s.State)
		assert.Contains(t, s.Reason, "waiting for the disk: the disk is full")
		assert.Equal(t, api.CauseDisk, s.Cause)
		require.Len(t, s.Spans, 1)
		patch := func(to api.SweepState, full error) api.Sweep {
			b.full.Store(full != nil)
			patched, err := b.process.desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: to})
			require.ErrorIs(t, err, full)
			return patched
		}
		patch(api.SweepPaused, errFull)
		paused := patch(api.SweepPaused, nil)
		b.free()
		patch(api.SweepRunning, errFull)
		patch(api.SweepCancelled, errFull)
		again, err := b.process.desk.Sweep(t.Context(), s.ID)
		require.NoError(t, err)
		assert.JSONEq(t, text(t, paused), text(t, again))
		patch(api.SweepRunning, nil)
		s = b.done(s.ID)
		require.Len(t, s.Spans, 2)
		b.free()
		b.kill()
		b.begin()
		again, err = b.process.desk.Sweep(t.Context(), s.ID)
		require.NoError(t, err)
		assert.JSONEq(t, text(t, s.Spans), text(t, again.Spans))
		b.full.Store(true)
		synctest.Wait()
		require.Error(t, second(b.process.desk.StartSweep(t.Context(), "bob", api.DefaultLane, trial())))
		assert.Nil(t, b.process.lane.State().Sweep)
	})
}

var errFull = errors.New("the disk is full")

// The desk returns the errors of the request's check, and those that depend on the number of lanes.
func TestBadRequestsAreRejected(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		for field, requests := range map[string][]api.SweepRequest{
			"levels": {{Kind: api.SweepLevels, Levels: api.LevelsOf(20, 201)}},
			"modes": {{Kind: api.SweepTrial, Modes: []api.ModeState{
				{Mode: api.ModeKV, Speculation: api.SpeculationDraft}, {Mode: api.ModeKV},
			}}},
			"primary":  {{Kind: api.SweepTrial, Primary: new("itl")}},
			"together": {{Kind: api.SweepTrial, Together: new(true)}, {Kind: api.SweepLevels, Together: new(true)}},
		} {
			for _, r := range requests {
				var refused *api.FieldError
				_, err := b.process.desk.StartSweep(t.Context(), "ann", api.DefaultLane, r)
				require.ErrorAs(t, err, &refused, field)
				assert.Equal(t, field, refused.Field)
			}
		}
		require.ErrorIs(t, second(b.process.desk.StartSweep(t.Context(), "ann", "twin", trial())), api.ErrNotFound)
		assert.Empty(t, b.process.desk.Sweeps(t.Context()).Sweeps)
		assert.Len(t, b.process.desk.Sweeps(t.Context()).Defaults, 3)
	})
}
