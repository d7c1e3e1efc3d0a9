package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/sim"
)

// demoCmd is `booth demo`.
type demoCmd struct {
	flags
	simFlags
	GPUPort int `name:"gpu-port" default:"9400" help:"Port of the first worker's GPU metrics, the others follow; if taken, the next free ones."`
}

// Help returns the text below the list of flags.
func (c *demoCmd) Help() string {
	return "Everything listens on loopback. Set other load generator settings with its environment variables, " +
		"such as LOADGEN_TURNS_MAX."
}

func (c *demoCmd) run(ctx, killCtx context.Context, stdout, stderr io.Writer) error {
	return runKind(ctx, killCtx, c, stdout, stderr)
}

func (c *demoCmd) name() string { return "demo" }

func (c *demoCmd) common() *flags { return &c.flags }

func (c *demoCmd) check() error {
	_, err := c.simulation()
	return errors.Join(err, checkPorts(map[string]int{"gpu-port": c.GPUPort}))
}

// loadgenArgs mark everything as simulated. The recorded results are the default baseline if the cluster runs in real
// time.
func (c *demoCmd) loadgenArgs() []string {
	o, err := c.simulation()
	if err != nil {
		panic(err) // check has parsed the flags
	}
	p, prefix := o.Profile, "simulated"
	if c.Speed != 1 {
		prefix = fmt.Sprintf("simulated %v times as fast:", c.Speed)
	}
	args := append(deployment(api.TargetSimulated, prefix, c.Engine, p, p.Workers),
		"--seed="+strconv.FormatUint(c.Seed, 10),
		"--deployment-serving=aggregated", "--deployment-block-size="+strconv.Itoa(p.KV.BlockTokens),
		"--deployment-max-batch-size="+strconv.Itoa(p.MaxSequences),
		"--deployment-max-num-tokens="+strconv.Itoa(p.MaxBatchedTokens),
		"--deployment-chunked-prefill=true", "--deployment-kv-cache-dtype="+strings.ToLower(p.Precision),
		"--mode-driver=simulated", "--mode-mode="+string(c.Mode), "--mode-speculation="+string(c.Speculation))
	if p.Baseline != "" && c.Speed == 1 {
		args = append(args, "--default-baseline="+p.Baseline)
	}
	return args
}

// vendor returns the vendor of the recorded deployment, which the demo simulates.
func (c *demoCmd) vendor() api.Vendor { return api.VendorDigitalOcean }

// simCluster is a simulated cluster as a part of a booth.
type simCluster struct {
	*service
	at      addresses
	heading string
}

// twinArgs describe the second cluster. The load generator asks the cluster for its mode.
func (c *demoCmd) twinArgs() []string {
	return []string{"--twin-mode-mode=" + string(otherMode(c.Mode)), "--twin-mode-speculation=" + string(c.Speculation)}
}

// newBackend reserves the ports. It forgets the mode that was selected in an earlier run.
func (c *demoCmd) newBackend(_ context.Context, b *booth) (backend, error) {
	return c.newCluster(b, c.simFlags, 0, "", namespace)
}

// newTwin describes a second cluster of the same deployment. It has another seed, so that its workers have other ids.
func (c *demoCmd) newTwin(_ context.Context, b *booth) (backend, error) {
	f := c.simFlags
	f.Mode, f.Seed = otherMode(f.Mode), f.Seed+1
	return c.newCluster(b, f, twinPorts, "-twin", twinNamespace)
}

// newCluster describes a cluster. portOffset is added to the ports of the flags, suffix to its names.
func (c *demoCmd) newCluster(b *booth, f simFlags, portOffset int, suffix, podNamespace string) (backend, error) {
	o, err := f.simulation()
	if err != nil {
		return nil, err
	}
	n := o.Profile.Workers
	frontend, errFrontend := b.ports.take("the frontend", c.FrontendPort+portOffset, 1)
	worker, errWorker := b.ports.take("the first worker", c.WorkerPort+portOffset, n)
	gpu, errGPU := b.ports.take("the exporter of the first worker's GPUs", c.GPUPort+portOffset, n)
	state := b.folder("cluster" + suffix + "-state.json")
	if err := errors.Join(errFrontend, errWorker, errGPU, os.RemoveAll(state)); err != nil {
		return nil, err
	}
	s := &simCluster{at: addresses{frontend: process.Loopback(frontend)}, heading: f.heading(o)}
	for i := range n {
		s.at.workers = append(s.at.workers, process.Loopback(worker+i))
		s.at.gpus = append(s.at.gpus, process.Loopback(gpu+i))
	}
	name := "the simulated cluster"
	if suffix != "" {
		name = "the second simulated cluster"
	}
	args := append([]string{
		"cluster", "--port=" + strconv.Itoa(frontend), "--worker-port=" + strconv.Itoa(worker),
		"--gpu-port=" + strconv.Itoa(gpu), "--state-file=" + state,
		"--pod-namespace=" + podNamespace, "--pod-name=" + workerPod + suffix,
	}, f.args()...)
	s.service, err = b.ownService(name, s.at.frontend, "/health", args...)
	if err == nil {
		s.Command.Log = b.log("cluster" + suffix)
	}
	return s, err
}

// heading describes the simulated cluster.
func (f *simFlags) heading(o sim.Options) string {
	p := o.Profile
	timing := "timing fitted to " + p.Baseline
	if !p.CalibratedFor(o.Speculation) {
		timing = "not calibrated"
	}
	heading := fmt.Sprintf("The simulated cluster is up: %d workers simulating %s on %s, router mode %s. Simulated: %s.",
		p.Workers, f.Engine, p.GPU, o.Mode.Name(), timing)
	if f.Speed != 1 {
		heading += fmt.Sprintf(" It runs at %v times real time, "+
			"so its figures are not comparable with recorded ones.", f.Speed)
	}
	return heading
}

func (s *simCluster) addresses() addresses { return s.at }

func (s *simCluster) describe() (heading string, rows [][2]string) { return s.heading, s.at.rows() }

// rows lists the addresses of a simulated cluster.
func (a *addresses) rows() [][2]string {
	return [][2]string{
		{"cluster frontend", "http://" + a.frontend + ", metrics at /metrics"},
		{"workers", metricsPages(a.workers)},
		{"their GPUs", metricsPages(a.gpus)},
	}
}

// metricsPages returns the first and the last page of consecutive ports, or all pages of other ports.
func metricsPages(addresses []string) string {
	pages := make([]string, len(addresses))
	consecutive := true
	for i, address := range addresses {
		pages[i] = "http://" + address + "/metrics"
		consecutive = consecutive && port(address) == port(addresses[0])+i
	}
	if consecutive {
		return pages[0] + " to " + pages[len(pages)-1]
	}
	return strings.Join(pages, ", ")
}

// port returns the port of an address, or 0.
func port(address string) int {
	_, text, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(text)
	return n
}
