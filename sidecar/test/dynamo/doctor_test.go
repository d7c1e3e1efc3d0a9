//go:build dynamo

package dynamo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/doctor"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/loadgen/cluster/kubernetes"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

const (
	doctorToken     = "a-token-hard-to-guess"
	doctorNamespace = "dynamo-workload"
)

// One part of a real Dynamo or of its environment is broken at a time, and the doctor must report it. All cases share
// one Dynamo; the worker is killed last.
func TestDoctorFindsBrokenParts(t *testing.T) {
	t.Setenv("LOADGEN_TOKEN", doctorToken)
	d := Start(t, 18000)
	prometheus, to := boothtest.Forward(t) // exists before the load generator, whose address Prometheus needs
	alone := startFrontend(t, d, "kv", "alone", 18060, func(c *process.Command) {
		c.Env = append(c.Env, discovery+t.TempDir())
	})
	noEvents := startFrontend(t, d, "kv", "no-events", 18070, func(c *process.Command) {
		c.Env = append(c.Env, discovery+withoutEvents(t, c.Env))
	})
	b := startAgainst(t, d, "--target-url="+d.URL(), "--mode-driver=pinned", "--mode-mode=kv", "--deployment-workers=3",
		"--prometheus-url=http://"+prometheus, "--prometheus-namespace="+doctorNamespace)
	whole, lacking := b.scraping(t, 3), b.scraping(t, 2)
	to(whole)
	o := doctor.Options{LoadgenURL: b.base, Token: doctorToken, Version: api.ProgramVersion()}

	b.finds(t, "all is well", o, none, "Load generator: ok: our token is accepted",
		"Target: ok: 3 of 3 workers have registered", "Target: ok: the router knows the caches: it predicts a hit rate of",
		"Prometheus: ok: the workers' series in namespace dynamo-workload: present and fresh, from 3 endpoint(s)",
		"Prometheus: warning: the DCGM GPU series")

	wrong := o
	wrong.Token += "-not"
	b.finds(t, "wrong token", wrong, one, "Load generator: problem: it rejects our token")

	unscraped := o
	unscraped.PrometheusURL = lacking
	b.finds(t, "Prometheus does not scrape a worker", unscraped, one,
		"Prometheus: problem: the workers' series in namespace dynamo-workload: 2 of 3 endpoints have them")

	bare := o
	bare.TargetURL = alone
	b.finds(t, "no model", bare, some, "Target: problem: no worker has registered: "+alone+" lists no model",
		"Target: problem: 0 of 3 workers have registered")

	silent := o
	silent.TargetURL = noEvents
	b.finds(t, "no events", silent, one,
		"Target: problem: the router receives no KV events: it predicted a hit rate of 0 for 5 repeats")

	d.Mockers[0].Process().Kill()
	b.finds(t, "a worker is killed", o, some,
		"Target: problem: 2 of 3 workers have registered; not responding: dynamo-worker-1",
		"Prometheus: problem: it cannot scrape dynamo-worker-1")
}

// discovery is the prefix of the variable with the directory in which Dynamo's processes register.
const discovery = "DYN_FILE_KV="

// withoutEvents makes a discovery directory with workers and models, but without the addresses of their events.
func withoutEvents(t *testing.T, env []string) string {
	t.Helper()
	i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, discovery) })
	require.GreaterOrEqual(t, i, 0, "the frontend has no %s", discovery)
	all, dir := strings.TrimPrefix(env[i], discovery), t.TempDir()
	for _, kept := range []string{"instances", "mdc"} {
		files, err := filepath.Glob(filepath.Join(all, "v1", kept, "*"))
		require.NoError(t, errors.Join(err, os.MkdirAll(filepath.Join(dir, "v1", kept), 0o700)))
		for _, file := range files { // links, since a running worker updates its files
			require.NoError(t, os.Link(file, filepath.Join(dir, "v1", kept, filepath.Base(file))))
		}
	}
	return dir
}

func none(r doctor.Report) bool { return r.Problems == 0 }
func one(r doctor.Report) bool  { return r.Problems == 1 }
func some(r doctor.Report) bool { return r.Problems > 1 }

// finds runs the doctor until the report is as wanted and has all lines, by prefix. Each problem must have a fix.
func (b *booth) finds(t *testing.T, name string, o doctor.Options, wanted func(doctor.Report) bool, lines ...string) {
	t.Helper()
	wait.Within(t, 30*time.Second, name, func() (any, bool) {
		r, err := doctor.Examine(t.Context(), o)
		require.NoError(t, err)
		found := []string{}
		for _, s := range r.Sections {
			for _, f := range s.Findings {
				found = append(found, fmt.Sprintf("%s: %s: %s", s.Name, f.Severity, f.Found))
				assert.False(t, f.Severity == kubernetes.Problem && f.Do == "", "%s: no fix for %q", name, f.Found)
			}
		}
		return strings.Join(found, "\n"), wanted(r) && !slices.ContainsFunc(lines, func(line string) bool {
			return !slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, line) })
		})
	})
}

// startFrontend starts a further frontend in a mode with changes, which ends with the test, and returns its address.
func startFrontend(
	t *testing.T, d *local.Dynamo, mode, name string, port int, change func(*process.Command),
) (url string) {
	t.Helper()
	port = boothtest.FreePort(t, port)
	command := d.FrontendCommand("frontend-"+mode, mode, port)
	command.Log = filepath.Join(t.TempDir(), name+".log")
	change(&command)
	p, err := process.Start(command)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		p.Stop(ctx)
		if t.Failed() {
			t.Logf("%s:\n%s", name, process.Tail(command.Log))
		}
	})
	url = "http://" + process.Loopback(port)
	require.NoError(t, local.Ready(wait.Context(t), url+"/v1/models", p))
	return url
}

// scraping starts a Prometheus that scrapes the frontend, the first workers, and the load generator. It ends with the
// test.
func (b *booth) scraping(t *testing.T, workers int) (url string) {
	t.Helper()
	c := boothtest.Target{Frontend: strings.TrimPrefix(b.dynamo.URL(), "http://")}
	for _, w := range b.dynamo.Workers()[:workers] {
		address, _, _ := strings.Cut(strings.TrimPrefix(w.MetricsURL, "http://"), "/")
		c.Workers = append(c.Workers, address)
	}
	return boothtest.Prometheus(t, "", c.Scrapes(strings.TrimPrefix(b.base, "http://"))).URL()
}
