package boothtest

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/source"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
)

// Booth is a cluster, a Prometheus and a load generator.
type Booth struct {
	Root       string // path of the module
	Prometheus string // URL
	Loadgen    string // URL
	Token      string // of the load generator; "" means none

	bin    string
	target Target
	parts  map[string]*Part
}

// binVariable names the folder of built programs. Without it, the test builds them.
const binVariable = "BOOTHTEST_BIN"

// Options configure a [Booth].
type Options struct {
	Token string   // of the load generator; "" means none
	Flags []string // further flags of the load generator
	// Target starts the cluster. bin is the directory of built programs.
	Target func(t *testing.T, bin string) Target
}

// Start starts a booth with short answers. The workload is not started.
func Start(t *testing.T, o Options) *Booth {
	t.Helper()
	root, err := source.Root()
	require.NoError(t, err)
	b := &Booth{Root: root, Token: o.Token, bin: Programs(t), parts: map[string]*Part{}}
	b.target = o.Target(t, b.bin)
	maps.Copy(b.parts, b.target.Parts)
	// Load generator and Prometheus need each other's address: the load generator gets that of a proxy, which exists
	// before both.
	prometheus, to := Forward(t)
	b.Prometheus = "http://" + prometheus
	b.Loadgen, b.parts["loadgen"] = b.LoadgenPart(t, "loadgen", o.Token, o.Flags...)
	b.parts["prometheus"] = Prometheus(t, b.bin, b.target.Scrapes(strings.TrimPrefix(b.Loadgen, "http://")))
	b.Prometheus = b.parts["prometheus"].URL()
	to(b.Prometheus)
	return b
}

// Programs returns the directory of booth and loadgen: the one that BOOTHTEST_BIN names, or a temporary one with new
// builds.
func Programs(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv(binVariable); bin != "" {
		return bin
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin,
		"kvbooth/sidecar/cmd/booth", "kvbooth/sidecar/cmd/loadgen")
	if printed, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, printed)
	}
	return bin
}

