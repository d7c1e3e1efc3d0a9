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
	"kvbooth/sidecar/booth/httpd/metrics"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/sim"
)

// simFlags say what a simulated cluster is like.
type simFlags struct {
	Profile     string          `default:"h200-tp1" help:"The deployment that is simulated: ${profiles}, or a file such as booth calibrate writes."`
	Workers     int             `default:"0" help:"Number of workers; 0 is as many as the deployment has."`
	Mode        api.Mode        `default:"kv" help:"Mode of the router: kv, round_robin, least_loaded. An operator can switch it."`
	Speculation api.Speculation `default:"not_recorded" help:"Speculative decoding: not_recorded (as it was when the results were recorded), off, draft, eagle3. An operator can switch it."`
	Engine      string          `default:"trtllm" enum:"trtllm,vllm,sglang" help:"Engine whose metrics the workers have: ${enum}."`
	Speed       float64         `default:"1" help:"How many times as fast as the clock its time goes."`
	Seed        uint64          `default:"1" help:"Seed of all that is left to chance."`
}

// simulation gives the cluster that the flags ask for. What is not allowed is an
// *[api.FieldError].
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
	o := sim.DefaultOptions(p)
	o.Mode, o.Speculation, o.Seed = f.Mode, f.Speculation, f.Seed
	_, err = sim.New(o)
	return o, err
}

// args are the flags again, for another process.
func (f *simFlags) args() []string {
	return []string{
		"--profile=" + f.Profile, "--workers=" + strconv.Itoa(f.Workers), "--mode=" + string(f.Mode),
		"--speculation=" + string(f.Speculation), "--engine=" + f.Engine,
		"--speed=" + strconv.FormatFloat(f.Speed, 'g', -1, 64), "--seed=" + strconv.FormatUint(f.Seed, 10),
	}
}

// routerFlags are those of Dynamo's frontend of the same names: [sim.RouterSwitches].
type routerFlags struct {
	DecodeActiveRequestWeight float64 `default:"0" placeholder:"BLOCKS" help:"As Dynamo's: blocks that each request in progress adds to the cost of its worker."`
	TrackOutputBlocks         bool    `negatable:"" help:"As Dynamo's: count the blocks of answers as they grow."`
	AssumeKVReuse             bool    `name:"assume-kv-reuse" default:"true" negatable:"" help:"As Dynamo's: count a block that several requests in progress share once."`
	TrackActiveBlocks         bool    `default:"true" negatable:"" help:"As Dynamo's: count the blocks of requests in progress."`
	TrackPrefillTokens        bool    `default:"true" negatable:"" help:"As Dynamo's: count what is to be prefilled."`
	OverlapScoreCredit        float64 `name:"kv-overlap-score-credit" default:"1" help:"As Dynamo's: how much of a block that a worker holds counts as prefilled, 0 to 1."`
	OverlapScoreCreditDecay   float64 `name:"kv-overlap-score-credit-decay" default:"0" help:"As Dynamo's: how fast that falls with the prefill that waits on the worker."`
}

// clusterCmd is `booth cluster`.
type clusterCmd struct {
	simFlags
	Host       string   `default:"127.0.0.1" placeholder:"IP" help:"IP address to listen on. It asks nobody for a token, so another one than loopback is for networks that only you reach."`
	Hosts      []string `placeholder:"NAME" help:"Host names, besides loopback, under which the mode may be switched."`
	Port       int      `default:"8000" help:"Port of the frontend."`
	WorkerPort int      `default:"8081" help:"Port of the first worker's metrics; those of the others follow it."`
	GPUPort    int      `name:"gpu-port" default:"9400" help:"Port of the metrics of the first worker's GPUs; those of the others follow it."`

	OverlapWeight float64       `default:"1" help:"Weight of the prefill in the costs under kv."`
	Temperature   float64       `default:"0" help:"Temperature of the choice under kv; 0 takes the lowest cost."`
	Router        routerFlags   `embed:"" prefix:"router-"`
	ForgetAnswers bool          `negatable:"" help:"Never find the blocks of answers again, as Dynamo's mock workers do."`
	Restart       time.Duration `default:"5s" help:"How long a change of mode takes."`
	PodNamespace  string        `default:"${namespace}" placeholder:"NAME" help:"Namespace of the workers' pods, as the exporters of their GPUs name it."`
	PodName       string        `default:"${pod}" placeholder:"NAME" help:"Name of these pods, without their numbers."`
	StateFile     string        `placeholder:"FILE" help:"File that keeps mode and speculation over a restart of this process."`

	Fault struct {
		HTTP500    float64 `name:"http-500" default:"0" help:"Share of requests that fail with status 500."`
		HTTP429    float64 `name:"http-429" default:"0" help:"Share of requests that fail with status 429."`
		Stall      float64 `default:"0" help:"Share of answers that go silent."`
		Disconnect float64 `default:"0" help:"Share of answers that break off."`
	} `embed:"" prefix:"fault-"`
}

