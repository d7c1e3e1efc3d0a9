//go:build unix

package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/stats"
)

// brief runs a load generator to the end of its run.
func brief(t *testing.T, target string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	if !strings.HasPrefix(args[0], "--trace=") && !strings.HasPrefix(args[0], "--shape=") {
		args = append(args, "--turns-min=1", "--turns-max=2")
	}
	return newProgram(t, append(
		args, "--target-url="+target, "--concurrency=4", "--start-rate=1000", "--target-rps=0",
	)...).finish()
}

// A run with a number of turns leaves its summary on the terminal and in three files, all of the same turns.
func TestRequests(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	dir := t.TempDir()
	page, document, table := filepath.Join(dir, "run.html"), filepath.Join(dir, "run.JSON"), filepath.Join(dir, "run.csv")
	require.NoError(t, os.WriteFile(page, []byte(strings.Repeat("an earlier and longer page\n", 9999)), 0o600))
	code, stdout, stderr := brief(
		t, server.URL, "--requests=40", "--output="+page+","+document, "--output="+table,
		"--fail-if=error_rate>0%,ttft_p95>60s",
	)
	require.Equal(t, success, code, stderr)
	for _, want := range []string{
		"ended by --requests", "error_rate>0%: passed, value is 0.0 %", "KV cache hit     75.0 %", page, document, table,
	} {
		assert.Contains(t, stdout, want)
	}
	assert.Regexp(t, `(?m)^ +TTFT +\d`, stdout)

	data := content(t, document)
	var r report.Run
	require.NoError(t, json.Unmarshal([]byte(data), &r))
	assert.Equal(t, report.ByRequests, r.Cause)
	assert.Equal(t, 40, r.Turns.OK, "exactly as many were sent")
	assert.Equal(t, r.Turns.OK, r.Metrics.TTFT.N, "of all turns of the run")
	assert.Equal(t, "llama", r.Target.Model)

	// The summary is a result that can be compared, and one over several levels is not.
	again := filepath.Join(dir, "again.json")
	comparedWith := func(second any, args ...string) (code int, stdout, stderr string) {
		data, err := json.Marshal(second)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(again, data, 0o600))
		return command(t, append([]string{"compare", document, again}, args...)...)
	}
	code, stdout, stderr = comparedWith(json.RawMessage(data))
	require.Equal(t, success, code, stderr)
	assert.Regexp(t, `(?m)^\| 4 \| [\d.]+ ms `, stdout)
	assert.Contains(t, stdout, "A run as a whole, with caches that were warm at the beginning")

	// The load generator's own errors are included, and unknown values are omitted.
	late := r
	late.Metrics.TTFT.P95Error, late.Metrics.Latency.P50Error = new(.012), new(.003)
	late.RequestsPerSecond = report.Value{}
	code, stdout, stderr = comparedWith(late, "--format=json")
	require.Equal(t, success, code, stderr)
	var compared struct {
		Sides []struct{ Rows []api.BaselineRow }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &compared))
	row := compared.Sides[1].Rows[0]
	require.NotNil(t, row.Errors)
	assert.Equal(t, []any{.012, .003}, []any{*row.Errors.TTFT.P95, *row.Errors.Latency.P50})
	assert.Equal(t, []any{r.Metrics.TTFT.P95, r.KVHitRatio.Value, r.Turns.OK, r.Seconds},
		[]any{row.TTFT.P95, row.KVHitRatio, row.N, row.Seconds})
	assert.Nil(t, row.RequestsPerSecond)

	// Figures that depend on turns that were cut are marked.
	cut := r
	cut.Turns.Cancelled = 2
	ttft := &cut.Metrics.TTFT
	ttft.Cut, ttft.AtLeast, ttft.P95Interval = 2, []string{"p95", "p99", "mean"}, nil
	ttft.P50, ttft.P95 = new(0.), new(*ttft.P95/100)
	code, stdout, stderr = comparedWith(cut)
	require.Equal(t, success, code, stderr)
	assert.Regexp(t, `(?m)^\| 4 \| .*\| ≥ [\d.,]+ ms \| not compared \|$`, stdout)
	assert.Contains(t, stdout, "≥ marks the figures that depend on it")
	code, stdout, stderr = command(t, "compare", document, again+","+document)
	require.Equal(t, success, code, stderr)
	assert.Regexp(t, `(?m)^\| 4 \| .*\| ≥ [\d.,]+ ms \| `, stdout, "also in a mean")
	r.Steps[0].Level = api.AtConversations(3)
	code, _, stderr = comparedWith(r)
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "steps: 3 conversations, unknown is not allowed: a run at one concurrency in one mode")
	assert.Empty(t, r.Notes)

	rows, err := csv.NewReader(strings.NewReader(content(t, table))).ReadAll()
	require.NoError(t, err)
	assert.Len(t, rows, 1+r.Turns.OK+r.Turns.Failed+r.Turns.Cancelled)
	recomputes(t, rows, &r)

	shown := content(t, page)
	assert.True(t, strings.HasPrefix(shown, "<!doctype html>"))
	assert.True(t, strings.HasSuffix(shown, "</html>\n"), "nothing of the earlier page is left")
}

