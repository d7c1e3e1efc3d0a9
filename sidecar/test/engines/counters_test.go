//go:build engines

package engines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/test/boothtest"
)

// counters are sums over engines.
type counters struct{ prompt, cached, output, firsts, ttft float64 }

// scrape reads the counters of vLLM engines.
func scrape(t *testing.T, addresses []string) (c counters) {
	t.Helper()
	for _, address := range addresses {
		response, err := http.Get("http://" + address + "/metrics")
		require.NoError(t, err)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			name, rest, _ := strings.Cut(lines.Text(), "{")
			to := map[string]*float64{
				"vllm:prompt_tokens_total": &c.prompt, "vllm:prefix_cache_hits_total": &c.cached,
				"vllm:generation_tokens_total": &c.output, "vllm:time_to_first_token_seconds_count": &c.firsts,
				"vllm:time_to_first_token_seconds_sum": &c.ttft,
			}[name]
			if to == nil {
				continue
			}
			value, err := strconv.ParseFloat(rest[strings.LastIndex(rest, " ")+1:], 64)
			require.NoError(t, err, lines.Text())
			*to += value
		}
		require.NoError(t, lines.Err())
	}
	return c
}

// The load generator's figures are those of real engines' counters, through each router and asked directly: prompt,
// cached and generated tokens exactly, and the time to the first token within its stated error and what lies between.
func TestFiguresAreThoseOfEngines(t *testing.T) {
	bin := boothtest.Programs(t)
	workers := engines(t, bin)
	behind := func(id string) func(*testing.T) (string, []string) {
		return func(t *testing.T) (string, []string) {
			p, _ := begun(t, find(t, id), local.RouterStart{Model: model, Workers: workers}, nil)
			return p.URL(), workers
		}
	}
	doors := map[string]func(*testing.T) (url string, workers []string){
		"directly": func(*testing.T) (string, []string) { return "http://" + workers[0], workers[:1] },
		"dynamo":   overVLLM,
	}
	for _, r := range local.Routers {
		doors[r.ID] = behind(r.ID)
	}
	for name, open := range doors {
		t.Run(name, func(t *testing.T) {
			url, counted := open(t)
			before := scrape(t, counted)
			run := fewTurns(t, bin, url)
			after := scrape(t, counted)
			probes := float64(run.Target.Probes)
			const turns = 24
			assert.Equal(t, turns, run.Turns.OK)
			assert.InDelta(t, turns+probes, after.firsts-before.firsts, 0, "requests")
			asked := float64(sim.Count(sim.RenderChat([]sim.Message{{Role: "user", Content: "Hello."}})))
			assert.InDelta(t, float64(run.Tokens.Input)+probes*asked, after.prompt-before.prompt, 0, "prompt tokens")
			assert.InDelta(t, float64(run.Tokens.Cached), after.cached-before.cached, 0, "cached tokens")
			assert.InDelta(t, float64(run.Tokens.Output)+probes, after.output-before.output, 0, "generated tokens")
			ttft := run.Metrics.TTFT
			require.NotNil(t, ttft.Mean)
			own := *ttft.Mean*turns - (after.ttft - before.ttft) // without what the engine took for the probes
			figure.Report(t, "%s: %d prompt, %d cached and %d generated tokens as the engines counted; TTFT %.1f ms on "+
				"average, %+.1f ms against the engines' own with the probe, stated error %.2f ms", name, run.Tokens.Input,
				run.Tokens.Cached, run.Tokens.Output, *ttft.Mean*1000, own/turns*1000, *ttft.MeanError*1000)
			const between = .05 // seconds of HTTP, router and probe
			assert.InDelta(t, 0, own/turns, between+*ttft.MeanError, "TTFT of a turn")
		})
	}
}

// fewTurns runs some conversations whose later turns find their earlier ones.
func fewTurns(t *testing.T, bin, url string) (run report.Run) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.json")
	c := exec.CommandContext(t.Context(), filepath.Join(bin, "loadgen"), "--target-url="+url, "--target-model="+model,
		"--requests=24", "--concurrency=4", "--turns-min=3", "--turns-max=3", "--openings=0", "--opening-tokens=600",
		"--max-tokens=32", "--think-time=100ms", "--listen="+boothtest.AnyPort, "--data-dir="+t.TempDir(), "--output="+file)
	c.Env = append(process.Environment(), "LOADGEN_TARGET_API_KEY="+find(t, "litellm").Key)
	printed, err := c.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &run))
	return run
}

// overVLLM starts a Dynamo with two vLLM workers of its own, and returns its URL and the addresses of their metrics.
func overVLLM(t *testing.T) (url string, workers []string) {
	cache, err := local.CacheDir()
	require.NoError(t, err)
	python, err := local.InstallVLLM(t.Context(), cache, os.Stderr)
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, sim.WriteRandomModel(filepath.Join(folder, "model")))
	plane := []string{"--discovery-backend", "file", "--request-plane", "tcp", "--event-plane", "zmq"}
	command := func(module string, more ...string) process.Command {
		env := append(local.VLLMEnv(), "DYN_FILE_KV="+folder, "DYN_LOG=warn")
		for _, name := range []string{"TCP_RPC", "EVENT_PLANE", "TCP_RESPONSE_STREAM", "SYSTEM"} {
			env = append(env, "DYN_"+name+"_HOST=127.0.0.1")
		}
		return process.Command{
			Path: "nice", Args: append(append([]string{"-n15", python, "-m", module}, plane...), more...), Env: env,
			Parent: true,
		}
	}
	for i := range 2 {
		worker := local.VLLM{
			ModelDir: filepath.Join(folder, "model"), Model: model, Events: fmt.Sprintf("ipc://%s/%d", folder, i),
		}
		server(t, fmt.Sprintf("dynamo-worker-%d", i), "/metrics", func(port int) process.Command {
			workers = append(workers, process.Loopback(port))
			c := command("dynamo.vllm", append(worker.Args(), "--block-size=128")...)
			c.Env = append(c.Env, "DYN_SYSTEM_PORT="+strconv.Itoa(port))
			return c
		})
	}
	p := server(t, "dynamo-frontend", "/v1/models", func(port int) process.Command {
		return command("dynamo.frontend", "--http-host", "127.0.0.1", "--http-port", strconv.Itoa(port),
			"--router-mode", "kv", "--kv-cache-block-size", "128")
	})
	wait.Within(t, startTimeout, "both workers", func() (any, bool) {
		response, err := http.Get(p.URL() + "/health")
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return string(text), strings.Count(string(text), `"generate"`) >= len(workers)
	})
	fewTurns(t, boothtest.Programs(t), p.URL()) // the first prompts take longer than later ones
	return p.URL(), workers
}
