//go:build peers

package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/test/boothtest"
)

// The tools, as they are installed.
var (
	aiperf   = local.PythonPackage{Name: "aiperf", Version: "0.13.0", MB: 1200}
	guideLLM = local.PythonPackage{Name: "guidellm", Version: "0.8.1", MB: 6000}
)

// tokenizer returns a directory with the simulation's tokenizer, from which both tools generate prompts without a hub.
func tokenizer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, sim.WriteModel(dir))
	return dir
}

// mean is a figure in the format of both tools.
type mean struct {
	Avg  float64 `json:"avg"`
	Mean float64 `json:"mean"`
	Sum  float64 `json:"total_sum"`
}

func read(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, v))
}

// imports imports the same file as a baseline, to notice changes of the format.
func imports(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	b, err := baseline.ReadJSON(file, "peer", api.ModeState{Mode: api.ModeKV})
	require.NoError(t, err)
	require.Len(t, b.Rows, 1)
	row := b.Rows[0]
	require.Equal(t, []int{streams, requests}, []int{row.Level.Conversations(), row.N})
	for _, v := range []*float64{
		row.TTFT.P50, row.TTFT.P95, row.TPOT.P50, row.TPOT.P95, row.OutputTokensPerSecond, row.RequestsPerSecond,
	} {
		require.NotNil(t, v, b.Notes)
	}
}

func TestAIPerfAgreesWithCluster(t *testing.T) {
	python := boothtest.Interpreter(t, aiperf)
	c, dir := start(t), t.TempDir()
	run(t, filepath.Join(filepath.Dir(python), "aiperf"), "profile",
		"--model", sim.H200().Model, "--url", c.url, "--endpoint-type", "chat", "--streaming", "--tokenizer", tokenizer(t),
		"--concurrency", strconv.Itoa(streams), "--request-count", strconv.Itoa(requests),
		"--synthetic-input-tokens-mean", strconv.Itoa(promptTokens), "--synthetic-input-tokens-stddev", "0",
		"--output-tokens-mean", strconv.Itoa(outputTokens), "--output-tokens-stddev", "0", "--extra-inputs",
		"ignore_eos:true",
		"--use-server-token-count", "--random-seed", "7", "--ui", "none", "--no-gpu-telemetry", "--no-server-metrics",
		"--output-artifact-dir", dir)
	var r struct {
		Requests   mean `json:"request_count"`
		Failed     mean `json:"error_request_count"`
		TTFT       mean `json:"time_to_first_token"` // ms
		Prompt     mean `json:"total_usage_prompt_tokens"`
		Output     mean `json:"total_usage_completion_tokens"`
		Throughput mean `json:"output_token_throughput"`
	}
	read(t, filepath.Join(dir, "profile_export_aiperf.json"), &r)
	imports(t, filepath.Join(dir, "profile_export_aiperf.json"))
	c.agrees(figures{
		requests: r.Requests.Avg, failed: r.Failed.Avg, promptTokens: r.Prompt.Avg, outputTokens: r.Output.Avg,
		ttft: time.Duration(r.TTFT.Avg * float64(time.Millisecond)), throughput: r.Throughput.Avg,
	})
}

func TestGuideLLMAgreesWithCluster(t *testing.T) {
	python := boothtest.Interpreter(t, guideLLM)
	c, report := start(t), filepath.Join(t.TempDir(), "report.json")
	run(t, filepath.Join(filepath.Dir(python), "guidellm"), "run",
		"--backend", fmt.Sprintf("kind=openai_http,target=%s,model=%s", c.url, sim.H200().Model),
		"--profile", fmt.Sprintf("kind=concurrent,streams=%d", streams), "--constraint", fmt.Sprintf(
			"kind=max_requests,count=%d", requests),
		"--tokenizer", "kind=huggingface_auto,model="+tokenizer(t),
		"--data", fmt.Sprintf("kind=synthetic_text,prompt_tokens=%d,output_tokens=%d", promptTokens, outputTokens),
		"--output", "kind=json,path="+report, "--disable-console")
	type successful struct{ Successful mean }
	var r struct {
		Benchmarks []struct {
			Metrics struct {
				Requests   struct{ Successful, Errored, Incomplete float64 } `json:"request_totals"`
				TTFT       successful                                        `json:"time_to_first_token_ms"`
				Prompt     successful                                        `json:"prompt_token_count"`
				Output     successful                                        `json:"output_token_count"`
				Throughput successful                                        `json:"output_tokens_per_second"`
			}
		}
	}
	read(t, report, &r)
	imports(t, report)
	require.Len(t, r.Benchmarks, 1)
	m := r.Benchmarks[0].Metrics
	c.agrees(figures{
		requests: m.Requests.Successful, failed: m.Requests.Errored + m.Requests.Incomplete,
		promptTokens: m.Prompt.Successful.Sum, outputTokens: m.Output.Successful.Sum,
		ttft: time.Duration(m.TTFT.Successful.Mean * float64(time.Millisecond)), throughput: m.Throughput.Successful.Mean,
	})
}
