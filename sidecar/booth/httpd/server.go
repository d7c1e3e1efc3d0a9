package httpd

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/httpd/metrics"
	"kvbooth/sidecar/sim"
)

// Options say what is served, and how fast.
type Options struct {
	Cluster sim.Options
	Engine  string  // whose metrics the workers have: trtllm, vllm or sglang
	Speed   float64 // virtual seconds in one of the wall clock, above 0, up to 1000
	Faults  Faults  // injected from the beginning

	// StateFile keeps mode and speculation beyond the process, as the specification
	// of a deployment does; where it exists, it wins over Cluster. "" keeps nothing.
	StateFile string

	// Pods are the workers', as the exporters of their GPUs name them; the zero value is
	// DefaultPods.
	Pods metrics.Pods

	// Hosts are the names, besides those of loopback, under which the calls that steer
	// it may be made. They ask nobody for a token.
	Hosts []string

	Log *slog.Logger // nil discards
}

// DefaultPods are those of the recorded deployment.
var DefaultPods = metrics.Pods{Namespace: "dynamo-workload", Name: "dynamo-worker"}

const maxSpeed = 1000

// CheckSpeed refuses a speed that no cluster can have, with an *[api.FieldError].
func CheckSpeed(speed float64) error {
	if 0 < speed && speed <= maxSpeed { // never true of NaN
		return nil
	}
	return &api.FieldError{Field: "speed", Value: fmt.Sprint(speed), Allowed: fmt.Sprintf("above 0, up to %d", maxSpeed)}
}

// Server is a simulated cluster that lives on the wall clock. It is safe for
// concurrent use, and Close ends it.
type Server struct {
	options Options
	log     *slog.Logger

	clock    *pacer
	metrics  *metrics.Metrics
	prompts  *prompts
	faults   *injector
	frontend http.Handler

	switching sync.Mutex // held while the mode changes

	ctx    context.Context // until Close
	cancel context.CancelFunc
	mu     sync.Mutex // guards closed, and so the beginning of work
	closed bool
	work   sync.WaitGroup // the clock, and requests
}

// New starts a cluster with empty caches, ready to serve. Options that are out of
// range give an *[api.FieldError]; a state file that cannot be read or used gives
// an error that names it.
func New(o Options) (*Server, error) {
	if err := CheckSpeed(o.Speed); err != nil {
		return nil, err
	}
	if err := o.Faults.validate(); err != nil {
		return nil, err
	}
	if err := o.restore(); err != nil {
		return nil, err
	}
	cluster, err := sim.New(o.Cluster)
	if err != nil {
		return nil, err
	}
	o.Pods = cmp.Or(o.Pods, DefaultPods)
	s := &Server{
		options: o, log: o.Log, clock: newPacer(cluster, o.Speed),
		prompts: newPrompts(maxKeptTokens), faults: newInjector(o.Cluster.Seed, o.Faults),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.metrics, err = metrics.New(o.Cluster.Profile, o.Engine, o.Pods, s.snapshot); err != nil {
		return nil, err
	}
	s.frontend = s.routes()
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.work.Go(func() { s.clock.run(s.ctx) })
	return s, nil
}

// Close ends the cluster: requests in progress fail, and later ones are refused.
// It returns when nothing is left that New or a request started.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.work.Wait()
}

// Frontend serves what a Dynamo frontend does on its port, and /sim/v1.
func (s *Server) Frontend() http.Handler { return s.frontend }

// Worker serves /metrics of one worker, from 0.
func (s *Server) Worker(i int) http.Handler { return only("/metrics", s.metrics.Worker(i)) }

// GPUs serves /metrics of the DCGM exporter beside one worker, from 0.
func (s *Server) GPUs(i int) http.Handler { return only("/metrics", s.metrics.GPUs(i)) }

// Mode is the router's mode, and how the workers speculate.
func (s *Server) Mode() (api.Mode, api.Speculation) {
	state := s.snapshot().State
	return state.Mode, state.Speculation
}

// Workers is the number of workers.
func (s *Server) Workers() int { return s.options.Cluster.Profile.Workers }

func only(path string, h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+path, h)
	return mux
}

func (s *Server) snapshot() (m metrics.Snapshot) {
	s.clock.do(func(c *sim.Cluster) {
		m = metrics.Snapshot{State: c.State(), Workers: c.Workers(), Router: c.RouterStats(), Now: c.Now()}
	})
	return m
}

// readyIn is how long the cluster still restarts, on the wall clock.
func (s *Server) readyIn() (wait time.Duration) {
	s.clock.do(func(c *sim.Cluster) { wait = s.until(c, c.State().ReadyAt) })
	return wait
}

// until is how long a moment of virtual time is away on the wall clock, 0 for one
// that has passed.
func (s *Server) until(c *sim.Cluster, at time.Duration) time.Duration {
	return s.clock.wall(max(0, at-c.Now()))
}

// enter begins a request, which leave must end; false after Close.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Add(1)
	}
	return !s.closed
}

func (s *Server) leave() { s.work.Done() }
