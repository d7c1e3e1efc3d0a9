//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/report"
)

// sessions is a trace of so many sessions of two turns, a second apart, whose prompts begin alike.
func sessions(n int) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, `{"timestamp": %d, "session_id": "s%d", "input_length": 1100, "output_length": 5, "hash_ids": [1, %d]}`+
			"\n", 1000*k, k, 100+k)
		fmt.Fprintf(&b, `{"session_id": "s%d", "delay": 500, "input_length": 1536, "output_length": 5, "hash_ids": [1, %d, %d]}`+
			"\n", k, 100+k, 1000+k)
	}
	return b.String()
}

// hashes returns the block hashes of a trace, in its order.
func hashes(t *testing.T, text string) (all [][]int) {
	t.Helper()
	for line := range strings.Lines(text) {
		var l struct {
			Hashes []int `json:"hash_ids"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		all = append(all, l.Hashes)
	}
	return all
}

// A trace runs at its own rate and ends the run, its turns are compared with it, and what is recorded of the run has
// its hashes, also when the recording is replayed.
func TestTraceIsReplayedAndRecorded(t *testing.T) {
	t.Parallel()
	target := startTarget(t)
	first := sessions(30)
	file := written(t, first)
	for _, name := range []string{"trace", "recording"} {
		document := filepath.Join(t.TempDir(), "run.json")
		p := newProgram(t, "--target-url="+target.URL, "--trace="+file, "--trace-speed=100", "--output="+document)
		code, stdout, stderr := p.finish()
		require.Equal(t, success, code, stderr)
		assert.Contains(t, stdout, "ended with the trace", name)
		var r report.Run
		require.NoError(t, json.Unmarshal([]byte(content(t, document)), &r))
		assert.Equal(t, report.ByTraffic, r.Cause)
		assert.Equal(t, 60, r.Turns.OK)
		if name == "trace" {
			assert.Equal(t, api.AtRate(100), r.Level)
		}
		assert.Contains(t, r.Workload.Traffic, "30 sessions, 60 requests")
		assert.Contains(t, r.Workload.Traffic, "; answers of exact lengths")
		assert.Equal(t, "recorded", r.Workload.Arrivals)
		require.NotNil(t, r.Fidelity)
		assert.InDelta(t, 4000*60/(30*(1100+1536.)), *r.Fidelity.Input, 1e-9, "each prompt has 4,000 tokens by the target")
		assert.InDelta(t, (29*512+30*1024)/(30*(1100+1536.)), *r.Fidelity.TheoreticalHitRatio, .01)

		again := newProgram(t)
		again.dir = p.dir
		again.serve(target.URL)
		recording := filepath.Join(t.TempDir(), "trace.jsonl")
		code, _, stderr = command(t, "record", "--output="+recording, "--from="+again.address)
		require.Equal(t, success, code, stderr)
		again.kill()
		assert.Equal(t, hashes(t, first), hashes(t, content(t, recording)), name)
		file = recording
	}
}

// Without times, the conversations of a dataset run in order under a number of them, with its texts.
func TestDatasetIsRun(t *testing.T) {
	t.Parallel()
	target := startTarget(t)
	file := written(t, `[{"conversations": [{"from": "human", "value": "why"}, {"from": "gpt", "value": "because it is so"},
		{"from": "human", "value": "really"}]}]`)
	code, stdout, stderr := brief(t, target.URL, "--trace="+file, "--caches=kept")
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "4 conversations · unknown · ended with the trace")
	assert.Equal(t, "why", *target.first.Load())
}

// A shape that is larger than the context of the model, which the server reports to the first probe, is refused before
// any load.
func TestShapeLargerThanTheContextIsRefused(t *testing.T) {
	t.Parallel()
	target := startTarget(t)
	limited := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			fmt.Fprint(w, `{"data": [{"id": "limited", "max_model_len": 500}]}`)
			return
		}
		target.ServeHTTP(w, r)
	}))
	t.Cleanup(limited.Close)
	code, _, stderr := brief(t, limited.URL, "--shape=prefix", "--requests=5")
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "is not allowed: at most 500 tokens together, the context of the model")
}

// What a trace lacks for a run is refused before anything is sent.
func TestUnusableTraffic(t *testing.T) {
	good := sessions(2)
	for _, c := range []struct{ args, message string }{
		{written(t, good+"nonsense\n"), `line 5: line: "nonsense" is not allowed`},
		{written(t, `{"request_rate": 1}`), "line 1: form: an object with request_rate is not allowed"},
		{written(t, good) + " --trace-from=1h", "--trace-sessions leave a request; 4 were read"},
		{written(t, good) + " --trace-speed=1e-9", "trace_speed: 1e-9 is not allowed"},
		{written(t, good) + " --trace-from=5m --trace-to=1m", "trace_to: 1m0s is not allowed: more than trace_from"},
		{written(t, strings.ReplaceAll(good, "000,", "000.5,")), "trace_time_unit is required"},
		{
			written(t, strings.ReplaceAll(sessions(1), "}\n", `, "turn": 3}`+"\n")),
			"turn: 3 is not allowed: 4 or more",
		},
		{
			written(t, `{"timestamp": 5000, "input_length": 9, "output_length": 5}`+"\n"+
				`{"timestamp": 4000, "input_length": 9, "output_length": 5}`), "times go back",
		},
		{written(t, `{"messages": [{"role": "assistant", "content": "x"}]}`), "a conversation with a text of the user"},
		{written(t, good), "one that lasts a span (--span), 60 s; at 1/s, this one ends after 2 s"},
		{"nothing.jsonl", "trace: nothing.jsonl is not allowed: readable files"},
	} {
		args := strings.Fields("--target-url=http://127.0.0.1:1 --data-dir=" + t.TempDir() +
			" --listen=127.0.0.1:0 --trace=" + c.args)
		if strings.Contains(c.message, "--span") {
			args = append([]string{"trial", "--rate=1/s", "--mode-driver=pinned"}, args...)
		}
		code, _, stderr := command(t, args...)
		assert.Equal(t, badInput, code, c.args)
		assert.Contains(t, stderr, c.message)
	}
}
