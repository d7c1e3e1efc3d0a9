package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"kvbooth/sidecar/process"
)

// Dynamo is a running Dynamo: a frontend with its router, and mock workers. Each is a process of its own. They
// discover each other through files in a temporary folder and communicate over loopback. Its methods are safe for
// concurrent use, except that methods that start or end the same process must not run concurrently.
type Dynamo struct {
	options Options
	files   string // folder for the discovery

	mu       sync.Mutex
	stopped  bool
	frontend *process.Process
	workers  []worker
}

type worker struct {
	name     string
	port     int
	process  *process.Process
	instance string // decimal
}

// Worker describes a mock worker.
type Worker struct {
	Name       string
	MetricsURL string
	Instance   string // instance id, decimal as in nvext; "" while it is unknown
	PID        int
}

// Frontend is the number of the frontend; workers are numbered from 0.
const Frontend = -1

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
	d := &Dynamo{options: o, files: files}
	for i, port := range o.workerPorts {
		d.workers = append(d.workers, worker{name: fmt.Sprintf("worker-%d", i+1), port: port})
	}
	if err := d.startAll(ctx); err != nil {
		canceled, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel() // processes that are not ready are killed at once
		d.Stop(canceled)
		return nil, fmt.Errorf("start Dynamo: %w", err)
	}
	return d, nil
}

// startAll starts all processes and waits until they are ready.
func (d *Dynamo) startAll(ctx context.Context) error {
	for i := range d.workers {
		if err := d.launchWorker(i); err != nil {
			return err
		}
	}
	if err := d.launchFrontend(); err != nil {
		return err
	}
	for i := range d.workers {
		if err := d.awaitWorker(ctx, i); err != nil {
			return err
		}
	}
	return d.awaitModel(ctx)
}

// URL returns the URL of the frontend.
func (d *Dynamo) URL() string { return "http://" + process.Loopback(d.options.FrontendPort) }

// Workers describes each worker, in the order of their numbers.
func (d *Dynamo) Workers() []Worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Worker, len(d.workers))
	for i, w := range d.workers {
		out[i] = Worker{Name: w.name, MetricsURL: w.metricsURL(), Instance: w.instance, PID: w.process.PID()}
	}
	return out
}

// Ended waits until worker i, or the [Frontend], ends: see [process.Process.Ended]. An ended process starts again
// only by RestartWorker or StartFrontend.
func (d *Dynamo) Ended(ctx context.Context, i int) error {
	if i == Frontend {
		return d.frontendProcess().Ended(ctx)
	}
	return d.worker(i).process.Ended(ctx)
}

// KillWorker kills worker i, like a crash.
func (d *Dynamo) KillWorker(i int) { d.worker(i).process.Kill() }

// RestartWorker stops worker i if it runs, starts it again, and returns when the frontend lists its new instance.
func (d *Dynamo) RestartWorker(ctx context.Context, i int) error {
	d.worker(i).process.Stop(ctx)
	if err := d.launchWorker(i); err != nil {
		return err
	}
	return d.awaitWorker(ctx, i)
}

// KillFrontend kills the frontend, like a crash.
func (d *Dynamo) KillFrontend() { d.frontendProcess().Kill() }

// StopFrontend stops the frontend. It is killed if ctx ends first.
func (d *Dynamo) StopFrontend(ctx context.Context) { d.frontendProcess().Stop(ctx) }

// StartFrontend stops the frontend if it runs and starts it again on its port. It returns when the frontend lists
// every running worker and the model.
func (d *Dynamo) StartFrontend(ctx context.Context) error {
	d.StopFrontend(ctx)
	if err := d.launchFrontend(); err != nil {
		return err
	}
	for i := range d.options.Workers {
		if d.worker(i).process.Exited() {
			continue
		}
		if err := d.awaitWorker(ctx, i); err != nil {
			return err
		}
	}
	return d.awaitModel(ctx)
}

// Stop stops all processes and waits for them. They are killed if ctx ends first. Nothing can be started afterwards.
func (d *Dynamo) Stop(ctx context.Context) {
	d.mu.Lock()
	d.stopped = true
	processes := []*process.Process{d.frontend}
	for _, w := range d.workers {
		processes = append(processes, w.process)
	}
	d.mu.Unlock()
	process.StopAll(ctx, processes...)
	_ = os.RemoveAll(d.files) // temporary, so an error has no consequence
}

func (d *Dynamo) worker(i int) worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.workers[i]
}

func (d *Dynamo) frontendProcess() *process.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.frontend
}

// errStopped is the error of starting a process after Stop.
var errStopped = errors.New("Dynamo is being stopped")

func (d *Dynamo) launchWorker(i int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &d.workers[i]
	p, err := d.launch(d.workerCommand(*w))
	if err == nil {
		w.process, w.instance = p, ""
	}
	return err
}

func (d *Dynamo) launchFrontend() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.launch(d.frontendCommand())
	if err == nil {
		d.frontend = p
	}
	return err
}

// launch starts a process. The caller holds d.mu.
func (d *Dynamo) launch(c process.Command) (*process.Process, error) {
	if d.stopped {
		return nil, errStopped
	}
	return process.Start(c)
}
