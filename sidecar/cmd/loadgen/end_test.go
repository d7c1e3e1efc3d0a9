//go:build unix

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/output"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/report"
	"kvbooth/sidecar/loadgen/corpus"
)

// brief is a load generator that ends by itself.
func brief(t *testing.T, target string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := command(t, append([]string{
		"--target-url=" + target, "--listen=127.0.0.1:0", "--data-dir=" + filepath.Join(t.TempDir(), "data"),
		"--concurrency=4", "--start-rate=1000", "--target-rps=0", "--turns-min=1", "--turns-max=2",
	}, args...)...)
	return finish(t, cmd)
}

// A run that waits for so many turns leaves its summary, on the terminal and in three
// files, which all tell of the same turns.
func TestRequests(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	dir := t.TempDir()
	page, document, table := filepath.Join(dir, "run.html"), filepath.Join(dir, "run.JSON"), filepath.Join(dir, "run.csv")
	require.NoError(t, os.WriteFile(page, []byte(strings.Repeat("an earlier and longer page\n", 9999)), 0o600))
	code, stdout, stderr := brief(t, server.URL, "--requests=40", "--output="+page+","+document, "--output="+table, "--fail-if=error_rate>0%,ttft_p95>60s")
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "ended by --requests")
	assert.Regexp(t, `(?m)^ +TTFT +\d`, stdout)
	assert.Contains(t, stdout, "error_rate>0%: passed, value is 0.0 %")
	assert.Contains(t, stdout, "KV cache hit     75.0 %")
	for _, path := range []string{page, document, table} {
		assert.Contains(t, stdout, path)
	}

	data, err := os.ReadFile(document)
	require.NoError(t, err)
	var r report.Report
	require.NoError(t, json.Unmarshal(data, &r))
	assert.Equal(t, report.ByRequests, r.Cause)
	assert.GreaterOrEqual(t, r.Turns.OK, 40)
	assert.Equal(t, r.Turns.OK, r.Metrics.TTFT.N, "of all turns of the run")
	assert.NotZero(t, r.Metrics.ITL.N)
	assert.Equal(t, "llama", r.Target.Model)
	assert.Empty(t, r.Notes)

	file, err := os.Open(table)
	require.NoError(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	assert.Len(t, rows, 1+r.Turns.OK+r.Turns.Failed+r.Turns.Cancelled)

	shown, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(shown), "<!doctype html>"))
	assert.True(t, strings.HasSuffix(string(shown), "</html>\n"), "nothing of the earlier page is left")
}

// The length of the openings is that of the texts that are sent, of the state, and of
// what the comparison says.
func TestOpeningTokens(t *testing.T) {
	t.Parallel()
	server := newTarget(t)
	var right, wrong atomic.Int64 // first messages whose text is as long as was asked for, and others
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var asked struct {
			Messages  []struct{ Content string }
			MaxTokens int `json:"max_tokens"`
		}
		if json.Unmarshal(body, &asked) == nil && len(asked.Messages) == 1 && asked.MaxTokens > 1 { // no probe
			first := asked.Messages[0].Content
			if corpus.Tokens(first[:strings.LastIndex(first, "\n\n")]) == 500 {
				right.Add(1)
			} else {
				wrong.Add(1)
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		server.ServeHTTP(w, r)
	})
	server.Start()
	p := start(t, server.URL, "--opening-tokens=500", "--openings=0", "--start", "--concurrency=2", "--baseline-default=h200x3-tp1-llama70b-fp8")
	p.until("turns have ended", p.serves(5))
	assert.GreaterOrEqual(t, right.Load(), int64(3))
	assert.Zero(t, wrong.Load())
	assert.Equal(t, 500, p.lane().State.Shape.OpeningTokens)
	c, err := p.client.Comparison(t.Context(), "", "")
	require.NoError(t, err)
	assert.Contains(t, c.Withheld, "texts of 500 tokens here, but of 3,500 to 4,000 tokens in the baseline")
	p.endsWell()
}

// A run that lasts so long fails by a condition that it hits, and says which.
func TestDurationAndFailIf(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	server.breaks(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no workers", http.StatusServiceUnavailable)
	})
	var stdout, stderr string
	// A busy machine may end no turn in a short run: then a longer one is made.
	for code, lasts := unmeasured, 2*time.Second; code == unmeasured; lasts *= 2 {
		require.LessOrEqual(t, lasts, time.Minute, stderr)
		began := time.Now()
		code, stdout, stderr = brief(t, server.URL, fmt.Sprint("--duration=", lasts), "--fail-if=error_rate>50%")
		assert.GreaterOrEqual(t, time.Since(began), lasts)
		assert.Contains(t, []int{failed, unmeasured}, code, stderr)
	}
	assert.Contains(t, stdout, "ended by --duration")
	assert.Contains(t, stdout, "error_rate>50%: FAILED, value is 100.0 %")
	assert.Contains(t, stdout, "http_5xx: ")
	assert.Contains(t, stdout, "no workers")
	assert.True(t, strings.HasSuffix(stderr, "loadgen: the run failed: a --fail-if condition was met\n"), stderr)
	assert.Contains(t, stderr, `level=WARN msg="turns fail" lane=main class=http_5xx`, "who has no terminal is told, too")
}

// A run in which no turn ended is neither good nor bad.
func TestNothingMeasured(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	server.words.Store(1e6)
	server.gap.Store(int64(50 * time.Millisecond))
	code, stdout, stderr := brief(t, server.URL, "--duration=1s", "--fail-if=ttft_p95>1ms")
	assert.Equal(t, unmeasured, code, stderr)
	assert.Contains(t, stdout, "nothing was measured")
	assert.Contains(t, stdout, "ttft_p95>1ms: not measured")
}

// Ctrl-C and SIGTERM give the summary, too, and it is no failure that nobody asked for more.
func TestSummaryAtASignal(t *testing.T) {
	t.Parallel()
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			server := startTarget(t)
			p := newProgram(t)
			var stdout output.Buffer
			p.cmd.Stdout = &stdout
			p.start(server.URL, "--concurrency=4", "--start")
			p.until("turns have ended", p.serves(20))
			require.Equal(t, success, p.stop(s), "%s", &p.log)
			assert.Contains(t, stdout.String(), "ended by a signal")
			assert.Regexp(t, `Turns +\d\d+ completed, 0 failed`, stdout.String())
		})
	}
}

// A run that is to last longer ends when an operator stops it; one that was never
// started and has no end of its own leaves no summary.
func TestOperatorEndsARun(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	p := newProgram(t)
	var stdout output.Buffer
	p.cmd.Stdout = &stdout
	p.start(server.URL, "--duration=1h")
	p.until("turns have ended", p.serves(5))
	_, err := p.client.Stop(t.Context(), "", api.StopRequest{})
	require.NoError(t, err)
	assert.Equal(t, success, p.code(), "%s", &p.log)
	assert.Contains(t, stdout.String(), "stopped by an operator")

	idle := newProgram(t)
	var nothing output.Buffer
	idle.cmd.Stdout = &nothing
	idle.start(server.URL)
	idle.endsWell()
	assert.Empty(t, nothing.String())
}
