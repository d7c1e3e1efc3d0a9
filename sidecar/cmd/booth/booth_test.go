//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/booth/local/localtest"
)

func TestMain(m *testing.M) {
	localtest.Main()
	if filepath.Base(os.Args[0]) == "loadgen" {
		os.Exit(playLoadgen(os.Args[1:]))
	}
	if len(os.Args) > 1 && (os.Args[1] == "cluster" || os.Args[1] == "prometheus") {
		os.Exit(playServer(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// Variables that make a played program misbehave.
const (
	refuses = "BOOTHTEST_REFUSES" // the load generator's `check` fails with this message
	locked  = "BOOTHTEST_LOCKED"  // the load generator ends with 2
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

// playServer stands in for a program that answers whatever it is asked on the
// first address that its flags name.
func playServer(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var address string
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--listen="); ok {
			address = value
		}
		if value, ok := strings.CutPrefix(arg, "--port="); ok {
			address = "127.0.0.1:" + value
		}
	}
	fmt.Println("pid", os.Getpid(), strings.Join(args, " "))
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

// soon is when every condition has come true even on a machine that is busy: under the race
// detector a booth computes for seconds before it starts anything.
const soon = time.Minute

// runBooth starts a booth with played programs, on free ports, without Grafana
// unless there is a played one.
func runBooth(t *testing.T, command string, more ...string) *running {
	t.Helper()
	t.Setenv(local.VenvVariable, localtest.Venv(t))
	t.Setenv("TMPDIR", t.TempDir())
	r := &running{t: t, command: command, dir: t.TempDir(), ended: make(chan int, 1)}
	ctx, stop := context.WithCancel(t.Context())
	killCtx, kill := context.WithCancel(context.Background())
	r.stop, r.kill = stop, kill
	args := []string{command, "--cache-dir=" + r.dir}
	if os.Getenv(local.GrafanaVariable) == "" {
		args = append(args, "--grafana=off")
	}
	port := 10_000 + rand.IntN(15_000)
	for i, flag := range []string{"frontend", "worker", "prometheus", "grafana", "gpu"} {
		if command == "demo" || flag != "gpu" {
			args = append(args, fmt.Sprintf("--%s-port=%d", flag, port+10*i))
		}
	}
	args = append(append(args, fmt.Sprintf("--port=%d", port+60)), more...)
	go func() { r.ended <- run(ctx, killCtx, args, &r.out, &r.err) }()
	t.Cleanup(kill)
	return r
}

// says waits until the booth has written what matches, and gives the match.
func (r *running) says(b *output.Buffer, pattern string) []string {
	r.t.Helper()
	expression := regexp.MustCompile(pattern)
	var match []string
	require.Eventually(r.t, func() bool {
		match = expression.FindStringSubmatch(b.String())
		return match != nil
	}, soon, 10*time.Millisecond, "%s\n%s", &r.out, &r.err)
	return match
}

// code waits for the booth's end.
func (r *running) code() int {
	r.t.Helper()
	select {
	case code := <-r.ended:
		return code
	case <-time.After(soon):
		r.t.Fatalf("it does not end: %s\n%s", &r.out, &r.err)
		return 0
	}
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

// It comes up, says where to look, and leaves nothing behind.
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
	linkLoadgen(t)
	for command, more := range map[string]struct{ flags, loadgen, cluster []string }{
		"demo": {
			[]string{"--seed=7", "--workers=2"},
			[]string{"--mode-driver=simulated", "--twin-mode-mode=round_robin"},
			[]string{"--mode=round_robin", "--seed=8", "--workers=2", "--pod-namespace=dynamo-workload-twin"},
		},
		"dynamo": {[]string{"--workers=2"}, []string{"--mode-mode=kv", "--twin-mode-driver=pinned", "--twin-mode-mode=round_robin"}, nil},
	} {
		r := runBooth(t, command, append(more.flags, "--twin", "--no-start")...)
		twin := r.says(&r.out, `frontend, twin +(http://127\.0\.0\.1:\d+), metrics`)[1]
		r.says(&r.out, `Press Ctrl-C to stop`)
		args, pods := r.log("loadgen"), r.pods()
		for _, arg := range append(more.loadgen, "--twin-target-url="+twin, "--twin-prometheus-namespace=dynamo-workload-twin") {
			assert.Contains(t, args, arg)
		}
		assert.NotContains(t, args, "--target-url="+twin+" ")
		for _, arg := range more.cluster {
			assert.Contains(t, r.log("cluster-twin"), arg)
		}
		assert.Subset(t, pods, []string{"dynamo-frontend", "dynamo-worker-1", "dynamo-worker-2", "dynamo-frontend-twin", "dynamo-worker-twin-1", "dynamo-worker-twin-2"})
		config, err := os.ReadFile(filepath.Join(r.dir, command, "prometheus.yml"))
		require.NoError(t, err)
		assert.Equal(t, 3, strings.Count(string(config), "namespace: dynamo-workload-twin"), "of the frontend and two workers")
		r.ends()
		_, err = http.Get(twin)
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
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
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port

	r := runBooth(t, "demo", "--no-start", "--cache-dir="+dir, fmt.Sprintf("--prometheus-port=%d", port))
	r.says(&r.err, fmt.Sprintf(`port %d is in use: Prometheus uses \d+\n`, port))
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
	home := localtest.Grafana(t)
	t.Setenv(local.GrafanaVariable, home)
	for _, test := range []struct{ intent, variable, value, says string }{
		{"too old", localtest.GrafanaVersion, "11.6.0", "Grafana was not started: Grafana 11.6.0 in " + home + " is too old"},
		{"elsewhere", local.GrafanaVariable, t.TempDir(), "Grafana was not started: GRAFANA_HOME is .*which is not a Grafana directory"},
		{"broken", localtest.Broken, "grafana", `grafana is broken on purpose(.|\n)*continuing without Grafana`},
	} {
		t.Run(test.intent, func(t *testing.T) {
			t.Setenv(test.variable, test.value)
			r := runBooth(t, "demo", "--provisioning="+t.TempDir())
			r.says(&r.out, `Ctrl-C`)
			assert.Regexp(t, test.says, r.out.String()+r.err.String())
			assert.NotContains(t, r.out.String(), "start here")
			r.ends()
		})
	}
}

// Where none is installed, one is downloaded; where that is not wanted or does not
// work, the booth goes on.
func TestDemoDownloadsGrafana(t *testing.T) {
	linkLoadgen(t)
	installedGrafana = func(context.Context) (local.Grafana, error) { return local.Grafana{}, local.ErrNoGrafana }
	t.Cleanup(func() { installedGrafana = local.FindGrafana })
	localtest.Mirror(t, localtest.GrafanaArchive(t))
	r := runBooth(t, "demo", "--grafana=auto", "--provisioning="+t.TempDir())
	r.says(&r.out, `(?m)^  Grafana +(http://127\.0\.0\.1:\d+) \(start here`)
	assert.Contains(t, r.err.String(), "Grafana is not installed: downloading version "+local.GrafanaRelease)
	assert.DirExists(t, filepath.Join(r.dir, "grafana-"+local.GrafanaRelease))
	r.ends()

	localtest.MirrorWith(t, "", http.NotFound)
	for choice, says := range map[string]string{
		"auto":      `and downloading it failed: download Grafana 12\.\S+: .*contains no SHA-256(.|\n)*continuing without Grafana(.|\n)*Everything runs without Grafana`,
		"installed": `booth: Grafana is not installed\ncontinuing without Grafana`,
	} {
		r := runBooth(t, "demo", "--grafana="+choice)
		r.says(&r.out, `Ctrl-C`)
		assert.Regexp(t, says, r.err.String()+r.out.String())
		assert.Contains(t, r.out.String(), "page")
		r.ends()
	}
}

// What is killed comes back, and is named.
func TestBoothRestartsWhatEnds(t *testing.T) {
	linkLoadgen(t)
	t.Setenv(local.GrafanaVariable, localtest.Grafana(t))
	for command, children := range map[string]map[string]string{ // by their logs
		"dynamo": {"loadgen": "the load generator", "worker-2": "worker-2", "frontend": "the frontend"},
		"demo": {
			"cluster": "the simulated cluster", "prometheus": "Prometheus", "grafana": "Grafana", "loadgen": "the load generator",
		},
	} {
		t.Run(command, func(t *testing.T) {
			r := runBooth(t, command, "--provisioning="+t.TempDir())
			r.says(&r.out, `Ctrl-C`)
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
		})
	}
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
	refused("demo", "go tool mage build") // there is no load generator yet
	linkLoadgen(t)
	for line, says := range map[string]string{
		"dynamo --workers=65":       "workers: 65 is not allowed: 1 to 64",
		"dynamo --mode=fast":        `--mode must be one of "kv","round_robin","least_loaded"`,
		"demo --profile=b200":       "profile: b200 is not allowed: h100-tp2, h100-tp4, h200-tp1",
		"demo --mode=fast":          "mode: fast is not allowed: [kv round_robin least_loaded]",
		"demo --workers=1025":       "workers: 1025 is not allowed: 1 to 1024",
		"demo --speculation=medusa": "speculation: medusa is not allowed",
		"demo --speed=0":            "speed: 0 is not allowed",
		"demo --gpu-port=0":         "gpu-port: 0 is not allowed: 1 to 65535",
		"demo --provisioning=no/":   "provisioning: no/ is not allowed: a directory",
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

// The second Ctrl-C waits for nobody.
func TestBoothHurries(t *testing.T) {
	linkLoadgen(t)
	r := runBooth(t, "demo")
	r.says(&r.out, `Ctrl-C`)
	r.kill()
	r.stop()
	began := time.Now()
	assert.Equal(t, success, r.code())
	assert.Less(t, time.Since(began), stopWithin)
}

func TestHelp(t *testing.T) {
	var out, errOut output.Buffer
	assert.Equal(t, success, run(t.Context(), t.Context(), []string{"dynamo", "--help"}, &out, &errOut))
	for _, words := range []string{"--concurrency=60", "--[no-]start", "KVBOOTH_DYNAMO_VENV", "LOADGEN_TURNS_MAX"} {
		assert.Contains(t, out.String(), words)
	}
	assert.Equal(t, badInput, run(t.Context(), t.Context(), nil, &out, &errOut))
}

// What is waited for is mentioned now and then where there is no terminal.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errOut output.Buffer
		done := newScreen(&out, &errOut).waiting(func() string { return "Grafana" })
		time.Sleep(2*remindEvery + time.Millisecond)
		done()
		assert.Equal(t, "booth: waiting for Grafana, 10s so far\nbooth: waiting for Grafana, 20s so far\n", errOut.String())
	})
}

// Ports come in a row, and none twice.
func TestPorts(t *testing.T) {
	var said []string
	p := ports{say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	first, err := p.take("one", 21000, 3)
	require.NoError(t, err)
	second, err := p.take("another", first+1, 2)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, second, first+3)
	assert.Contains(t, said, fmt.Sprintf("port %d is in use: another uses %d", first+1, second))
	_, err = p.take("too many", 65535, 2)
	assert.ErrorContains(t, err, "are needed")
}
