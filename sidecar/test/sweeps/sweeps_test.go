package sweeps

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// limit is how long, in virtual time, something may take that has no length of its own.
const limit = 2 * time.Hour

// in runs a test in virtual time on a booth of its own.
func in(t *testing.T, test func(t *testing.T, b *booth)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBooth(t, short())
		defer b.end()
		synctest.Wait() // the desk runs
		test(t, b)
	})
}

// start lets the workload run, in the mode and at the concurrency in force.
func (b *booth) start() {
	b.t.Helper()
	_, err := b.process.lane.Start(b.t.Context(), "ann", api.StartRequest{})
	require.NoError(b.t, err)
}

// free waits until the lane is nobody's.
func (b *booth) free() api.State {
	b.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		if s := b.process.lane.State(); s.Sweep == nil {
			return s
		}
		require.True(b.t, time.Now().Before(deadline), "the lane was not given back")
	}
}

func trial() api.SweepRequest {
	return api.SweepRequest{Kind: api.SweepTrial, Levels: []int{40}, Seconds: new(10.), MaxSeconds: new(240.)}
}

func levels() api.SweepRequest {
	return api.SweepRequest{Kind: api.SweepLevels, Levels: []int{20, 40}, Repeats: new(2), WarmUp: new(5.), Seconds: new(15.), Snapshots: new(3)}
}

// A trial ends with a verdict, and the lane is as it was before, which the events tell.
func TestTrial(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		b.start()
		s := b.begun(trial())
		assert.Equal(t, "ttft_p95", *s.Request.Primary)
		s = b.until(s.ID, "the end", limit, ended)
		require.Equal(t, api.SweepDone, s.State, s.Reason)
		require.NotNil(t, s.Trial.Primary)
		assert.NotEqual(t, "running", s.Trial.Verdict)
		assert.Equal(t, "pilot", s.Spans[0].Arm)
		require.Len(t, s.Rows, 2, "the pilot is in neither")
		for _, span := range s.Spans[1:] {
			assert.Empty(t, span.Spoiled)
			assert.Equal(t, "emptied", span.Cold)
			assert.GreaterOrEqual(t, span.Until.Sub(span.CountedFrom).Seconds(), 10.)
			assert.Equal(t, s.Spans[1+(span.Number-1)/2*2].Seed, span.Seed, "one seed for both arms of a pair")
		}
		assert.NotEqual(t, s.Spans[0].Seed, s.Spans[1].Seed)
		state := b.free()
		assert.Equal(t, api.ModeKV, state.Mode)
		assert.Equal(t, 8, state.Concurrency.Target)
		assert.True(t, state.Running)
		events, err := b.process.store.Events(t.Context(), "", 100)
		require.NoError(t, err)
		var told []string
		for _, e := range events {
			if e.Kind == api.EventSweep {
				told = append(told, e.By+": "+e.Text)
			}
		}
		require.Len(t, told, 3)
		assert.Contains(t, told[2], "ann: began the trial of kv against round_robin at 40 conversations")
		assert.Contains(t, told[1], "load generator: finished the trial")
		assert.Equal(t, "load generator: the lane is as it was: kv, 8 conversations, running", told[0])
	})
}

// Every level comes in every mode as often as asked for. Killed in the middle, more than once, the
// sweep goes on with its next unfinished span: nothing is measured twice, nothing is lost.
func TestSweepSurvivesKills(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(levels())
		require.Equal(t, 12, *s.Progress.Of, "three modes")
		for _, after := range []int{1, 4} {
			s = b.until(s.ID, "some spans", limit, func(s api.Sweep) bool {
				return len(s.Spans) == after && s.Progress.Span != nil && s.Progress.Span.Phase == api.SpanCounting
			})
			b.kill()
			b.begin()
			again, err := b.process.desk.Sweep(t.Context(), s.ID)
			require.NoError(t, err)
			assert.JSONEq(t, text(t, s.Spans), text(t, again.Spans), "as it was told before the kill")
			assert.Equal(t, api.SweepRunning, again.State)
		}
		s = b.until(s.ID, "the end", limit, ended)
		require.Equal(t, api.SweepDone, s.State, s.Reason)
		require.Len(t, s.Spans, 12)
		count := map[api.BaselineRow]int{}
		for i, span := range s.Spans {
			assert.Equal(t, i, span.Number, "each once, in order")
			count[api.BaselineRow{Concurrency: span.Concurrency, Mode: span.Mode.Mode}]++
		}
		assert.Len(t, count, 6, "levels × modes that the driver offers")
		b.free()
	})
}

