package baseline

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

var underKV = api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}

func fixture(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "import", name))
	require.NoError(t, err)
	return string(text)
}

// refusal requires an error of a field and returns it.
func refusal(t *testing.T, err error) api.FieldError {
	t.Helper()
	var refused *api.FieldError
	require.ErrorAs(t, err, &refused)
	return *refused
}

func imported(t *testing.T, file string) api.Baseline {
	t.Helper()
	b, err := ReadJSON(strings.NewReader(fixture(t, file)), "ours", underKV)
	require.NoError(t, err)
	require.NoError(t, Validate(b))
	assert.Equal(t, []string{"ours", "ours", KindImported}, []string{b.Name, b.Title, b.Kind})
	return b
}

var update = flag.Bool("update", false, "rewrite the baselines in testdata")

// golden compares a value, as JSON, with the file of that name in testdata.
func golden(t *testing.T, name string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", "  ")
	require.NoError(t, err)
	file := filepath.Join("testdata", "golden", name+".json")
	if *update {
		require.NoError(t, os.WriteFile(file, append(got, '\n'), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got), "go test ./sidecar/loadgen/baseline -update rewrites it")
}

// The import of each program's file has the figures of that file, in seconds, and no others. README.md
// beside the fixtures lists the files that were written by runs.
func TestImportOfOtherPrograms(t *testing.T) {
	for _, name := range []string{
		"aiperf-8", "guidellm", "inference-perf-8", "vllm-bench-8", "vllm-bench-chat-4",
		"aiperf-0.3", "aiperf-0.6", "vllm-bench-backend",
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, imported(t, name+".json")) })
	}
}

// edited returns a fixture with some of its text replaced. Each replaced text must exist.
func edited(t testing.TB, file string, replace ...string) string {
	t.Helper()
	text := fixture(t, file)
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, text, replace[i], file)
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	return text
}

// A value with another definition in this file is omitted, and the notes name it.
func TestImportLeavesOutWhatIsAnotherQuantity(t *testing.T) {
	const sameLengths = `"max": 40.0,`
	for _, c := range []struct {
		why, text, note string
		of              func(api.BaselineRow) *float64
	}{
		{
			"its own tokenizer counts", edited(t, "aiperf-8.json",
				"\"total_osl\": {\n    \"unit\": \"tokens\",\n    \"avg\": 960.0",
				"\"total_osl\": {\n    \"unit\": \"tokens\",\n    \"avg\": 984.0"),
			"AIPerf's own tokenizer counted a different number", func(r api.BaselineRow) *float64 { return r.TPOT.P50 },
		},
		{"no usage", edited(t, "aiperf-8.json", `"usage_completion_tokens"`, `"former_name"`), "the server did not report the output tokens of every answer", func(r api.BaselineRow) *float64 { return r.OutputTokensPerSecond }},
		{"no cached tokens", edited(t, "aiperf-8.json", `"usage_prompt_cache_read_tokens"`, `"former_name"`), "did not report cached tokens for every answer", func(r api.BaselineRow) *float64 { return r.KVHitRatio }},
		{
			"its own tokenizer counts", edited(t, "inference-perf-8.json", "\"output_len\": {\n      \"mean\": 30.0",
				"\"output_len\": {\n      \"mean\": 31.0"), "inference-perf's own tokenizer counted a different number",
			func(r api.BaselineRow) *float64 { return r.TPOT.P50 },
		},
		{"no usage", edited(t, "inference-perf-8.json", `"output": 0`, `"output": 3`), "Output tokens/s: the server did not report", func(r api.BaselineRow) *float64 { return r.OutputTokensPerSecond }},
		{"answers of different lengths", strings.ReplaceAll(fixture(t, "guidellm.json"), sameLengths, `"max": 41.0,`), "TPOT at concurrency 8: GuideLLM weights", func(r api.BaselineRow) *float64 { return r.TPOT.P95 }},
		{"no stream", edited(t, "vllm-bench-8.json", `"median_ttft_ms": 300.0`, `"median_ttft_ms": 0.0`), "ITL: vLLM bench", func(r api.BaselineRow) *float64 { return r.TTFT.P50 }},
	} {
		b, err := ReadJSON(strings.NewReader(c.text), "ours", underKV)
		require.NoError(t, err, c.why)
		assert.Contains(t, b.Notes, c.note)
		for _, row := range b.Rows {
			assert.Nil(t, c.of(row), c.note)
		}
	}
	for _, c := range []struct {
		text, missing string
		unlike        []string
	}{
		{fixture(t, "vllm-bench-chat-4.json"), "Not recorded in this file of vLLM bench (version not recorded): TTFT " +
			"p95, TPOT p95, latency p50, latency p95, KV hit rate.", []string{"ttft_p50", "tpot_p50"}},
		{edited(t, "vllm-bench-backend.json", `"backend": "vllm"`, `"backend": "openai-chat"`), "latency p95, KV hit rate.", []string{"ttft_p50", "tpot_p50"}},
		{edited(t, "aiperf-0.6.json", `"inter_token_latency":{"unit":"ms","avg":5,"p50":5,"p95":6}`, `"inter_token_latency":{"unit":"ms","avg":5,"p50":5,"p99":6}`), "Not recorded in this file of AIPerf 0.6.0: TPOT p95, output tokens/s, KV hit rate.", nil},
	} {
		b, err := ReadJSON(strings.NewReader(c.text), "ours", underKV)
		require.NoError(t, err)
		assert.Contains(t, b.Notes, c.missing)
		assert.Equal(t, c.unlike, b.Rows[0].Unlike)
	}
	hit := edited(t, "inference-perf-8.json", `"cached": 0.0`, `"cached": 72.0`)
	b, err := ReadJSON(strings.NewReader(hit), "ours", underKV)
	require.NoError(t, err)
	assert.Equal(t, .25, *b.Rows[0].KVHitRatio, "72 of 288 prompt tokens")
}

