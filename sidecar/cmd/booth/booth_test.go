//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/internal/output"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/booth/local/localtest"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/process/processtest"
)

func TestMain(m *testing.M) {
	localtest.Main()
	switch filepath.Base(os.Args[0]) {
	case "loadgen":
		os.Exit(playLoadgen(os.Args[1:]))
	case "prometheus":
		os.Exit(playPrometheus(os.Args[1:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "cluster" {
		os.Exit(playServer(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// Variables that make a played program misbehave.
const (
	refuses = "BOOTHTEST_REFUSES" // the load generator's `check` fails with this message
	locked  = "BOOTHTEST_LOCKED"  // the load generator ends with 2
	goesOn  = "BOOTHTEST_GOES_ON" // the load generator says "asked" where it is asked to end, and goes on
)

// playLoadgen stands in for the load generator.
func playLoadgen(args []string) int {
	if args[0] == "check" {
		if words := os.Getenv(refuses); words != "" {
			fmt.Fprintln(os.Stderr, words)
			return 2
		}
		return 0
	}
	if os.Getenv(locked) != "" {
		fmt.Fprintln(os.Stderr, "loadgen: the data directory is in use")
		return 2
	}
	return playServer(args)
}

// playPrometheus stands in for Prometheus.
func playPrometheus(args []string) int {
	if args[0] == "--version" {
		fmt.Println("prometheus, version", local.OldestPrometheus)
		return 0
	}
	return playServer(args)
}

// playServer stands in for a program that answers whatever it is asked on the
// first address that its flags name.
func playServer(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var address string
	for _, arg := range args {
		for _, flag := range []string{"--listen=", "--web.listen-address="} {
			if value, ok := strings.CutPrefix(arg, flag); ok {
				address = value
			}
		}
		if value, ok := strings.CutPrefix(arg, "--port="); ok {
			address = "127.0.0.1:" + value
		}
	}
	fmt.Println("pid", os.Getpid(), strings.Join(args, " "))
	if os.Getenv(goesOn) != "" && filepath.Base(os.Args[0]) == "loadgen" {
		context.AfterFunc(ctx, func() { fmt.Println("asked") })
		ctx = context.WithoutCancel(ctx)
	}
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	_ = server.ListenAndServe()
	if ctx.Err() == nil {
		return 1
	}
	return 0
}

// running is a booth that runs within the test, against played programs.
type running struct {
	t          *testing.T
	command    string
	dir        string
	out, err   output.Buffer
	stop, kill context.CancelFunc
	ended      chan int
}

// runBooth starts a booth with played programs, on ports that are the test's, without Grafana
// unless there is a played one.
func runBooth(t *testing.T, command string, more ...string) *running {
	t.Helper()
	t.Setenv(local.VenvVariable, localtest.Venv(t))
	t.Setenv(local.PrometheusVariable, localtest.Program(t, t.TempDir(), "prometheus"))
	t.Setenv("TMPDIR", t.TempDir())
	r := &running{t: t, command: command, dir: t.TempDir(), ended: make(chan int, 1)}
	ctx, stop := context.WithCancel(t.Context())
	killCtx, kill := context.WithCancel(context.WithoutCancel(t.Context()))
	r.stop, r.kill = stop, kill
	first := processtest.Ports(t, 12)
	args := []string{
		command, "--cache-dir=" + r.dir,
		fmt.Sprintf("--frontend-port=%d", first), fmt.Sprintf("--worker-port=%d", first+1), fmt.Sprintf("--port=%d", first+5),
		fmt.Sprintf("--prometheus-port=%d", first+6), fmt.Sprintf("--grafana-port=%d", first+7),
	}
	if os.Getenv(local.GrafanaVariable) == "" {
		args = append(args, "--grafana=off")
	}
	if command == "demo" {
		args = append(args, fmt.Sprintf("--gpu-port=%d", first+8))
	}
	go func() { r.ended <- run(ctx, killCtx, append(args, more...), &r.out, &r.err) }()
	t.Cleanup(kill)
	return r
}

// says waits until the booth has written what matches, and gives the match.
func (r *running) says(b *output.Buffer, pattern string) (match []string) {
	r.t.Helper()
	expression := regexp.MustCompile(pattern)
	wait.Eventually(r.t, pattern, func() (any, bool) {
		match = expression.FindStringSubmatch(b.String())
		return r.out.String() + r.err.String(), match != nil
	})
	return match
}

// code waits for the booth's end.
func (r *running) code() int {
	r.t.Helper()
	return wait.Receive(r.t, "the booth ends", r.ended)
}

// ends stops the booth, as Ctrl-C does.
func (r *running) ends() {
	r.t.Helper()
	r.stop()
	assert.Equal(r.t, success, r.code())
}

// log is what a child wrote.
func (r *running) log(name string) string {
	content, _ := os.ReadFile(filepath.Join(r.dir, r.command, "logs", name+".log"))
	return string(content)
}

func linkLoadgen(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(filepath.Dir(self), "loadgen")
	require.NoError(t, os.Symlink(self, path))
	t.Cleanup(func() { _ = os.Remove(path) })
}

// It comes up and says where to look; what is killed comes back, and is named; and nothing is left behind.
func TestDynamo(t *testing.T) {
	linkLoadgen(t)
	r := runBooth(t, "dynamo", "--concurrency=120", "--engine=vllm")
	generator := r.says(&r.out, `load generator +(http://127\.0\.0\.1:\d+)/api/v1/status.*runs 120 concurrent conversations`)[1]
	frontend := r.says(&r.out, `frontend +(http://127\.0\.0\.1:\d+), metrics`)[1]
	prometheus := r.says(&r.out, `Prometheus +(http://127\.0\.0\.1:\d+)\n`)[1]
	r.says(&r.out, `worker-3 +http://127\.0\.0\.1:\d+/metrics\n`)
	r.says(&r.out, `logs +`+filepath.Join(r.dir, "dynamo", "logs"))
	r.says(&r.out, `Press Ctrl-C to stop`)

	args := r.log("loadgen")
	for _, arg := range []string{
		"--target-url=" + frontend, "--concurrency=120", "--start=true", "--mode-driver=pinned", "--mode-mode=kv",
		"--prometheus-url=" + prometheus, "--prometheus-namespace=dynamo-workload",
		"--deployment-kind=mocked", "--deployment-engine=mock of vllm", "--deployment-gpu=mock of H200",
		"--deployment-workers=3", "--baseline-default=h200x3-tp1-llama70b-fp8",
	} {
		assert.Contains(t, args, arg)
	}
	assert.ElementsMatch(t, []string{"dynamo-frontend", "dynamo-worker-1", "dynamo-worker-2", "dynamo-worker-3", "loadgen", "prometheus"}, r.pods())

	children := map[string]string{ // by their logs
		"loadgen": "the load generator", "worker-2": "worker-2", "frontend": "the frontend", "prometheus": "Prometheus",
	}
	for log, name := range children {
		pid, err := strconv.Atoi(regexp.MustCompile(`(?m)^pid (\d+)`).FindStringSubmatch(r.log(log))[1])
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		r.says(&r.err, strings.TrimPrefix(name, "the ")+` exited: signal: killed(.|\n)*restarting `+name+` in 1s`)
	}
	for _, name := range children {
		r.says(&r.err, name+` is running again`)
	}

	r.ends()
	for _, url := range []string{frontend + "/health", generator, prometheus} {
		_, err := http.Get(url)
		assert.ErrorIs(t, err, syscall.ECONNREFUSED, url)
	}
}

// pods are those that the configuration of Prometheus names.
func (r *running) pods() (pods []string) {
	r.t.Helper()
	config, err := os.ReadFile(filepath.Join(r.dir, r.command, "prometheus.yml"))
	require.NoError(r.t, err)
	for _, match := range regexp.MustCompile(`pod: (\S+)`).FindAllStringSubmatch(string(config), -1) {
		pods = append(pods, match[1])
	}
	return pods
}

// The demo is the same around the simulated cluster, with the addresses in every
// place that needs them.
func TestDemo(t *testing.T) {
	linkLoadgen(t)
	t.Setenv(local.GrafanaVariable, localtest.Grafana(t))
	r := runBooth(t, "demo", "--mode=round_robin", "--speculation=eagle3", "--engine=vllm", "--workers=2", "--seed=7", "--provisioning="+t.TempDir())
	r.says(&r.out, `2 workers simulating vllm on H200, router mode Round-robin. Simulated: not calibrated`)
	generator := r.says(&r.out, `load generator +(http://127\.0\.0\.1:\d+)/api/v1/status.*runs 60 concurrent conversations`)[1]
	frontend := r.says(&r.out, `cluster frontend +(http://127\.0\.0\.1:\d+), metrics`)[1]
	prometheus := r.says(&r.out, `Prometheus +(http://127\.0\.0\.1:\d+)\n`)[1]
	grafana := r.says(&r.out, `(?m)^  Grafana +(http://127\.0\.0\.1:\d+) \(start here; .*admin/admin`)[1]
	r.says(&r.err, `starting Prometheus and Grafana\n`)

	cluster, args, env := r.log("cluster"), r.log("loadgen"), r.log("grafana")
	for _, arg := range []string{"--mode=round_robin", "--speculation=eagle3", "--engine=vllm", "--workers=2", "--profile=h200-tp1", "--seed=7", "--speed=1"} {
		assert.Contains(t, cluster, arg)
	}
	for _, arg := range []string{
		"--target-url=" + frontend, "--prometheus-url=" + prometheus, "--mode-driver=simulated", "--mode-mode=round_robin",
		"--mode-speculation=eagle3", "--deployment-kind=simulated", "--deployment-engine=simulated vllm", "--deployment-gpu=simulated H200", "--deployment-workers=2", "--seed=7",
		"--deployment-block-size=32", "--deployment-max-batch-size=64", "--deployment-max-num-tokens=16384", "--deployment-kv-cache-dtype=fp8",
	} {
		assert.Contains(t, args, arg)
	}
	assert.Contains(t, env, "KVBOOTH_PROMETHEUS_URL="+prometheus+"\n")
	assert.Contains(t, env, "KVBOOTH_PROMETHEUS_UID=kvbooth-prometheus\n")
	assert.Contains(t, env, "KVBOOTH_SIDECAR_URL="+generator+"\n")
	assert.ElementsMatch(t, []string{
		"dynamo-frontend", "dynamo-worker-1", "dynamo-worker-2", "dcgm-exporter-1", "dcgm-exporter-2", "loadgen", "prometheus",
	}, r.pods())

	r.ends()
	for _, url := range []string{frontend, generator, prometheus, grafana} {
		_, err := http.Get(url)
		assert.ErrorIs(t, err, syscall.ECONNREFUSED, url)
	}
}

// With --twin there is a second cluster in another mode, whose series Prometheus labels with
// a namespace of their own.
func TestTwins(t *testing.T) {
	const target = "--twin-target-url=http://twin"
	demo, dynamo := &parse(t, []string{"demo", "--seed=7", "--twin"}).Demo, &parse(t, []string{"dynamo"}).Dynamo
	b := &booth{kind: demo, flags: demo.common(), cache: t.TempDir(), out: newScreen(t.Output(), t.Output())}
	b.ports.say = b.out.say
	const namespaced, mode = "--twin-prometheus-namespace=dynamo-workload-twin", "--twin-mode-mode=round_robin"
	assert.Subset(t, b.twinArgs("http://twin"), []string{target, namespaced, mode})
	assert.Subset(t, (&booth{kind: dynamo}).twinArgs("http://twin"), []string{target, namespaced, "--twin-mode-driver=pinned", mode})

	var err error
	b.backend, err = demo.newBackend(t.Context(), b)
	require.NoError(t, err)
	b.twin, err = demo.newTwin(t.Context(), b)
	require.NoError(t, err)
	cluster, ok := b.twin.(*simCluster)
	require.True(t, ok)
	args := []string{"--mode=round_robin", "--seed=8", "--pod-namespace=dynamo-workload-twin"}
	assert.Subset(t, cluster.Command.Args, args)
	assert.NotEqual(t, b.backend.addresses().frontend, b.twin.addresses().frontend)
	pods := map[string]string{}
	for _, target := range b.targets("loadgen:1", "prometheus:1") {
		pods[target.Labels["pod"]] = target.Labels["namespace"]
	}
	for pod, namespace := range map[string]string{
		"dynamo-frontend": "dynamo-workload", "dynamo-worker-3": "dynamo-workload", "dcgm-exporter-twin-3": "gpu-operator",
		"dynamo-frontend-twin": "dynamo-workload-twin", "dynamo-worker-twin-3": "dynamo-workload-twin",
	} {
		assert.Equal(t, namespace, pods[pod], pod)
	}
}

// What the load generator is told of the backend, and people in the heading.
func TestBackends(t *testing.T) {
	dynamo := &parse(t, []string{"dynamo", "--mode=round_robin"}).Dynamo
	assert.Subset(t, dynamo.loadgenArgs(), []string{"--mode-driver=manual", "--mode-offers=round_robin", "--mode-mode=round_robin"},
		"the frontend's own mode, which nothing switches")
	demo := &parse(t, []string{"demo", "--speed=20"}).Demo
	o, err := demo.simulation()
	require.NoError(t, err)
	assert.Contains(t, demo.heading(o), "timing fitted to h200x3-tp1-llama70b-fp8. It runs at 20 times real time")
	args := strings.Join(demo.loadgenArgs(), " ")
	assert.NotContains(t, args, "--baseline-default", "it is compared with nothing that was recorded")
	assert.Contains(t, args, "--deployment-engine=simulated 20 times as fast: trtllm")
}

// What an operator chose in the last run is forgotten, its logs are put aside, and
// a port that is taken is passed over.
func TestDemoOnceMore(t *testing.T) {
	linkLoadgen(t)
	dir := t.TempDir()
	folder := filepath.Join(dir, "demo")
	state, old := filepath.Join(folder, "cluster-state.json"), filepath.Join(folder, "logs", "cluster.log")
	require.NoError(t, os.MkdirAll(filepath.Dir(old), 0o700))
	require.NoError(t, errors.Join(os.WriteFile(state, []byte("{}"), 0o600), os.WriteFile(old, []byte("old"), 0o600)))
	port := processtest.Ports(t, 2)
	taken, err := net.Listen("tcp", process.Loopback(port))
	require.NoError(t, err)
	defer taken.Close()

	r := runBooth(t, "demo", "--no-start", "--cache-dir="+dir, fmt.Sprintf("--prometheus-port=%d", port))
	r.says(&r.err, fmt.Sprintf(`port %d is in use: Prometheus uses %d\n`, port, port+1))
	r.says(&r.out, `load generator.*waiting to be started(.|\n)*Ctrl-C`)
	args, err := os.ReadFile(filepath.Join(folder, "logs", "loadgen.log"))
	require.NoError(t, err)
	assert.Contains(t, string(args), "--start=false")
	assert.NoFileExists(t, state)
	aside, err := os.ReadFile(filepath.Join(folder, "logs.old", "cluster.log"))
	require.NoError(t, err)
	assert.Equal(t, "old", string(aside))
	r.ends()
}

// Without a Grafana that can run, the booth says so and goes on.
func TestBoothWithoutGrafana(t *testing.T) {
	linkLoadgen(t)
	notInstalled := func(context.Context) (local.Grafana, error) { return local.Grafana{}, local.ErrNoGrafana }
	for _, test := range []struct {
		intent, choice, says string
		prepare              func(t *testing.T)
	}{
		{"too old", "auto", `Grafana was not started: Grafana 11\.6\.0 in .* is too old`, func(t *testing.T) {
			t.Setenv(localtest.GrafanaVersion, "11.6.0")
		}},
		{"broken", "auto", `grafana is broken on purpose(.|\n)*continuing without Grafana`, func(t *testing.T) {
			t.Setenv(localtest.Broken, "grafana")
		}},
		{"not to be downloaded", "installed", `booth: Grafana is not installed\ncontinuing without Grafana`, func(*testing.T) {
			installedGrafana = notInstalled
		}},
		{"no download", "auto", `and downloading it failed: .*contains no SHA-256(.|\n)*continuing without Grafana`, func(t *testing.T) {
			installedGrafana = notInstalled
			localtest.MirrorWith(t, "", http.NotFound)
		}},
	} {
		t.Run(test.intent, func(t *testing.T) {
			t.Setenv(local.GrafanaVariable, localtest.Grafana(t))
			t.Cleanup(func() { installedGrafana = local.FindGrafana })
			test.prepare(t)
			r := runBooth(t, "demo", "--grafana="+test.choice, "--provisioning="+t.TempDir())
			r.says(&r.out, `Ctrl-C`)
			assert.Regexp(t, test.says, r.err.String()+r.out.String())
			assert.NotContains(t, r.out.String(), "start here")
			assert.Contains(t, r.out.String(), "page")
			r.ends()
		})
	}
}

// Where none is installed, one is downloaded.
func TestDemoDownloadsGrafana(t *testing.T) {
	linkLoadgen(t)
	installedGrafana = func(context.Context) (local.Grafana, error) { return local.Grafana{}, local.ErrNoGrafana }
	t.Cleanup(func() { installedGrafana = local.FindGrafana })
	localtest.Mirror(t, localtest.GrafanaArchive(t))
	r := runBooth(t, "demo", "--grafana=auto", "--provisioning="+t.TempDir())
	r.says(&r.out, `(?m)^  Grafana +(http://127\.0\.0\.1:\d+) \(start here`)
	assert.Contains(t, r.err.String(), "downloading Grafana "+local.GrafanaRelease)
	assert.DirExists(t, filepath.Join(r.dir, "grafana-"+local.GrafanaRelease))
	r.ends()
}

// What cannot run is given up, with its own words, and the rest is stopped.
func TestBoothGivesUp(t *testing.T) {
	linkLoadgen(t)
	t.Run("a worker that does not start", func(t *testing.T) {
		t.Setenv(localtest.Broken, "dynamo.mocker")
		r := runBooth(t, "dynamo")
		assert.Equal(t, failure, r.code())
		assert.Contains(t, r.err.String(), "dynamo.mocker is broken on purpose")
		assert.NotContains(t, r.err.String(), "is restarted", "it does not try again what cannot come")
	})
	t.Run("a load generator whose folder is in use", func(t *testing.T) {
		t.Setenv(locked, "yes")
		r := runBooth(t, "demo")
		assert.Equal(t, failure, r.code())
		assert.Contains(t, r.err.String(), "the data directory is in use")
		assert.NotContains(t, r.err.String(), "is restarted")
	})
}

// What the caller can mend is said before anything is started: exit code 2.
func TestBoothRefuses(t *testing.T) {
	refused := func(line, says string) {
		t.Helper()
		args := strings.Fields(line)
		r := runBooth(t, args[0], args[1:]...)
		assert.Equal(t, badInput, r.code(), line)
		assert.Contains(t, r.err.String(), says)
	}
	assert.Equal(t, badInput, run(t.Context(), t.Context(), nil, t.Output(), t.Output()))
	refused("demo", "go tool mage build") // there is no load generator yet
	linkLoadgen(t)
	for line, says := range map[string]string{
		"dynamo --workers=65":     "workers: 65 is not allowed: 1 to 64",
		"dynamo --mode=fast":      `--mode must be one of "kv","round_robin","least_loaded"`,
		"demo --profile=b200":     "profile: b200 is not allowed: h100-tp2, h100-tp4, h200-tp1",
		"demo --gpu-port=0":       "gpu-port: 0 is not allowed: 1 to 65535",
		"demo --provisioning=no/": "provisioning: no/ is not allowed: a directory",
	} {
		refused(line, says)
	}
	t.Setenv(refuses, "loadgen: concurrency: 0 is not allowed")
	refused("demo --concurrency=0", "booth: nothing was started: loadgen: concurrency: 0 is not allowed")
	t.Setenv(refuses, "")

	r := runBooth(t, "demo")
	r.says(&r.out, `Ctrl-C`)
	refused("demo --cache-dir="+r.dir, "another booth is running in "+r.dir)
	r.ends()
}

// Ctrl-C while it starts ends it too, and is no failure.
func TestBoothStoppedEarly(t *testing.T) {
	linkLoadgen(t)
	t.Setenv(localtest.Hangs, "dynamo.frontend")
	r := runBooth(t, "dynamo")
	r.says(&r.err, `starting NVIDIA Dynamo`)
	r.ends()
}

// The second Ctrl-C kills what goes on, however long it may take to end.
func TestBoothHurries(t *testing.T) {
	linkLoadgen(t)
	stopWithin = time.Hour
	t.Cleanup(func() { stopWithin = 10 * time.Second })
	t.Setenv(goesOn, "yes")
	r := runBooth(t, "demo")
	r.says(&r.out, `Ctrl-C`)
	r.stop()
	wait.Eventually(t, "the load generator is asked", func() (any, bool) {
		return r.log("loadgen"), strings.Contains(r.log("loadgen"), "asked")
	})
	r.kill()
	assert.Equal(t, success, r.code())
}

// What is waited for is mentioned now and then where there is no terminal.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errOut output.Buffer
		done := newScreen(&out, &errOut).waiting(func() string { return "Grafana" })
		wait.Advance(2*remindEvery + time.Millisecond)
		done()
		assert.Equal(t, "booth: waiting for Grafana, 10s so far\nbooth: waiting for Grafana, 20s so far\n", errOut.String())
	})
}

// Ports come in a row, and none twice.
func TestPorts(t *testing.T) {
	var said []string
	p := ports{say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	port := processtest.Ports(t, 5)
	for _, row := range []struct{ wanted, n, want int }{{port, 3, port}, {port + 1, 2, port + 3}} {
		first, err := p.take("one", row.wanted, row.n)
		require.NoError(t, err)
		assert.Equal(t, row.want, first)
	}
	assert.Equal(t, []string{fmt.Sprintf("port %d is in use: one uses %d", port+1, port+3)}, said)
	_, err := p.take("too many", 65535, 2)
	assert.ErrorContains(t, err, "are needed")
}
