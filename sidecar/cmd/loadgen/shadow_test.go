package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/loadgen/report"
)

// command runs a command that starts no load generator.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), args, []string{"HOME=" + t.TempDir()}, &out, &errOut)
	return code, out.String(), errOut.String()
}

// content returns the text of a file.
func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// twoTurns returns conversations of two turns. The second arrives when the first one has ended: 1,024 tokens, then
// 1,536 that begin with them.
func twoTurns(conversations int) string {
	var b strings.Builder
	for k := range conversations {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 1024, "output_length": 10, "hash_ids": [%d, %d]}`+"\n", k*20_000, 10*k, 10*k+1)
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 1536, "output_length": 10, "hash_ids": [%d, %d, %d]}`+"\n", k*20_000+5000, 10*k, 10*k+1, 10*k+2)
	}
	return b.String()
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Every report has the same figures: of 2,560 tokens a conversation, a second turn finds 1,024 if it returns to its
// worker.
func TestShadowOfATrace(t *testing.T) {
	dir := t.TempDir()
	files := []string{"r.json", "r.csv", "r.md", "r.html"}
	args := []string{"shadow", written(t, twoTurns(40)), "--workers=2", "--blocks=100"}
	for _, f := range files {
		args = append(args, "--output="+filepath.Join(dir, f))
	}
	code, stdout, stderr := command(t, args...)
	require.Equal(t, success, code, stderr)
	assert.Empty(t, stderr, "no progress that soon where there is no terminal")
	assert.Contains(t, stdout, "80 requests in ")
	assert.Contains(t, stdout, "2 workers with a KV cache of 100 blocks of 512 tokens each (51,200 tokens).")
	assert.Contains(t, stdout, "Assumed, since the trace has no times: first token after 500ms and 25ms per output token")
	assert.Regexp(t, `(?m)^\| sticky +\| +40\.0 % \| +61,440 \|`, stdout)
	assert.Regexp(t, `(?m)^\| kv +\| +40\.0 % \|`, stdout)
	assert.Regexp(t, `(?m)^\| round_robin +\| +0\.0 % \| +102,400 \|`, stdout)
	assert.Regexp(t, `(?m)^\| best +\| +40\.0 % \| +61,440 \| +– \|`, stdout)
	assert.NotContains(t, stdout, "| actual", "the real workers are unknown")
	assert.Contains(t, stdout, "## Hit rate by cache capacity, 2 workers")
	assert.Contains(t, stdout, "| 1 | 40.0 % | 40.0 % | 40.0 % | 40.0 % |", "with one worker there is nothing to choose")

	text := map[string]string{}
	for _, f := range files {
		text[f] = content(t, filepath.Join(dir, f))
	}
	assert.Equal(t, stdout, text["r.md"])
	var r report.Shadow
	require.NoError(t, json.Unmarshal([]byte(text["r.json"]), &r))
	assert.Equal(t, report.ShadowSetting{Workers: 2, Blocks: 100, BlockTokens: 512}, r.Setting)
	assert.EqualValues(t, 80, r.Trace.Requests)
	assert.Len(t, r.ByCapacity, 6)
	assert.Len(t, r.ByWorkers, 4)
	rows, err := csv.NewReader(strings.NewReader(text["r.csv"])).ReadAll()
	require.NoError(t, err)
	assert.Len(t, rows, 1+len(r.Policies)+4*(len(r.ByCapacity)+len(r.ByWorkers)))
	assert.Contains(t, text["r.html"], "<svg")
	assert.Contains(t, text["r.html"], "40.0 %")
}

// The real choices of Dynamo's trace are replayed, too, and the report states their limits.
func TestShadowOfDynamosTrace(t *testing.T) {
	args := []string{"shadow", "../../trace/testdata/dynamo.jsonl", "--blocks=11119", "--no-curves"}
	code, stdout, stderr := command(t, append(args, "--answers=forgotten")...)
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "3 workers with a KV cache of 11,119 blocks of 32 tokens each")
	assert.Regexp(t, `(?m)^\| actual +\| +32\.6 % \|`, stdout)
	assert.Contains(t, stdout, "Cache model: with the real choices the modeled hit rate is 32.6 %; the workers "+
		"reported 32.6 % (6 requests, error 0.0 points).")
	assert.Contains(t, stdout, "Choice model: ")
	assert.NotContains(t, stdout, "## ")
	code, stdout, stderr = command(t, append(args, "--workers=2")...)
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "2 workers with")
	assert.NotContains(t, stdout, "account", "of other workers than the real ones")
}

