package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/booth/httpd/events"
	"kvbooth/sidecar/booth/httpd/metrics"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/sim"
)

// simFlags describe a simulated cluster.
type simFlags struct {
	Profile     string          `default:"h200-tp1" help:"Deployment to simulate: ${profiles}, or a file written by booth calibrate."`
	Workers     int             `default:"0" help:"Number of workers; 0: as in the deployment."`
	BlockSize   int             `default:"0" placeholder:"TOKENS" help:"Tokens per KV cache block; 0: as in the deployment."`
	KVBlocks    int             `name:"kv-blocks" default:"0" placeholder:"N" help:"KV cache size of one worker in blocks; 0: as in the deployment."`
	Mode        api.Mode        `default:"kv" help:"Router mode: kv, round_robin, least_loaded. An operator can switch it."`
	Speculation api.Speculation `default:"not_recorded" help:"Speculative decoding: not_recorded (as in the recorded results), off, draft, eagle3. An operator can switch it."`
	Engine      string          `default:"trtllm" enum:"trtllm,vllm,sglang" help:"Engine whose metrics the workers expose: ${enum}."`
	Speed       float64         `default:"1" help:"Speed as a multiple of real time."`
	Seed        uint64          `default:"1" help:"Random seed."`
}

// simulation returns the options of the cluster. Invalid flags give an *[api.FieldError].
func (f *simFlags) simulation() (sim.Options, error) {
	if err := httpd.CheckSpeed(f.Speed); err != nil {
		return sim.Options{}, err
	}
	p, err := sim.OpenProfile(f.Profile)
	if err != nil {
		return sim.Options{}, err
	}
	if f.Workers != 0 {
		p.Workers = f.Workers
	}
	if f.BlockSize != 0 {
		p.KV.BlockTokens = f.BlockSize
	}
	if f.KVBlocks != 0 {
		p.KV.Blocks = f.KVBlocks
	}
	o := sim.DefaultOptions(p)
	o.Mode, o.Speculation, o.Seed = f.Mode, f.Speculation, f.Seed
	_, err = sim.New(o)
	return o, flagOf(err)
}

// args returns the flags for another process.
func (f *simFlags) args() []string {
	return []string{
		"--profile=" + f.Profile, "--workers=" + strconv.Itoa(f.Workers),
		"--block-size=" + strconv.Itoa(f.BlockSize), "--kv-blocks=" + strconv.Itoa(f.KVBlocks), "--mode=" + string(f.Mode),
		"--speculation=" + string(f.Speculation), "--engine=" + f.Engine,
		"--speed=" + strconv.FormatFloat(f.Speed, 'g', -1, 64), "--seed=" + strconv.FormatUint(f.Seed, 10),
	}
}

// routerFlags are the flags of Dynamo's frontend with the same names: see [sim.RouterSwitches].
type routerFlags struct {
	DecodeActiveRequestWeight float64 `default:"0" placeholder:"BLOCKS" help:"As in Dynamo: blocks that each request in progress adds to its worker's cost."`
	TrackOutputBlocks         bool    `negatable:"" help:"As in Dynamo: count the blocks of growing answers."`
	AssumeKVReuse             bool    `name:"assume-kv-reuse" default:"true" negatable:"" help:"As in Dynamo: count a block shared by several requests in progress only once."`
	TrackActiveBlocks         bool    `default:"true" negatable:"" help:"As in Dynamo: count the blocks of requests in progress."`
	TrackPrefillTokens        bool    `default:"true" negatable:"" help:"As in Dynamo: count the tokens to prefill."`
	OverlapScoreCredit        float64 `name:"kv-overlap-score-credit" default:"1" help:"As in Dynamo: how much of a block cached by a worker counts as prefilled, 0 to 1."`
	OverlapScoreCreditDecay   float64 `name:"kv-overlap-score-credit-decay" default:"0" help:"As in Dynamo: how fast that credit decays with the prefill queued on the worker."`
}