func TestImportRefuses(t *testing.T) {
	for _, c := range []struct {
		text, name string
		run        api.ModeState
		field      string // of the error; with a line, where one is meant
		value      string
		allowed    string
	}{
		{fixture(t, "aiperf-8.json"), "x", api.ModeState{}, "mode", "", "AIPerf does not record how requests were routed"},
		{fixture(t, "guidellm.json"), "x", api.ModeState{Mode: "fastest"}, "mode", "fastest", "one of round_robin, kv"},
		{fixture(t, "guidellm.json"), "x", api.ModeState{Mode: "kv", Speculation: "some"}, "speculation", `"some"`, "eagle3"},
		{fixture(t, "vllm-bench-8.json"), "", underKV, "name", `""`, "vLLM bench's file has none"},
		{`{"name":"x","rows":[{"concurrency":1,"mode":"kv"}]}`, "", underKV, "mode", `"kv"`, "each row of this file has its own mode"},
		{`{"name":"x","rows":[{"concurrency":1,"mode":"kv"}]}`, "", api.ModeState{Speculation: "off"}, "speculation", `"off"`, "already contains it"},
		{
			fixture(t, "inference-perf-summary.json"), "x", underKV, "line 3, load_summary", "no concurrency",
			"stage_N_lifecycle_metrics.json",
		},
		{edited(t, "inference-perf-8.json", `"concurrency": 8`, `"concurrency": 0`), "x", underKV, "line 24, load_summary.concurrency", "0", "1 to 100000"},
		{edited(t, "inference-perf-8.json", `"count": 24,
    "latency"`, `"count": 0,
    "latency"`), "x", underKV, "line 27, successes.count", "0", "a whole number from 1"},
		{edited(t, "inference-perf-8.json", `"cached": 0.0`, `"cached": 289.0`), "x", underKV, "successes.prompt_tokens.cached", "289.0", "at most the total, 288.0"},
		{edited(t, "aiperf-8.json", `"concurrency": 8`, `"concurrency": 8.5`), "x", underKV, "input_config.phases[0].concurrency", "8.5", "a whole number"},
		{edited(t, "aiperf-8.json", `"type": "concurrency"`, `"type": "poisson"`), "x", underKV, "input_config.phases[0].type", "poisson", "a fixed number of requests in progress"},
		{edited(t, "aiperf-8.json", `"kind": "profiling"`, `"kind": "warmup"`), "x", underKV, "input_config.phases", "0 phases", "one"},
		{edited(t, "aiperf-8.json", `"is_complete": true`, `"is_complete": false`), "x", underKV, "is_complete", "false", "did not finish"},
		{edited(t, "aiperf-8.json", `"was_cancelled": false`, `"was_cancelled": true`), "x", underKV, "was_cancelled", "true", "are incomplete"},
		{edited(t, "aiperf-8.json", `"p95": 416.08339674999985`, `"p95": 302.0`), "x", underKV, "time_to_first_token.p95", "302.0", "at least the median, 302.925318"},
		{edited(t, "aiperf-8.json", `"p95": 416.08339674999985`, `"p95": 7200000`), "x", underKV, "time_to_first_token.p95", "7200000", "at most an hour"},
		{edited(t, "aiperf-8.json", `"p95": 416.08339674999985`, `"p95": -1`), "x", underKV, "time_to_first_token.p95", "-1", "a time above 0"},
		{
			edited(t, "aiperf-8.json", "\"time_to_first_token\": {\n    \"unit\": \"ms\"",
				"\"time_to_first_token\": {\n    \"unit\": \"min\""), "x", underKV, "time_to_first_token.unit", "min",
			"one of ms, ns, sec, us",
		},
		{edited(t, "aiperf-8.json", `"p95": 416.08339674999985`, `"p95": NaN`), "x", underKV, "baseline", "this JSON", "invalid character 'N'"},
		{edited(t, "aiperf-8.json", `"p95": 416.08339674999985`, `"p95": "fast"`), "x", underKV, "time_to_first_token.p95", `"fast"`, "a time above 0"},
		{edited(t, "guidellm.json", `"streams": 8,
     "ramp`, `"streams": 4,
     "ramp`), "x", underKV, "benchmarks[1].config.strategy.streams", "4", "each concurrency once in a file"},
		{strings.ReplaceAll(fixture(t, "guidellm.json"), `"type_": "concurrent"`, `"type_": "poisson"`), "x", underKV, "benchmarks", "none", "concurrent or synchronous"},
		{edited(t, "vllm-bench-8.json", `"max_concurrency": 8`, `"max_concurrency": null`), "x", underKV, "max_concurrency", "null", "--max-concurrency"},
		{edited(t, "vllm-bench-8.json", `"request_rate": "inf"`, `"request_rate": 5.0`), "x", underKV, "request_rate", "5.0", `"inf"`},
		{edited(t, "vllm-bench-8.json", `"output_throughput": 200.0`, `"output_throughput": -200.0`), "x", underKV, "output_throughput", "-200.0", "a number from 0"},
		{edited(t, "vllm-bench-8.json", `"completed": 200`, `"completed": 0`), "x", underKV, "completed", "0", "1"},
		{edited(t, "aiperf-0.6.json", `"loadgen":{`, `"loadgen":{"request_rate":5.5,`), "x", underKV, "input_config.loadgen.request_rate", "5.5", "a fixed number of requests in progress"},
		{edited(t, "aiperf-0.3.json", `"concurrency": 8`, `"concurrency": 0`), "x", underKV, "input_config.loadgen.concurrency", "0", "1 to 100000"},
		{`{"name":"x","rows":[{"concurrency":1,"mode":"kv","unlike":["speed"]}]}`, "", api.ModeState{}, "rows[0].unlike", `"speed"`, "such as ttft_p50"},
		{`{"name":"x","rows":[{"concurrency":1,"mode":"kv","at_least":["ttft_p95"]}]}`, "", api.ModeState{}, "rows[0].at_least", `"ttft_p95"`, "values that the row has"},
		{`{"endpoint_type":"openai","max_concurrency":8}`, "x", api.ModeState{}, "baseline", "this JSON", "a baseline as the API gives it"},
	} {
		_, err := ReadJSON(strings.NewReader(c.text), c.name, c.run)
		refused := refusal(t, err)
		if strings.HasPrefix(c.field, "line") {
			assert.Equal(t, c.field, refused.Field)
		} else {
			assert.Regexp(t, "(^|, )"+regexp.QuoteMeta(c.field)+"$", refused.Field)
		}
		assert.Contains(t, refused.Value, c.value, c.field)
		assert.Contains(t, refused.Allowed, c.allowed, c.field)
	}
}