// recomputes checks the figures of a report against the table of its turns.
func recomputes(t *testing.T, rows [][]string, r *report.Run) {
	t.Helper()
	figures, counts, met, bursts := map[string][]float64{}, map[string]int{}, 0, 0
	for _, row := range rows[1:] {
		cell := func(name string) string { return row[slices.Index(rows[0], name)] }
		in := cell("counts_in")
		counts[in]++
		if in != "latencies" {
			continue
		}
		if cell("in_bursts") == "true" {
			bursts++
		}
		good := true
		for name, most := range map[string]float64{
			"ttft_seconds": r.SLO[0].Threshold, "tpot_seconds": r.SLO[1].Threshold, "latency_seconds": math.Inf(1),
			"prompt_tokens": math.Inf(1), "cached_tokens": math.Inf(1),
		} {
			if cell(name) != "" {
				v, err := strconv.ParseFloat(cell(name), 64)
				require.NoError(t, err)
				figures[name], good = append(figures[name], v), good && v <= most
			}
		}
		// A TPOT that could not be measured meets no SLO; a turn of one token has none to meet.
		if good && (cell("tpot_seconds") != "" || cell("output_tokens") == "1") {
			met++
		}
	}
	if stats.HeldBack(bursts, counts["latencies"]) {
		delete(figures, "tpot_seconds")
	}
	for name, q := range map[string]api.Quantiles{
		"ttft_seconds": r.Metrics.TTFT, "tpot_seconds": r.Metrics.TPOT, "latency_seconds": r.Metrics.Latency,
	} {
		values := slices.Sorted(slices.Values(figures[name]))
		assert.Len(t, values, q.N, name)
		for p, of := range map[float64]*float64{.5: q.P50, .95: q.P95, .99: q.P99} {
			if len(values) == 0 {
				assert.Nil(t, of, name)
				continue
			}
			assert.InDelta(t, stats.Percentile(values, p), *of, 1e-9, "%s %v", name, p)
		}
	}
	assert.Equal(t, report.Turns{
		OK: counts["latencies"], Failed: counts["errors"], Cancelled: counts["span_ttft"] + counts[""], SLOMet: met,
		InBursts: bursts,
	}, r.Turns)
	sum := func(values []float64) (total float64) {
		for _, v := range values {
			total += v
		}
		return total
	}
	assert.InDelta(t, sum(figures["cached_tokens"])/sum(figures["prompt_tokens"]), *r.KVHitRatio.Value, 1e-9)
	assert.InDelta(t, float64(counts["latencies"])/max(1, r.Seconds), *r.RequestsPerSecond.Value,
		.01**r.RequestsPerSecond.Value)
}

