package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTraceOfTwoTurns checks the text and the JSON of a trace whose figures are known.
func TestTraceOfTwoTurns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "contents.json")
	path := written(t, twoTurns(40))
	code, stdout, stderr := command(t, "trace", path, "--cache-tokens=1024", "--output="+file)
	require.Equal(t, success, code, stderr)
	assert.Empty(t, stderr)
	for _, line := range []string{
		"form +mooncake", "requests +80 in 80 lines", "sessions +none in the trace", `duration +785\.0 s`,
		`rate +0\.101 requests/s`, `tokens in +mean 1,280\.0, p50 1,024, p95 1,536, max 1,536`,
		`tokens out +mean 10\.0, p50 10, p95 10, max 10`, "block size +512 tokens",
		`hit rate +40\.0 % with an unlimited cache, which needs 120 blocks \(61,440 tokens\)`,
		` +40\.0 % with one cache of 2 blocks \(1,024 tokens\)`,
		"- sessions .all requests.: each request is a conversation of one turn",
	} {
		assert.Regexp(t, "(?m)^"+line, stdout)
	}
	code, stdout, stderr = command(t, "trace", path, "--cache-tokens=1024", "--output=json")
	require.Equal(t, success, code, stderr)
	assert.Equal(t, content(t, file), stdout)
	var c traceContents
	require.NoError(t, json.Unmarshal([]byte(stdout), &c))
	assert.EqualValues(t, 80, c.Requests)
	assert.InDelta(t, .4, c.Hits.Rate, 1e-9)
	assert.Contains(t, stdout, `"turns_per_session": null`, "unknown, not zero")

	code, stdout, stderr = command(t, "trace", path, "--trace-from=100s", "--trace-to=200s", "--trace-speed=2")
	require.Equal(t, success, code, stderr)
	assert.Regexp(t, `(?m)^requests +10 in`, stdout)
	assert.Regexp(t, `(?m)^duration +42\.5 s`, stdout)
}

// TestTraceOfDataset checks that texts get lengths and block hashes, and that the answer names what is missing.
func TestTraceOfDataset(t *testing.T) {
	var b strings.Builder
	for k := range 3 {
		fmt.Fprintf(&b, `{"conversations": [{"from": "human", "value": "%s question %d"}, {"from": "gpt", "value": "yes"}, `+
			`{"from": "human", "value": "why"}]}`+"\n", strings.Repeat("a common beginning ", 20), k)
	}
	code, stdout, stderr := command(t, "trace", written(t, b.String()))
	require.Equal(t, success, code, stderr)
	assert.Regexp(t, `(?m)^form +sharegpt`, stdout)
	assert.Regexp(t, `(?m)^turns per session +mean 2\.0`, stdout)
	assert.Regexp(t, `(?m)^rate +unknown`, stdout)
	assert.Regexp(t, `(?m)^hit rate +[6-8][0-9]\.[0-9] % with an unlimited cache`, stdout)
	assert.Contains(t, stdout, "of a tokenizer of this program, not of the target")
	assert.Contains(t, stdout, "- times (3 of 6 requests): a replay needs a rate")
	assert.Contains(t, stdout, "- output tokens (3 of 6 requests): the target decides")
}

// TestBadTraces checks that nothing is printed of a file that is not usable, but the line and what was expected.
func TestBadTraces(t *testing.T) {
	good := twoTurns(2)
	broken := written(t, good+"nonsense\n"+strings.ReplaceAll(good, `"timestamp": `, `"timestamp": 1`))
	for _, c := range []struct{ args, message string }{
		{broken, `line 5: line: "nonsense" is not allowed: a JSON object (--trace-skip-invalid skips such lines)`},
		{written(t, `{"request_rate": 1}`), "line 1: form: an object with request_rate is not allowed: lines of Dynamo's"},
		{written(t, ""), "a trace with requests; none of its 0 lines is usable"},
		{written(t, good) + " --trace-from=1h", "--trace-sessions leave a request; 4 were read"},
		{written(t, good) + " --cache-blocks=1 --cache-tokens=512", "set either --cache-blocks or --cache-tokens"},
		{written(t, good) + " --cache-tokens=511", "cache_tokens: 511 is not allowed: at least one block"},
		{written(t, good) + " --trace-sessions=2", "trace_sessions: 2 is not allowed"},
		{written(t, good) + " --output=contents.html", "contents.html is not allowed: a file whose name ends in .json"},
		{"nothing.jsonl", "file: nothing.jsonl is not allowed: readable files"},
		{
			written(t, strings.ReplaceAll(good, "000,", "000.5,")),
			"time_unit is required: the unit of the trace's timestamps",
		},
	} {
		code, stdout, stderr := command(t, strings.Fields("trace "+c.args)...)
		assert.Equal(t, badInput, code, c.args)
		assert.Contains(t, stderr, c.message)
		assert.Empty(t, stdout)
	}
	code, stdout, stderr := command(t, "trace", broken, "--trace-skip-invalid")
	require.Equal(t, success, code, stderr)
	assert.Contains(t, stdout, "1 lines were skipped. The first ones:\nline 5: ")
}
