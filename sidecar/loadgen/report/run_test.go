package report

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
)

var t0 = time.Date(2025, 3, 18, 9, 0, 0, 0, time.UTC)

func at(second float64) time.Time { return t0.Add(time.Duration(second * float64(time.Second))) }

// turn is one that took 2 s and ended well.
func turn(ended, ttft float64, tokens int) *api.Turn {
	return &api.Turn{
		Number: 1, Status: api.TurnOK, Started: at(ended - 2), Ended: at(ended), TTFT: &ttft, TPOT: new(.03),
		Latency: new(2.), PromptTokens: new(4000), CachedTokens: new(3000), OutputTokens: &tokens,
	}
}

func failure(ended float64, class api.ErrorClass, message string) *api.Turn {
	return &api.Turn{
		Number: 2, Status: api.TurnError, ErrorClass: class, ErrorMessage: message, Started: at(ended - 1), Ended: at(ended),
	}
}

// reported is the report of these turns, as a run of 120 s.
func reported(t *testing.T, turns []*api.Turn, change func(*Ended), conditions ...string) *Run {
	t.Helper()
	run := Ended{
		Program: "1.2.3", Cause: ByDuration, Started: t0, Ended: at(120), SLO: api.SLO{TTFT: .6, TPOT: .06},
		TokensPerChunk: 1,
		Steps:          []api.StepRecord{{ID: 7, Started: t0}}, Data: Data{
			Database: "/data/kvbooth.db", Lane: "main", FirstStep: 7, LastStep: 7,
		},
	}
	run.Status.Target = api.Target{URL: "http://gpu.example:8000", Model: "llama"}
	run.Status.State.Mode, run.Status.State.Concurrency.Target = api.ModeKV, api.AtConversations(20)
	if change != nil {
		change(&run)
	}
	var all []Condition
	for _, text := range conditions {
		c, err := ParseCondition(text)
		require.NoError(t, err, text)
		all = append(all, c)
	}
	b := NewBuilder(run)
	for _, one := range turns {
		b.Add(one)
	}
	recorder := stats.NewRecorder(t0, run.SLO)
	return b.Run(recorder.Whole(run.Ended, slices.Values(turns)), all)
}

// some are turns over 120 s: TTFT rises from 100 ms to 700 ms.
func some() (turns []*api.Turn) {
	for i := range 600 {
		turns = append(turns, turn(float64(i)/5, .1+.001*float64(i), 100))
	}
	turns[0].Number, turns[0].PromptTokens, turns[0].CachedTokens, turns[0].OutputTokens = 6, nil, nil, new(50)
	return append(turns, failure(30, api.ErrorHTTP5xx, "503 \x1b[31mbusy"), failure(31, api.ErrorHTTP5xx, "503 later"),
		failure(32, api.ErrorStall, "silent"))
}

func text(t *testing.T, r *Run) string {
	t.Helper()
	var b strings.Builder
	d := r.Document()
	require.NoError(t, d.WriteText(&b))
	return b.String()
}

func TestSummary(t *testing.T) {
	r := reported(t, some(), nil, "ttft_p95>600ms", "error_rate>1%", "errors>2", "kv_hit<70%", "verdict=bottleneck",
		"slo=missed")
	assert.Equal(t, Turns{OK: 600, Failed: 3, SLOMet: 501}, r.Turns)
	assert.Equal(t, []ErrorClass{{api.ErrorHTTP5xx, 2, "503 \x1b[31mbusy"}, {api.ErrorStall, 1, "silent"}}, r.Errors)
	assert.InDelta(t, .1+.001*.95*599, *r.Metrics.TTFT.P95, 1e-9)
	require.Len(t, r.Series, maxPoints)
	assert.InDelta(t, 60*10, addUp(r.Series), 0)
	assert.InDelta(t, 500, r.Series[30].OutputTokensPerSecond, 5)
	out := text(t, r)
	for _, want := range []string{
		"Run of 2m0s against http://gpu.example:8000 (llama)\n", "20 conversations · kv · ended by --duration\n",
		"600 completed, 3 failed, 0 cut at the end", "Errors           0.5 % (3 failed turns)",
		"2,396,000 input (p95 of a turn 4,000), 1,797,000 cached, 59,950 output",
		"turn 1: TTFT p50 400 ms, p95 669 ms; 4,000 input tokens (p95 4,000), 100 output; latency p50 2,000 ms; n 599\n",
		"turn 6+: TTFT p50 100 ms, p95 100 ms; – input tokens (p95 –), 50 output; latency p50 2,000 ms; n 1\n",
		"http_5xx: 2, first: 503 \\u001b[31mbusy\n",
		"Result           failed (by --fail-if)\n",
		"SLO              missed (83.1 % of the finished turns met every SLO)\n",
		"TTFT p95         669 ms (SLO 600 ms missed)\n", "TPOT p95         30.0 ms (SLO 60 ms met)\n",
		"ttft_p95>600ms: FAILED, value is 669 ms", "error_rate>1%: passed, value is 0.5 %", "errors>2: FAILED, value is 3",
		"kv_hit<70%: passed, value is 75.0 %", "verdict=bottleneck: passed, value is unknown",
		"slo=missed: FAILED, value is missed", "not compared: the load had stopped before the summary",
		"/data/kvbooth.db, lane main, step 7",
	} {
		assert.Contains(t, out, want)
	}
	assert.True(t, r.Failed())
	assert.False(t, r.Undecided())
	assert.NotContains(t, out, "\x1b", "a server's words do not steer a terminal")
}