// No figure of a run counts the turns of its warm-up, also those that end after it. Duration and requests begin after
// it.
func TestWarmUpIsLeftOut(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	server.slow.Store(int64(300 * time.Millisecond)) // so that turns are in flight at the end of the warm-up
	dir := t.TempDir()
	document, table := filepath.Join(dir, "run.json"), filepath.Join(dir, "run.csv")
	code, stdout, stderr := brief(t, server.URL, "--warmup=700ms", "--requests=40", "--output="+document,
		"--output="+table)
	require.Equal(t, success, code, stderr)
	var r report.Run
	require.NoError(t, json.Unmarshal([]byte(content(t, document)), &r))
	assert.Equal(t, 40, r.Turns.OK)
	assert.Equal(t, 40, r.Metrics.TTFT.N)
	assert.Positive(t, r.WarmUpTurns)
	assert.Equal(t, server.turns.Load(), 40+r.WarmUpTurns)
	assert.InDelta(t, .7, r.WarmUpSeconds, .5)
	assert.Len(t, r.Steps, 1)
	assert.False(t, r.Restarted)
	assert.Empty(t, r.Notes)
	assert.Regexp(t, ` · warm-up of [\d.]+m?s, \d+ turns, not counted`, stdout)
	rows, err := csv.NewReader(strings.NewReader(content(t, table))).ReadAll()
	require.NoError(t, err)
	recomputes(t, rows, &r)

	code, stdout, stderr = brief(t, server.URL, "--warmup=300ms", "--duration=600ms", "--output="+document)
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "ended by --duration")
	require.NoError(t, json.Unmarshal([]byte(content(t, document)), &r))
	assert.GreaterOrEqual(t, r.Seconds, .6)
}

// A run that ends during its warm-up has measured nothing, except that its target fails.
func TestEndDuringTheWarmUp(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	p := start(t, server.URL, "--duration=1h", "--warmup=1h")
	p.eventually("turns have ended", p.serves(5))
	_, err := p.client.Stop(t.Context(), "", api.StopRequest{})
	require.NoError(t, err)
	assert.Equal(t, unmeasured, p.code(), &p.log)
	assert.Contains(t, p.log.String(), "the run ended during its warm-up (--warmup)")
	assert.Empty(t, p.out.String())

	server.breaks(refuse(http.StatusServiceUnavailable, "no workers"))
	code, stdout, stderr := brief(t, server.URL, "--duration=1h", "--warmup=1h", "--abort-after=300ms")
	assert.Equal(t, broken, code, stderr)
	assert.Contains(t, stderr, "most failed as http_5xx: ")
	assert.Contains(t, stdout, "aborted during its warm-up, which these figures cover")
}

// A run with a twin leaves a summary, a document and a table of both lanes.
func TestRequestsOfTwoLanes(t *testing.T) {
	t.Parallel()
	server, other := startTarget(t), startTarget(t)
	dir := t.TempDir()
	document, table := filepath.Join(dir, "run.json"), filepath.Join(dir, "run.csv")
	code, stdout, stderr := brief(t, server.URL, "--twin-target-url="+other.URL, "--requests=20", "--output="+document,
		"--output="+table)
	require.Equal(t, success, code, stderr)
	for _, want := range []string{
		"against " + server.URL, "Lane twin: Run of ", "against " + other.URL, "Two lanes", "lane twin, step",
	} {
		assert.Contains(t, stdout, want)
	}
	var r report.Run
	require.NoError(t, json.Unmarshal([]byte(content(t, document)), &r))
	require.NotNil(t, r.Twin)
	require.NotNil(t, r.Pairs)
	assert.Equal(t, other.URL, r.Twin.Target.URL)
	assert.Positive(t, r.Twin.Turns.OK)
	assert.True(t, slices.ContainsFunc(r.Events, func(e api.Event) bool { return e.Kind == api.EventStart }))
	written := content(t, table)
	turns := map[string]int{}
	for _, l := range []*report.Run{&r, r.Twin} {
		turns[l.Data.Lane] = l.Turns.OK + l.Turns.Failed + l.Turns.Cancelled
		assert.Equal(t, turns[l.Data.Lane], strings.Count(written, "\n"+l.Data.Lane+","))
	}
	assert.Len(t, turns, 2)
}

