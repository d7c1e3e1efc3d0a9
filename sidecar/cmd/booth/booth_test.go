//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
		os.Exit(fakeLoadgen(os.Args[1:]))
	case "prometheus":
		os.Exit(fakePrometheus(os.Args[1:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "cluster" {
		os.Exit(fakeServer(os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// Environment variables that make a fake program misbehave.
const (
	refuses     = "BOOTHTEST_REFUSES"      // the load generator's `check` fails with this message
	locked      = "BOOTHTEST_LOCKED"       // the load generator exits with 2
	ignoresTerm = "BOOTHTEST_IGNORES_TERM" // the load generator prints "stopping" at SIGTERM, but does not exit
)

// fakeLoadgen is the load generator's main function in a fake load generator.
func fakeLoadgen(args []string) int {
	if args[0] == "check" {
		if message := os.Getenv(refuses); message != "" {
			fmt.Fprintln(os.Stderr, message)
			return 2
		}
		return 0
	}
	if os.Getenv(locked) != "" {
		fmt.Fprintln(os.Stderr, "loadgen: the data directory is in use")
		return 2
	}
	return fakeServer(args)
}

// fakePrometheus is the main function of a fake Prometheus.
func fakePrometheus(args []string) int {
	if args[0] == "--version" {
		fmt.Println("prometheus, version", local.OldestPrometheus)
		return 0
	}
	return fakeServer(args)
}

// fakeServer answers every request with 200, at the first address that its flags name, until SIGTERM.
func fakeServer(args []string) int {
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
	fmt.Printf("pid %d\n%s\n", os.Getpid(), strings.Join(args, "\n"))
	if os.Getenv(ignoresTerm) != "" && filepath.Base(os.Args[0]) == "loadgen" {
		context.AfterFunc(ctx, func() { fmt.Println("stopping") })
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

// running is a booth that runs within the test, with fake programs.
type running struct {
	t          *testing.T
	command    string
	dir        string
	out, err   output.Buffer
	stop, kill context.CancelFunc
	ended      chan int
}

// runBooth starts a booth with fake programs on free ports. Grafana is off unless local.GrafanaVariable is set.
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

// prints waits until the booth's output matches a pattern, and returns the submatches.
func (r *running) prints(b *output.Buffer, pattern string) (match []string) {
	r.t.Helper()
	expression := regexp.MustCompile(pattern)
	wait.Eventually(r.t, pattern, func() (any, bool) {
		match = expression.FindStringSubmatch(b.String())
		return r.out.String() + r.err.String(), match != nil
	})
	return match
}

// code waits until the booth ends, and returns its exit code.
func (r *running) code() int {
	r.t.Helper()
	return wait.Receive(r.t, "the booth ends", r.ended)
}

// ends stops the booth, as Ctrl-C does, and requires success, and that nothing listens at these URLs any more.
func (r *running) ends(urls ...string) {
	r.t.Helper()
	r.stop()
	assert.Equal(r.t, success, r.code())
	for _, url := range urls {
		_, err := http.Get(url)
		assert.ErrorIs(r.t, err, syscall.ECONNREFUSED, url)
	}
}

// log returns the output of a child process.
func (r *running) log(name string) string {
	content, _ := os.ReadFile(filepath.Join(r.dir, r.command, "logs", name+".log"))
	return string(content)
}

// lines returns the lines of a child's output, which include its arguments or its environment.
func (r *running) lines(name string) []string { return strings.Split(r.log(name), "\n") }

func linkLoadgen(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(filepath.Dir(self), "loadgen")
	require.NoError(t, os.Symlink(self, path))
	t.Cleanup(func() { _ = os.Remove(path) })
}

func TestDynamoBoothRestartsKilledParts(t *testing.T) {
	linkLoadgen(t)
	r := runBooth(t, "dynamo", "--concurrency=120", "--engine=vllm")
	generator := r.prints(&r.out,
		`load generator +(http://127\.0\.0\.1:\d+)/api/v1/status.*runs 120 concurrent conversations`)[1]
	frontend := r.prints(&r.out, `frontend +(http://127\.0\.0\.1:\d+), metrics`)[1]
	prometheus := r.prints(&r.out, `Prometheus +(http://127\.0\.0\.1:\d+)\n`)[1]
	r.prints(&r.out, `worker-3 +http://127\.0\.0\.1:\d+/metrics\n`)
	r.prints(&r.out, `logs +`+filepath.Join(r.dir, "dynamo", "logs"))
	r.prints(&r.out, `Press Ctrl-C to stop`)

	assert.Subset(t, r.lines("loadgen"), []string{
		"--target-url=" + frontend, "--concurrency=120", "--start=true", "--mode-driver=pinned", "--mode-mode=kv",
		"--prometheus-url=" + prometheus, "--prometheus-namespace=dynamo-workload",
		"--deployment-kind=mocked", "--deployment-engine=mock of vllm", "--deployment-gpu=mock of H200",
		"--deployment-workers=3", "--default-baseline=h200x3-tp1-llama70b-fp8",
	})
	assert.ElementsMatch(t,
		[]string{"dynamo-frontend", "dynamo-worker-1", "dynamo-worker-2", "dynamo-worker-3", "loadgen", "prometheus"},
		r.pods())

	children := map[string]string{ // by their logs
		"loadgen": "the load generator", "worker-2": "worker-2", "frontend": "the frontend", "prometheus": "Prometheus",
	}
	for log, name := range children {
		pid, err := strconv.Atoi(regexp.MustCompile(`(?m)^pid (\d+)`).FindStringSubmatch(r.log(log))[1])
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		r.prints(&r.err, strings.TrimPrefix(name, "the ")+` exited: signal: killed(.|\n)*restarting `+name+` in 1s`)
	}
	for _, name := range children {
		r.prints(&r.err, name+` is running again`)
	}

	r.ends(frontend, generator, prometheus)
}

// pods returns the pods that the configuration of Prometheus names.
func (r *running) pods() (pods []string) {
	r.t.Helper()
	config, err := os.ReadFile(filepath.Join(r.dir, r.command, "prometheus.yml"))
	require.NoError(r.t, err)
	for _, match := range regexp.MustCompile(`pod: (\S+)`).FindAllStringSubmatch(string(config), -1) {
		pods = append(pods, match[1])
	}
	return pods
}

func notInstalled(context.Context) (local.Grafana, error) { return local.Grafana{}, local.ErrNoGrafana }

func TestDemoPassesAddressesToAllParts(t *testing.T) {
	linkLoadgen(t)
	installedGrafana = notInstalled
	t.Cleanup(func() { installedGrafana = local.FindGrafana })
	localtest.Mirror(t, localtest.GrafanaArchive(t))
	r := runBooth(t, "demo", "--mode=round_robin", "--speculation=eagle3", "--engine=vllm", "--workers=2", "--seed=7",
		"--grafana=auto", "--provisioning="+t.TempDir())
	r.prints(&r.out, `2 workers simulating vllm on H200, router mode Round-robin. Simulated: not calibrated`)
	generator := r.prints(&r.out,
		`load generator +(http://127\.0\.0\.1:\d+)/api/v1/status.*runs 60 concurrent conversations`)[1]
	frontend := r.prints(&r.out, `cluster frontend +(http://127\.0\.0\.1:\d+), metrics`)[1]
	prometheus := r.prints(&r.out, `Prometheus +(http://127\.0\.0\.1:\d+)\n`)[1]
	grafana := r.prints(&r.out, `(?m)^  Grafana +(http://127\.0\.0\.1:\d+) \(start here; .*admin/admin`)[1]
	r.prints(&r.err, `starting Prometheus and Grafana\n`)

	assert.Contains(t, r.err.String(), "downloading Grafana "+local.GrafanaRelease)
	assert.DirExists(t, filepath.Join(r.dir, "grafana-"+local.GrafanaRelease))
	assert.Subset(t, r.lines("cluster"), []string{
		"--mode=round_robin", "--speculation=eagle3", "--engine=vllm", "--workers=2", "--profile=h200-tp1", "--seed=7",
		"--speed=1",
	})
	assert.Subset(t, r.lines("loadgen"), []string{
		"--target-url=" + frontend, "--prometheus-url=" + prometheus, "--mode-driver=simulated", "--mode-mode=round_robin",
		"--mode-speculation=eagle3", "--deployment-kind=simulated", "--deployment-engine=simulated vllm",
		"--deployment-gpu=simulated H200", "--deployment-workers=2", "--seed=7",
		"--deployment-block-size=32", "--deployment-max-batch-size=64", "--deployment-max-num-tokens=16384",
		"--deployment-kv-cache-dtype=fp8",
	})
	assert.Subset(t, r.lines("grafana"), []string{
		"KVBOOTH_PROMETHEUS_URL=" + prometheus, "KVBOOTH_PROMETHEUS_UID=kvbooth-prometheus",
		"KVBOOTH_SIDECAR_URL=" + generator,
	})
	assert.ElementsMatch(t, []string{
		"dynamo-frontend", "dynamo-worker-1", "dynamo-worker-2", "dcgm-exporter-1", "dcgm-exporter-2", "loadgen",
		"prometheus",
	}, r.pods())

	r.ends(frontend, generator, prometheus, grafana)
}

func TestTwinHasOwnNamespace(t *testing.T) {
	const target = "--twin-target-url=http://twin"
	demo, dynamo := &parse(t, []string{"demo", "--seed=7", "--twin"}).Demo, &parse(t, []string{"dynamo"}).Dynamo
	b := &booth{kind: demo, flags: demo.common(), cache: t.TempDir(), out: newScreen(t.Output(), t.Output())}
	b.ports.say = b.out.say
	const namespaced, mode = "--twin-prometheus-namespace=dynamo-workload-twin", "--twin-mode-mode=round_robin"
	assert.Subset(t, b.twinArgs("http://twin"), []string{target, namespaced, mode})
	assert.Subset(t, (&booth{kind: dynamo}).twinArgs("http://twin"),
		[]string{target, namespaced, "--twin-mode-driver=pinned", mode})

	var err error
	b.backend, err = demo.newBackend(t.Context(), b)
	require.NoError(t, err)
	b.twin, err = demo.newTwin(t.Context(), b)
	require.NoError(t, err)
	cluster, ok := b.twin.(*simCluster)
	require.True(t, ok)
	assert.Subset(t, cluster.Command.Args,
		[]string{"--mode=round_robin", "--seed=8", "--pod-namespace=dynamo-workload-twin"})
	assert.NotEqual(t, b.backend.addresses().frontend, b.twin.addresses().frontend)
	pods := map[string]string{}
	for _, target := range b.targets("loadgen:1", "prometheus:1") {
		pods[target.Labels["pod"]] = target.Labels["namespace"]
	}
	assert.Subset(t, pods, map[string]string{
		"dynamo-frontend": "dynamo-workload", "dynamo-worker-3": "dynamo-workload", "dcgm-exporter-twin-3": "gpu-operator",
		"dynamo-frontend-twin": "dynamo-workload-twin", "dynamo-worker-twin-3": "dynamo-workload-twin",
	})
}

func TestBackendsDescribeThemselves(t *testing.T) {
	for mode, want := range map[string][]string{
		"kv":           {"--mode-driver=pinned", "--mode-mode=kv"},
		"least_loaded": {"--mode-driver=manual", "--mode-offers=least_loaded", "--mode-mode=least_loaded"},
		"power_of_two": {"--arms=power_of_two"},
		"direct":       {"--mode-driver=pinned", "--mode-offers=round_robin", "--mode-mode=round_robin"},
	} {
		dynamo := &parse(t, []string{"dynamo", "--mode=" + mode, "--frontend-arg=--a=b,c"}).Dynamo
		assert.Subset(t, dynamo.loadgenArgs(), want)
		assert.Equal(t, strings.ReplaceAll(mode, "_", "-"), dynamo.options().Mode)
		assert.Equal(t, []string{"--a=b,c"}, dynamo.options().FrontendArgs)
	}
	demo := &parse(t, []string{"demo", "--speed=20"}).Demo
	o, err := demo.simulation()
	require.NoError(t, err)
	assert.Contains(t, demo.heading(o), "timing fitted to h200x3-tp1-llama70b-fp8. It runs at 20 times real time")
	args := strings.Join(demo.loadgenArgs(), " ")
	assert.NotContains(t, args, "--default-baseline", "a faster run is not compared with a recording")
	assert.Contains(t, args, "--deployment-engine=simulated 20 times as fast: trtllm")
}

func TestDemoResetsStateAndKeepsOldLogs(t *testing.T) {
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
	r.prints(&r.err, fmt.Sprintf(`port %d is in use: Prometheus uses %d\n`, port, port+1))
	r.prints(&r.out, `load generator.*waiting to be started(.|\n)*Ctrl-C`)
	args, err := os.ReadFile(filepath.Join(folder, "logs", "loadgen.log"))
	require.NoError(t, err)
	assert.Contains(t, string(args), "--start=false")
	assert.NoFileExists(t, state)
	kept, err := os.ReadFile(filepath.Join(folder, "logs.old", "cluster.log"))
	require.NoError(t, err)
	assert.Equal(t, "old", string(kept))
	r.ends()
}

func TestBoothContinuesWithoutGrafana(t *testing.T) {
	linkLoadgen(t)
	for _, test := range []struct {
		intent, choice, output string
		prepare                func(t *testing.T)
	}{
		{"too old", "auto", `Grafana was not started: Grafana 11\.6\.0 in .* is too old`, func(t *testing.T) {
			t.Setenv(localtest.GrafanaVersion, "11.6.0")
		}},
		{"broken", "auto", `grafana is broken on purpose(.|\n)*continuing without Grafana`, func(t *testing.T) {
			t.Setenv(localtest.Broken, "grafana")
		}},
		{"not to be downloaded", "installed", `Grafana is not installed\ncontinuing without Grafana`, func(*testing.T) {
			installedGrafana = notInstalled
		}},
		{"no download", "auto", `downloading it failed: .*contains no SHA-256(.|\n)*continuing without`, func(t *testing.T) {
			installedGrafana = notInstalled
			localtest.MirrorWith(t, "", http.NotFound)
		}},
	} {
		t.Run(test.intent, func(t *testing.T) {
			t.Setenv(local.GrafanaVariable, localtest.Grafana(t))
			t.Cleanup(func() { installedGrafana = local.FindGrafana })
			test.prepare(t)
			r := runBooth(t, "demo", "--grafana="+test.choice, "--provisioning="+t.TempDir())
			r.prints(&r.out, `Ctrl-C`)
			assert.Regexp(t, test.output, r.err.String()+r.out.String())
			assert.NotContains(t, r.out.String(), "start here")
			assert.Contains(t, r.out.String(), "page")
			r.ends()
		})
	}
}

func TestBoothStopsAfterFailedStart(t *testing.T) {
	linkLoadgen(t)
	for _, row := range []struct{ command, variable, value, message string }{
		{"dynamo", localtest.Broken, "dynamo.mocker", `worker-\d exited before it was ready(.|\n)*is broken on purpose`},
		{"demo", locked, "yes", "the data directory is in use"},
	} {
		t.Run(row.command, func(t *testing.T) {
			t.Setenv(row.variable, row.value)
			r := runBooth(t, row.command)
			assert.Equal(t, failure, r.code())
			assert.Regexp(t, row.message, r.err.String())
			assert.NotContains(t, r.err.String(), "restarting", "a part that cannot start is not restarted")
		})
	}
}

func TestBoothHelpOfCommand(t *testing.T) {
	for line, want := range map[string]string{
		"help": "Usage: booth <command>", "help demo": "Usage: booth demo", "demo --help": "Usage: booth demo",
	} {
		var out output.Buffer
		assert.Equal(t, success, run(t.Context(), t.Context(), strings.Fields(line), &out, &out), line)
		assert.Contains(t, out.String(), want)
	}
}

func TestBoothRejectsBadInputBeforeStart(t *testing.T) {
	refused := func(line, message string) {
		t.Helper()
		args := strings.Fields(line)
		r := runBooth(t, args[0], args[1:]...)
		assert.Equal(t, badInput, r.code(), line)
		assert.Contains(t, r.err.String(), message)
	}
	assert.Equal(t, badInput, run(t.Context(), t.Context(), nil, t.Output(), t.Output()))
	refused("demo", "go tool mage build") // there is no load generator yet
	linkLoadgen(t)
	for line, message := range map[string]string{
		"dynamo --workers=65":     "workers: 65 is not allowed: 1 to 64",
		"dynamo --mode=fast":      `--mode must be one of "kv","round_robin","least_loaded","random","power_of_two"`,
		"demo --profile=b200":     "profile: b200 is not allowed: h100-tp2, h100-tp4, h200-tp1",
		"demo --gpu-port=0":       "gpu-port: 0 is not allowed: 1 to 65535",
		"demo --provisioning=no/": "provisioning: no/ is not allowed: a directory",
	} {
		refused(line, message)
	}
	t.Setenv(refuses, "loadgen: concurrency: 0 is not allowed")
	refused("demo --concurrency=0", "booth: nothing was started: loadgen: concurrency: 0 is not allowed")
	t.Setenv(refuses, "")

	r := runBooth(t, "demo")
	r.prints(&r.out, `Ctrl-C`)
	refused("demo --cache-dir="+r.dir, "another booth is running in "+r.dir)
	r.ends()
}

func TestInterruptDuringStartIsSuccess(t *testing.T) {
	linkLoadgen(t)
	t.Setenv(localtest.Hangs, "dynamo.frontend")
	r := runBooth(t, "dynamo")
	r.prints(&r.err, `starting NVIDIA Dynamo`)
	r.ends()
}

func TestSecondInterruptKills(t *testing.T) {
	linkLoadgen(t)
	stopTimeout = time.Hour
	t.Cleanup(func() { stopTimeout = 10 * time.Second })
	t.Setenv(ignoresTerm, "yes")
	r := runBooth(t, "demo")
	r.prints(&r.out, `Ctrl-C`)
	r.stop()
	wait.Eventually(t, "the load generator gets SIGTERM", func() (any, bool) {
		return r.log("loadgen"), strings.Contains(r.log("loadgen"), "stopping")
	})
	r.kill()
	assert.Equal(t, success, r.code())
}

func TestWaitingIsLoggedWithoutTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errOut output.Buffer
		done := newScreen(&out, &errOut).waiting(func() string { return "Grafana" })
		wait.Advance(2*remindInterval + time.Millisecond)
		done()
		assert.Equal(t, "booth: waiting for Grafana, 10s so far\nbooth: waiting for Grafana, 20s so far\n", errOut.String())
	})
}

func TestPortsAreConsecutiveAndUnique(t *testing.T) {
	var messages []string
	p := ports{say: func(format string, args ...any) { messages = append(messages, fmt.Sprintf(format, args...)) }}
	port := processtest.Ports(t, 5)
	for _, row := range []struct{ wanted, n, want int }{{port, 3, port}, {port + 1, 2, port + 3}} {
		first, err := p.take("one", row.wanted, row.n)
		require.NoError(t, err)
		assert.Equal(t, row.want, first)
	}
	assert.Equal(t, []string{fmt.Sprintf("port %d is in use: one uses %d", port+1, port+3)}, messages)
	_, err := p.take("too many", 65535, 2)
	assert.ErrorContains(t, err, "are needed")
}

func TestBoothStartsRestAfterItsBuild(t *testing.T) {
	linkLoadgen(t)
	t.Setenv(local.GrafanaVariable, localtest.Grafana(t))
	dir := t.TempDir()
	fifo, script := filepath.Join(dir, "end"), filepath.Join(dir, "build")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	content := fmt.Sprintf("#!/bin/sh\necho 40 s: compiled 7 of 9 packages\nread -r code < %s\nexit $code\n", fifo)
	require.NoError(t, os.WriteFile(script, []byte(content), 0o700))
	for code, output := range map[int]string{0: "", 1: `the build exited: exit status 1(.|\n)*compiled 7 of 9 packages`} {
		t.Run(fmt.Sprintf("exit code %d", code), func(t *testing.T) {
			r := runBooth(t, "demo", "--build="+script, "--provisioning="+t.TempDir())
			prometheus := r.prints(&r.out, `Prometheus +(http://127\.0\.0\.1:\d+) \(being built\)`)[1]
			r.prints(&r.out, `start when they are built(.|\n)*Ctrl-C`)
			assert.Contains(t, r.log("loadgen"), "--prometheus-url="+prometheus)
			assert.Empty(t, r.log("prometheus"))
			wait.Eventually(t, "the addresses respond with the progress", func() (any, bool) {
				answer := body(t, prometheus+"/api/v1/query")
				return answer, answer == `{"error":"Prometheus and Grafana start when they are built: `+
					`40 s: compiled 7 of 9 packages","errorType":"unavailable","status":"error"}`
			})

			require.NoError(t, os.WriteFile(fifo, fmt.Appendln(nil, code), 0))
			grafana := r.prints(&r.out, `Grafana +(http://127\.0\.0\.1:\d+) \(start here`)[1]
			r.prints(&r.err, output)
			assert.Contains(t, r.log("grafana"), "KVBOOTH_PROMETHEUS_URL="+prometheus+"\n")
			assert.Empty(t, body(t, prometheus), "Prometheus has taken its address")
			r.ends(prometheus, grafana)
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		r := runBooth(t, "demo", "--build="+script)
		r.prints(&r.out, `start when they are built(.|\n)*Ctrl-C`)
		r.ends()
	})
}

// body returns the body of a response.
func body(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return strings.TrimSpace(string(text))
}
