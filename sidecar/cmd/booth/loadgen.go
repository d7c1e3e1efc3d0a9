package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/sim"
)

// The namespaces of the clusters' pods, as Prometheus labels them: it tells the series of
// one cluster from those of the other.
var (
	namespace     = httpd.DefaultPods.Namespace
	twinNamespace = namespace + "-twin"
	workerPod     = httpd.DefaultPods.Name
)

// newLoadgen describes the load generator. On a terminal it shares the screen, so
// that its status line is seen; elsewhere it writes a log.
func (b *booth) newLoadgen(address string) (*service, error) {
	path, err := loadgenPath()
	if err != nil {
		return nil, err
	}
	args := b.loadgenArgs("http://"+b.backend.addresses().frontend, b.prometheus.url, address)
	if b.twin != nil {
		args = append(args, b.twinArgs("http://"+b.twin.addresses().frontend)...)
	}
	s := b.newService("the load generator", "http://"+address, "/healthz", readyWithin, process.Command{
		Name: "load generator", Path: path, Args: args, Log: b.log("loadgen"), Env: environment(b.defaults()...),
	})
	if b.out.terminal != nil {
		s.Command.Output = b.out.terminal
		s.Command.Env = environment(append(b.defaults(), "LOADGEN_LOG_LEVEL=warn")...)
	}
	return s, nil
}

// defaults are of settings that the environment may have its own values for: the
// workload, what the screens are called, and whose platform they are about.
func (b *booth) defaults() []string {
	return []string{
		"LOADGEN_PRESET=demo",
		"LOADGEN_TITLE=Serve more users on the same GPUs with KV-aware routing",
		"LOADGEN_VENDOR=" + string(b.kind.vendor()),
		"LOADGEN_SLIDER_INCREMENT=20", // the levels that were recorded with every figure
	}
}

// environment is that of this process, and the defaults ("NAME=value") for what it
// does not name.
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

// loadgenPath is the load generator beside this program.
func loadgenPath() (string, error) {
	path, err := besideThis("loadgen")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: the loadgen program is missing: %w; build both with: go tool mage build", errBadInput, err)
	}
	return path, nil
}

// checkLoadgen has the load generator say what it would refuse.
func (b *booth) checkLoadgen(ctx context.Context) error {
	program, err := loadgenPath()
	if err != nil {
		return err
	}
	f := b.flags
	args := b.loadgenArgs("http://"+process.Loopback(f.FrontendPort), "http://"+process.Loopback(f.PrometheusPort), process.Loopback(f.Port))
	if f.Twin {
		args = append(args, b.twinArgs("http://"+process.Loopback(f.FrontendPort+twinPorts))...)
	}
	check := exec.CommandContext(ctx, program, append([]string{"check"}, args...)...)
	check.Env = environment(b.defaults()...)
	said, err := check.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s (%w)", errBadInput, strings.TrimSpace(string(said)), err)
	}
	return nil
}

// loadgenArgs are the load generator's flags.
func (b *booth) loadgenArgs(target, prometheus, address string) []string {
	return append([]string{
		"--target-url=" + target, "--prometheus-url=" + prometheus, "--prometheus-namespace=" + namespace,
		"--listen=" + address, "--data-dir=" + b.folder("data"),
		"--concurrency=" + strconv.Itoa(b.flags.Concurrency), "--start=" + strconv.FormatBool(b.flags.Start),
	}, b.kind.loadgenArgs()...)
}

// twinArgs are the load generator's flags for the second cluster.
func (b *booth) twinArgs(target string) []string {
	return append([]string{"--twin-target-url=" + target, "--twin-prometheus-namespace=" + twinNamespace}, b.kind.twinArgs()...)
}

// deployment are the flags of the load generator that say what serves, and of what
// kind it is. For people, what only looks like an engine and a GPU is called by such
// words as "mock of".
func deployment(kind api.TargetKind, like, engine string, p sim.Profile, workers int) []string {
	return []string{
		"--deployment-kind=" + string(kind),
		"--target-model=" + p.Model, "--deployment-model=" + p.Model + "-" + p.Precision,
		"--deployment-engine=" + like + " " + engine, "--deployment-gpu=" + like + " " + p.GPU,
		"--deployment-workers=" + strconv.Itoa(workers), "--deployment-tensor-parallel=" + strconv.Itoa(p.TensorParallel),
	}
}
