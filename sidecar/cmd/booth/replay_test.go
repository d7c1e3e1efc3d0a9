package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSimulateReplaysTraceInEachMode(t *testing.T) {
	dir := t.TempDir()
	document, table := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.csv")
	code, out, errOut := simulate(t, "--trace=../../trace/testdata/dynamo.jsonl --modes=kv,round_robin",
		"--output="+document+" --output="+table)
	require.Equal(t, success, code, errOut)
	assert.Regexp(t,
		`^Simulated, not measured: h200-tp1 \(.*\), 3 × H200, caches of 11119 blocks of 32 tokens, replaying `+
			`dynamo.jsonl\.\n`,
		out)
	assert.Regexp(t, `(?m)^simulated: mode +requests +TTFT p50, ms`, out)
	assert.Regexp(t, `(?m)^kv +6 +\d+ +\d+ .* 32\.6 `, out, "the hit ratio of the recording")
	var r replayed
	data, err := os.ReadFile(document)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &r))
	assert.True(t, r.Simulated)
	require.Len(t, r.Modes, 2)
	assert.InDelta(t, .326, r.Modes[0].Hit, .001)
	assert.Positive(t, *r.Modes[0].TPOT50)
	rows, err := os.ReadFile(table)
	require.NoError(t, err)
	assert.Regexp(t, `^simulated_mode,requests,ttft_p50_ms,.*\nkv,6,.*\nround_robin,6,.*\n$`, string(rows))

	fast, again, _ := simulate(t, "--trace=../../trace/testdata/dynamo.jsonl --trace-speed=.01 --kv-tokens=64000")
	require.Equal(t, success, fast)
	assert.Contains(t, again, "caches of 2000 blocks of 32 tokens")
}

func TestSimulateReplaysOtherTraceFormats(t *testing.T) {
	for name, want := range map[string][]string{
		"bailian_seconds": {
			"caches of 200 blocks of 16 tokens", `(?m)^round_robin +40 `, "40 sessions", "which are over 18.3 s",
		},
		"multiturn":  {"caches of 200 blocks of 512 tokens", `(?m)^round_robin +5 .* 70\.4 `, "2 sessions"},
		"dynamo_min": {"caches of 200 blocks of 64 tokens", `(?m)^round_robin +2 .* 25\.0 `, "lacks input_tokens"},
	} {
		code, out, errOut := simulate(t,
			"--workers=1 --modes=round_robin --kv-blocks=200 --trace=../../trace/testdata/"+name+".jsonl")
		require.Equal(t, success, code, errOut)
		for _, pattern := range want {
			assert.Regexp(t, pattern, out)
		}
	}
	code, out, errOut := simulate(t,
		"--workers=1 --modes=round_robin --kv-blocks=20 --trace=../../trace/testdata/dynamo_min.jsonl "+
			"--trace=../../trace/testdata/dynamo_m*.jsonl")
	require.Equal(t, success, code, errOut)
	assert.Contains(t, out, "caches of 20 blocks of 64 tokens, replaying dynamo_min.jsonl",
		"the trace fits into these caches")
}

// TestSimulateTraceWithoutHashes checks that requests of known lengths are simulated, and that nothing is shared.
func TestSimulateTraceWithoutHashes(t *testing.T) {
	code, out, errOut := simulate(t, "--trace=../../trace/testdata/azure.csv --modes=kv")
	require.Equal(t, success, code, errOut)
	assert.Contains(t, out, "The trace lacks block hashes (no prompt shares its beginning with another).")
	assert.Regexp(t, `(?m)^kv +4 .* 0\.0 +[0-9.]+$`, out)
}

func TestSimulateRejectsBadTraceFlags(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	require.NoError(t, os.WriteFile(empty, []byte("{}\n"), 0o600))
	fractions := filepath.Join(t.TempDir(), "fractions.jsonl")
	rows := `{"timestamp": 0.5, "input_length": 5, "output_length": 1, "hash_ids": []}` + "\n" +
		`{"timestamp": 1.5, "input_length": 5, "output_length": 1, "hash_ids": []}`
	require.NoError(t, os.WriteFile(fractions, []byte(rows), 0o600))
	for flags, message := range map[string]string{
		"--trace=nothing.jsonl": "trace: nothing.jsonl is not allowed: readable files",
		"--trace=" + empty:      "a trace with requests; line 1: form: an object without fields is not allowed",
		"--trace=../../trace/testdata/dynamo.jsonl --levels=60": "levels: a value is not allowed: leave " +
			"it out with --trace",
		"--trace=../../trace/testdata/dynamo.jsonl --trace-speed=0":       "trace-speed: 0 is not allowed",
		"--trace=../../trace/testdata/dynamo.jsonl --trace-block-size=-1": "trace-block-size: -1 is not allowed",
		"--trace=../../trace/testdata/dynamo.jsonl --trace-time-unit=h": "trace-time-unit: h is not allowed: one of " +
			"s, ms, us, ns",
		"--trace=../../trace/testdata/prompts.jsonl": "trace: one without times (line 1) is not allowed: a trace with times",
		"--trace=" + fractions: "trace-time-unit is required: the unit of the trace's timestamps, " +
			"one of s, ms, us, ns",
	} {
		code, _, errOut := simulate(t, flags)
		assert.Equal(t, badInput, code, flags)
		assert.Contains(t, errOut, message)
	}
}
