package local

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/process"
)

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