func addUp(series []Point) (n float64) {
	for _, p := range series {
		n += float64(p.OK)
	}
	return n
}

// The figures of the SLO say what was missed and what was met.
func TestFiguresOfTheSLO(t *testing.T) {
	for slo, want := range map[api.SLO][]string{
		{TTFT: .7, TPOT: .02}: {"SLO              missed (", "669 ms (SLO 700 ms met)", "30.0 ms (SLO 20 ms missed)"},
		{TTFT: .2, TPOT: .02}: {"SLO              missed (0.0 %", "669 ms (SLO 200 ms missed)", "(SLO 20 ms missed)"},
		{TTFT: 2, TPOT: .05}:  {"SLO              met (", "669 ms (SLO 2,000 ms met)", "30.0 ms (SLO 50 ms met)"},
	} {
		got := text(t, reported(t, some(), func(run *Ended) { run.SLO = slo }))
		for _, line := range want {
			assert.Contains(t, got, line)
		}
	}
	failing := some()
	for range 60 {
		failing = append(failing, failure(33, api.ErrorStall, "silent"))
	}
	all := text(t, reported(t, failing, func(run *Ended) { run.SLO = api.SLO{TTFT: 2, TPOT: .05} }))
	assert.Contains(t, all, "SLO              missed (")
	assert.Contains(t, all, "669 ms (SLO 2,000 ms missed: 9.5 % of the turns failed, the value is of the others)")
	short := some()
	for _, one := range short {
		one.TPOT = nil
	}
	got := text(t, reported(t, short, nil))
	assert.Contains(t, got, "669 ms (SLO 600 ms missed)")
	assert.Contains(t, got, "TPOT p95         not judged\n")
}

// A figure that some turns do not have is said beside it, and is never 0.
func TestUnknownFigures(t *testing.T) {
	turns := some()
	for _, one := range turns {
		one.PromptTokens, one.CachedTokens, one.TokenSource = nil, nil, "chunks"
		one.TPOT, one.FirstAnswer = nil, new(2.5)
	}
	got := text(t, reported(t, turns, func(run *Ended) { run.SLO = api.SLO{TTFT: 2, TPOT: .05} }))
	for _, want := range []string{
		"First answer  2,500", "Tokens          input not reported, cached not reported, ",
		"output (estimated from the chunks of ", "TPOT and ITL of ", ": the number of tokens is unclear", "input tokens of ",
		"cached tokens of ", "SLO              not judged; 0.0 % of the", "669 ms (SLO 2,000 ms met)",
		"TPOT p95         not judged\n",
	} {
		assert.Contains(t, got, want)
	}
	assert.Contains(t, text(t, reported(t, some(), nil)), " cached, ")
}