// A sweep that has the lane is the only one that steers it.
func TestTheLaneIsTaken(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		b.start()
		s := b.begun(trial())
		ctx, l := t.Context(), b.process.lane
		for what, do := range map[string]func() error{
			"start":  func() error { _, err := l.Start(ctx, "bob", api.StartRequest{Concurrency: new(9)}); return err },
			"patch":  func() error { _, err := l.Patch(ctx, "bob", api.WorkloadPatch{Concurrency: new(9)}); return err },
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
		assert.Equal(t, "the workload was stopped by bob", s.Reason)
		state := b.free()
		assert.False(t, state.Running, "stopped is stopped")
		assert.Equal(t, api.ModeKV, state.Mode)
	})
}

// Paused, the lane is its operators'; resumed, the span that was given up is measured again.
func TestPauseAndResume(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(levels())
		s = b.until(s.ID, "the second span counts", limit, func(s api.Sweep) bool {
			return s.Progress.Span != nil && s.Progress.Span.Number == 1 && s.Progress.Span.Phase == api.SpanCounting
		})
		desk := b.process.desk
		s, err := desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepPaused})
		require.NoError(t, err)
		assert.Equal(t, api.SweepPaused, s.State)
		assert.Equal(t, "by bob", s.Reason)
		b.free()
		_, err = b.process.lane.Start(t.Context(), "bob", api.StartRequest{Concurrency: new(3)})
		require.NoError(t, err)
		s, err = desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepRunning})
		require.NoError(t, err)
		require.Len(t, s.Spans, 1)
		s = b.until(s.ID, "the end", limit, ended)
		require.Equal(t, api.SweepDone, s.State)
		assert.Equal(t, 1, s.Spans[1].Number)
		state := b.free()
		assert.Equal(t, 3, state.Concurrency.Target, "as it was when the sweep went on")
		assert.True(t, state.Running)
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
		require.ErrorAs(t, second(desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepDone})), new(*api.FieldError))
		require.ErrorIs(t, second(desk.SweepBaseline(t.Context(), "bob", s.ID, api.SweepBaselineRequest{Name: "x"})), api.ErrConflict)
		list, err := desk.DeleteSweep(t.Context(), "bob", s.ID)
		require.NoError(t, err)
		assert.Empty(t, list.Sweeps)
		require.ErrorIs(t, second(desk.Sweep(t.Context(), s.ID)), api.ErrNotFound)
	})
}

func second[T any](_ T, err error) error { return err }

// A target that dies spoils the span, and then again; the sweep says so and waits for its operator.
func TestTargetDies(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(levels())
		s = b.until(s.ID, "the second span counts", limit, func(s api.Sweep) bool {
			return s.Progress.Span != nil && s.Progress.Span.Number == 1 && s.Progress.Span.Phase == api.SpanCounting
		})
		b.cluster.Break(&chat.Error{Class: api.ErrorConnect, Message: "connection refused"})
		s = b.until(s.ID, "the pause", limit, ended)
		require.Equal(t, api.SweepPaused, s.State)
		assert.Contains(t, s.Reason, "connection refused")
		require.Len(t, s.Spans, 2)
		assert.Contains(t, s.Spans[1].Spoiled, "turns failed, the latest with connect: connection refused")
		assert.Equal(t, 1, s.Progress.Spans)
		assert.Equal(t, 1, s.Progress.Spoiled)
		b.cluster.Break(nil)
		b.free()
		s, err := b.process.desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepRunning})
		require.NoError(t, err)
		s = b.until(s.ID, "the end", limit, ended)
		require.Equal(t, api.SweepDone, s.State, s.Reason)
		assert.Equal(t, 2, s.Spans[2].Attempt, "the spoiled span once more")
		assert.Equal(t, 12, s.Progress.Spans)
	})
}

