// Package metrics implements the Prometheus metrics of the simulated cluster's processes: the frontend, each worker
// with its engine, and a DCGM exporter beside each worker. Names, types, labels, buckets and the moments of counting
// equal those in Dynamo 1.6.1, in TensorRT-LLM, vLLM and SGLang, and in the DCGM exporter. Metrics without a
// counterpart in the simulation are left out. All times are virtual.
//
//	began      m.Begin            requests_started, inflight, queued
//	routed     Request.Routed     the router's requests and input tokens, predicted hit rate
//	first      Request.FirstToken time to first token, input tokens; queued ends
//	tokens     Request.Tokens     output tokens; each token's gap is the chunk's divided by its tokens
//	finished   Request.Finished   output and cached tokens, the worker's and the engine's histograms
//	ended      Request.Ended      requests_total, request_duration; inflight ends
//
// A process that restarts counts from zero: [Metrics.Restarted], [Metrics.FrontendRestarted],
// [Metrics.WorkerRestarted]. Requests that an old process served do not count in the new one.
package metrics

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// Snapshot is the complete state of a cluster at one moment.
type Snapshot struct {
	State   sim.State
	Workers []sim.WorkerStats
	Router  sim.RouterStats
	Now     time.Duration
}

// Metrics holds the metrics of the processes of one simulated cluster. It is safe for concurrent use.
type Metrics struct {
	profile  sim.Profile
	engine   string
	pods     Pods
	snapshot func() Snapshot

	// mu guards the fields below and the states of requests. The cluster's lock may be held when mu is taken, so mu
	// must not be held during a snapshot.
	mu       sync.Mutex
	starts   uint64 // number of starts of the frontend
	frontend *frontend
	workers  map[sim.WorkerID]*worker
	meters   map[sim.WorkerID]*meter
}

// Pods identify the pods of a cluster's workers.
type Pods struct{ Namespace, Name string } // Name is without a pod's number

// New returns the metrics of a cluster whose workers run the engine "trtllm", "vllm" or "sglang". Another engine or
// an invalid profile gives an *[api.FieldError]. pods are the workers' pods in the metrics of the GPU exporters.
// snapshot is called for every scrape and restart, and may take the cluster's lock.
func New(p sim.Profile, engine string, pods Pods, snapshot func() Snapshot) (*Metrics, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if engines[engine] == nil {
		return nil, api.Refuse("engine", engine, "trtllm, vllm or sglang")
	}
	m := &Metrics{profile: p, engine: engine, pods: pods, snapshot: snapshot}
	m.restart(Snapshot{})
	return m, nil
}

// Restarted records a restart of all processes: every counter begins at zero. It takes a snapshot, so the cluster's
// lock must not be held.
func (m *Metrics) Restarted() {
	s := m.snapshot()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restart(s)
}

// restart replaces all processes by new ones. base has the cluster's counters at their start.
func (m *Metrics) restart(base Snapshot) {
	m.starts++
	m.frontend = newFrontend(m.profile, instanceID(m.starts), ReportsCachedTokens(m.engine), base)
	m.workers = map[sim.WorkerID]*worker{}
	m.meters = map[sim.WorkerID]*meter{}
	for _, w := range base.Workers {
		m.workers[w.ID] = newWorker(m.profile, m.engine, w.ID, w.WorkerCounters)
	}
}

// FrontendRestarted records a restart of the frontend's process only: its counters begin at zero, the workers'
// counters continue. It takes a snapshot, so the cluster's lock must not be held.
func (m *Metrics) FrontendRestarted() {
	s := m.snapshot()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.starts++
	m.frontend = newFrontend(m.profile, instanceID(m.starts), ReportsCachedTokens(m.engine), s)
}

// instanceID returns the id of the frontend's process, which is different after each start.
func instanceID(start uint64) uint64 {
	return rand.New(rand.NewPCG(start, start)).Uint64() | 1<<63
}

// WorkerRestarted records a restart of the process of one worker, numbered from 0: its own counters begin at zero, the
// frontend's continue. It takes a snapshot, so the cluster's lock must not be held.
func (m *Metrics) WorkerRestarted(index int) {
	s := m.snapshot()
	if index < 0 || index >= len(s.Workers) {
		return
	}
	w := s.Workers[index]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.workers[w.ID] = newWorker(m.profile, m.engine, w.ID, w.WorkerCounters)
	delete(m.meters, w.ID)
	delete(m.frontend.latest, w.ID)
}