// Where a server or a proxy holds a relevant share of the streams back, TPOT and ITL of the run are unknown, and not of
// the other turns.
func TestRunInBursts(t *testing.T) {
	held := func(every int) *Run {
		turns := some()
		for i := 0; i < len(turns); i += every {
			turns[i].TPOT, turns[i].InBursts = nil, true
		}
		return reported(t, turns, nil)
	}
	r := held(10)
	assert.Equal(t, 60, r.Turns.InBursts)
	assert.Equal(t, api.Quantiles{Unknown: 600}, r.Metrics.TPOT)
	assert.Equal(t, api.Quantiles{Unknown: 600}, r.Metrics.ITL)
	assert.Nil(t, r.Series[30].TPOTP50)
	out := text(t, r)
	assert.Contains(t, out, "TPOT and ITL of 600 of 600 turns: the tokens of 60 came in bursts, as the server or a proxy "+
		"held them back; TTFT includes the hold")
	assert.Contains(t, out, "TPOT p95         not judged\n")
	few := held(25)
	assert.Equal(t, []int{576, 24}, []int{few.Metrics.TPOT.N, few.Metrics.TPOT.Unknown})
	assert.NotNil(t, few.Series[30].TPOTP50)
}

// The summary names what was sent and how it came, also where no turn has planned tokens.
func TestTrafficOfARun(t *testing.T) {
	r := reported(t, some(), nil)
	r.Workload.Arrivals, r.Workload.Traffic = "gamma, burstiness 0.5", "shape prefix (groups 600); answers limited"
	out := text(t, r)
	assert.Contains(t, out, "gamma, burstiness 0.5\n")
	assert.Contains(t, out, "shape prefix (groups 600); answers limited\n")
}

// The summary has what the cluster reported: workers and their number over time, the queue, hits by source, and the
// events. What was not known is not 0.
func TestClusterOfARun(t *testing.T) {
	var c Cluster
	at := func(s int) time.Time { return time.Date(2026, 3, 1, 14, 3, s, 0, time.Local) }
	of := func(workers int, queued, cached float64) api.Cluster {
		kv := api.KV{Counted: map[string][2]float64{
			"frontend": {10 + cached, 1020}, "prediction": {4 + cached/100, 20}, "engine": {0, 7}, "gateway": {1, 2},
		}}
		return api.Cluster{
			Available: true, Source: "direct", Engine: "vllm", Queued: &queued, KV: kv, Workers: make([]api.Worker, workers),
		}
	}
	c.Add(at(0), api.Cluster{Problem: "no answer"})
	c.Add(at(0), of(0, 0, 0))
	assert.Empty(t, c.Workers, "it has not been read yet, and a first reading has no worker")
	c = Started(api.Cluster{
		KV:      api.KV{Counted: map[string][2]float64{"frontend": {10, 20}, "prediction": {4, 5}, "engine": {0, 7}}},
		Engines: &api.EngineTotals{Drafts: 100, Drafted: 700, Accepted: 450},
	})
	first := of(2, 0, 0)
	first.Problem = "no Dynamo frontend"
	c.Add(at(1), first)
	c.Add(at(2), of(2, 4, 700))
	c.Add(at(10), of(1, 8, 700))
	c.Add(at(11), api.Cluster{})
	c.Add(at(12), of(1, 0, 700))
	many := of(2, 0, 750)
	many.AllWorkers = &api.AllWorkers{Count: 300}
	many.Engines = &api.EngineTotals{Drafts: 500, Drafted: 1700, Accepted: 1050, GPUMemory: api.GaugeTotal{
		Sum: 3 << 40, Readings: 24,
	}}
	many.Engines.Placement = &api.PlacementTotals{Prompt: 100, Causes: api.CauseTotals{40, 25, 35}}
	many.Engines.FirstToken = api.FirstTokenTotals{
		Engine: api.Sum{Seconds: .8, Requests: 10}, Queue: api.Sum{Seconds: .2, Requests: 10},
	}
	c.Add(at(13), many)
	events := []api.Event{{Time: at(9), Kind: api.EventModeChange, By: "ann", Text: "Round-robin\x1b"}}
	r := reported(t, some(), func(run *Ended) { run.Cluster, run.Events = c, events }, "acceptance_rate<55%",
		"acceptance_rate<70%", "tokens_per_step<2")
	out := text(t, r)
	for _, want := range []string{
		"vllm, metrics: direct\n", "2, 1 from 14:03:10, not read from 14:03:11, 1 from 14:03:12, 300 from 14:03:13\n",
		"2.4 requests waited on average, at most 8.0\n",
		"KV cache hit     75.0 % (95 %: 75.0 % to 75.0 %; from the answers' usage)\n",
		"60.0 % of the drafted tokens accepted, 2.50 tokens per step\n", "128.0 GiB of a GPU\n",
		"40.0 % found, 25.0 % new, 35.0 % elsewhere\n", "319 ms router, 20.0 ms queue, 60.0 ms rest\n",
		"acceptance_rate<55%: passed, value is 60.0 %", "acceptance_rate<70%: FAILED, value is 60.0 %",
		"tokens_per_step<2: passed, value is 2.50", "14:03:09 mode change: Round-robin\\u001b (ann)\n",
	} {
		assert.Contains(t, out, want)
	}
	assert.NotContains(t, out, "prediction", "one hit rate with its source; the JSON has the others")
	none := text(t, reported(t, some(), nil, "acceptance_rate<55%"))
	assert.Contains(t, none, "acceptance_rate<55%: not measured")
	assert.NotContains(t, none, "Workers")
	assert.NotContains(t, none, "Speculation ")
}