// A load generator that is too late for what it measures says so, and measures once more.
func TestLateClient(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		b.kill()
		late := true
		b.lag = func(time.Time, time.Time) (time.Duration, bool) {
			defer func() { late = false }()
			return map[bool]time.Duration{true: 50 * time.Millisecond, false: time.Millisecond}[late], true
		}
		b.begin()
		synctest.Wait()
		s := b.begun(api.SweepRequest{Kind: api.SweepLevels, Levels: []int{20}, Modes: kv, Repeats: new(1), WarmUp: new(1.), Seconds: new(10.)})
		s = b.until(s.ID, "the end", limit, ended)
		require.Equal(t, api.SweepDone, s.State, s.Reason)
		require.Len(t, s.Spans, 2)
		assert.Contains(t, s.Spans[0].Spoiled, "the load generator itself was 50.0 ms late")
		assert.Empty(t, s.Spans[1].Spoiled)
		assert.Equal(t, []int{0, 0, 1, 2}, []int{s.Spans[0].Number, s.Spans[1].Number, s.Spans[0].Attempt, s.Spans[1].Attempt})
	})
}

var kv = []api.ModeState{{Mode: api.ModeKV}}

// A disk that takes nothing holds the sweep up, and loses nothing.
func TestFullDisk(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(api.SweepRequest{Kind: api.SweepLevels, Levels: []int{20}, Modes: kv, Repeats: new(2), WarmUp: new(1.), Seconds: new(10.)})
		b.full.Store(true)
		s = b.until(s.ID, "it says so", limit, func(s api.Sweep) bool { return s.Reason != "" })
		assert.Equal(t, api.SweepRunning, s.State)
		assert.Contains(t, s.Reason, "waiting for the disk: the disk is full")
		require.Len(t, s.Spans, 1)
		require.Error(t, second(b.process.desk.PatchSweep(t.Context(), "bob", s.ID, api.SweepPatch{State: api.SweepPaused})))
		b.full.Store(false)
		s = b.until(s.ID, "the end", limit, ended)
		require.Equal(t, api.SweepDone, s.State)
		require.Len(t, s.Spans, 2)
		b.free()
		b.kill()
		b.begin()
		again, err := b.process.desk.Sweep(t.Context(), s.ID)
		require.NoError(t, err)
		assert.JSONEq(t, text(t, s.Spans), text(t, again.Spans))
		b.full.Store(true)
		synctest.Wait()
		require.Error(t, second(b.process.desk.StartSweep(t.Context(), "bob", api.DefaultLane, trial())))
		assert.Nil(t, b.process.lane.State().Sweep)
	})
}

var errFull = errors.New("the disk is full")

// The figures of a span are those of its turns in the store.
func TestFiguresAreTheStores(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		s := b.begun(trial())
		s = b.until(s.ID, "the end", limit, ended)
		b.free()
		for _, span := range s.Spans {
			var ttft, latency []float64
			var prompt, cached float64
			ended := 0
			require.NoError(t, b.process.store.TurnsFrom(context.Background(), api.DefaultLane, span.Step, func(u *api.Turn) error {
				if u.Step != span.Step {
					return nil
				}
				if first := u.Started.Add(time.Duration(*or(u.TTFT) * 1e9)); u.TTFT != nil && inside(first, span) {
					ttft = append(ttft, *u.TTFT)
				}
				if u.Status == api.TurnOK && inside(u.Started.Add(time.Duration(*u.Latency*1e9)), span) {
					latency = append(latency, *u.Latency)
					prompt += float64(*u.PromptTokens)
					cached += float64(*u.CachedTokens)
					ended++
				}
				return nil
			}))
			assert.Equal(t, ended, span.Turns)
			assert.InDelta(t, percentile(ttft, .95), *span.Row.TTFT.P95, 1e-9)
			assert.InDelta(t, percentile(latency, .5), *span.Row.Latency.P50, 1e-9)
			assert.InDelta(t, cached/prompt, *span.Row.KVHitRatio, 1e-9)
			assert.InEpsilon(t, float64(ended)/span.Until.Sub(span.CountedFrom).Seconds(), *span.Row.RequestsPerSecond, 1e-9)
		}
		baseline, err := b.process.desk.SweepBaseline(t.Context(), "ann", s.ID, api.SweepBaselineRequest{Name: "ours"})
		require.NoError(t, err)
		assert.Equal(t, s.Rows, baseline.Rows)
		kept, err := b.process.catalogue.Baseline("ours")
		require.NoError(t, err)
		assert.Equal(t, "measured", kept.Kind)
		require.ErrorIs(t, second(b.process.desk.SweepBaseline(t.Context(), "ann", s.ID, api.SweepBaselineRequest{Name: "h200x3-tp1-llama70b-fp8"})), api.ErrConflict)
	})
}

