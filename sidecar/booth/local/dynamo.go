package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"kvbooth/sidecar/process"
)

// Dynamo is a running Dynamo: a frontend with its router, and mock workers, each a
// process of its own, that find one another through files in a temporary folder
// and talk over loopback. Its methods are safe for concurrent use, but of the calls
// that start or end one and the same process only one may run at a time.
type Dynamo struct {
	options Options
	files   string // the folder that the processes find one another through

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

// Worker is what is known of a mock worker.
type Worker struct {
	Name       string
	MetricsURL string
	Instance   string // its instance id, decimal as in nvext; "" while it is not known
	PID        int
}

// Frontend is the number of the frontend, beside those of the workers.
const Frontend = -1

// StartDynamo starts a Dynamo and returns when it serves: the frontend lists every
// worker and the model. An error names the process at fault, with the last lines of
// its log, and nothing is left running. What is not allowed in the options gives an
// [api.FieldError].
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
		ended, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel() // what is not ready has nothing to finish
		d.Stop(ended)
		return nil, fmt.Errorf("start Dynamo: %w", err)
	}
	return d, nil
}

// startAll starts all processes at once and waits for all of them.
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

// URL is the frontend's.
func (d *Dynamo) URL() string { return "http://" + process.Loopback(d.options.FrontendPort) }

// Workers tells of each worker, in the order of their numbers.
func (d *Dynamo) Workers() []Worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Worker, len(d.workers))
	for i, w := range d.workers {
		out[i] = Worker{Name: w.name, MetricsURL: w.metricsURL(), Instance: w.instance, PID: w.process.PID()}
	}
	return out
}

// Ended is [process.Process.Ended] of worker i, or of the [Frontend], as it runs now. Nothing
// restarts it but RestartWorker or StartFrontend.
func (d *Dynamo) Ended(ctx context.Context, i int) error {
	if i == Frontend {
		return d.frontendProcess().Ended(ctx)
	}
	return d.worker(i).process.Ended(ctx)
}

// KillWorker kills worker i, as a crash would.
func (d *Dynamo) KillWorker(i int) { d.worker(i).process.Kill() }

// RestartWorker starts worker i again, after stopping it if it still runs, and
// returns when the frontend lists its new instance.
func (d *Dynamo) RestartWorker(ctx context.Context, i int) error {
	d.worker(i).process.Stop(ctx)
	if err := d.launchWorker(i); err != nil {
		return err
	}
	return d.awaitWorker(ctx, i)
}

// KillFrontend kills the frontend, as a crash would.
func (d *Dynamo) KillFrontend() { d.frontendProcess().Kill() }

// StopFrontend stops the frontend; when ctx ends before it has, it is killed.
func (d *Dynamo) StopFrontend(ctx context.Context) { d.frontendProcess().Stop(ctx) }

// StartFrontend starts the frontend again, on its port, after stopping it if it
// still runs. It returns when the frontend lists every worker that runs, and the model.
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

// Stop stops all processes and waits for them; when ctx ends before they have,
// they are killed. Nothing can be started afterwards.
func (d *Dynamo) Stop(ctx context.Context) {
	d.mu.Lock()
	d.stopped = true
	processes := []*process.Process{d.frontend}
	for _, w := range d.workers {
		processes = append(processes, w.process)
	}
	d.mu.Unlock()
	process.StopAll(ctx, processes...)
	_ = os.RemoveAll(d.files) // a temporary folder
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

// errStopped is what starting something gives after Stop.
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

// launch starts a process; d.mu is held.
func (d *Dynamo) launch(c process.Command) (*process.Process, error) {
	if d.stopped {
		return nil, errStopped
	}
	return process.Start(c)
}