func (c *clusterCmd) run(ctx, _ context.Context, stdout, stderr io.Writer) error {
	if _, err := netip.ParseAddr(c.Host); err != nil {
		return &api.FieldError{Field: "host", Value: fmt.Sprintf("%q", c.Host), Allowed: "an IP address"}
	}
	o, err := c.simulation()
	if err != nil {
		return err
	}
	o.OverlapWeight, o.Temperature, o.ForgetAnswers, o.Restart = c.OverlapWeight, c.Temperature, c.ForgetAnswers, c.Restart
	o.Router = sim.RouterSwitches(c.Router)
	server, err := httpd.New(httpd.Options{
		Cluster: o, Engine: c.Engine, Speed: c.Speed, StateFile: c.StateFile, Pods: metrics.Pods{Namespace: c.PodNamespace, Name: c.PodName}, Hosts: c.Hosts, Log: newLog(stderr, slog.LevelInfo),
		Faults: httpd.Faults{HTTP500: c.Fault.HTTP500, HTTP429: c.Fault.HTTP429, Stall: c.Fault.Stall, Disconnect: c.Fault.Disconnect},
	})
	if err != nil {
		return err
	}
	defer server.Close()
	at := addresses{frontend: c.at(c.Port)}
	endpoints := []endpoint{{"port", c.Port, server.Frontend()}}
	for i := range server.Workers() {
		at.workers, at.gpus = append(at.workers, c.at(c.WorkerPort+i)), append(at.gpus, c.at(c.GPUPort+i))
		endpoints = append(endpoints, endpoint{"worker-port", c.WorkerPort + i, server.Worker(i)}, endpoint{"gpu-port", c.GPUPort + i, server.GPUs(i)})
	}
	o.Mode, o.Speculation = server.Mode()
	return serveAll(ctx, c.Host, endpoints, func() { c.announce(newScreen(stdout, stderr), o, at) }, server.Close)
}

// at is the address of a port of the cluster.
func (c *clusterCmd) at(port int) string { return net.JoinHostPort(c.Host, strconv.Itoa(port)) }

// announce says where the cluster is, and what it imitates.
func (c *clusterCmd) announce(out *screen, o sim.Options, at addresses) {
	rows := append(slices.Insert(at.rows(), 1, [2]string{"model", o.Profile.Model}),
		[2]string{"API", "POST /v1/chat/completions, GET /v1/models, /health, /live; /sim/v1 switches the mode and injects faults"},
		[2]string{"imitates", "the frontend of NVIDIA Dynamo " + local.DynamoVersion + "; docs/simulated-api.md says what it honours, ignores and refuses"})
	out.table(c.heading(o), rows, "Ctrl-C stops it.")
}

// endpoint is what is served on one port.
type endpoint struct {
	flag    string // that chose the port
	port    int
	handler http.Handler
}

// endWithin is what requests in progress get to end in, once nothing serves them.
const endWithin = time.Second

// serveAll takes all ports of an IP address, or none, calls up and serves them until
// ctx ends. Then it calls end, which is to end the requests in progress. A port that cannot be
// taken gives an *[api.FieldError].
func serveAll(ctx context.Context, host string, endpoints []endpoint, up, end func()) error {
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	for _, s := range endpoints {
		if err := checkPorts(map[string]int{s.flag: s.port}); err != nil {
			return err
		}
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(s.port)))
		if err != nil {
			return &api.FieldError{Field: s.flag, Value: strconv.Itoa(s.port), Allowed: fmt.Sprintf("a free port of %s (%v)", host, err)}
		}
		listeners = append(listeners, l)
	}
	up()
	group, ctx := errgroup.WithContext(ctx)
	stopped := context.AfterFunc(ctx, end)
	defer stopped()
	for i, s := range endpoints {
		group.Go(func() error {
			return api.Serve(ctx, &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}, listeners[i], endWithin)
		})
	}
	return group.Wait()
}
