package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/config"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/report"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	kvMode = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}
	rrMode = api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff}
)

// asked returns a request with all of its fields, as a desk stores it.
func asked() api.SweepRequest {
	return api.SweepRequest{
		Kind: api.SweepTrial, Levels: api.LevelsOf(60), Modes: []api.ModeState{rrMode, kvMode}, Primary: new("ttft_p95"),
		Smallest: new(.05), Seconds: new(60.), MaxSeconds: new(3600.), Seed: new(uint64(1)),
		SLO: &api.SLO{TTFT: .6, TPOT: .06}, Title: new(""),
	}
}

func TestDisagreement(t *testing.T) {
	for name, row := range map[string]struct {
		is   api.SweepRequest // a trial, where it has no kind
		want [3]string
	}{
		"nothing is given": {},
		"all is given":     {is: asked()},
		"another kind":     {api.SweepRequest{Kind: api.SweepLevels}, [3]string{"kind", "trial", "sweep"}},
		"another level":    {api.SweepRequest{Levels: api.LevelsOf(120)}, [3]string{"levels", "60", "120"}},
		"another seed":     {api.SweepRequest{Seed: new(uint64(2))}, [3]string{"seed", "1", "2"}},
		"other SLOs": {
			api.SweepRequest{SLO: &api.SLO{TTFT: .4, TPOT: .06}},
			[3]string{"slo", "TTFT 0.6 s and TPOT 0.06 s", "TTFT 0.4 s and TPOT 0.06 s"},
		},
		"the other way": {
			api.SweepRequest{Modes: []api.ModeState{kvMode, rrMode}},
			[3]string{"modes", "round_robin,kv", "kv,round_robin"},
		},
		"speculation in force": {
			is: api.SweepRequest{Modes: []api.ModeState{{Mode: api.ModeRoundRobin}, {Mode: api.ModeKV}}},
		},
		"a field it has not": {api.SweepRequest{Repeats: new(2)}, [3]string{"repeats", "not set", "2"}},
	} {
		was := asked()
		row.is.Kind = cmp.Or(row.is.Kind, api.SweepTrial)
		field, before, now := disagreement(was, row.is)
		assert.Equal(t, row.want, [3]string{field, before, now}, name)
		assert.Equal(t, asked(), was)
	}
	sweep := api.SweepRequest{Kind: api.SweepLevels, Levels: api.LevelsOf(60, 180, 120)}
	field, _, _ := disagreement(sweep, api.SweepRequest{Kind: api.SweepLevels, Levels: api.LevelsOf(180, 60, 120)})
	assert.Empty(t, field, "the order of the levels is drawn")
	assert.Equal(t, api.LevelsOf(60, 180, 120), sweep.Levels)
}

// desk is a desk whose sweeps follow the script of a test.
type desk struct {
	mu    sync.Mutex
	all   []api.Sweep // newest first
	began []api.SweepRequest
	why   error // why no sweep can begin
	done  []string
}

func (d *desk) Sweeps(context.Context) (list api.SweepList) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.all {
		list.Sweeps = append(list.Sweeps, s.SweepSummary)
	}
	return list
}

func (d *desk) SweepOutlook(context.Context, string, api.SweepRequest) (api.SweepOutlook, error) {
	return api.SweepOutlook{Words: []string{"It finds a difference."}}, nil
}

func (d *desk) StartSweep(_ context.Context, by, lane string, r api.SweepRequest) (api.Sweep, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why != nil {
		return api.Sweep{}, d.why
	}
	d.began = append(d.began, r)
	s := api.Sweep{SweepSummary: api.SweepSummary{
		ID: fmt.Sprint("new", len(d.began)), By: by, Lane: lane, State: api.SweepRunning, Request: asked(),
	}}
	d.all = append([]api.Sweep{s}, d.all...)
	return s, nil
}

func (d *desk) Sweep(_ context.Context, id string) (api.Sweep, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.all {
		if s.ID == id {
			return s, nil
		}
	}
	return api.Sweep{}, api.ErrNotFound
}

