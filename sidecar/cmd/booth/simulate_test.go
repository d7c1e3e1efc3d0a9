package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/sim/study"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// small defines a grid that is simulated in less than a second.
const small = "--concurrency=4:12:4 --seeds=2 --output-tokens-mean=100 --output-tokens-cv=.2 --max-tokens=150"

// simulate runs `booth simulate`.
func simulate(t *testing.T, flags ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	var args []string
	for _, f := range flags {
		args = append(args, strings.Fields(f)...)
	}
	code = run(t.Context(), t.Context(), append([]string{"simulate"}, args...), &o, &e)
	return code, o.String(), e.String()
}

func TestSimulateIsRepeatable(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	files := []string{"all.json", "all.csv", "base.csv", "base.json"}
	outputs := "--output=" + file(files[0]) + " --output=" + file(files[1]) +
		" --baseline=" + file(files[2]) + " --baseline=" + file(files[3])
	code, out, errOut := simulate(t, small, outputs, "--compare=h200x3-tp1-llama70b-fp8 --explain")
	require.Equal(t, success, code, errOut)
	assert.Empty(t, errOut, "no progress where there is no terminal")
	assert.Regexp(t,
		`^Simulated, not measured: h200-tp1 \(times fitted to h200x3-tp1-llama70b-fp8\), 3 × H200, 2 seeds\.\n`, out)
	assert.Regexp(t, `(?m)^8 +round_robin +\d+ \(\d+–\d+\) +\d+ \(\d+–\d+\)`, out)
	assert.Regexp(t, `(?m)^ +recorded +— +— `, out, "level 4 is not in the recording")
	assert.Regexp(t, `(?m)^  output_tokens +simulated: mean 100, cv 0.2 +recorded: as the model ends them$`, out)
	assert.Contains(t, out, "\nSimulated, not measured: KV-aware against Round-robin, means over 2 runs at each level")

	first := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(file(name))
		require.NoError(t, err)
		first[name] = string(text)
	}
	code, again, _ := simulate(t, small, outputs, "--compare=h200x3-tp1-llama70b-fp8 --explain --jobs=1")
	require.Equal(t, success, code)
	assert.Equal(t, out, again)
	for _, name := range files {
		text, err := os.ReadFile(file(name))
		require.NoError(t, err)
		assert.Equal(t, first[name], string(text), name)
	}

	var result study.Result
	require.NoError(t, json.Unmarshal([]byte(first["all.json"]), &result))
	assert.Equal(t, "simulated", result.Basis)
	assert.Equal(t, api.LevelsOf(4, 8, 12), result.Request.Levels)
	assert.Len(t, result.Points, 6)
	assert.Len(t, result.Points[0].Runs, 2)
	assert.NotEmpty(t, result.Explanation)
	assert.Equal(t, 8, strings.Count(first["all.csv"], "\n")-1, "a heading, the request, the columns' names, and six rows")

	// The load generator imports both formats as simulated.
	fromCSV, err := baseline.ReadCSV(strings.NewReader(first["base.csv"]), "base")
	require.NoError(t, err)
	fromJSON, err := baseline.ReadJSON(strings.NewReader(first["base.json"]), "base", api.ModeState{})
	require.NoError(t, err)
	assert.Equal(t, fromJSON, fromCSV)
	assert.Equal(t, "Simulated: 3 × H200", fromCSV.Title)
	assert.Equal(t, "simulated H200", fromCSV.Deployment.GPU)
	assert.Contains(t, fromCSV.Notes, "Simulated, not measured")
	assert.Equal(t, &api.Distribution{Mean: 100, CV: .2}, fromCSV.Workload.OutputTokens)
	found, ok := baseline.At(
		fromCSV,
		api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationNotRecorded},
		api.AtConversations(8),
	)
	require.True(t, ok)
	assert.InDelta(t, result.Points[2].Figures["ttft_p95"].Mean, *found.TTFT.P95.Value, 1e-12)

	// --against explains a run against an earlier one.
	code, out, errOut = simulate(t, small, "--workers=6 --modes=kv --against="+file("all.json"))
	require.Equal(t, success, code, errOut)
	assert.Contains(t, out, "\nSimulated, not measured: this run KV-aware against all.json KV-aware, means over 2 runs")
	code, out, _ = simulate(t, small, "--modes=least_loaded --against="+file("all.json"))
	require.Equal(t, success, code)
	assert.Contains(t, out, "\nall.json has no mode in common with this run")
}

func TestSimulateFlagsOverridePresetAndProfile(t *testing.T) {
	request := func(args ...string) study.Request {
		t.Helper()
		path := filepath.Join(t.TempDir(), "r.json")
		code, _, errOut := simulate(t, append(args, small+" --seeds=1 --output="+path)...)
		require.Equal(t, success, code, errOut)
		file, err := os.Open(path)
		require.NoError(t, err)
		defer file.Close()
		result, err := study.ReadResult(file)
		require.NoError(t, err)
		return result.Request
	}
	r := request("--preset=twice-the-gpus --profile=h100-tp4")
	assert.Equal(t, 4, *r.Workers, "twice those of the profile")
	r = request("--preset=twice-the-gpus --workers=5 --turns-max=7 --kv-blocks=1000 --block-size=64 " +
		"--think-time=1500ms --router-track-output-blocks --no-router-assume-kv-reuse")
	assert.Equal(t, 5, *r.Workers)
	assert.Equal(t, api.Range{Min: 5, Max: 7}, *r.Turns)
	assert.Equal(t, 64_000, *r.KVTokens)
	assert.InDelta(t, 1.5, *r.ThinkTime, 1e-12)
	assert.True(t, *r.RouterTrackOutputBlocks)
	assert.False(t, *r.RouterAssumeKVReuse)
	r = request("--preset=own-documents")
	assert.Equal(t, 0, *r.Openings)
	assert.False(t, *r.RouterTrackOutputBlocks)
	assert.True(t, *r.RouterAssumeKVReuse)
}