// The summary of two lanes has both, and how they differ.
func TestSummaryOfTwoLanes(t *testing.T) {
	r := reported(t, some(), nil)
	r.Twin = reported(t, some()[:300], func(run *Ended) {
		run.Status.Target.URL, run.Data.Lane = "http://other.example:8000", "twin"
	})
	a, b := api.TwinSide{Target: "http://gpu.example:8000", Mode: api.ModeKV},
		api.TwinSide{Target: "http://other.example:8000", Mode: api.ModeRoundRobin}
	r.Pairs = &api.Twin{A: a, B: b, Pairs: 280, Caution: "the clusters may differ", Metrics: []api.PairedMetric{
		{Metric: "ttft", A: new(.2), B: new(.3), Difference: new(.1), Interval: &[2]float64{.05, .15}},
		{Metric: "kv_hit_ratio"},
	}}
	for _, out := range []string{text(t, r), written(t, r, api.ReportHTML)} {
		for _, want := range []string{
			"Run of 2m0s against http://gpu.example:8000", "Lane twin: Run of 2m0s against http://other.example:8000",
			"600 completed", "300 completed",
			"KV-aware at http://gpu.example:8000 against Round-robin at http://other.example:8000, 280 pairs",
			"mean TTFT 200 ms and 300 ms; the second less the first: 100 ms (50.0 ms to 150 ms)", "KV cache hit not reported",
			"the clusters may differ",
		} {
			assert.Contains(t, out, want)
		}
	}
}

// Where nothing was measured, nothing is said to be good or bad.
func TestSummaryOfNothing(t *testing.T) {
	r := reported(t, nil, nil, "ttft_p95>600ms", "error_rate>0", "slo=missed")
	assert.False(t, r.Measured())
	assert.False(t, r.Failed())
	assert.True(t, r.Undecided())
	out := text(t, r)
	assert.Contains(t, out, "nothing was measured: no turn completed or failed")
	assert.Contains(t, out, "ttft_p95>600ms: not measured")
	assert.NotContains(t, out, "p50")
	require.NoError(t, Write(io.Discard, r, api.ReportHTML))

	r = reported(t, []*api.Turn{failure(1, api.ErrorConnect, "refused")}, nil, "error_rate>=100%", "ttft_p50>1s")
	assert.True(t, r.Measured(), "failures are measured")
	assert.True(t, r.Failed())
	require.NoError(t, Write(io.Discard, r, api.ReportHTML))

	r = reported(t, some()[:1], func(run *Ended) { run.Ended = run.Started })
	assert.Empty(t, r.Series, "a run of no length")
	require.NoError(t, Write(io.Discard, r, api.ReportHTML))
}