// A file of several loads keeps those at a fixed concurrency, and the notes name the omitted ones.
func TestImportKeepsWhatHasAConcurrency(t *testing.T) {
	b, err := ReadJSON(strings.NewReader(edited(t, "guidellm.json", `"type_": "concurrent"`, `"type_": "throughput"`)), "ours", underKV)
	require.NoError(t, err)
	require.Len(t, b.Rows, 1)
	assert.Equal(t, api.AtConversations(8), b.Rows[0].Level)
	assert.Contains(t, b.Notes, `Benchmarks of strategy "throughput" are left out`)
}

// An imported baseline is like any other: written as a table and read again it is the same, except for its duration and
// the values of another definition, for which a table has no columns.
func TestImportsRoundTrip(t *testing.T) {
	for _, file := range []string{"aiperf-4.json", "guidellm.json", "inference-perf-4.json", "vllm-bench-8.json"} {
		b := imported(t, file)
		for i := range b.Rows {
			require.NotZero(t, b.Rows[i].Seconds)
			b.Rows[i].Seconds, b.Rows[i].Unlike = 0, nil
		}
		assert.Equal(t, b, roundTrip(t, b), file)
	}
}

// The original recorded tables import with each value in its row.
func TestImportOfTheRecordedTables(t *testing.T) {
	for _, b := range Builtin() {
		text := fixture(t, b.Name+".csv")
		got, err := ReadCSV(strings.NewReader(text), b.Name)
		require.NoError(t, err)
		require.Equal(t, b.Rows[0].Level, got.Rows[0].Level)
		require.Len(t, got.Rows, len(b.Rows))
		for i := range b.Rows { // the cluster's further figures are only in the built-in one
			b.Rows[i].ClusterFigures = api.ClusterFigures{}
		}
		assert.Equal(t, b.Rows, got.Rows)
	}
}

