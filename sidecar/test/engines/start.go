//go:build engines

package engines

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

const model = "tiny"

// home returns the directory of the engines and routers, which may not exist.
func home(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("ENGINES"); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	return filepath.Join(cache, "engines")
}

// folder returns the directory with engines, routers and a model, and skips the test without it.
func folder(t *testing.T) string {
	t.Helper()
	dir := home(t)
	for _, name := range []string{"vllm/bin/python", "routers/bin/python", "model/config.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Skipf("skipped: no %s in the folder of the engines (variable ENGINES)", name)
		}
	}
	return dir
}

// server starts a program that serves HTTP on a free port of loopback, which is passed in its arguments, and waits
// until it answers at a path.
func server(t *testing.T, name, path string, c func(port int) process.Command) *boothtest.Part {
	t.Helper()
	port := boothtest.FreePort(t, 9000)
	p := &boothtest.Part{Listens: process.Loopback(port), Ready: "http://" + boothtest.AnyPort + path, Command: c(port)}
	p.Command.Name, p.Command.Log = name, boothtest.Log(t, name)
	p.Run(t)
	return p
}

// dtype returns the type of the model's numbers that is fast on this CPU. One without instructions for bfloat16
// emulates them, and takes several times as long for a prompt.
func dtype() string {
	if cpu.X86.HasAVX512BF16 {
		return "bfloat16"
	}
	return "float32"
}

// engine starts a vLLM engine on the CPU.
func engine(t *testing.T, dir, name string) (url string) {
	return server(t, name, "/health", func(port int) process.Command {
		return process.Command{
			Path: "nice", // a load generator beside it would be late on two cores
			Args: []string{
				"-n15", filepath.Join(dir, "vllm/bin/python"), "-m", "vllm.entrypoints.openai.api_server",
				"--model", filepath.Join(dir, "model"),
				"--served-model-name", model, "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--enforce-eager",
				"--enable-prefix-caching", "--enable-prompt-tokens-details", "--dtype", dtype(),
				"--max-model-len", "16384", "--max-num-seqs", "32", "--generation-config", "vllm",
			},
			Env: append(process.Environment(), "VLLM_TARGET_DEVICE=cpu", "VLLM_CPU_KVCACHE_SPACE=1",
				"VLLM_CPU_OMP_THREADS_BIND=nobind", "OMP_NUM_THREADS=1", "HF_HUB_OFFLINE=1", "VLLM_NO_USAGE_STATS=1"),
			Parent: true,
		}
	}).URL()
}

// router starts an sglang-router with a policy for workers.
func router(t *testing.T, dir, policy string, workers ...string) (url string) {
	metrics := boothtest.FreePort(t, 9200)
	return server(t, policy, "/v1/models", func(port int) process.Command {
		return process.Command{
			Path: filepath.Join(dir, "routers/bin/python"),
			Args: append([]string{
				"-m", "sglang_router.launch_router", "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--policy", policy,
				"--prometheus-host", "127.0.0.1", "--prometheus-port", strconv.Itoa(metrics), "--worker-urls",
			}, workers...),
			Parent: true,
		}
	}).URL()
}

// loadgen starts a load generator with the frontends of kv, cacheAware, and of round_robin.
func loadgen(t *testing.T, bin, cacheAware, roundRobin string) *api.Client {
	t.Helper()
	_, client := boothtest.Loadgen(t, bin, "loadgen", "a-token-for-the-operators", "--target-url="+roundRobin,
		"--model="+model, "--mode-driver=endpoints", "--mode-endpoints=kv="+cacheAware+",round_robin="+roundRobin,
		"--deployment-kind=real", "--preset=recorded", "--openings=0", "--think-time=0s", "--max-tokens=32")
	return client
}