// What the comparison says, and why there is none.
func TestSummaryOfTheBaseline(t *testing.T) {
	better := api.Column{Mode: api.ModeRoundRobin, Speculation: api.SpeculationNotRecorded}
	better.TTFT.P95 = api.LookedUp{Value: new(1.), Lookup: api.LookupExact, Improvement: &api.Improvement{
		Percent: 42, Outcome: api.OutcomeBetter,
	}}
	better.TPOT.P95 = api.LookedUp{
		Value: new(1.), Lookup: api.LookupExact, Improvement: &api.Improvement{Percent: -3.25, Outcome: api.OutcomeWorse},
	}
	better.OutputTokensPerSecond = api.LookedUp{
		Value: new(1.), Lookup: api.LookupExact, Improvement: &api.Improvement{Outcome: api.OutcomeNoDifference},
	}
	better.RequestsPerSecond = api.LookedUp{Lookup: api.LookupOutside}
	for name, row := range map[string]struct {
		c    api.Comparison
		want string
	}{
		"compared": {
			api.Comparison{
				Title: "Recorded", N: 9, Seconds: 90, Level: api.AtConversations(20), Columns: []api.Column{better},
				Differences: []api.Difference{{Field: "max_tokens", Live: "9", Baseline: "8"}},
			},
			"vs. round_robin: TTFT p95 42.0 % better, TPOT p95 3.2 % worse, latency p95 not recorded, output " +
				"tokens/s 0.0 %, not certain, requests/s outside the recorded range",
		},
		"the differences": {
			api.Comparison{
				Title: "Recorded", N: 9, Columns: []api.Column{better},
				Differences: []api.Difference{{Field: "max_tokens", Live: "9", Baseline: "8"}},
			},
			"differs from the baseline: max tokens 9 here, 8 there",
		},
		"settling": {api.Comparison{
			Title: "Recorded", N: 9, Columns: []api.Column{better}, Settling: true, SettlingFor: 12,
		}, "Recorded: not compared, still settling: needs another 12 s of counted turns"},
		"withheld": {
			api.Comparison{Title: "Recorded", N: 9, Columns: []api.Column{better}, Withheld: "it is late"},
			"Recorded: not compared: it is late",
		},
		"empty": {api.Comparison{Title: "This target", N: 9}, "This target: not compared, it has no results yet"},
		"no counted": {
			api.Comparison{Title: "Recorded", Columns: []api.Column{better}},
			"not compared: the run ended before its load had settled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Contains(t, text(t, reported(t, some(), func(run *Ended) { run.Before = &row.c })), row.want)
		})
	}
}

// The load generator's verdict on a run is that of its error in the run's figures; where that error could change an
// outcome, there is none.
func TestClient(t *testing.T) {
	for name, row := range map[string]struct {
		late           time.Duration
		verdict, lines string
		slo, condition string
	}{
		"not known": {
			0, "unknown", "the load generator's own timing error is unknown: the run was too short for the self-check",
			"669 ms (SLO 600 ms missed", "ttft_p95>660ms: FAILED, value is 669 ms",
		},
		"negligible": {
			100 * time.Microsecond, "ok", "the load generator's own timing error is negligible: at most ",
			"669 ms (SLO 600 ms missed", "ttft_p95>660ms: FAILED, value is 669 ms",
		},
		"noticeable": {
			20 * time.Millisecond, "noticeable", "; the intervals include it",
			"669 ms (SLO 600 ms missed", "ttft_p95>660ms: undecided, value is 669 ms (up to 2",
		},
		"too large": {
			80 * time.Millisecond, "bottleneck", "the load generator's own timing error is too large: TTFT cannot be judged: ",
			"669 ms (SLO 600 ms undecided: up to 10", "ttft_p95>660ms: undecided, value is 669 ms (up to 10",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := reported(t, some(), func(run *Ended) {
				for range 1000 {
					if row.late > 0 {
						run.Lag.Timer.Add(row.late)
						run.Lag.Stream.Add(row.late)
					}
				}
				run.Client.Add(api.ClientHealth{Verdict: api.VerdictNoticeable, LagSeconds: .02})
				run.Client.Add(api.ClientHealth{Verdict: api.VerdictBottleneck, LagSeconds: .01})
				run.Client.Add(api.ClientHealth{Verdict: api.VerdictUnknown})
			}, "verdict=bottleneck", "ttft_p95>660ms")
			assert.Equal(t, row.verdict, r.Client.Verdict)
			assert.Equal(t, []any{2, 1, .02}, []any{r.Client.Seconds, r.Client.BottleneckSeconds, r.Client.WorstLagSeconds})
			out := text(t, r)
			assert.Contains(t, out, row.lines)
			assert.Contains(t, out, row.slo)
			assert.Contains(t, out, row.condition)
			assert.Equal(t, row.verdict == "bottleneck", r.Conditions[0].Hit)
			assert.Equal(t, row.late >= 20*time.Millisecond, r.Undecided())
			require.NoError(t, Write(io.Discard, r, api.ReportHTML))
		})
	}
}