// A run in which every turn fails meets a condition of --fail-if, or is a failure by itself. One line names the reason.
func TestEveryTurnFails(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	server.breaks(refuse(http.StatusServiceUnavailable, "no workers"))
	code, stdout, stderr := brief(t, server.URL, "--requests=4", "--fail-if=error_rate>50%")
	assert.Equal(t, failed, code, stderr)
	for _, want := range []string{"error_rate>50%: FAILED, value is 100.0 %", "http_5xx: ", "no workers"} {
		assert.Contains(t, stdout, want)
	}
	assert.True(t, strings.HasSuffix(stderr, "loadgen: the run failed: a --fail-if condition was met\n"), stderr)
	assert.Contains(t, stderr, `level=WARN msg="turns fail" lane=main class=http_5xx`)

	code, _, stderr = brief(t, server.URL, "--requests=4")
	assert.Equal(t, broken, code, stderr)
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	assert.Regexp(t, `^loadgen: no turn succeeded: \d+ turns failed, \d+ as http_5xx: .*no workers`, lines[len(lines)-1])
}

// A server that fails for good ends a run before its time. Its earlier turns are reported.
func TestRunIsAborted(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	fails := refuse(http.StatusServiceUnavailable, "no workers")
	p := newProgram(t, "--target-url="+server.URL, "--concurrency=2", "--start-rate=1000", "--target-rps=0",
		"--duration=1h", "--abort-after=300ms")
	p.serve(server.URL)
	p.eventually("turns succeed", func() bool { return p.lane().Totals.OK > 3 })
	server.breaks(fails)
	assert.Equal(t, broken, p.code(), &p.log)
	assert.Contains(t, p.log.String(), "loadgen: the run was aborted, since no turn succeeded for the time of "+
		"--abort-after; most failed as http_5xx: ")
}

// On a server that delays exactly every second request, half of the turns are slow: with a grace period all of them
// end and count, without one those in flight count as at least as long as they took so far.
func TestEndKeepsSlowTurns(t *testing.T) {
	t.Parallel()
	const slow = 400 * time.Millisecond
	for _, grace := range []string{"30s", "0s"} {
		t.Run(grace, func(t *testing.T) {
			t.Parallel()
			server := startTarget(t)
			server.slow.Store(int64(slow))
			dir := t.TempDir()
			document, table := filepath.Join(dir, "run.json"), filepath.Join(dir, "run.csv")
			code, stdout, stderr := brief(t, server.URL, "--requests=40", "--grace="+grace, "--output="+document,
				"--output="+table)
			require.Equal(t, success, code, stderr)
			var r report.Run
			require.NoError(t, json.Unmarshal([]byte(content(t, document)), &r))
			assert.Equal(t, 40, r.Turns.OK+r.Turns.Cancelled)
			assert.Equal(t, 40, r.Metrics.TTFT.N)
			if grace == "30s" {
				assert.Equal(t, 40, r.Turns.OK)
				assert.Empty(t, r.Metrics.TTFT.AtLeast)
				assert.GreaterOrEqual(t, *r.Metrics.TTFT.Mean, slow.Seconds()/2)
				return
			}
			if cut := r.Metrics.TTFT.Cut; cut > 0 { // the last turns may have been fast
				assert.Contains(t, r.Metrics.TTFT.AtLeast, "mean")
				assert.Contains(t, stdout, "≥ marks the figures that depend on it")
			}
		})
	}
}