// Forward returns an address of loopback for a server that is not started yet, and a function that takes the server's
// URL. Until then, calls are answered with 502.
func Forward(t *testing.T) (address string, to func(server string)) {
	t.Helper()
	var target atomic.Pointer[url.URL]
	proxy := &httputil.ReverseProxy{
		ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target.Load()) },
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if target.Load() == nil {
			http.Error(w, "not started yet", http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.Listener.Addr().String(), func(server string) {
		parsed, err := url.Parse(server)
		require.NoError(t, err)
		target.Store(parsed)
	}
}

// prometheusPrints finds the address in the log of Prometheus.
var prometheusPrints = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

// Prometheus starts a Prometheus with the content of a prometheus.yml.
func Prometheus(t *testing.T, bin, config string) *Part {
	t.Helper()
	program, err := local.FindPrometheus(t.Context(), bin)
	require.NoError(t, err)
	dir := t.TempDir()
	path := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	p := &Part{
		Prints: prometheusPrints, Ready: "http://" + AnyPort + "/-/ready",
		Command: local.PrometheusCommand(program, local.PrometheusOptions{
			Config: path, Data: filepath.Join(dir, "data"), Listen: AnyPort, Log: Log(t, "prometheus"),
		}),
	}
	p.Run(t)
	return p
}

// Scrapes returns a prometheus.yml with the labels of a cluster.
func (c Target) Scrapes(loadgen string) string {
	var text strings.Builder
	text.WriteString("global: {scrape_interval: 1s, scrape_timeout: 1s, scrape_native_histograms: true, " +
		"always_scrape_classic_histograms: true}\nscrape_configs:\n")
	scrape := func(job, namespace string, pods map[string]string) {
		fmt.Fprintf(&text, "- job_name: %s\n  static_configs:\n", job)
		for pod, address := range pods {
			fmt.Fprintf(&text, "  - {targets: [%q], labels: {namespace: %s, pod: %s, container: main}}\n",
				address, namespace, pod)
		}
	}
	scrape("dynamo-frontend", "dynamo-workload", map[string]string{"dynamo-frontend": c.Frontend})
	scrape("dynamo-worker", "dynamo-workload", numbered("dynamo-worker", c.Workers))
	scrape("loadgen", "kvbooth", map[string]string{"loadgen": loadgen})
	if len(c.GPUs) > 0 {
		scrape("dcgm-exporter", "gpu-operator", numbered("dcgm-exporter", c.GPUs))
	}
	return text.String()
}

func numbered(name string, addresses []string) map[string]string {
	pods := map[string]string{}
	for i, address := range addresses {
		pods[fmt.Sprintf("%s-%d", name, i+1)] = address
	}
	return pods
}

// Target returns the cluster.
func (b *Booth) Target() Target { return b.target }

// Bin returns the directory of built programs.
func (b *Booth) Bin() string { return b.bin }

// AnotherLoadgen starts a further load generator with the same cluster, and returns its URL.
func (b *Booth) AnotherLoadgen(t *testing.T, name, token string, flags ...string) string {
	t.Helper()
	address, _ := b.LoadgenPart(t, name, token, flags...)
	return address
}

// LoadgenPrints finds the address in the output of a load generator.
var LoadgenPrints = regexp.MustCompile(`load generator started" address=https?://(\S+)`)

// LoadgenPart is like AnotherLoadgen, and returns the process too. It keeps the machine's load low: short answers, and
// think times, so that there are few requests per second. A cap on requests would reduce the concurrency instead.
func (b *Booth) LoadgenPart(t *testing.T, name, token string, flags ...string) (address string, p *Part) {
	t.Helper()
	args := []string{
		"--target-url=http://" + b.target.Frontend, "--concurrency=60", "--start-rate=40", "--think-time=9s",
		"--max-tokens=64", "--output-tokens-mean=24", "--output-tokens-cv=.15",
	}
	if b.Prometheus != "" {
		args = append(args, "--prometheus-url="+b.Prometheus, "--prometheus-namespace=dynamo-workload")
	}
	p, _ = Loadgen(t, b.bin, name, token, append(append(args, b.target.Loadgen...), flags...)...)
	return p.URL(), p
}

// Loadgen starts a load generator with a token, or with none if it is "", and returns it with a client of its API. It
// is ready when its target answers.
func Loadgen(t *testing.T, bin, name, token string, args ...string) (*Part, *api.Client) {
	t.Helper()
	p := &Part{Prints: LoadgenPrints, Ready: "http://" + AnyPort + "/readyz", Command: process.Command{
		Name: "the load generator", Path: filepath.Join(bin, "loadgen"), Log: Log(t, name),
		Args: append([]string{"--listen=" + AnyPort, "--data-dir=" + t.TempDir()}, args...),
		Env:  append(process.Environment(), "LOADGEN_TOKEN="+token),
	}}
	p.Run(t)
	client, err := api.NewClient(http.DefaultClient, p.URL(), token)
	require.NoError(t, err)
	return p, client
}

// Turns returns the stored turns of a lane, those of all steps if the step is 0.
func Turns(t *testing.T, client *api.Client, lane string, step int64) (turns []api.Turn) {
	t.Helper()
	var table bytes.Buffer
	wait.Eventually(t, "the turns are exported", func() (any, bool) {
		table.Reset()
		err := client.TurnsCSV(t.Context(), &table, lane, step)
		return err, err == nil
	})
	turns, err := api.ReadTurns(&table)
	require.NoError(t, err)
	return turns
}

// Trial runs a trial within a time limit and returns it after its end. Unless the request says otherwise, its spans
// begin on cold caches, and may be shorter than a slot on warm ones.
func Trial(t *testing.T, client *api.Client, limit time.Duration, q api.SweepRequest) api.Sweep {
	t.Helper()
	q.Kind, q.MaxSeconds = api.SweepTrial, new(limit.Seconds())
	if q.Caches == nil {
		q.Caches = new(api.TrialCachesCold)
	}
	s, err := client.StartSweep(t.Context(), api.DefaultLane, q)
	require.NoError(t, err)
	wait.Within(t, limit+10*time.Minute, "the trial ends", func() (any, bool) {
		s, err = client.Sweep(t.Context(), s.ID)
		require.NoError(t, err)
		return s.Progress, s.State != api.SweepRunning
	})
	for i := range s.Spans {
		v := &s.Spans[i]
		t.Logf("span %d, %s, %s: %d turns in %.0f s, %.0f s in all, %d failed, %s %s", v.Number, v.Arm, v.Mode.Mode, v.Turns,
			v.Until.Sub(v.CountedFrom).Seconds(), v.Elapsed, v.Failed, v.Cold, v.Spoiled)
	}
	require.Equal(t, api.SweepDone, s.State, s.Reason)
	return s
}

// FreePort returns the first free port of loopback from the given one on, for a program that takes its port as an
// argument.
func FreePort(t *testing.T, from int) int {
	t.Helper()
	ports, err := process.FreePorts(from, 1)
	require.NoError(t, err)
	return ports[0]
}

// resultsVariable names the directory for screenshots and logs. The default is test-results in the module.
const resultsVariable = "BOOTHTEST_RESULTS"

// Results returns the directory for screenshots and logs.
func Results(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv(resultsVariable); dir != "" {
		return dir
	}
	root, err := source.Root()
	require.NoError(t, err)
	return filepath.Join(root, "test-results")
}

// Log returns the path of a program's log.
func Log(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(Results(t), "logs", strings.ReplaceAll(t.Name(), "/", "-"), name+".log")
}
