//go:build engines

package engines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// model is the name of the real engines' model.
const model = "random-32m"

// vllm are the real engines of all tests, which take a minute to start and end with the last test.
var vllm struct {
	sync.Mutex
	*process.Process

	workers []string // host and port
	events  []string // endpoints
}

// TestMain ends the engines.
func TestMain(m *testing.M) {
	code := m.Run()
	if vllm.Process != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		vllm.Stop(ctx)
	}
	os.Exit(code)
}

// startTimeout is the time of an installation and of a start.
const startTimeout = 25 * time.Minute

// printed finds the engines in the output of `booth engines`.
var printed = regexp.MustCompile(`engine-\d+ +http://(\S+), .* (ipc://\S+)\n`)

// engines starts two vLLM engines on the CPU at the first call, which installs vLLM where necessary, and returns their
// addresses, host:port.
func engines(t *testing.T, bin string) []string {
	t.Helper()
	vllm.Lock()
	defer vllm.Unlock()
	log := filepath.Join(os.TempDir(), fmt.Sprintf("kvbooth-engines-%d.log", os.Getpid()))
	if vllm.Process == nil {
		p, err := process.Start(process.Command{
			Name: "the real engines", Path: filepath.Join(bin, "booth"), Args: []string{"engines"}, Log: log,
			Env: process.Environment(), Parent: true,
		})
		require.NoError(t, err)
		vllm.Process = p
		wait.Within(t, startTimeout, "the engines", func() (any, bool) {
			text, err := os.ReadFile(log)
			require.NoError(t, err)
			vllm.workers, vllm.events = nil, nil
			for _, found := range printed.FindAllSubmatch(text, -1) {
				vllm.workers = append(vllm.workers, string(found[1]))
				vllm.events = append(vllm.events, string(found[2]))
			}
			return string(text), len(vllm.workers) > 0 || p.Exited()
		})
	}
	require.Len(t, vllm.workers, 2, process.Tail(log))
	return vllm.workers
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

// sglang starts an sglang-router with a policy for workers, and returns its URL.
func sglang(t *testing.T, policy string, workers ...string) (url string) {
	p, _ := begun(t, find(t, "sglang"), local.RouterStart{Policy: policy, Model: model, Workers: workers}, nil)
	return p.URL()
}

// loadgen starts a load generator with the frontends of kv, cacheAware, and of round_robin.
func loadgen(t *testing.T, bin, cacheAware, roundRobin string) *api.Client {
	t.Helper()
	_, client := boothtest.Loadgen(t, bin, "loadgen", "a-token-for-the-operators", "--target-url="+roundRobin,
		"--model="+model, "--mode-driver=endpoints", "--mode-endpoints=kv="+cacheAware+",round_robin="+roundRobin,
		"--deployment-kind=real", "--preset=recorded", "--openings=0", "--think-time=0s", "--max-tokens=32")
	return client
}
