package local

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/process"
)

// dynamoTimeout is the time until a process of a Dynamo must be ready.
const dynamoTimeout = 2 * time.Minute

// Dynamo is a running Dynamo: a frontend with its router, and mock workers. Each is a process of its own. They
// discover each other through files in a temporary folder and communicate over loopback. Its methods are safe for
// concurrent use.
type Dynamo struct {
	Frontend *process.Service
	Mockers  []*process.Service // the mock workers

	options Options
	files   string // folder for the discovery

	mu        sync.Mutex
	instances []string // ids of the workers, decimal; "" while unknown
}

// Worker describes a mock worker.
type Worker struct {
	Name       string
	MetricsURL string
	Instance   string // instance id, decimal as in nvext; "" while it is unknown
	PID        int
}

// StartDynamo starts a Dynamo and returns when it is ready: the frontend lists every worker and the model. ctx limits
// only the start; its end does not stop a Dynamo that is ready. The caller must call [Dynamo.Stop]. On failure
// StartDynamo kills all processes, and the error names the failed process with the last lines of its log. Invalid
// options, a frontend port that is in use, and a worker port that is too high give an [api.FieldError].
func StartDynamo(ctx context.Context, o Options) (*Dynamo, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.fillIn()
	if err := o.choosePorts(); err != nil {
		return nil, err
	}
	files, err := os.MkdirTemp("", "kvbooth-dynamo-")
	if err != nil {
		return nil, fmt.Errorf("start Dynamo: %w", err)
	}
	d := &Dynamo{options: o, files: files, instances: make([]string, o.Workers)}
	d.Frontend = d.service("the frontend", d.FrontendCommand("frontend", o.Mode, o.FrontendPort), d.awaitFrontend)
	for i := range o.Workers {
		ready := func(ctx context.Context, p *process.Process) error { return d.awaitWorker(ctx, i, p) }
		d.Mockers = append(d.Mockers, d.service(workerName(i), d.workerCommand(i), ready))
	}
	group, starting := errgroup.WithContext(ctx)
	for _, s := range d.services() { // concurrently, since the ones wait for the others
		group.Go(func() error { return s.Start(starting) })
	}
	if err := group.Wait(); err != nil {
		canceled, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel() // processes that are not ready are killed at once
		d.Stop(canceled)
		return nil, fmt.Errorf("start Dynamo: %w", err)
	}
	return d, nil
}

func (d *Dynamo) service(
	name string, c process.Command, ready func(context.Context, *process.Process) error,
) *process.Service {
	return &process.Service{
		Name: name + d.options.Suffix, Command: c, Ready: ready, Within: dynamoTimeout, Say: d.options.Say,
	}
}

func (d *Dynamo) services() []*process.Service {
	return append([]*process.Service{d.Frontend}, d.Mockers...)
}

// URL returns the URL of the frontend.
func (d *Dynamo) URL() string { return "http://" + process.Loopback(d.options.FrontendPort) }

func (d *Dynamo) metricsURL(worker int) string {
	return "http://" + process.Loopback(d.options.workerPorts[worker]) + "/metrics"
}

func workerName(i int) string { return fmt.Sprintf("worker-%d", i+1) }

// Workers describes each worker.
func (d *Dynamo) Workers() []Worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Worker, len(d.Mockers))
	for i, s := range d.Mockers {
		out[i] = Worker{workerName(i), d.metricsURL(i), d.instances[i], s.Process().PID()}
	}
	return out
}

// Watch restarts processes that have ended, until ctx ends. It returns an error if one of them keeps failing.
func (d *Dynamo) Watch(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range d.services() {
		group.Go(func() error { return s.Watch(ctx) })
	}
	return group.Wait()
}

// Stop stops all processes and waits for them. They are killed if ctx ends first. Nothing can be started afterwards.
func (d *Dynamo) Stop(ctx context.Context) {
	var wg sync.WaitGroup
	for _, s := range d.services() {
		wg.Go(func() { s.Stop(ctx) })
	}
	wg.Wait()
	_ = os.RemoveAll(d.files) // temporary, so an error has no consequence
}

// instanceLabel matches a worker's instance id, hexadecimal, in its own metrics.
var instanceLabel = regexp.MustCompile(`dynamo_endpoint="generate"[^}]*worker_id="([0-9a-f]+)"`)

// awaitWorker waits until a worker reports its instance id and the frontend lists it.
func (d *Dynamo) awaitWorker(ctx context.Context, i int, p *process.Process) error {
	d.setInstance(i, "")
	return poll(ctx, p, func(ctx context.Context) error {
		metrics, err := get(ctx, d.metricsURL(i))
		if err != nil {
			return err
		}
		match := instanceLabel.FindSubmatch(metrics)
		if match == nil {
			return fmt.Errorf("%s does not report an instance ID yet", d.metricsURL(i))
		}
		id, err := strconv.ParseUint(string(match[1]), 16, 64)
		if err != nil {
			return err
		}
		instance := strconv.FormatUint(id, 10)
		if err := d.checkListed(ctx, instance); err != nil {
			return err
		}
		d.setInstance(i, instance)
		return nil
	})
}

func (d *Dynamo) setInstance(i int, instance string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.instances[i] = instance
}

// checkListed returns an error if the frontend does not list all of the instances.
func (d *Dynamo) checkListed(ctx context.Context, instances ...string) error {
	listed, err := d.Instances(ctx)
	if err != nil {
		return err
	}
	for _, instance := range instances {
		if !slices.Contains(listed, instance) {
			return fmt.Errorf("the frontend does not list instance %s yet", instance)
		}
	}
	return nil
}

// Instances returns the ids of the instances to which the frontend sends requests. A killed worker stays listed for
// about ten seconds.
func (d *Dynamo) Instances(ctx context.Context) ([]string, error) {
	var health struct {
		Instances []struct {
			Endpoint string      `json:"endpoint"`
			ID       json.Number `json:"instance_id"`
		} `json:"instances"`
	}
	if err := getJSON(ctx, d.URL()+"/health", &health); err != nil {
		return nil, err
	}
	var ids []string
	for _, instance := range health.Instances {
		if instance.Endpoint == "generate" {
			ids = append(ids, instance.ID.String())
		}
	}
	return ids, nil
}

// awaitFrontend waits until the frontend serves the model and lists the workers that run. Workers that are not ready
// yet wait for the frontend.
func (d *Dynamo) awaitFrontend(ctx context.Context, p *process.Process) error {
	return poll(ctx, p, func(ctx context.Context) error {
		d.mu.Lock()
		instances := slices.Clone(d.instances)
		d.mu.Unlock()
		var running []string
		for i, instance := range instances {
			if instance != "" && !d.Mockers[i].Process().Exited() {
				running = append(running, instance)
			}
		}
		if err := d.checkListed(ctx, running...); err != nil {
			return err
		}
		var models struct {
			Data []struct{ ID string }
		}
		if err := getJSON(ctx, d.URL()+"/v1/models", &models); err != nil {
			return err
		}
		for _, model := range models.Data {
			if model.ID == d.options.ModelName {
				return nil
			}
		}
		return fmt.Errorf("the frontend does not list the model %s yet", d.options.ModelName)
	})
}