// clusterCmd is `booth cluster`.
type clusterCmd struct {
	simFlags
	Host       string   `default:"127.0.0.1" placeholder:"IP" help:"IP address to listen on. There is no authentication, so use anything but loopback only in a private network."`
	Hosts      []string `placeholder:"NAME" help:"Host names, besides loopback, that may be used to switch the mode."`
	Port       int      `default:"8000" help:"Port of the frontend, or with --workers-only of /sim/v1; 0: a free one."`
	WorkerPort int      `default:"8081" help:"Port of the first worker's metrics; the others follow; 0: free ones."`
	GPUPort    int      `name:"gpu-port" default:"9400" help:"Port of the first worker's GPU metrics; the others follow; 0: free ones."`

	WorkersOnly bool   `help:"Serve the workers alone, as engines for routers other than Dynamo's: their API, their metrics, and the events of their caches."`
	EventPort   int    `default:"5557" help:"With --workers-only, port of the first worker's events of its cache (ZeroMQ); the others follow; 0: free ones."`
	ReplayPort  int    `default:"5657" help:"With --workers-only, port at which the first worker replays them; the others follow; 0: free ones."`
	EventFormat string `default:"maps" enum:"maps,arrays" help:"Form of each event: ${enum}. vLLM publishes maps since 0.24, arrays before; vllm-router ignores arrays."`
	EventTopic  string `default:"empty" enum:"empty,pod" help:"Topic of the events: ${enum}. pod is kv@IP:PORT@MODEL, as llm-d expects it."`

	OverlapWeight float64       `default:"1" help:"Weight of prefill in the kv router's cost."`
	Temperature   float64       `default:"0" help:"Sampling temperature of the kv router; 0 always picks the lowest cost."`
	Router        routerFlags   `embed:"" prefix:"router-"`
	BestPlacement bool          `negatable:"" help:"Under kv, place each request on the worker that holds most of its prompt, of those that are not too busy: an oracle, since no router in front of engines knows their caches exactly. With --workers-only, --port serves it beside the workers."`
	ForgetAnswers bool          `negatable:"" help:"Do not reuse the cached blocks of answers, like Dynamo's mock workers."`
	Restart       time.Duration `default:"5s" help:"How long a mode change takes."`
	PodNamespace  string        `default:"${namespace}" placeholder:"NAME" help:"Namespace of the workers' pods in the GPU metrics."`
	PodName       string        `default:"${pod}" placeholder:"NAME" help:"Name prefix of these pods."`
	StateFile     string        `placeholder:"FILE" help:"File that preserves mode and speculation across restarts."`

	Fault struct {
		HTTP500    float64 `name:"http-500" default:"0" help:"Fraction of requests that fail with status 500."`
		HTTP429    float64 `name:"http-429" default:"0" help:"Fraction of requests that fail with status 429."`
		Stall      float64 `default:"0" help:"Fraction of answers that stall."`
		Disconnect float64 `default:"0" help:"Fraction of answers that disconnect."`
	} `embed:"" prefix:"fault-"`
}

func (c *clusterCmd) run(ctx, _ context.Context, stdout, stderr io.Writer) error {
	if _, err := netip.ParseAddr(c.Host); err != nil {
		return api.Refuse("host", fmt.Sprintf("%q", c.Host), "an IP address")
	}
	if c.WorkersOnly && c.Engine == "trtllm" {
		return api.Refuse("engine", `"trtllm"`, "vllm or sglang with --workers-only")
	}
	o, err := c.simulation()
	if err != nil {
		return err
	}
	o.OverlapWeight, o.Temperature, o.BestPlacement = c.OverlapWeight, c.Temperature, c.BestPlacement
	o.ForgetAnswers, o.Restart = c.ForgetAnswers, c.Restart
	o.Router = sim.RouterSwitches(c.Router)
	server, err := httpd.New(c.options(o, stderr))
	if err != nil {
		return err
	}
	defer server.Close()
	o.Mode, o.Speculation = server.Mode()
	out := newScreen(stdout, stderr)
	if c.WorkersOnly {
		return serveAll(ctx, c.Host, c.engines(server), func(taken []string) {
			at := newEngineAddresses(taken)
			for i := range at.workers {
				server.Locate(i, at.workers[i], at.events[i], at.replays[i])
			}
			out.table(c.enginesHeading(o), at.rows(o), "Press Ctrl-C to stop.")
		}, server.Close)
	}
	endpoints := []endpoint{{flag: "port", port: c.Port, handler: server.Frontend()}}
	for i := range server.Workers() {
		endpoints = append(endpoints,
			endpoint{flag: "worker-port", port: following(c.WorkerPort, i), handler: server.Worker(i)},
			endpoint{flag: "gpu-port", port: following(c.GPUPort, i), handler: server.GPUs(i)})
	}
	up := func(taken []string) {
		at := addresses{frontend: taken[0]}
		for i := 1; i < len(taken); i += 2 {
			at.workers, at.gpus = append(at.workers, taken[i]), append(at.gpus, taken[i+1])
		}
		c.announce(out, o, at)
	}
	return serveAll(ctx, c.Host, endpoints, up, server.Close)
}

