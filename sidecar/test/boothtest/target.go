package boothtest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kvbooth/sidecar/process"
	"kvbooth/sidecar/sim"
)

// Target is a cluster that serves the model, simulated or real.
type Target struct {
	Frontend string // host:port, as in the other fields
	Workers  []string
	GPUs     []string
	Loadgen  []string         // the load generator's flags for this cluster
	Parts    map[string]*Part // the processes that the journeys can kill and start
}

const workers = 3

// clusterPrints finds the addresses of the frontend, the workers' metrics and the GPUs' metrics in the output of
// `booth cluster`.
var clusterPrints = regexp.MustCompile(
	`(?s)cluster frontend +http://(\S+), .*?\n  workers +(\S[^\n]+)\n  their GPUs +(\S[^\n]+)\n`)

// page finds the address of a metrics URL.
var page = regexp.MustCompile(`http://(\S+)/metrics`)

// Simulated starts the simulated cluster with TensorRT-LLM. It changes its mode in half a second.
func Simulated(t *testing.T, bin string) Target {
	t.Helper()
	return SimulatedAs(t, bin, "trtllm")
}

// SimulatedAs starts the simulated cluster with an engine and further flags.
func SimulatedAs(t *testing.T, bin, engine string, flags ...string) Target {
	t.Helper()
	profile := sim.H200()
	cluster := &Part{Prints: clusterPrints, Ready: "http://" + AnyPort + "/health", Command: process.Command{
		Name: "the simulated cluster", Path: filepath.Join(bin, "booth"), Log: Log(t, "cluster-"+engine),
		Args: append([]string{
			"cluster", "--engine=" + engine, "--profile=" + profile.Name, "--restart=500ms",
			fmt.Sprintf("--workers=%d", workers), "--port=0", "--worker-port=0", "--gpu-port=0",
		}, flags...),
	}}
	printed := cluster.Run(t)
	return Target{
		Frontend: printed[1], Workers: pages(printed[2]), GPUs: pages(printed[3]),
		Loadgen: []string{
			"--mode-driver=simulated", "--target-model=" + profile.Model, "--default-baseline=" + profile.Baseline,
			"--deployment-model=" + profile.DeployedModel(), "--deployment-engine=simulated " + engine,
			"--deployment-gpu=simulated " + profile.GPU, fmt.Sprintf("--deployment-workers=%d", workers),
			fmt.Sprintf("--deployment-tensor-parallel=%d", profile.TensorParallel),
		},
	}
}

// Engines are simulated workers without a router, with their addresses as host:port.
type Engines struct {
	Workers []string
	Events  []string // of their caches, by worker
}

// enginesPrint finds the addresses in the output of `booth cluster --workers-only`.
var enginesPrint = regexp.MustCompile(`(?s)\n  workers +(\S[^\n]+)\n.*\n  KV events +(\S[^\n]+), blocks`)

// SimulatedEngines starts simulated workers without a router, with further flags.
func SimulatedEngines(t *testing.T, bin, engine string, flags ...string) (e Engines) {
	t.Helper()
	p := &Part{Prints: enginesPrint, Command: process.Command{
		Name: "the simulated engines", Path: filepath.Join(bin, "booth"), Log: Log(t, "engines-"+engine),
		Args: append([]string{
			"cluster", "--workers-only", "--engine=" + engine, "--profile=" + sim.H200().Name,
			fmt.Sprintf("--workers=%d", workers), "--port=0", "--worker-port=0", "--event-port=0", "--replay-port=0",
		}, flags...),
	}}
	printed := p.Run(t)
	for _, url := range strings.Fields(printed[1]) {
		e.Workers = append(e.Workers, strings.TrimPrefix(url, "http://"))
	}
	for _, url := range strings.Fields(printed[2]) {
		e.Events = append(e.Events, strings.TrimPrefix(url, "tcp://"))
	}
	return e
}

// pages returns the addresses of metrics URLs.
func pages(list string) []string {
	var addresses []string
	for _, found := range page.FindAllStringSubmatch(list, -1) {
		addresses = append(addresses, found[1])
	}
	return addresses
}

// MetricsURLs returns the metrics URLs of workers and GPUs, separated by commas.
func (c Target) MetricsURLs() string {
	var urls []string
	for _, address := range append(c.Workers, c.GPUs...) {
		urls = append(urls, "http://"+address)
	}
	return strings.Join(urls, ",")
}