func TestBadRequests(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		for field, r := range map[string]api.SweepRequest{
			"kind":         {Kind: "duel"},
			"levels":       {Kind: api.SweepLevels, Levels: []int{20, 201}},
			"modes":        {Kind: api.SweepTrial, Modes: []api.ModeState{{Mode: api.ModeKV, Speculation: api.SpeculationDraft}, {Mode: api.ModeKV}}},
			"span_seconds": {Kind: api.SweepTrial, Seconds: new(0.)},
			"primary":      {Kind: api.SweepTrial, Primary: new("itl")},
		} {
			_, err := b.process.desk.StartSweep(t.Context(), "ann", api.DefaultLane, r)
			var refused *api.FieldError
			require.ErrorAs(t, err, &refused, field)
			assert.Equal(t, field, refused.Field)
		}
		require.ErrorIs(t, second(b.process.desk.StartSweep(t.Context(), "ann", "twin", trial())), api.ErrNotFound)
		assert.Empty(t, b.process.desk.Sweeps(t.Context()).Sweeps)
		assert.Len(t, b.process.desk.Sweeps(t.Context()).Defaults, 3)
	})
}

// A report can be had at any time, in every format; an unfinished one says what there is.
func TestReports(t *testing.T) {
	in(t, func(t *testing.T, b *booth) {
		desk, ctx := b.process.desk, t.Context()
		s := b.begun(levels())
		write := func(f api.ReportFormat) string {
			var out strings.Builder
			require.NoError(t, desk.WriteSweepReport(ctx, &out, s.ID, f))
			return out.String()
		}
		s = b.until(s.ID, "a span", limit, func(s api.Sweep) bool { return len(s.Spans) == 1 })
		assert.Contains(t, write(api.ReportMarkdown), "1 of 12 spans")
		s = b.until(s.ID, "the end", limit, ended)
		md := write(api.ReportMarkdown)
		assert.NotContains(t, md, "1 of 12 spans")
		for _, f := range api.ReportFormats {
			assert.NotEmpty(t, write(f))
		}
		ttft := *s.Rows[0].TTFT.P95
		assert.Contains(t, md, fmt.Sprintf("%.0f ms", 1000*ttft))
		assert.Contains(t, write(api.ReportTSV), strconv.FormatFloat(ttft, 'g', -1, 64), "all digits")
		assert.Contains(t, write(api.ReportHTML), "<svg")

		var out strings.Builder
		record := api.ReportSide{Baseline: "h200x3-tp1-llama70b-fp8", Mode: api.ModeRoundRobin}
		_, err := desk.SweepBaseline(ctx, "ann", s.ID, api.SweepBaselineRequest{Name: "ours"})
		require.NoError(t, err)
		require.NoError(t, desk.WriteReport(ctx, &out, record, api.ReportSide{Baseline: "ours", Mode: api.ModeKV}, api.ReportMarkdown))
		assert.Contains(t, out.String(), "KV-aware against Round-robin")
		require.ErrorIs(t, desk.WriteReport(ctx, &out, record, api.ReportSide{Baseline: "theirs"}, api.ReportMarkdown), api.ErrNotFound)
		require.ErrorAs(t, desk.WriteReport(ctx, &out, record, api.ReportSide{Baseline: "ours", Mode: "random"}, api.ReportMarkdown), new(*api.FieldError))
		require.ErrorIs(t, desk.WriteSweepReport(ctx, &out, "none", api.ReportMarkdown), api.ErrNotFound)
		b.free()
	})
}