func (d *desk) PatchSweep(_ context.Context, _, id string, p api.SweepPatch) (api.Sweep, error) {
	d.becomes(id, func(s *api.Sweep) { s.State = p.State })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = append(d.done, id+" "+string(p.State))
	return d.all[0], nil
}

func (d *desk) WriteSweepReport(_ context.Context, w io.Writer, id string, f api.ReportFormat) error {
	_, err := fmt.Fprintf(w, "report of %s as %s\n", id, f)
	return err
}

// becomes changes a sweep.
func (d *desk) becomes(id string, change func(*api.Sweep)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.all {
		if d.all[i].ID == id {
			change(&d.all[i])
		}
	}
}

// ends ends a sweep, with one span.
func (d *desk) ends(id, verdict string) {
	d.becomes(id, func(s *api.Sweep) {
		s.State, s.Trial, s.Words = api.SweepDone, &api.TrialState{Verdict: verdict}, []string{"kv is better."}
		s.Spans, s.Progress.Spans = []api.SweepSpan{{Mode: kvMode, Level: api.AtConversations(60), Turns: 9}}, 1
	})
}

// trial is a question in a test: its lines, and its output.
type trial struct {
	*question
	desk    *desk
	problem atomic.Pointer[string] // of the target
	taken   atomic.Bool            // whether the lane is
	lines   []string
	out     strings.Builder
	err     error
	stop    context.CancelFunc
	served  chan struct{}
}

func newTrial(d *desk, r api.SweepRequest) *trial {
	r.Kind = api.SweepTrial
	q := &trial{desk: d}
	q.question = &question{
		asked: &config.Sweep{Command: config.Trial, Request: r}, dir: "/data", desk: d,
		ready: func() error {
			if p := q.problem.Load(); p != nil {
				return errors.New(*p)
			}
			return nil
		},
		state: func() api.State {
			s := api.State{Speculation: api.SpeculationOff}
			if q.taken.Load() {
				s.Sweep = new(api.SweepSummary)
			}
			return s
		},
		say: func(text string) { q.lines = append(q.lines, text) },
	}
	return q
}

// start runs the question, as a serving generator does. It must be called in a bubble.
func (q *trial) start(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	work, cancel := context.WithCancel(t.Context())
	q.stop, q.served = stop, make(chan struct{})
	go func() {
		defer close(q.served)
		q.err = q.run(ctx, work, cancel, func() error { <-work.Done(); return nil }, func() {}, &q.out)
	}()
	q.look()
}

// look lets the question read the changes.
func (q *trial) look() {
	wait.Advance(time.Second)
	synctest.Wait()
}

func TestQuestionIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draft := api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationDraft}
		q := newTrial(new(desk), api.SweepRequest{Modes: []api.ModeState{{Mode: api.ModeRoundRobin}, draft}})
		dir := t.TempDir()
		page, table := filepath.Join(dir, "a.html"), filepath.Join(dir, "a.TSV")
		require.NoError(t, os.WriteFile(page, []byte(strings.Repeat("an earlier one ", 99)), 0o600))
		var err error
		q.outputs, err = report.OpenOutputs(report.ResultFormats, []string{page, table})
		require.NoError(t, err)
		assert.NoFileExists(t, table, "a killed trial leaves no empty report")
		require.NoError(t, q.lookBack(t.Context()))
		q.problem.Store(new("connection refused"))
		q.start(t)
		assert.Empty(t, q.desk.began)
		assert.Equal(t, "trial waits: connection refused", q.line(api.Snapshot{}))
		q.problem.Store(nil)
		q.look()
		require.Len(t, q.desk.began, 1)
		assert.Equal(t, []api.ModeState{rrMode, draft}, q.desk.began[0].Modes,
			"the speculation in force, where none is given")
		q.taken.Store(true)
		q.desk.ends("new1", "b_better")
		q.look()
		select {
		case <-q.served:
			t.Fatal("the cluster is not as it was before")
		default:
		}
		q.taken.Store(false)
		<-q.served
		require.NoError(t, q.err)
		assert.Equal(t, "kv is better.\n\nreport of new1 as md\n", q.out.String())
		assert.Equal(t, []string{
			"the trial waits: connection refused", "trial: It finds a difference.",
			"span 1, KV-aware at 60: 9 turns, took 0 s",
		}, q.lines)
		for path, want := range map[string]string{page: "report of new1 as html\n", table: "report of new1 as tsv\n"} {
			assert.Equal(t, want, content(t, path))
		}
	})
}