func TestSimulateRejectsBadFlags(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.json")
	require.NoError(t, os.WriteFile(other, []byte(`{"basis": "measured"}`), 0o600))
	for flags, message := range map[string]string{
		"--preset=none": `preset: "none" is not allowed: one of as-recorded, twice-the-gpus, ` +
			`own-documents, batch-128`,
		"--profile=b200":                 "profile: b200 is not allowed",
		"--levels=many":                  `levels: "many" is not allowed: a number such as 60, a rate such as 2/s, or from:to:step`,
		"--levels=60:180":                `levels: "60:180" is not allowed`,
		"--levels=180:60:20":             `levels: "180:60:20" is not allowed`,
		"--levels=60:180:0":              `levels: "60:180:0" is not allowed`,
		"--levels=0":                     "levels: 0 is not allowed: 1 to 100000 conversations",
		"--levels=1/s,0/s":               `levels: 0/s is not allowed`,
		"--levels=1/s --arrivals=bursts": `arrivals: "bursts" is not allowed: one of constant, poisson, gamma`,
		"--levels=1/s --arrivals=gamma --burstiness -1": "burstiness: -1 is not allowed: 0.05 to 100",
		"--levels=1/s --arrivals=gamma --burstiness=0":  "burstiness: 0 is not allowed: 0.05 to 100",
		"--modes=kv,fast":                   `modes: "fast" is not allowed: one of kv, round_robin, least_loaded`,
		"--workers=0":                       "workers: 0 is not allowed",
		"--kv-blocks=20":                    "kv-tokens: 640 is not allowed",
		"--kv-blocks=20 --kv-tokens=5000":   "can't be used together",
		"--turns-min=0":                     "turns-min: 0 is not allowed: 1 to 1000",
		"--output-tokens-mean=-1":           "output-tokens-mean: -1 is not allowed",
		"--think-time=-1s":                  "think-time: -1 is not allowed: 0 to 3600 seconds",
		"--output=figures.txt":              "output: figures.txt is not allowed: a file name ending in .csv or .json",
		"--output=" + dir + "/none/a.csv":   "a.csv is not allowed: a file in an existing directory",
		"--baseline=" + dir + "/(mine).csv": "(mine).csv is not allowed: a baseline that the load generator can import",
		"--compare=mine": `compare: "mine" is not allowed: one of h200x3-tp1-llama70b-fp8, ` +
			`h100x8-tp2-llama70b-fp8`,
		"--against=" + dir + "/none.json": "none.json is not allowed: a readable file",
		"--against=" + other:              "a result in JSON as booth simulate writes it (it is not marked as simulated)",
		"--jobs=0":                        "jobs: 0 is not allowed",
	} {
		code, out, errOut := simulate(t, flags)
		assert.Equal(t, badInput, code, flags)
		assert.Contains(t, errOut, message, flags)
		assert.Empty(t, out, flags)
	}
}

func TestSimulateInterruptedWritesNoFile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(t.TempDir(), "a.csv")
	var out, errOut bytes.Buffer
	code := make(chan int)
	go func() {
		code <- run(ctx, ctx, []string{"simulate", "--levels=5000", "--seeds=100", "--output=" + path}, &out, &errOut)
	}()
	cancel()
	assert.Equal(t, failure, <-code)
	assert.Contains(t, errOut.String(), "booth: interrupted after 0 of 200 runs; nothing was written")
	assert.Empty(t, out.String())
	assert.NoFileExists(t, path)
}

// At a rate that the cluster sustains there are latencies, and at one above it none, whatever the mode.
func TestSimulateRates(t *testing.T) {
	code, out, errOut := simulate(t, "--seeds=1 --workers=1 --max-tokens=100 --output-tokens-mean=0 --explain",
		"--levels=0.2/s,20/s --arrivals=gamma --burstiness=0.5 --max-inflight=200")
	require.Equal(t, success, code, errOut)
	for _, mode := range []string{"kv", "round_robin"} {
		assert.Regexp(t, `(?m)^0\.2/s +`+mode+` +\d+ \(`, out)
		assert.Regexp(t, `(?m)^20/s +`+mode+`, overloaded +— +— +— +— +[\d,]+ \(`, out)
	}
	assert.Regexp(t, `Up to [\d.]+ arrivals and further turns a second were dropped, since --max-inflight`, out)
	assert.Contains(t, out, "\nAt 20/s, the queue grows without end under KV-aware and Round-robin, "+
		"so that latencies are not compared.\n")
	assert.NotRegexp(t, `(?m)^T.* at 20/s`, out, "no latency is better there")
}

// A number of single requests that the start rate does not allow is named, since its figures are of fewer.
func TestSimulateNamesLevelsThatTheStartRateHoldsBack(t *testing.T) {
	const short = "--seeds=1 --workers=1 --modes=kv --levels=2,64 --shape=prefix --shape-answer-tokens=10"
	code, out, errOut := simulate(t, short)
	require.Equal(t, success, code, errOut)
	assert.Regexp(t, `\nOnly \d of 64 conversations were in progress under kv: no more than --start-rate=10 begin`, out)
	assert.NotContains(t, out, "of 2 conversations")
	_, out, _ = simulate(t, short, "--start-rate=1000")
	assert.NotContains(t, out, "Only")
}