func TestConditions(t *testing.T) {
	for text, want := range map[string]Condition{
		"ttft_p95>600ms":      {Name: "ttft_p95", Op: ">", Limit: .6},
		"latency_p99>=1m30s":  {Name: "latency_p99", Op: ">=", Limit: 90},
		"error_rate>1%":       {Name: "error_rate", Op: ">", Limit: .01},
		"goodput<0.9":         {Name: "goodput", Op: "<", Limit: .9},
		"errors>0":            {Name: "errors", Op: ">"},
		"verdict=bottleneck":  {Name: "verdict", Op: "=", Word: "bottleneck"},
		"ttft_p95 > 1ms":      {Name: "ttft_p95", Op: ">", Limit: .001},
		" error_rate >=\t1 %": {Name: "error_rate", Op: ">=", Limit: .01},
		"slo = missed":        {Name: "slo", Op: "=", Word: "missed"},
	} {
		want.Text = strings.Join(strings.Fields(text), "")
		c, err := ParseCondition(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, c)
	}
	for _, text := range []string{
		"", "ttft_p95", "ttft_p95>", "ttft_p95>600", "ttft_p95 > = 600ms", "ttft p95>1s", "ttft_p95>1 0ms",
		"errors>+Inf", "ttft_p95=600ms", "ttft_p95>-1s", "ttft_p90>1s", "error_rate>200%",
		"error_rate>NaN", "errors>few", "verdict=late", "verdict>ok", "slo=", ">1", "kv_hit<>1",
	} {
		_, err := ParseCondition(text)
		require.Error(t, err, text)
	}
	for _, q := range measures {
		assert.Contains(t, Allowed(), q.name)
	}
}

// The page is whole, needs nothing from elsewhere, and shows a server's words as words.
func TestPage(t *testing.T) {
	turns := append(some(), failure(33, api.ErrorMalformed, "<script>alert(1)</script>"))
	page := written(t, reported(t, turns, nil, "ttft_p95>600ms"), api.ReportHTML)
	elements := selfContained(t, page)
	assert.Equal(t, 6, elements["svg"])
	assert.GreaterOrEqual(t, elements["path"], 5)
	assert.NotContains(t, page, "NaN")
	assert.Contains(t, page, "&lt;script&gt;alert(1)")
	for _, coordinate := range regexp.MustCompile(`[ML]([\d.-]+) ([\d.-]+)`).FindAllString(page, -1) {
		assert.NotContains(t, coordinate, "-", "nothing is drawn outside")
	}
}

// A reading after the end has the tokens of the last seconds, and adds no second to the queue.
func TestLastReadingOfTheCluster(t *testing.T) {
	at := func(hits, all float64) api.Cluster {
		return api.Cluster{
			Available: true, Queued: new(4.), QueuedEngines: new(3.),
			KV: api.KV{Counted: map[string][2]float64{"engine": {hits, all}}},
		}
	}
	c := Started(at(100, 1000))
	c.Add(t0, at(200, 1500))
	c.Finish(at(500, 2000))
	assert.Equal(t, []Hits{{"engine", .4}}, c.Hits)
	assert.Equal(t, &Queue{Mean: 4, Max: 4, Engines: new(3.), Seconds: 1, ofEngines: 1}, c.Queued)
	c.Finish(api.Cluster{})
	assert.Equal(t, []Hits{{"engine", .4}}, c.Hits, "a reading that failed changes nothing")
}

