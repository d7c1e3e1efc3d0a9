//go:build grafana

package grafanatest

import (
	"fmt"
	"path/filepath"
	"testing"

	"kvbooth/sidecar/local"
	"kvbooth/sidecar/sim"
)

// target is a cluster that serves the model. Another kind, such as a real Dynamo,
// fills in the same.
type target struct {
	name     string // which the journeys are told, since not every cluster can do everything
	frontend string // host:port, as all of them
	workers  []string
	gpus     []string
	loadgen  []string         // flags of the load generator that go with it
	parts    map[string]*part // what of it the journeys may kill and start
}

const workers = 3

// simulated starts the simulated cluster. It changes its mode in half a second.
func simulated(t *testing.T, bin string, ports *ports) target {
	t.Helper()
	p := sim.H200()
	first, worker, gpu := ports.take(t, 1), ports.take(t, workers), ports.take(t, workers)
	c := target{name: "simulated", frontend: local.Loopback(first)}
	for i := range workers {
		c.workers = append(c.workers, local.Loopback(worker+i))
		c.gpus = append(c.gpus, local.Loopback(gpu+i))
	}
	cluster := &part{ready: "http://" + c.frontend + "/health", command: local.Command{
		Name: "the simulated cluster", Path: filepath.Join(bin, "booth"), Log: log(t, "cluster"), Args: []string{
			"cluster", "--profile=" + p.Name, "--restart=500ms", fmt.Sprintf("--workers=%d", workers),
			fmt.Sprintf("--port=%d", first), fmt.Sprintf("--worker-port=%d", worker), fmt.Sprintf("--gpu-port=%d", gpu),
		},
	}}
	cluster.run(t)
	c.parts = map[string]*part{"cluster": cluster}
	c.loadgen = []string{
		"--mode-driver=simulated", "--target-model=" + p.Model, "--baseline-default=" + p.Baseline,
		"--deployment-model=" + p.Model + "-" + p.Precision, "--deployment-engine=simulated trtllm",
		"--deployment-gpu=simulated " + p.GPU, fmt.Sprintf("--deployment-workers=%d", workers),
		fmt.Sprintf("--deployment-tensor-parallel=%d", p.TensorParallel),
	}
	return c
}