// worker returns the process of a worker. A process that never restarted has all counts of the cluster.
func (m *Metrics) worker(id sim.WorkerID) *worker {
	w, ok := m.workers[id]
	if !ok {
		w = newWorker(m.profile, m.engine, id, sim.WorkerCounters{})
		m.workers[id] = w
	}
	return w
}

// Frontend returns the handler of the frontend's metrics. It responds with 503 while the cluster restarts.
func (m *Metrics) Frontend() http.Handler {
	return m.serve(func(s Snapshot) (page, int, string) {
		if !s.State.Ready {
			return nil, http.StatusServiceUnavailable, restarting
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		f, latest := m.frontend, m.frontend.copyLatest()
		return func(out sink) { f.collect(out, s, latest) }, 0, ""
	})
}

// Worker returns the handler of the metrics of one worker, numbered from 0. It responds with 503 while the worker is
// lost.
func (m *Metrics) Worker(index int) http.Handler {
	return m.serve(func(s Snapshot) (page, int, string) {
		switch {
		case index < 0 || index >= len(s.Workers):
			return nil, http.StatusNotFound, unknown
		case !s.State.Ready:
			return nil, http.StatusServiceUnavailable, restarting
		case !s.Workers[index].Ready:
			return nil, http.StatusServiceUnavailable, "The worker was lost and is not back yet."
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		stats := s.Workers[index]
		w := m.worker(stats.ID)
		return func(out sink) { w.collect(out, stats, s.Now) }, 0, ""
	})
}

// GPUs returns the handler of the DCGM exporter on the node of one worker, numbered from 0. The GPUs of a lost worker
// are idle and empty.
func (m *Metrics) GPUs(index int) http.Handler {
	return m.serve(func(s Snapshot) (page, int, string) {
		if index < 0 || index >= len(s.Workers) {
			return nil, http.StatusNotFound, unknown
		}
		stats := s.Workers[index]
		m.mu.Lock()
		defer m.mu.Unlock()
		use := m.meter(stats).utilization(s.Now, stats)
		return func(out sink) { collectGPUs(out, m.profile, stats, m.pods, s.Now, use) }, 0, ""
	})
}

const (
	restarting = "The cluster restarts."
	unknown    = "There is no such worker."
)

// serve responds to each scrape with the page for one snapshot, or with a status and its reason.
func (m *Metrics) serve(render func(Snapshot) (page, int, string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := m.snapshot()
		m.sample(s)
		p, status, reason := render(s)
		if p == nil {
			http.Error(w, reason, status)
			return
		}
		registry := prometheus.NewRegistry()
		registry.MustRegister(p)
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
}

// page writes the metrics of one scrape.
type page func(sink)

// Describe implements [prometheus.Collector]. It describes nothing, because the metrics depend on the scrape.
func (page) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (p page) Collect(ch chan<- prometheus.Metric) { p(ch) }

// sink receives the metrics of one scrape.
type sink chan<- prometheus.Metric

func (s sink) gauge(labels prometheus.Labels, name, help string, value float64) {
	s <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), prometheus.GaugeValue, value)
}

func (s sink) counter(labels prometheus.Labels, name, help string, value int64) {
	desc := prometheus.NewDesc(name, help, nil, labels)
	s <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value))
}

func (s sink) all(collectors set) {
	for _, c := range collectors {
		c.Collect(s)
	}
}

// set holds the metrics that a process updates itself.
type set []prometheus.Collector

func (s *set) histogram(labels prometheus.Labels, name, help string, bounds []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, ConstLabels: labels, Buckets: bounds})
	*s = append(*s, h)
	return h
}

func (s *set) counter(labels prometheus.Labels, name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	*s = append(*s, c)
	return c
}

// counters adds a counter with variable labels. Each combination appears with its first count.
func (s *set) counters(labels prometheus.Labels, name, help string, names ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, names)
	*s = append(*s, c)
	return c
}

func (s *set) gauge(labels prometheus.Labels, name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	*s = append(*s, g)
	return g
}

// with returns labels with further ones added, given as names and values in turn.
func with(labels prometheus.Labels, more ...string) prometheus.Labels {
	all := maps.Clone(labels)
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

func decimal(id uint64) string     { return fmt.Sprint(id) }
func hexadecimal(id uint64) string { return fmt.Sprintf("%x", id) }