// Imports of several files add up to one baseline: one row for each concurrency, mode and speculation, the later one's
// where both have it.
func TestJoin(t *testing.T) {
	four, eight := imported(t, "aiperf-4.json"), imported(t, "aiperf-8.json")
	four.Deployment.GPU, eight.Deployment.Engine = "H200", "trtllm"
	four.Provenance.Runs = []api.Source{{File: "a.json"}}
	eight.Provenance = api.Provenance{Runs: []api.Source{{File: "a.json"}, {File: "b.json"}}, Region: "ams3"}
	again, err := ReadJSON(strings.NewReader(edited(t, "aiperf-8.json", `"concurrency": 8`, `"concurrency": 4`)), "ours", underKV)
	require.NoError(t, err)
	robin, err := ReadJSON(strings.NewReader(fixture(t, "vllm-bench-8.json")), "ours",
		api.ModeState{Mode: api.ModeRoundRobin})
	require.NoError(t, err)
	robin.Title, robin.Deployment.Model = "May", "Llama 3.1 70B Instruct"

	all := four
	for _, more := range []api.Baseline{eight, robin, again} {
		all, err = Join(all, more)
		require.NoError(t, err)
	}
	require.Len(t, all.Rows, 3)
	assert.Equal(t, again.Rows[0], all.Rows[0], "replaced")
	assert.EqualValues(t, []api.BaselineRow{robin.Rows[0], eight.Rows[0]}, all.Rows[1:])
	assert.Equal(t, "May", all.Title)
	assert.Equal(t, api.Deployment{Model: four.Deployment.Model, GPU: "H200", Engine: "trtllm"}, all.Deployment)
	assert.Equal(t, eight.Provenance, all.Provenance, "each run once")
	assert.Contains(t, all.Notes, "Imported from vLLM bench (version not recorded),")
	assert.Equal(t, 1, strings.Count(all.Notes, "Imported from AIPerf"), "each sentence once")
	assert.Len(t, four.Rows, 1, "as it was")

	robin.Deployment.Model = "Qwen3 32B"
	_, err = Join(all, robin)
	refused := refusal(t, err)
	assert.Equal(t, []string{"deployment.model", `"Qwen3 32B"`}, []string{refused.Field, refused.Value})
	assert.Contains(t, refused.Allowed, `"meta-llama/Llama-3.1-70B-Instruct", as the baseline "ours" has it`)
}

