// Package httpd serves the simulated cluster of package sim over HTTP, like a real NVIDIA Dynamo deployment: an
// OpenAI-compatible frontend, and the metrics pages of frontend, workers and GPUs for Prometheus.
//
// The cluster runs on the wall clock, or faster by a factor. All times that it reports (nvext.timing, metrics,
// decisions) are virtual. One goroutine advances the cluster from event to event and sleeps between them. The
// cluster's observers only record events. Each request's own goroutine writes them to its client, so that a slow
// client does not delay others.
//
// Besides Dynamo's paths, the frontend has /sim/v1, by which the booth and tests control the simulation: its mode,
// faults, the loss of a worker, and the router's decisions. These calls are restricted to the server's own host
// names.
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
	"kvbooth/sidecar/booth/httpd/events"
	"kvbooth/sidecar/booth/httpd/metrics"
	"kvbooth/sidecar/sim"
)

// Options configure a server.
type Options struct {
	Cluster sim.Options
	Engine  string  // engine whose metrics the workers have: trtllm, vllm or sglang
	Speed   float64 // virtual seconds per wall-clock second, above 0, up to 1000
	Faults  Faults  // initial faults

	// StateFile keeps mode and speculation across restarts of the process, like the specification of a deployment.
	// If the file exists, it takes precedence over Cluster. "" disables it.
	StateFile string

	// Events is the form in which the workers publish the events of their caches; nil: they publish none.
	Events *events.Format

	// Pods are the workers' pods in the metrics of the GPU exporters; the zero value means DefaultPods.
	Pods metrics.Pods

	// Hosts are host names, besides those of loopback, under which the control endpoints can be called. These
	// endpoints require no token.
	Hosts []string

	Log *slog.Logger // nil discards
}

// DefaultPods are the pods of the recorded deployment.
var DefaultPods = metrics.Pods{Namespace: "dynamo-workload", Name: "dynamo-worker"}

const maxSpeed = 1000

// CheckSpeed returns an *[api.FieldError] for a speed out of range, or nil.
func CheckSpeed(speed float64) error {
	if 0 < speed && speed <= maxSpeed { // false for NaN
		return nil
	}
	return api.Refuse("speed", speed, fmt.Sprintf("above 0, up to %d", maxSpeed))
}

// Server is a simulated cluster that runs on the wall clock. It is safe for concurrent use. Close must be called.
type Server struct {
	options Options
	log     *slog.Logger

	clock   *pacer
	metrics *metrics.Metrics
	prompts *prompts
	faults  *injector // of the frontend
	workers []*engine

	switching sync.Mutex // held while the mode changes

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	mu     sync.Mutex // guards closed and the start of work
	closed bool
	work   sync.WaitGroup // the clock and the requests in progress
}

// New starts a cluster with empty caches, ready to serve. Options out of range give an *[api.FieldError]. An invalid
// state file gives an error that names it.
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
	o.Pods = cmp.Or(o.Pods, DefaultPods)
	s := &Server{options: o, log: o.Log, prompts: newPrompts(maxKeptTokens), faults: newInjector(o.Cluster.Seed, o.Faults)}
	if o.Events != nil {
		o.Cluster.Caches = cacheEvents{s}
	}
	cluster, err := sim.New(o.Cluster)
	if err != nil {
		return nil, err
	}
	for i := range o.Cluster.Profile.Workers {
		s.workers = append(s.workers, newEngine(s, i))
	}
	s.clock = newPacer(cluster, o.Speed)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.metrics, err = metrics.New(o.Cluster.Profile, o.Engine, o.Pods, s.snapshot); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.work.Go(func() { s.clock.run(s.ctx) })
	return s, nil
}

// Close ends the cluster: requests in progress fail, and later ones are refused. It returns when all goroutines and
// requests have ended.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.work.Wait()
}

// Frontend returns the handler of the frontend's port: Dynamo's paths and /sim/v1.
func (s *Server) Frontend() http.Handler { return s.routes(s.endpoints()) }

// Control returns the handler of a port that has /sim/v1 alone.
func (s *Server) Control() http.Handler { return s.routes(s.admin()) }

// GPUs returns the handler of the DCGM exporter beside one worker, numbered from 0.
func (s *Server) GPUs(i int) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.GPUs(i))
	return mux
}

// Mode returns the router's mode and the workers' speculation.
func (s *Server) Mode() (api.Mode, api.Speculation) {
	state := s.snapshot().State
	return state.Mode, state.Speculation
}

// Workers returns the number of workers.
func (s *Server) Workers() int { return s.options.Cluster.Profile.Workers }

func (s *Server) snapshot() (m metrics.Snapshot) {
	s.clock.do(func(c *sim.Cluster) {
		m = metrics.Snapshot{State: c.State(), Workers: c.Workers(), Router: c.RouterStats(), Now: c.Now()}
	})
	return m
}

// readyIn returns the remaining time of a restart, on the wall clock.
func (s *Server) readyIn() (wait time.Duration) {
	s.clock.do(func(c *sim.Cluster) { wait = s.until(c, c.State().ReadyAt) })
	return wait
}

// until returns the wall-clock time until a moment of virtual time, 0 for one in the past.
func (s *Server) until(c *sim.Cluster, at time.Duration) time.Duration {
	return s.clock.wall(max(0, at-c.Now()))
}

// enter registers a request, which leave must end. It returns false after Close.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Add(1)
	}
	return !s.closed
}

func (s *Server) leave() { s.work.Done() }
