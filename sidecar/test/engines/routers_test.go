//go:build engines

package engines

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/debian"
	"kvbooth/internal/figure"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// Each router that is a package of Python.
func packaged() (all []*local.Router) {
	for i := range local.Routers {
		if r := &local.Routers[i]; r.Package.Name != "" {
			all = append(all, r)
		}
	}
	return all
}

// begun starts a router as s says, with ports, folder and model of its own, and returns it with the URL of its metrics
// page, empty where it has none. edit, if not nil, changes the file of its configuration.
func begun(t *testing.T, r *local.Router, s local.RouterStart, edit func(string) string) (
	p *boothtest.Part, page string,
) {
	t.Helper()
	path := ""
	if r.Package.Name != "" {
		path = filepath.Join(filepath.Dir(boothtest.Interpreter(t, r.Package)), r.Program())
	} else {
		var err error
		path, err = debian.Find(t.Context(), r.Program(), os.Stderr)
		boothtest.Need(t, err, debian.ErrMissing, "no "+r.ID)
	}
	metrics := boothtest.FreePort(t, 9500)
	p = server(t, r.ID, r.Ready, func(port int) process.Command {
		s.Port, s.Metrics, s.Model, s.Folder = port, metrics, cmp.Or(s.Model, simulatedModel), t.TempDir()
		c, err := r.Command(path, s)
		require.NoError(t, err)
		if edit != nil {
			rewrite(t, s.Folder, edit)
		}
		return c
	})
	if r.Page != "" {
		page = "http://" + process.Loopback(metrics) + r.Page
	}
	return p, page
}

// rewrite edits the files in a folder.
func rewrite(t *testing.T, folder string, edit func(string) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, []byte(edit(string(text))), 0o600))
	}
}

// find returns a router by its id.
func find(t *testing.T, id string) *local.Router {
	t.Helper()
	r, _, err := local.FindRouter("", id)
	require.NoError(t, err)
	return r
}

// Each real router is recognized in front of simulated engines. The worker and the cached tokens of every turn are
// known, and its metrics name the same workers.
func TestRoutersBeforeSimulatedEngines(t *testing.T) {
	bin := boothtest.Programs(t)
	for _, r := range packaged() {
		t.Run(r.ID, func(t *testing.T) {
			cluster := boothtest.SimulatedAs(t, bin, "vllm")
			policy := "round_robin"
			if !slices.Contains(r.Policies, policy) {
				policy = r.Policies[0]
			}
			router, page := begun(t, r, local.RouterStart{Policy: policy, Workers: cluster.Workers}, nil)
			pages := []string{"no-target", page}
			if page == "" {
				pages = pages[:1]
				for _, w := range cluster.Workers {
					pages = append(pages, "http://"+w)
				}
			}
			flags := []string{"--target-url=" + router.URL(), "--cluster-metrics-urls=" + strings.Join(pages, ",")}
			if r.Worker == "" || r.ID == "envoy" {
				flags = append(flags, "--target-worker-header="+cmp.Or(r.Worker, httpd.WorkerHeader))
			}
			run := measure(t, bin, flags)
			assert.Equal(t, r.ID, run.Target.Router)
			assert.Equal(t, cmp.Or(r.Worker, httpd.WorkerHeader), run.Target.WorkerSource)
			assert.Equal(t, "usage", run.Target.CachedSource)
			assert.Equal(t, r.ID == "vllm-router", run.Workload.NoRequestID)
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
				r.ID, run.Routing.Turns, run.Routing.Skew, run.Routing.SameWorker, run.Routing.Later)
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
	c.Env = append(process.Environment(), "LOADGEN_TARGET_API_KEY="+find(t, "litellm").Key)
	printed, err := c.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &run), fmt.Sprint(string(text[:min(len(text), 200)])))
	return run
}