// dynamoTrace returns requests of 64 tokens, each on a worker, one a second. Every second one takes 1.5 s.
func dynamoTrace(workers ...uint64) string {
	var b strings.Builder
	for i, worker := range workers {
		fmt.Fprintf(&b, `{"event": {"event_type": "request_end", "request": {"request_received_ms": %d, "input_tokens": 65, "output_tokens": 2, "cached_tokens": 0, "ttft_ms": 100, "total_time_ms": %d, "worker": {"prefill_worker_id": %d}, "replay": {"trace_block_size": 64, "input_sequence_hashes": [%d]}}}}`+"\n",
			1000*i, 500+1000*(i%2), worker, i%3)
	}
	return b.String()
}

// Workers that never overlap in time, such as those before and after a restart, are one.
func TestShadowOverARestart(t *testing.T) {
	before, after := dynamoTrace(11, 12, 11, 12, 11, 12, 23, 24, 23, 24, 23, 24), dynamoTrace(11, 12, 11, 12)
	code, stdout, stderr := command(t, "shadow", written(t, before), "--blocks=100", "--no-curves")
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "2 workers with a KV cache")
	assert.Contains(t, stdout, "The trace names 4 workers. Those that never overlap in time, as before and after a "+
		"restart, count as one worker that keeps its cache: --workers sets another number than 2.")
	assert.Regexp(t, `(?m)^\| round_robin +\| +49\.2 % \|`, stdout, "each of three prompts is computed once on each of two workers")
	assert.Regexp(t, `(?m)^\| actual +\| +49\.2 % \|`, stdout)
	_, stdout, _ = command(t, "shadow", written(t, after), "--blocks=100", "--no-curves")
	assert.Contains(t, stdout, "2 workers with a KV cache")
	assert.NotContains(t, stdout, "restart")
	_, stdout, _ = command(t, "shadow", written(t, dynamoTrace(1, 2, 1, 3, 2, 3)), "--blocks=100", "--no-curves")
	assert.Contains(t, stdout, "2 workers with a KV cache", "a third one begins when the first one has ended")
}

// The curves agree with the table where both have the same setting, whatever was drawn or inferred.
func TestShadowCurvesAgreeWithTheTable(t *testing.T) {
	var many []uint64
	for i := range 90 {
		many = append(many, uint64(i%7%3+1))
	}
	for _, args := range []string{
		"../../trace/testdata/dynamo.jsonl --blocks=150",
		"../../trace/testdata/dynamo.jsonl --blocks=300 --workers=2",
		"../../trace/testdata/bailian_seconds.jsonl --blocks=100 --workers=4",
		written(t, dynamoTrace(many...)) + " --blocks=3", // in which the reuse of answers and the moment of hits are inferred
	} {
		code, stdout, stderr := command(t, strings.Fields("shadow --format=json "+args)...)
		require.Equal(t, success, code, stderr)
		var r report.Shadow
		require.NoError(t, json.Unmarshal([]byte(stdout), &r))
		table := map[string]float64{}
		for _, p := range r.Policies {
			table[p.Policy] = p.HitRatio
		}
		points := 0
		for _, p := range append(r.ByCapacity, r.ByWorkers...) {
			if p.Workers == r.Setting.Workers && p.Blocks == r.Setting.Blocks {
				points++
				for policy, hit := range p.Hit {
					assert.Equal(t, table[policy], hit, "%v: %s", args, policy)
				}
			}
		}
		assert.Equal(t, 2, points)
	}
}

// Traces of other forms are read in their own units, and several files are one trace.
func TestShadowOfOtherForms(t *testing.T) {
	dir := t.TempDir()
	lines := strings.SplitAfter(twoTurns(2), "\n")
	require.NoError(t, os.WriteFile(dir+"/t.2.jsonl", []byte(lines[0]+lines[1]), 0o600))
	require.NoError(t, os.WriteFile(dir+"/t.10.jsonl", []byte(lines[2]+lines[3]), 0o600))
	const files = "../../trace/testdata/"
	for _, c := range []struct {
		args string
		want []string
	}{
		{files + "bailian_seconds.jsonl", []string{
			"40 requests in 30 s (they arrive over 18.3 s)",
			"100 blocks of 16 tokens", "Conversations are the trace's 40 sessions.",
		}},
		{files + "multiturn.jsonl", []string{
			"5 requests in 12 s", "100 blocks of 512 tokens",
			"Conversations are the trace's 2 sessions. A turn with a delay comes that long after the end of the turn before.",
		}},
		{files + "dynamo_min.jsonl", []string{
			"2 requests in 3 s", "100 blocks of 64 tokens", "Assumed, since the trace has no times: ",
			"The trace lacks input_tokens (replay.input_length is used), cached_tokens, total_time_ms, ttft_ms, worker.",
		}},
		{dir + "/t.*.jsonl", []string{"4 requests in 26 s", "# Other routers on t.2.jsonl, t.10.jsonl"}},
		{dir + "/t.10.jsonl " + dir + "/t.2.jsonl --time-unit=s", []string{"4 requests in 25,001 s"}},
	} {
		code, stdout, stderr := command(t, strings.Fields("shadow "+c.args+" --workers=1 --blocks=100 --no-curves")...)
		require.Equal(t, success, code, stderr)
		for _, want := range c.want {
			assert.Contains(t, stdout, want)
		}
	}
}