// The error determines the exit code and names the next step.
func TestQuestionIsNotAnswered(t *testing.T) {
	becomes := func(change func(*api.Sweep)) func(*trial) {
		return func(q *trial) { q.desk.becomes("new1", change) }
	}
	ends := func(state api.SweepState, reason string, cause api.SweepCause, spans int) func(*trial) {
		return becomes(func(s *api.Sweep) { s.State, s.Reason, s.Cause, s.Progress.Spans = state, reason, cause, spans })
	}
	for name, row := range map[string]struct {
		happens func(*trial)
		want    string
		code    int
	}{
		"its time is over": {
			func(q *trial) { q.desk.ends("new1", "time_over") },
			"undecided: the time left is too short for another block; use a longer --max-time or a larger --smallest",
			unmeasured,
		},
		"no difference is an answer": {func(q *trial) { q.desk.ends("new1", "no_difference") }, "", success},
		"Ctrl-C": {
			func(q *trial) { q.stop() },
			"the trial is unfinished. It has 0 spans so far, kept in /data; run the same command to resume", unmeasured,
		},
		"cancelled": {
			ends(api.SweepCancelled, "by ann", api.CauseOperator, 0),
			"the trial was cancelled by ann; run the same command to start a new one", unmeasured,
		},
		"the target fails": {
			ends(api.SweepPaused, "the target failed in a span twice: connect", api.CauseTarget, 1),
			"the trial is paused: the target failed in a span twice: connect. It has 1 span so far, kept in /data; " +
				"run the same command to resume", unmeasured,
		},
		"paused by hand, then Ctrl-C": {
			func(q *trial) {
				ends(api.SweepPaused, "by ann", api.CauseOperator, 0)(q)
				q.look()
				assert.Contains(t, q.lines,
					"the trial was paused by ann: resume it on the page or through the API, or stop this program")
				q.stop()
			},
			"the trial was paused by ann. It has 0 spans so far, kept in /data; run the same command to resume", unmeasured,
		},
		"deleted": {becomes(func(s *api.Sweep) { s.ID = "other" }), "the trial was deleted", unmeasured},
		"failed":  {ends(api.SweepFailed, "why", "", 0), "the trial failed: why", broken},
		"no span ever counts": {
			becomes(func(s *api.Sweep) { s.State, s.Spans = api.SweepDone, []api.SweepSpan{{Spoiled: "it was late"}} }),
			"nothing was measured: no valid span; the last one is invalid: it was late", unmeasured,
		},
		"no span": {ends(api.SweepDone, "", "", 0), "nothing was measured: no valid span", unmeasured},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newTrial(new(desk), api.SweepRequest{})
				q.start(t)
				row.happens(q)
				<-q.served
				q.stop()
				var stderr strings.Builder
				assert.Equal(t, row.code, exitCode(&stderr, q.err))
				if row.want != "" {
					assert.Equal(t, "loadgen: "+row.want+"\n", stderr.String())
				}
			})
		})
	}
}

