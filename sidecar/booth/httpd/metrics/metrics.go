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

// Snapshot is a cluster at one moment, all of it: counters left out would stay zero.
type Snapshot struct {
	State   sim.State
	Workers []sim.WorkerStats
	Router  sim.RouterStats
	Now     time.Duration
}

// Metrics is what the processes of one simulated cluster count. It is safe for
// concurrent use.
type Metrics struct {
	profile  sim.Profile
	engine   string
	pods     Pods
	snapshot func() Snapshot

	// mu guards what follows and the states of requests. The cluster's lock may be
	// held when it is taken, so it is never held while a snapshot is made.
	mu       sync.Mutex
	starts   uint64 // of the frontend
	frontend *frontend
	workers  map[sim.WorkerID]*worker
	meters   map[sim.WorkerID]*meter
}

// Pods are the pods of a cluster's workers.
type Pods struct{ Namespace, Name string } // the name without a pod's number

// New gives the metrics of a cluster whose workers run the engine "trtllm", "vllm"
// or "sglang"; another one, or a profile that is none, gives an *[api.FieldError].
// pods are the workers', as the exporters of their GPUs name them.
// snapshot is called for every scrape and restart, and may take the cluster's lock.
func New(p sim.Profile, engine string, pods Pods, snapshot func() Snapshot) (*Metrics, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if engines[engine] == nil {
		return nil, &api.FieldError{Field: "engine", Value: engine, Allowed: "trtllm, vllm or sglang"}
	}
	m := &Metrics{profile: p, engine: engine, pods: pods, snapshot: snapshot}
	m.restart(Snapshot{})
	return m, nil
}

// Restarted says that all processes were restarted: every counter begins from zero.
// It makes a snapshot, so the cluster's lock must not be held.
func (m *Metrics) Restarted() {
	s := m.snapshot()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restart(s)
}

// restart makes new processes, for which the cluster's counters count from a moment on.
func (m *Metrics) restart(base Snapshot) {
	m.starts++
	m.frontend = newFrontend(m.profile, instanceID(m.starts), TellsCachedTokens(m.engine), base)
	m.workers = map[sim.WorkerID]*worker{}
	m.meters = map[sim.WorkerID]*meter{}
	for _, w := range base.Workers {
		m.workers[w.ID] = newWorker(m.profile, m.engine, w.ID, w.WorkerCounters)
	}
}

// FrontendRestarted says that the frontend's process alone was restarted: its counters begin from zero, the workers' go
// on. It makes a snapshot, so the cluster's lock must not be held.
func (m *Metrics) FrontendRestarted() {
	s := m.snapshot()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.starts++
	m.frontend = newFrontend(m.profile, instanceID(m.starts), TellsCachedTokens(m.engine), s)
}

// instanceID is the id of the frontend's process, another one after each start.
func instanceID(start uint64) uint64 {
	return rand.New(rand.NewPCG(start, start)).Uint64() | 1<<63
}

// WorkerRestarted says that the process of one worker, from 0, was restarted: its
// own counters begin from zero, the frontend's go on. It makes a snapshot, so the
// cluster's lock must not be held.
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

// worker is the process of a worker. One that never restarted counts what the
// cluster has counted from its beginning.
func (m *Metrics) worker(id sim.WorkerID) *worker {
	w, ok := m.workers[id]
	if !ok {
		w = newWorker(m.profile, m.engine, id, sim.WorkerCounters{})
		m.workers[id] = w
	}
	return w
}

// Frontend serves the frontend's metrics, and 503 while the cluster restarts.
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

// Worker serves the metrics of one worker, from 0, and 503 while it is not there.
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

// GPUs serves the DCGM exporter of the node of one worker, from 0. A worker that is
// not there leaves its GPUs idle and empty.
func (m *Metrics) GPUs(index int) http.Handler {
	return m.serve(func(s Snapshot) (page, int, string) {
		if index < 0 || index >= len(s.Workers) {
			return nil, http.StatusNotFound, unknown
		}
		stats := s.Workers[index]
		m.mu.Lock()
		defer m.mu.Unlock()
		use := m.meter(stats).utilisation(s.Now, stats)
		return func(out sink) { collectGPUs(out, m.profile, stats, m.pods, use) }, 0, ""
	})
}

const (
	restarting = "The cluster restarts."
	unknown    = "There is no such worker."
)

// serve answers each scrape from one snapshot: with a page, or with a status and
// the reason why there is none.
func (m *Metrics) serve(of func(Snapshot) (page, int, string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := m.snapshot()
		m.sample(s)
		p, status, reason := of(s)
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

// Describe implements [prometheus.Collector]: which metrics there are is decided at
// the scrape.
func (page) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (p page) Collect(ch chan<- prometheus.Metric) { p(ch) }

// sink takes the metrics of one scrape.
type sink chan<- prometheus.Metric

func (s sink) gauge(labels prometheus.Labels, name, help string, value float64) {
	s <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), prometheus.GaugeValue, value)
}

func (s sink) counter(labels prometheus.Labels, name, help string, value int64) {
	s <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), prometheus.CounterValue, float64(value))
}

func (s sink) all(of set) {
	for _, c := range of {
		c.Collect(s)
	}
}

// set holds the metrics that a process counts by itself.
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

// counters differ in some labels; each appears with its first count.
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

// with adds labels to others, given as names and values in turn.
func with(labels prometheus.Labels, more ...string) prometheus.Labels {
	all := maps.Clone(labels)
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

func decimal(id uint64) string     { return fmt.Sprint(id) }
func hexadecimal(id uint64) string { return fmt.Sprintf("%x", id) }