// The texts of a run with an end begin with a nonce of its own, unless caches are kept. What the caches held is
// measured by the first turns, whatever was intended.
func TestRunsBeginOnFreshTexts(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	nonces := map[string]bool{}
	for _, row := range []struct {
		flag, state string
		cached      int64
		nonce       bool
	}{
		{"--caches=fresh", "cold", 0, true}, {"--caches=fresh", "warm", 3000, true}, {"--caches=kept", "cold", 0, false},
	} {
		server.cached.Store(row.cached)
		document := filepath.Join(t.TempDir(), "run.json")
		code, stdout, stderr := brief(t, server.URL, row.flag, "--requests=20", "--output="+document)
		require.Equal(t, success, code, stderr)
		first := *server.first.Load()
		assert.Equal(t, row.nonce, strings.HasPrefix(first, "["), first[:20])
		if row.nonce {
			assert.False(t, nonces[first[:18]], "two runs have one nonce")
			nonces[first[:18]] = true
		}
		var r report.Run
		require.NoError(t, json.Unmarshal([]byte(content(t, document)), &r))
		assert.EqualValues(t, row.state, r.Caches.State)
		assert.Contains(t, stdout, row.state+" at the beginning")
	}
}

// A run in which most turns fail is a failure, although some succeed.
func TestMostTurnsFail(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	server.failing.Store(3)
	code, stdout, stderr := brief(t, server.URL, "--requests=40")
	assert.Equal(t, broken, code, stderr)
	assert.Regexp(t, `loadgen: most turns failed: \d+ of \d+, \d+ as http_5xx: .*no workers`, stderr)
	assert.Regexp(t, `[1-9]\d* completed, \d+ failed`, stdout)
}

// A cap that holds the load down is named in the summary, also where all conversations are in progress.
func TestSummaryNamesTheCap(t *testing.T) {
	t.Parallel()
	_, stdout, stderr := newProgram(t, "--target-url="+startTarget(t).URL, "--concurrency=4", "--start-rate=1000",
		"--target-rps=20", "--requests=20").finish()
	assert.Regexp(t, `(?m)^ *Load +the cap of 20 requests/s held it down for [\d.]+ % of the time; raise target_rps for more`,
		stdout, stderr)
}

// A run fails where the target of either lane cannot be reached or has another path.
func TestUnreachableTargetOfOneLane(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	const none = "no turn succeeded: "
	for args, says := range map[[2]string]string{
		{server.URL, "--twin-target-url=http://127.0.0.1:1"}: "lane twin: " + none + ".*cannot connect to 127.0.0.1:1",
		{server.URL, "--twin-target-url=" + server.URL + "/wrong"}: "lane twin: " + none +
			".*404 at /wrong/models.*; check the path of target.url",
		{server.URL + "/wrong/chat/completions", "--twin-target-url=" + server.URL}: none + ".*404 at /wrong/models",
	} {
		p := start(t, args[0], args[1], "--duration=1h", "--concurrency=4", "--start-rate=1000", "--target-rps=0")
		p.eventually("a turn of each lane has ended", func() bool {
			return !slices.ContainsFunc(p.status().Lanes, func(l api.LaneStatus) bool {
				return l.Totals.OK+l.Totals.Errors == 0
			})
		})
		_, err := p.client.Stop(t.Context(), "", api.StopRequest{})
		require.NoError(t, err)
		assert.Equal(t, broken, p.code(), "%s", &p.log)
		assert.Regexp(t, "loadgen: "+says, p.log.String())
	}
}

// A run ends after its duration. One without an ended turn is neither a success nor a failure.
func TestDurationWithoutTurns(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	server.words.Store(1e6)
	server.gap.Store(int64(50 * time.Millisecond))
	code, stdout, stderr := brief(t, server.URL, "--duration=1s", "--grace=0s", "--fail-if=ttft_p95>1ms")
	assert.Equal(t, unmeasured, code, stderr)
	assert.Contains(t, stdout, "ended by --duration")
	assert.Contains(t, stdout, "nothing was measured")
	assert.Contains(t, stdout, "ttft_p95>1ms: not measured")
}

