package boothtest

import (
	"fmt"
	"path/filepath"
	"testing"

	"kvbooth/sidecar/process"
	"kvbooth/sidecar/sim"
)

// Target is a cluster that serves the model. Another kind, such as a real Dynamo,
// fills in the same.
type Target struct {
	Frontend string // host:port, as all of them
	Workers  []string
	GPUs     []string
	Loadgen  []string         // flags of the load generator that go with it
	Parts    map[string]*Part // what of it the journeys may kill and start
}

const workers = 3

// Simulated starts the simulated cluster, of TensorRT-LLM. It changes its mode in half
// a second.
func Simulated(t *testing.T, bin string, ports *Ports) Target {
	t.Helper()
	return simulated(t, bin, ports, "trtllm")
}

func simulated(t *testing.T, bin string, ports *Ports, engine string) Target {
	t.Helper()
	p := sim.H200()
	first, worker, gpu := ports.Take(t, 1), ports.Take(t, workers), ports.Take(t, workers)
	c := Target{Frontend: process.Loopback(first)}
	for i := range workers {
		c.Workers = append(c.Workers, process.Loopback(worker+i))
		c.GPUs = append(c.GPUs, process.Loopback(gpu+i))
	}
	cluster := &Part{Ready: "http://" + c.Frontend + "/health", Command: process.Command{
		Name: "the simulated cluster", Path: filepath.Join(bin, "booth"), Log: Log(t, "cluster-"+engine), Args: []string{
			"cluster", "--engine=" + engine, "--profile=" + p.Name, "--restart=500ms", fmt.Sprintf("--workers=%d", workers),
			fmt.Sprintf("--port=%d", first), fmt.Sprintf("--worker-port=%d", worker), fmt.Sprintf("--gpu-port=%d", gpu),
		},
	}}
	cluster.Run(t)
	c.Parts = map[string]*Part{"cluster": cluster}
	c.Loadgen = []string{
		"--mode-driver=simulated", "--target-model=" + p.Model, "--baseline-default=" + p.Baseline,
		"--deployment-model=" + p.Model + "-" + p.Precision, "--deployment-engine=simulated " + engine,
		"--deployment-gpu=simulated " + p.GPU, fmt.Sprintf("--deployment-workers=%d", workers),
		fmt.Sprintf("--deployment-tensor-parallel=%d", p.TensorParallel),
	}
	return c
}