// An invalid question is bad input, named by the flag. Obstacles are waited for.
func TestQuestionCannotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTrial(&desk{why: api.Refuse("levels", 120, "1 to 60")}, api.SweepRequest{})
		q.start(t)
		<-q.served
		q.stop()
		assert.EqualError(t, q.err, "concurrency: 120 is not allowed: 1 to 60")
		assert.Equal(t, badInput, exitCode(io.Discard, q.err))

		q = newTrial(&desk{why: fmt.Errorf("%w: a sweep is in progress", api.ErrConflict)}, api.SweepRequest{})
		q.start(t)
		q.look()
		assert.Len(t, q.lines, 1, "said once")
		q.stop()
		<-q.served
		assert.ErrorContains(t, q.err, "nothing was measured: the trial had not started (")
		assert.Equal(t, unmeasured, exitCode(io.Discard, q.err))
	})
}

// A data directory resumes its unfinished sweep, unless that has another question.
func TestQuestionGoesOn(t *testing.T) {
	const differs = "data_dir: /data has an unfinished trial with different settings (%s): finish it with those " +
		"settings (loadgen trial), cancel it with --anew, or choose another directory with --data-dir"
	other, longer := api.SweepRequest{Levels: api.LevelsOf(120)}, api.SweepRequest{MaxSeconds: new(7200.)}
	for name, row := range map[string]struct {
		state   api.SweepState
		asked   api.SweepRequest
		anew    bool
		done    string // to the earlier sweep, in the end
		began   int
		differs string
	}{
		"running":           {state: api.SweepRunning, done: "old running"},
		"paused":            {state: api.SweepPaused, done: "old running"},
		"done":              {state: api.SweepDone, began: 1},
		"cancelled":         {state: api.SweepCancelled, began: 1},
		"running, anew":     {state: api.SweepRunning, anew: true, done: "old cancelled", began: 1},
		"paused, anew":      {state: api.SweepPaused, anew: true, done: "old cancelled", began: 1},
		"another is paused": {state: api.SweepPaused, asked: other, began: 1},
		"another, anew":     {state: api.SweepRunning, asked: other, anew: true, done: "old cancelled", began: 1},
		"another":           {state: api.SweepRunning, asked: other, differs: "concurrency is 60 there, not 120"},
		"a longer one":      {state: api.SweepRunning, asked: longer, differs: "max_time is 1h there, not 2h"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old := api.Sweep{SweepSummary: api.SweepSummary{ID: "old", State: row.state, Request: asked()}}
				q := newTrial(&desk{all: []api.Sweep{old}}, row.asked)
				q.asked.Anew = row.anew
				err := q.lookBack(t.Context())
				if row.differs != "" {
					require.EqualError(t, err, fmt.Sprintf(differs, row.differs))
					return
				}
				require.NoError(t, err)
				q.start(t)
				q.stop()
				<-q.served
				assert.Equal(t, row.done, strings.Join(q.desk.done, ", "))
				assert.Len(t, q.desk.began, row.began)
			})
		})
	}
}

// A sweep of other arms, or of the same ones at other addresses, is not resumed.
func TestArmsOfUnfinishedSweep(t *testing.T) {
	arm := func(name, url string) cluster.Arm { return cluster.Arm{State: api.ModeState{Arm: name}, URL: url} }
	for name, row := range map[string]struct {
		arms []cluster.Arm
		want [3]string
	}{
		"the same": {[]cluster.Arm{arm("a", "http://127.0.0.1:1/v1"), arm("b", "http://127.0.0.1:2")}, [3]string{}},
		"others": {
			[]cluster.Arm{arm("a", "http://127.0.0.1:1"), arm("c", "http://127.0.0.1:2")}, [3]string{"arms", "a,b", "a,c"},
		},
		"none": {nil, [3]string{"arms", "a,b", "none"}},
		"another address": {
			[]cluster.Arm{arm("a", "http://127.0.0.1:1"), arm("b", "http://127.0.0.1:3")},
			[3]string{"arms: url of b", "http://127.0.0.1:2", "http://127.0.0.1:3"},
		},
	} {
		a, b := api.ModeState{Arm: "a"}, api.ModeState{Arm: "b"}
		v := api.Sweep{
			SweepSummary: api.SweepSummary{ID: "old", Request: api.SweepRequest{Modes: []api.ModeState{a, b}}},
			Spans: []api.SweepSpan{
				{Mode: a, Target: "http://127.0.0.1:1"}, {Mode: b, Target: "http://127.0.0.1:2"}, {Mode: b},
			},
		}
		q := &question{arms: row.arms, desk: &desk{all: []api.Sweep{v}}}
		setting, before, now := q.otherArms(t.Context(), v.SweepSummary)
		assert.Equal(t, row.want, [3]string{setting, before, now}, name)
	}

	v := api.Sweep{SweepSummary: api.SweepSummary{ID: "old"}, Target: api.TargetID{URL: "http://127.0.0.1:1"}}
	for target, want := range map[string][3]string{
		"http://127.0.0.1:1/v1": {},
		"http://127.0.0.1:2":    {"target.url", "http://127.0.0.1:1", "http://127.0.0.1:2"},
	} {
		q := &question{target: target, desk: &desk{all: []api.Sweep{v}}}
		setting, before, now := q.otherArms(t.Context(), v.SweepSummary)
		assert.Equal(t, want, [3]string{setting, before, now}, target)
	}
}