// options returns the options of the servers of a cluster.
func (c *clusterCmd) options(o sim.Options, stderr io.Writer) httpd.Options {
	options := httpd.Options{
		Cluster: o, Engine: c.Engine, Speed: c.Speed, StateFile: c.StateFile, Hosts: c.Hosts,
		Pods: metrics.Pods{Namespace: c.PodNamespace, Name: c.PodName}, Log: newLog(stderr, slog.LevelInfo),
		Faults: httpd.Faults{
			HTTP500: c.Fault.HTTP500, HTTP429: c.Fault.HTTP429,
			Stall: c.Fault.Stall, Disconnect: c.Fault.Disconnect,
		},
	}
	if c.WorkersOnly {
		options.Events = &events.Format{Arrays: c.EventFormat == "arrays", PodTopic: c.EventTopic == "pod"}
	}
	return options
}

// following returns the port of the worker with index i, or 0 for a free one.
func following(first, i int) int {
	if first == 0 {
		return 0
	}
	return first + i
}

// announce prints the addresses of the cluster.
func (c *clusterCmd) announce(out *screen, o sim.Options, at addresses) {
	rows := append(slices.Insert(at.rows(), 1, [2]string{"model", o.Profile.Model}),
		[2]string{"API", "POST /v1/chat/completions, GET /v1/models, /health, /live; " +
			"/sim/v1 switches the mode and injects faults"},
		[2]string{"imitates", "the frontend of NVIDIA Dynamo " + local.DynamoVersion +
			"; docs/simulated-api.md lists what it supports, ignores and rejects"})
	out.table(c.heading(o), rows, "Press Ctrl-C to stop.")
}

// endpoint is what is served on a port.
type endpoint struct {
	flag    string       // flag of the port
	port    int          // 0 means a free one
	handler http.Handler // nil with serve
	serve   func(context.Context, net.Listener) error
}

// endTimeout is the time for requests in progress to end after the server stops.
const endTimeout = time.Second

// serveAll listens on all ports of an IP address, calls up with the addresses in the order of the endpoints, and
// serves until ctx ends. Then it calls end, which must end the requests in progress. If a port is not available, it
// releases all ports and returns an *[api.FieldError].
func serveAll(ctx context.Context, host string, endpoints []endpoint, up func(taken []string), end func()) error {
	var listeners []net.Listener
	var taken []string
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	for _, s := range endpoints {
		if s.port != 0 {
			if err := checkPorts(map[string]int{s.flag: s.port}); err != nil {
				return err
			}
		}
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(s.port)))
		if err != nil {
			allowed := fmt.Sprintf("a free port of %s (%v)", host, err)
			return api.Refuse(s.flag, s.port, allowed)
		}
		listeners = append(listeners, l)
		taken = append(taken, net.JoinHostPort(host, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)))
	}
	up(taken)
	group, ctx := errgroup.WithContext(ctx)
	stopped := context.AfterFunc(ctx, end)
	defer stopped()
	for i, s := range endpoints {
		group.Go(func() error {
			if s.serve != nil {
				return s.serve(ctx, listeners[i])
			}
			server := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
			return api.Serve(ctx, server, listeners[i], endTimeout)
		})
	}
	return group.Wait()
}

// newLog returns a log of messages at or above a level.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}