// A run with a limit of its own ends earlier when an operator stops it. One that was never started and has no limit
// prints no summary.
func TestOperatorEndsARun(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	p := start(t, server.URL, "--duration=1h")
	p.eventually("turns have ended", p.serves(5))
	_, err := p.client.Stop(t.Context(), "", api.StopRequest{})
	require.NoError(t, err)
	assert.Equal(t, success, p.code(), "%s", &p.log)
	assert.Contains(t, p.out.String(), "stopped by an operator")

	idle := start(t, server.URL)
	idle.endsWell()
	assert.Empty(t, idle.out.String())
}

// The length of the openings is the same in the sent texts, in the state, and in the comparison.
func TestOpeningTokens(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	p := start(
		t, server.URL, "--opening-tokens=500", "--openings=0", "--start", "--concurrency=2",
		"--default-baseline=h200x3-tp1-llama70b-fp8",
	)
	p.eventually("turns have ended", p.serves(5))
	first := *server.first.Load()
	assert.Equal(t, 500, corpus.Tokens(first[:strings.LastIndex(first, "\n\n")]))
	assert.Equal(t, 500, p.lane().State.Shape.OpeningTokens)
	c, err := p.client.Comparison(t.Context(), "", "")
	require.NoError(t, err)
	assert.Contains(t, c.Withheld, "texts of 500 tokens here, but of 3,500 to 4,000 tokens in the baseline")
	p.endsWell()
}

// The lane uses a corpus that is refreshed, and a model writes the follow-ups until it fails. Its key is neither in the
// status nor in the log. (Tests of corpus cover what is read and requested.)
func TestTextsOfTheUser(t *testing.T) {
	t.Parallel()
	server, model := startTarget(t), startTarget(t)
	dir := t.TempDir()
	add := func(name string) {
		text := strings.Repeat("A sentence about "+name+" ends here. ", 600)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".txt"), []byte(text), 0o600))
	}
	add("one")
	model.breaks(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			_, _ = io.WriteString(w, `{"data":[{"id":"llama-8b"}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"What about the number?"}}]}`)
	})
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("sk-very-secret\n"), 0o600))
	p := start(
		t, server.URL, "--concurrency=2", "--start", "--corpus-dir="+dir, "--corpus-refresh=1s",
		"--followup-url="+model.URL+"/v1", "--followup-api-key-file="+key,
	)
	p.eventually("the model asks", func() bool { return p.lane().Followup.ByModel > 2 })
	l := p.lane()
	assert.Equal(t, 1, l.Corpus.Starters)
	assert.Equal(t, l.Corpus.Name, l.State.Shape.Corpus)
	assert.Equal(t, "llama-8b", l.Followup.Model)
	assert.Equal(t, l.Followup.Name, l.State.Shape.Followup)
	asked := ""
	p.eventually("a conversation has a second turn", func() bool {
		for _, c := range p.conversations() {
			whole, err := p.client.Conversation(t.Context(), c.ID)
			require.NoError(t, err)
			if len(whole.Turns) > 1 {
				asked = whole.Turns[1].UserMessage
			}
		}
		return asked != ""
	})
	assert.Equal(t, "What about the number?", asked)

	add("two")
	p.eventually("the second text is read", func() bool { return p.lane().Corpus.Starters == 2 })
	p.eventually("another step has begun", func() bool { return p.lane().State.Step.ID == l.State.Step.ID+1 })
	model.breaks(func(w http.ResponseWriter, r *http.Request) {
		refuse(http.StatusUnauthorized, "wrong key "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))(w, r)
	})
	p.eventually("the model fails", func() bool { return p.lane().Followup.Fallbacks[api.FollowupHTTP4xx] > 0 })
	l = p.lane()
	assert.Contains(t, l.Followup.Problem, "wrong key (hidden)")
	assert.Zero(t, l.Totals.Errors)
	assert.Positive(t, p.metric("loadgen_followup_total", "source", "model"))
	assert.Positive(t, p.metric("loadgen_followup_total", "source", "built_in"))
	text, err := json.Marshal(p.status())
	require.NoError(t, err)
	assert.NotContains(t, string(text)+p.log.String(), "very-secret")
	p.endsWell()
}
