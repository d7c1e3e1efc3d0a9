// Package local installs and runs third-party programs of a booth on this machine: NVIDIA Dynamo with mock workers
// ([InstallDynamo], [StartDynamo]), other routers ([Routers]), Grafana ([FindGrafana], [InstallGrafana]) and Prometheus
// ([FindPrometheus], [InstallPrometheus]).
package local

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
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

// Options configure a Dynamo.
type Options struct {
	Python      string // interpreter with Dynamo, from [InstallDynamo]
	ModelDir    string // folder of config.json, generation_config.json, tokenizer.json, tokenizer_config.json
	ModelName   string // name in the API
	ProfilePath string // NPZ with the timing of the mock workers
	LogDir      string // one log for each process, appended to

	Workers          int    // 0 means 3
	Mode             string // router mode in Dynamo's spelling, one of [RouterModes]; "" means kv
	Engine           string // engine of the mock workers: one of [Engines]; "" means trtllm
	BlockTokens      int    // tokens of a KV block
	Blocks           int    // KV blocks per worker
	MaxSequences     int    // per batch
	MaxBatchedTokens int    // per batch

	FrontendPort int      // must be free; 0 means 8000 or the next free one
	WorkerPort   int      // first port for the workers' metrics, up to 32767, skipping ports in use; 0 means 8081
	Speedup      float64  // factor on the mock workers' speed; 0 means 1
	FrontendArgs []string // further arguments of each frontend
	Env          []string // further environment variables as "NAME=value"

	Suffix string                           // of the names of the processes in messages
	Say    func(format string, args ...any) // receives messages about restarts

	workerPorts []int // chosen ports, one per worker
}

// The values of [Options].Mode and [Options].Engine.
var (
	RouterModes = []string{
		"kv", "round-robin", "least-loaded", "random", "power-of-two", "device-aware-weighted", "direct",
	}
	Engines = []string{"trtllm", "vllm", "sglang"}
)

const (
	defaultWorkers      = 3
	defaultFrontendPort = 8000
	defaultWorkerPort   = 8081
	maxWorkers          = 64
	lastWorkerPort      = 32767 // Dynamo reads the port as a signed 16-bit number
)

// Check returns an [api.FieldError] for invalid options, or nil. It does not check ports.
func (o Options) Check() error {
	o.fillIn()
	switch {
	case o.Workers < 1 || o.Workers > maxWorkers:
		return api.Refuse("workers", o.Workers, fmt.Sprintf("1 to %d", maxWorkers))
	case !slices.Contains(RouterModes, o.Mode):
		return api.Refuse("mode", o.Mode, strings.Join(RouterModes, ", "))
	case !slices.Contains(Engines, o.Engine):
		return api.Refuse("engine", o.Engine, strings.Join(Engines, ", "))
	case o.Speedup < 0:
		return api.Refuse("speedup", o.Speedup, "above 0")
	}
	return nil
}

func (o *Options) fillIn() {
	o.Workers = cmp.Or(o.Workers, defaultWorkers)
	o.Mode = cmp.Or(o.Mode, RouterModes[0])
	o.Engine = cmp.Or(o.Engine, Engines[0])
	o.WorkerPort = cmp.Or(o.WorkerPort, defaultWorkerPort)
	o.Speedup = cmp.Or(o.Speedup, 1)
}

// choosePorts selects the ports of the frontend and of the workers.
func (o *Options) choosePorts() error {
	free, err := process.FreePorts(cmp.Or(o.FrontendPort, defaultFrontendPort), 1)
	if err != nil {
		return err
	}
	if o.FrontendPort != 0 && o.FrontendPort != free[0] {
		return api.Refuse("frontend port", o.FrontendPort, fmt.Sprintf("a free port, such as %d", free[0]))
	}
	o.FrontendPort = free[0]
	ports, err := process.FreePorts(o.WorkerPort, o.Workers+1)
	if err != nil {
		return err
	}
	ports = slices.DeleteFunc(ports, func(port int) bool { return port == o.FrontendPort })
	o.workerPorts = ports[:o.Workers]
	if last := o.workerPorts[o.Workers-1]; last > lastWorkerPort {
		allowed := fmt.Sprintf("low enough that the last port is at most %d; for %d workers it would be %d",
			lastWorkerPort, o.Workers, last)
		return api.Refuse("worker port", o.WorkerPort, allowed)
	}
	return nil
}

// plane makes the processes discover each other through files and communicate over TCP and ZeroMQ, so that neither
// etcd nor NATS is needed.
var plane = []string{"--discovery-backend", "file", "--request-plane", "tcp", "--event-plane", "zmq"}

func (d *Dynamo) workerCommand(i int) process.Command {
	o := d.options
	args := append([]string{
		"-m", "dynamo.mocker", "--model-path", o.ModelDir, "--model-name", o.ModelName, "--num-workers", "1",
		"--engine-type", o.Engine, "--block-size", strconv.Itoa(o.BlockTokens),
		"--num-gpu-blocks-override", strconv.Itoa(o.Blocks), "--max-num-seqs", strconv.Itoa(o.MaxSequences),
		"--max-num-batched-tokens", strconv.Itoa(o.MaxBatchedTokens), "--planner-profile-data", o.ProfilePath,
		"--speedup-ratio", strconv.FormatFloat(o.Speedup, 'f', -1, 64),
	}, plane...)
	return d.command(workerName(i), args, "DYN_SYSTEM_PORT="+strconv.Itoa(o.workerPorts[i]))
}

// FrontendCommand returns the command of a frontend for the workers. mode is one of [RouterModes].
func (d *Dynamo) FrontendCommand(name, mode string, port int) process.Command {
	return d.command(name, slices.Concat([]string{
		"-m", "dynamo.frontend", "--http-host", "127.0.0.1", "--http-port", strconv.Itoa(port),
		"--router-mode", mode, "--kv-cache-block-size", strconv.Itoa(d.options.BlockTokens),
	}, plane, d.options.FrontendArgs))
}

// command returns the command of a process that listens on loopback and logs only warnings and errors. Its ZeroMQ
// sockets bind every interface, but are announced on loopback only. At lower levels, each request would log several
// lines.
func (d *Dynamo) command(name string, args []string, env ...string) process.Command {
	const loopback = "127.0.0.1"
	env = append(env,
		"DYN_FILE_KV="+d.files, "DYN_LOG=warn", "DYN_SDK_DISABLE_ANSI_LOGGING=1", "HF_HUB_OFFLINE=1",
		"DYN_TCP_RPC_HOST="+loopback, "DYN_EVENT_PLANE_HOST="+loopback,
		"DYN_TCP_RESPONSE_STREAM_HOST="+loopback, "DYN_SYSTEM_HOST="+loopback)
	return process.Command{
		Name: name, Path: d.options.Python, Args: args, Env: childEnv(append(env, d.options.Env...)...),
		Log: filepath.Join(d.options.LogDir, name+".log"),
	}
}
