package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/sim"
)

// The namespaces of the clusters' pods. As Prometheus labels, they separate the series of the two clusters.
var (
	namespace     = httpd.DefaultPods.Namespace
	twinNamespace = namespace + "-twin"
	workerPod     = httpd.DefaultPods.Name
)

// newLoadgen describes the load generator. On a terminal it writes its status line to the screen, otherwise it writes
// a log.
func (b *booth) newLoadgen(address string) (*service, error) {
	path, err := loadgenPath()
	if err != nil {
		return nil, err
	}
	args := b.loadgenArgs("http://"+b.backend.addresses().frontend, "http://"+b.prometheusAt, address)
	if b.twin != nil {
		args = append(args, b.twinArgs("http://"+b.twin.addresses().frontend)...)
	}
	url := "http://" + address
	s := b.newService("the load generator", url, "/healthz", readyTimeout, process.Command{
		Name: "load generator", Path: path, Args: args, Log: b.log("loadgen"), Env: environment(b.defaults()...),
	})
	if b.out.terminal != nil {
		s.Command.Output = b.out.terminal
		s.Command.Env = environment(append(b.defaults(), "LOADGEN_LOG_LEVEL=warn")...)
	}
	return s, nil
}

// defaults are settings that environment variables can override: the workload, the title of the screens, and the
// vendor.
func (b *booth) defaults() []string {
	return []string{
		"LOADGEN_PRESET=demo",
		"LOADGEN_TITLE=Serve more users on the same GPUs with KV-aware routing",
		"LOADGEN_VENDOR=" + string(b.kind.vendor()),
		"LOADGEN_SLIDER_INCREMENT=20", // so that the levels are those of the recorded results with all figures
	}
}

// environment returns the environment of this process, with defaults ("NAME=value") for unset variables.
func environment(defaults ...string) []string {
	all := os.Environ()
	for _, setting := range defaults {
		name, _, _ := strings.Cut(setting, "=")
		if os.Getenv(name) == "" {
			all = append(all, setting)
		}
	}
	return all
}

// loadgenPath returns the path of the load generator, which is beside this program.
func loadgenPath() (string, error) {
	own, err := ownFolder()
	if err != nil {
		return "", err
	}
	path := filepath.Join(own, "loadgen")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: the loadgen program is missing: %w; build both with: go tool mage build",
			errBadInput, err)
	}
	return path, nil
}

// checkLoadgen lets the load generator check its settings.
func (b *booth) checkLoadgen(ctx context.Context) error {
	program, err := loadgenPath()
	if err != nil {
		return err
	}
	f := b.flags
	args := b.loadgenArgs("http://"+process.Loopback(f.FrontendPort), "http://"+process.Loopback(f.PrometheusPort),
		process.Loopback(f.Port))
	if f.Twin {
		args = append(args, b.twinArgs("http://"+process.Loopback(f.FrontendPort+twinPorts))...)
	}
	check := exec.CommandContext(ctx, program, append([]string{"check"}, args...)...)
	check.Env = environment(b.defaults()...)
	output, err := check.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s (%w)", errBadInput, strings.TrimSpace(string(output)), err)
	}
	return nil
}

// loadgenArgs returns the load generator's flags.
func (b *booth) loadgenArgs(target, prometheus, address string) []string {
	args := []string{
		"--target-url=" + target, "--prometheus-url=" + prometheus, "--prometheus-namespace=" + namespace,
		"--listen=" + address, "--data-dir=" + b.folder("data"), "--start=" + strconv.FormatBool(b.flags.Start),
	}
	if os.Getenv("LOADGEN_RATE") == "" {
		args = append(args, "--concurrency="+strconv.Itoa(b.flags.Concurrency))
	}
	return append(args, b.kind.loadgenArgs()...)
}

// twinArgs returns the load generator's flags for the second cluster.
func (b *booth) twinArgs(target string) []string {
	return append([]string{
		"--twin-target-url=" + target, "--twin-prometheus-namespace=" + twinNamespace,
	}, b.kind.twinArgs()...)
}

// deployment returns the load generator's flags that describe the target. prefix, such as "mock of", marks the names
// of a simulated engine and GPU.
func deployment(kind api.TargetKind, prefix, engine string, p sim.Profile, workers int) []string {
	return []string{
		"--deployment-kind=" + string(kind),
		"--target-model=" + p.Model, "--deployment-model=" + p.DeployedModel(),
		"--deployment-engine=" + prefix + " " + engine, "--deployment-gpu=" + prefix + " " + p.GPU,
		"--deployment-workers=" + strconv.Itoa(workers),
		"--deployment-tensor-parallel=" + strconv.Itoa(p.TensorParallel),
	}
}

// readyTimeout is the time until most programs must be ready.
const readyTimeout = 30 * time.Second

// service is a part of a booth that consists of one process.
type service struct {
	process.Service

	url      string
	optional bool // the booth continues without it
}

// newService describes a service that is ready when it responds at a path of a URL.
func (b *booth) newService(name, url, ready string, timeout time.Duration, c process.Command) *service {
	return &service{url: url, Service: process.Service{
		Name: name, Command: c, Within: timeout, Say: b.out.say,
		Ready: func(ctx context.Context, p *process.Process) error { return local.Ready(ctx, url+ready, p) },
	}}
}

func (s *service) title() string { return s.Name }

// start starts the process and returns when it is ready.
func (s *service) start(ctx context.Context) error { return s.tolerate(ctx, s.Start(ctx)) }

// watch restarts the process whenever it has ended, until ctx ends or the process keeps failing.
func (s *service) watch(ctx context.Context) error {
	if !s.Up() {
		return nil
	}
	return s.tolerate(ctx, s.Watch(ctx))
}

// tolerate reports the error of an optional service and returns nil. It returns other errors.
func (s *service) tolerate(ctx context.Context, err error) error {
	if err == nil || !s.optional || ctx.Err() != nil {
		return err
	}
	s.Stop(atOnce)
	s.Say("%v\ncontinuing without %s", err, s.Name)
	return nil
}

// stop stops the process, or kills it if ctx ends first.
func (s *service) stop(ctx context.Context) { s.Stop(ctx) }

// atOnce is a canceled context. Stopping with it kills the process.
var atOnce = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// ownService describes a service that is this program with another command.
func (b *booth) ownService(name, address, ready string, args ...string) (*service, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return b.newService(name, "http://"+address, ready, readyTimeout, process.Command{
		Name: strings.TrimPrefix(name, "the "), Path: self, Args: args, Log: b.log(args[0]),
	}), nil
}

// ownFolder returns the folder of this program, where the project's other programs are.
func ownFolder() (string, error) {
	self, err := os.Executable()
	return filepath.Dir(self), err
}