func TestProgressLine(t *testing.T) {
	v := api.Sweep{SweepSummary: api.SweepSummary{State: api.SweepRunning, Request: asked()}}
	v.Progress = api.SweepProgress{Spans: 4, SecondsUsed: 390, SecondsLeft: new(390.), Span: &api.SweepNow{
		Number:  5,
		Attempt: 2,
		Mode:    kvMode,
		Level:   api.AtConversations(60),
		Phase:   api.SpanCounting,
		Seconds: 34,
		Of:      new(60.),
		Turns:   99,
	}}
	now := func(v api.Sweep, phase api.SweepPhase, change func(*api.SweepNow)) api.Sweep {
		v.Progress.Span = &api.SweepNow{Attempt: 1, Mode: rrMode, Level: api.AtConversations(60), Phase: phase}
		change(v.Progress.Span)
		return v
	}
	decided := v
	decided.Trial = &api.TrialState{Primary: &api.TrialDifference{
		Metric: "ttft_p95", Difference: -.231, Interval: &[2]float64{-.302, -.154},
	}}
	decided.Progress.Beyond = true
	ranked := decided
	ranked.Trial = &api.TrialState{Primary: decided.Trial.Primary, Ranking: &api.TrialRanking{Places: []api.TrialPlace{
		{Mode: kvMode}, {Mode: rrMode}, {Mode: api.ModeState{Mode: api.ModeLeastLoaded}, LeftAfter: new(2)},
	}}}
	ranked.Progress.Span = nil
	warming := now(v, api.SpanWarmingUp, func(n *api.SweepNow) { n.Arm, n.Seconds, n.WarmingUp = "a", 3, 12 })
	switching := now(v, api.SpanSwitching, func(n *api.SweepNow) { n.Message = "restarting" })
	levels := v
	levels.Request.Kind, levels.Progress.Of, levels.Progress.Span = api.SweepLevels, new(18), nil
	levels.Progress.Spoiled = 2
	early := now(v, api.SpanStoring, func(n *api.SweepNow) { n.Elapsed = 150 })
	early.Progress.SecondsLeft, early.Progress.SecondsLeast = nil, new(180.)
	ranged := levels
	ranged.Progress.SecondsLeast, ranged.Progress.SecondsMost = new(300.), new(480.)
	paused := v
	paused.State, paused.Reason, paused.Progress.Span, paused.Progress.SecondsLeft = api.SweepPaused, "by ann", nil, nil
	for _, row := range []struct {
		sweep api.Sweep
		want  string
	}{
		{v, "trial · [#####-----] 50 % · about 6 min left · 4 spans · KV-aware at 60 again measuring 34/60 s, 99 turns"},
		{decided, "trial · [#####-----] 50 % · will likely end undecided, in 6 min · 4 spans · KV-aware at 60 again " +
			"measuring 34/60 s, 99 turns · TTFT p95 of KV-aware −23.1 % (−30.2 to −15.4)"},
		{ranked, "trial · [#####-----] 50 % · will likely end undecided, in 6 min · 4 spans · TTFT p95 of KV-aware −23.1 % " +
			"(−30.2 to −15.4) against Round-robin, left: KV-aware, Round-robin"},
		{warming, "trial · [#####-----] 50 % · about 6 min left · 4 spans · Round-robin at 60 warming up 3 s, " +
			"waiting for 12 initial conversations to end"},
		{switching, "trial · [#####-----] 50 % · about 6 min left · 4 spans · Round-robin at 60: changing the mode: " +
			"restarting"},
		{levels, "sweep · [#####-----] 50 % · about 6 min left · 4 of 18 spans, 2 more invalid"},
		{early, "trial · [#######---] 75 % · first look in about 3 min · 4 spans · Round-robin at 60 storing"},
		{ranged, "sweep · [#####-----] 50 % · about 6 min left (5 min to 8 min) · 4 of 18 spans, 2 more invalid"},
		{paused, "trial paused by ann · 4 spans"},
	} {
		assert.Equal(t, row.want, progressLine(row.sweep, api.Snapshot{}))
	}
	lost := api.Snapshot{
		Lanes:  []api.LaneSnapshot{{Target: api.Target{Problem: "gone"}}},
		Client: api.ClientHealth{Verdict: api.VerdictBottleneck},
	}
	assert.Equal(t, "trial paused by ann · 4 spans · target: gone · LOAD GENERATOR'S OWN TIMING ERROR TOO LARGE",
		progressLine(paused, lost))
}