// The report names the arm in place of the mode, the router, by what its facts are known, and how turns were spread
// over workers.
func TestRouterOfARun(t *testing.T) {
	turns := some()[:6]
	for i, worker := range []string{"a", "a", "b", "a", "", "a"} {
		turns[i].Conversation, turns[i].Number, turns[i].Worker = "c", i+1, worker
	}
	r := reported(t, turns, func(run *Ended) {
		run.Status.Target.Router, run.Status.Target.WorkerSource = "smg", "X-Smg-Routed-Worker-Id"
		run.Status.Target.CachedSource = "usage"
		run.Status.State.Arm, run.Status.State.Mode = "power-of-two", api.ModeUnknown
		run.Status.Target.Notices = []string{"3 of 4 answers came in bursts.", "target.worker_header is X-Engine."}
		run.Status.State.Shape.Session, run.Status.State.Shape.NoRequestID = "header:X-Session-Id", true
		run.Cluster.Add(t0, api.Cluster{Available: true, Workers: []api.Worker{{ID: "a"}, {ID: "idle"}, {Name: "pod"}}})
	})
	assert.Equal(t, &Routing{
		Workers: []WorkerTurns{{"a", 4}, {"b", 1}, {"idle", 0}}, Turns: 5, Skew: 2.4, Later: 3, SameWorker: 1,
	}, r.Routing)
	assert.Contains(t, text(t, r), "20 conversations · power-of-two · ended by --duration\n")
	assert.Equal(t, []string{"3 of 4 answers came in bursts."}, r.answerLines())
	for _, line := range []string{
		"smg, worker of a turn from X-Smg-Routed-Worker-Id, cached tokens from the answers' usage, " +
			"session by header:X-Session-Id, no X-Request-Id",
		"target.worker_header is X-Engine.",
		"turns by worker: a 4, b 1, idle 0; the busiest has 2.40 times the mean",
		"1 of 3 later turns (33.3 %) went to the worker of the turn before",
	} {
		assert.Contains(t, strings.Join(r.routerLines(), "\n"), line)
		assert.Contains(t, strings.Join(strings.Fields(text(t, r)), " "), line)
	}
	r = reported(t, turns, func(run *Ended) {
		run.Cluster.Add(t0, api.Cluster{Available: true, Workers: []api.Worker{{ID: "10.0.0.1:80"}, {ID: "10.0.0.2:80"}}})
	})
	assert.Equal(t, []WorkerTurns{{"a", 4}, {"b", 1}}, r.Routing.Workers, "the cluster has other names for the workers")
	assert.Equal(t, "not recognized, the worker of a turn is not known, cached tokens not known", r.routerLines()[0])
	for want, c := range map[string]api.Cluster{
		"Workers 2 by the turns ":                   {Available: true, Unread: api.Unread{Workers: "in turn"}},
		"Workers 2 by the turns, by the metrics 1 ": {Available: true, Workers: []api.Worker{{ID: "x:1"}}},
		"Workers 3 ": {Available: true, Workers: make([]api.Worker, 3)},
	} {
		r = reported(t, turns, func(run *Ended) { run.Cluster.Add(t0, c) })
		assert.Contains(t, strings.Join(strings.Fields(text(t, r)), " "), want)
	}
}

// The table of latencies fits a terminal of 120 columns, also with turns that were cut.
func TestLatenciesFitATerminal(t *testing.T) {
	v := new(98.765)
	q := api.Quantiles{
		P50: v, P95: v, P99: v, Mean: v, Min: v, P90: v, Max: v, N: 600_000, P50Interval: &[2]float64{*v, *v},
		AtLeast: []string{"p90", "p95", "p99", "max", "mean"},
	}
	r := Run{Turns: Turns{OK: 1}, Metrics: api.Metrics{TTFT: q, TPOT: q, ITL: q, Latency: q}, FirstAnswer: &q}
	r.Metrics.ITL.Estimated, r.Metrics.TPOT.P95Interval = true, &[2]float64{.0123, .0456}
	d := Document{Sections: []Section{{Table: r.latencies()}}}
	var b strings.Builder
	require.NoError(t, d.WriteText(&b))
	for line := range strings.Lines(b.String()) {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 121, line)
	}
	assert.Contains(t, b.String(), "≥98,765")
}

// A run that the model of the caches does not explain says so in place of shares that add up to more than 100 %.
func TestCausesWithoutModel(t *testing.T) {
	c := Cluster{}
	c.HitCauses = map[api.HitCauseKind]float64{api.CauseFound: .84, api.CauseNew: .188, api.CauseUnexplained: -.028}
	assert.Equal(t, []string{"84.0 % found", "18.8 % new", "−2.8 % unexplained"}, c.causes())
	c.HitCauses[api.CauseUnexplained] = -.069
	assert.Equal(t, []string{"not known: 6.9 % more were found than the model of the caches holds"}, c.causes())
}