// FuzzReadJSON requires that any text is refused with a field, or becomes a baseline that can be written and read
// again.
func FuzzReadJSON(f *testing.F) {
	for _, file := range []string{"inference-perf-summary.json", "vllm-bench-8.json", "vllm-bench-chat-4.json"} {
		f.Add([]byte(fixture(f, file)))
	}
	// The larger fixtures are reduced to the fields that are read, which keeps the fuzzer fast.
	f.Add([]byte(`{"load_summary":{"concurrency":8},"successes":{"count":2,"latency":{"time_to_first_token":{"median":0.1,"p95":0.2},"time_per_output_token":{"median":0.01}},
		"throughput":{"requests_per_sec":3.5},"prompt_tokens":{"total":10,"cached":2},"output_tokens":{"mean":30},"output_len":{"mean":30}},"failures":{"count":1},"benchmark_time_seconds":9}`))
	f.Add([]byte(`{"aiperf_version":"0.13.0","input_config":{"models":{"items":[{"name":"m"}]},"phases":[{"kind":"profiling","type":"concurrency","concurrency":8}]},"request_count":{"avg":24.0},
		"time_to_first_token":{"unit":"ms","p50":302.9,"p95":416.1},"request_throughput":{"avg":6.2},"usage_completion_tokens":{"avg":40.0,"count":24},"inter_token_latency":{"unit":"ms","p50":22},
		"total_osl":{"avg":960.0},"total_usage_completion_tokens":{"avg":960.0},"overall_usage_prompt_cache_read_pct":{"avg":32.8},"usage_prompt_cache_read_tokens":{"count":24}}`))
	f.Add([]byte(`{"metadata":{"guidellm_version":"0.8.1"},"config":{"spec":{"backend":{"model":"m"}}},"benchmarks":[{"config":{"strategy":{"type_":"concurrent","streams":4}},"duration":6.8,"end_time":1795393905.5,
		"metrics":{"request_totals":{"successful":23,"errored":1},"output_token_count":{"successful":{"min":40.0,"max":40.0}},"time_to_first_token_ms":{"successful":{"percentiles":{"p50":287.7,"p95":391.4}}}}}]}`))
	f.Add([]byte(`{"metadata":{},"benchmarks":[{"config":{"strategy":{"type_":"synchronous"}},"end_time":1e300,"metrics":{"request_totals":{"successful":1e0}}}]}`))
	f.Add([]byte(`{"name":"x","title":"t","kind":"measured","notes":"n","deployment":{"gpu":"L4"},"workload":{"turns":{"min":1,"max":1}},
		"rows":[{"concurrency":1,"mode":"kv","ttft":{"p50":0.1},"measured":"2026-01-02T03:04:05Z"}]}`))
	f.Add([]byte(`{"name":"x","rows":[{"concurrency":2,"mode":"kv"},{"concurrency":1,"mode":"round_robin","rps":1}]}`))
	f.Add([]byte(`{"aiperf_version":"\n","input_config":{"phases":[{"type":"concurrency"}]},"request_count":{"avg":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, run := range []api.ModeState{underKV, {}} { // a file of another program, or of the API
			b, err := ReadJSON(bytes.NewReader(text), "fuzzed", run)
			if err != nil {
				refusal(t, err)
				continue
			}
			require.NoError(t, Validate(b))
			again := roundTrip(t, b)
			require.Len(t, again.Rows, len(b.Rows))
			for i := range b.Rows {
				require.Equal(t, keyOf(b.Rows[i]), keyOf(again.Rows[i]))
				require.Equal(t, b.Rows[i].TTFT, again.Rows[i].TTFT)
			}
		}
	})
}

// Results of a program that are not read are refused by its name, also where they are lines, or no JSON by RFC 8259.
func TestOtherProgramsAreNamed(t *testing.T) {
	_, err := ReadJSON(strings.NewReader(`{"request_throughput": {"unit": "requests/sec", "avg": 17.2}, "input_config": `+
		`{"model": ["m"], "perf_analyzer": {"stimulus": {"concurrency": 100}}}}`), "ours", underKV)
	refused := refusal(t, err)
	assert.Equal(t, "a result of GenAI-Perf (version not recorded)", refused.Value)
	assert.Contains(t, refused.Allowed, "a result of AIPerf, GuideLLM")
	run := `{"backend": "sglang-oai-chat", "dataset_name": "random", "request_rate": Infinity, "duration": 20.5, ` +
		`"total_output_tokens_retokenized": 12790, "p99_ttft_ms": 300.0}`
	for name, read := range map[string]func(string) (api.Baseline, error){
		"JSON": func(text string) (api.Baseline, error) { return ReadJSON(strings.NewReader(text), "ours", underKV) },
		"CSV":  func(text string) (api.Baseline, error) { return ReadCSV(strings.NewReader(text), "ours") },
	} {
		_, err := read(run + "\n" + run + "\n")
		assert.Equal(t, "a result of SGLang's bench_serving (version not recorded)", refusal(t, err).Value, name)
	}
	_, err = ReadCSV(strings.NewReader(`{"a": 1}`), "ours")
	assert.Equal(t, "JSON", refusal(t, err).Value)
}
