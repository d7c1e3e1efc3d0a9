package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/sim"
)

// Ports are looked for from here on, away from those of a booth that may run.
const (
	firstPort   = 21000
	startWithin = 2 * time.Minute
	stopWithin  = 10 * time.Second
)

// side is one of the two clusters that are compared.
type side struct {
	name  string
	start func(ctx context.Context, mode api.Mode, logs string) (*target, error)
}

// target is a cluster that serves.
type target struct {
	url     string
	metrics []string // of its workers
	stop    func(context.Context)
}

// clusters is what both sides are made from.
type clusters struct {
	profile        sim.Profile
	booth, loadgen string // programs
	python         string // with Dynamo
	dir            string // what lasts as long as this process
	out            string // where runs leave their logs
	seed           uint64
}

// prepare finds or makes all that the runs have in common.
func prepare(ctx context.Context, o options, progress io.Writer) (*clusters, error) {
	c := &clusters{profile: sim.H200(), seed: o.Seed}
	var err error
	if c.booth, err = program("booth"); err != nil {
		return nil, err
	}
	if c.loadgen, err = program("loadgen"); err != nil {
		return nil, err
	}
	cache := o.CacheDir
	if cache == "" {
		if cache, err = local.CacheDir(); err != nil {
			return nil, err
		}
	}
	if c.python, err = local.InstallDynamo(ctx, cache, progress); err != nil {
		return nil, err
	}
	if c.dir, err = os.MkdirTemp("", "kvbooth-compare-"); err != nil {
		return nil, err
	}
	c.out = filepath.Join(c.dir, "runs")
	if o.Out != "" {
		c.out = o.Out
	}
	if err := errors.Join(sim.WriteModel(c.model()), c.writeProfile()); err != nil {
		c.remove()
		return nil, err
	}
	return c, nil
}

func (c *clusters) remove() { _ = os.RemoveAll(c.dir) } // a temporary folder

func (c *clusters) model() string { return filepath.Join(c.dir, "model") }

func (c *clusters) npz() string { return filepath.Join(c.dir, c.profile.Name+".npz") }

func (c *clusters) writeProfile() error {
	file, err := os.Create(c.npz())
	if err != nil {
		return err
	}
	return errors.Join(sim.WriteNPZ(file, c.profile), file.Close())
}

// program is one of those that the Magefile builds into bin.
func program(name string) (string, error) {
	path, err := filepath.Abs(filepath.Join("bin", name))
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w; build it first: go tool mage build", err)
	}
	return path, nil
}

// dynamo is a real Dynamo whose router has the mode itself.
func (c *clusters) dynamo() side {
	return side{"real Dynamo", func(ctx context.Context, mode api.Mode, logs string) (*target, error) {
		frontend, err := consecutive(firstPort, 1)
		if err != nil {
			return nil, err
		}
		d, err := local.StartDynamo(ctx, local.Options{
			Python: c.python, ModelDir: c.model(), ModelName: c.profile.Model, ProfilePath: c.npz(), LogDir: logs,
			Workers: c.profile.Workers, Mode: strings.ReplaceAll(string(mode), "_", "-"), // as Dynamo spells it
			BlockTokens: c.profile.KV.BlockTokens, Blocks: c.profile.KV.Blocks,
			MaxSequences: c.profile.MaxSequences, MaxBatchedTokens: c.profile.MaxBatchedTokens,
			FrontendPort: frontend, WorkerPort: frontend + 1,
		})
		if err != nil {
			return nil, err
		}
		t := &target{url: d.URL(), stop: d.Stop}
		for _, w := range d.Workers() {
			t.metrics = append(t.metrics, w.MetricsURL)
		}
		return t, nil
	}}
}

// simulated is the simulated cluster, which forgets the blocks of answers as the
// mock workers do.
func (c *clusters) simulated() side {
	return side{"simulated", func(ctx context.Context, mode api.Mode, logs string) (*target, error) {
		n := c.profile.Workers
		frontend, err := consecutive(firstPort, 1+2*n)
		if err != nil {
			return nil, err
		}
		workers, gpus := frontend+1, frontend+1+n
		t := &target{url: "http://" + local.Loopback(frontend)}
		for i := range n {
			t.metrics = append(t.metrics, "http://"+local.Loopback(workers+i)+"/metrics")
		}
		p, err := local.Start(local.Command{
			Name: "simulated cluster", Path: c.booth, Log: filepath.Join(logs, "cluster.log"),
			Args: []string{
				"cluster", "--profile=" + c.profile.Name, "--mode=" + string(mode), "--forget-answers",
				"--seed=" + strconv.FormatUint(c.seed, 10), "--port=" + strconv.Itoa(frontend),
				"--worker-port=" + strconv.Itoa(workers), "--gpu-port=" + strconv.Itoa(gpus),
			},
		})
		if err != nil {
			return nil, err
		}
		t.stop = p.Stop
		if err := local.Ready(ctx, t.url+"/v1/models", p); err != nil {
			stopNow(p.Stop)
			return nil, err
		}
		return t, nil
	}}
}

// consecutive finds n free ports in a row and gives the first.
func consecutive(from, n int) (int, error) {
	for {
		ports, err := local.FreePorts(from, n)
		if err != nil {
			return 0, err
		}
		if ports[n-1]-ports[0] == n-1 {
			return ports[0], nil
		}
		from = ports[0] + 1
	}
}

// stopNow stops something that has nothing to finish, or that had its time.
func stopNow(stop func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	stop(ctx)
}