// Unusable lines are reported by number and the rest is used. A trace without a usable start is rejected.
func TestShadowOfABadTrace(t *testing.T) {
	lines := strings.SplitAfter(twoTurns(20), "\n")
	lines[3] = `{"timestamp": 5, "input_length": 1024, "hash_ids": [1, 2]}` + "\n"
	lines[10], lines[11] = lines[11], lines[10]
	lines[39] = lines[39][:30]
	code, stdout, stderr := command(t, "shadow", written(t, strings.Join(lines, "")), "--workers=2", "--tokens=51200",
		"--no-curves")
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "38 requests in ")
	assert.Contains(t, stdout, "2 of 40 lines were unusable. The first ones:")
	assert.Contains(t, stdout, "line 4: output_length is required: a whole number")
	assert.Contains(t, stdout, "line 40: line: ")
	assert.Contains(t, stdout, "The trace is truncated")
	assert.Contains(t, stdout, "1 lines were out of order and were sorted into place.")

	good := written(t, twoTurns(1))
	for _, c := range []struct{ args, message string }{
		{good + " --workers=2", "blocks is required"},
		{good + " --blocks=10", "workers is required"},
		{good + " --workers=2 --tokens=511", "tokens: 511 is not allowed: at least one block of 512 tokens"},
		{good + " --workers=2 --blocks=10 --tokens=5120", "set either --blocks or --tokens"},
		{good + " --workers=2 --blocks=10 --output=r.tsv", "output: r.tsv is not allowed: " + report.ShadowFormats.Allowed()},
		{
			"../../trace/testdata/azure.csv --workers=2 --blocks=10",
			"file: one without block hashes (line 2) is not allowed: a trace with times, block hashes",
		},
		{"nothing.jsonl --workers=2 --blocks=10", "file: nothing.jsonl is not allowed: readable files"},
		{written(t, `{"timestamp":0.5,"input_length":5,"output_length":1,"hash_ids":[]}`+"\n"+`{"timestamp":1.5,"input_length":5,"output_length":1,"hash_ids":[]}`) + " --workers=2 --blocks=10", "time_unit is required: the unit of the trace's timestamps, one of s, ms, us, ns: the trace does not show it (--time-unit)"},
		{written(t, `{"timestamp":1,"input_length":90,"output_length":1,"hash_ids":[1,2,3,4]}`) + " --workers=2 --blocks=10", "(--block-tokens)"},
		{written(t, "{}\n") + " --workers=2 --blocks=10", "lines is usable\nline 1: form: an object without fields"},
	} {
		code, _, stderr := command(t, strings.Fields("shadow "+c.args)...)
		assert.Equal(t, badInput, code, c.args)
		assert.Contains(t, stderr, c.message)
	}
}

// Without files, the traffic is what a run with the same flags would send: a shape at a rate, or a trace.
func TestShadowOfARun(t *testing.T) {
	code, stdout, stderr := command(t, "shadow", "--workers=2", "--blocks=2000", "--no-curves", "--shape=prefix",
		"--shape-groups=5", "--rate=10/s", "--arrivals=constant", "--duration=1m")
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "Other routers on shape prefix (groups 5)")
	assert.Contains(t, stdout, "600 requests in ")
	assert.Contains(t, stdout, "Planned, not recorded: 10 conversations/s, at most 1m0s.")
	assert.Contains(t, stdout, "Conversations are the trace's 600 sessions.")

	file := written(t, twoTurns(4))
	code, stdout, stderr = command(t, "shadow", "--workers=2", "--blocks=2000", "--no-curves", "--trace="+file)
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "8 requests in ")
	for want, args := range map[string][]string{
		"file is required":       {},
		"no file beside --shape": {file, "--shape=chat"},
		"one rate, or a ramp":    {"--shape=chat", "--rate=1/s,2/s/1m"},
	} {
		code, _, stderr := command(t, append([]string{"shadow", "--workers=2", "--blocks=9"}, args...)...)
		assert.Equal(t, badInput, code, want)
		assert.Contains(t, stderr, want)
	}
}