func TestSpan(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0 s", 89: "89 s", 90: "2 min", 5399: "90 min", 5400: "1 h 30 min", 36_000: "10 h 00 min",
	} {
		assert.Equal(t, want, span(seconds))
	}
	for _, row := range []struct {
		used, left float64
		want       string
	}{{0, 9, "[----------] 0 %"}, {999, 1, "[#########-] 99 %"}, {5, 0, "[##########] 100 %"}} {
		assert.Equal(t, row.want, bar(row.used, row.left))
	}
}

func TestSpanWords(t *testing.T) {
	s := api.SweepSpan{
		Number:  2,
		Mode:    kvMode,
		Level:   api.AtConversations(60),
		Turns:   231,
		Elapsed: 100,
		Row: &api.BaselineRow{
			TTFT: api.Percentiles{P95: new(.4121)}, OutputTokensPerSecond: new(1234.5), KVHitRatio: new(.9),
		},
	}
	assert.Equal(t, "span 3, KV-aware at 60: TTFT p95 412 ms, 1,234 tok/s, KV hit 90.0 %, 231 turns, took 2 min",
		spanWords(s))
	s.Failed = 2
	assert.Equal(t, "span 3, KV-aware at 60: TTFT p95 412 ms, 1,234 tok/s, KV hit 90.0 %, 231 turns, 2 failed, took 2 "+
		"min", spanWords(s))
	s.Spoiled = "the mode changed"
	assert.Equal(t, "span 3, KV-aware at 60: invalid: the mode changed", spanWords(s))
}

func TestUnanswered(t *testing.T) {
	done := api.Sweep{SweepSummary: api.SweepSummary{State: api.SweepDone}}
	require.NoError(t, unanswered(done), "a sweep of levels has its answer")
	done.Capacity = &api.Capacity{Modes: []api.ModeCapacity{{Mode: kvMode, Level: new(api.AtConversations(0))}}}
	require.NoError(t, unanswered(done), "not even the lowest level is an answer, too")
	done.Capacity.Modes = append(slices.Clone(done.Capacity.Modes), api.ModeCapacity{Mode: rrMode})
	require.EqualError(t, unanswered(done),
		"undecided: the search for the capacity of Round-robin ran out of time; use a longer --max-time")
}
