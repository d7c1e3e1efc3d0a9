package metrics

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/sim"
)

// booth is a cluster with its metrics, driven in virtual time.
type booth struct {
	t       testing.TB
	mu      sync.Mutex // of the cluster
	cluster *sim.Cluster
	metrics *Metrics
}

func start(t testing.TB, engine string, change ...func(*sim.Options)) *booth {
	t.Helper()
	o := sim.DefaultOptions(sim.H200())
	for _, f := range change {
		f(&o)
	}
	b := &booth{t: t}
	var err error
	b.cluster, err = sim.New(o)
	require.NoError(t, err)
	b.metrics, err = New(o.Profile, engine, Pods{"dynamo-workload", "dynamo-worker"}, b.snapshot)
	require.NoError(t, err)
	return b
}

func (b *booth) snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Snapshot{
		State: b.cluster.State(), Workers: b.cluster.Workers(), Router: b.cluster.RouterStats(), Now: b.cluster.Now(),
	}
}

// turn is a request that reports its end like a server.
type turn struct {
	*Request
	job    *sim.Job
	report sim.Report
	chunks []int
}

func (t *turn) Tokens(at time.Duration, n int) {
	t.chunks = append(t.chunks, n)
	t.Request.Tokens(at, n)
}

func (t *turn) Finished(r sim.Report) {
	t.report = r
	t.Request.Finished(r)
	switch {
	case r.Err == nil:
		t.Ended("")
	case errors.Is(r.Err, sim.ErrCanceled):
		t.Ended("cancelled")
	default:
		t.Ended("unavailable")
	}
}

// send submits a request with the only prompt of the test. A refused request is counted as such.
func (b *booth) send(prompt, answer int) *turn {
	b.t.Helper()
	q := sim.NewRequest("a", make([]uint32, prompt), make([]uint32, answer), answer, 32)
	t := &turn{Request: b.metrics.Begin(true)}
	t.Tokenized()
	var err error
	b.do(func(c *sim.Cluster) { t.job, err = c.Submit(q, t) })
	if err != nil {
		t.Ended("unavailable")
	}
	return t
}

func (b *booth) advance(by time.Duration) { b.do(func(c *sim.Cluster) { c.Advance(c.Now() + by) }) }

func (b *booth) drain() {
	b.do(func(c *sim.Cluster) {
		for at, ok := c.Next(); ok; at, ok = c.Next() {
			c.Advance(at)
		}
	})
}

func (b *booth) do(f func(*sim.Cluster)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.cluster)
}

// families are the metrics of a scrape.
type families map[string]*dto.MetricFamily

func parse(t testing.TB, text string) families {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	f, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	return f
}

func get(h http.Handler) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Code, w.Body.String()
}

func scrape(t testing.TB, h http.Handler) families {
	t.Helper()
	status, body := get(h)
	require.Equal(t, http.StatusOK, status, body)
	return parse(t, body)
}

// labels returns the labels of a series as a map.
func labels(m *dto.Metric) map[string]string {
	all := map[string]string{}
	for _, l := range m.GetLabel() {
		all[l.GetName()] = l.GetValue()
	}
	return all
}

// find returns the one series of a name that has the given labels (names and values in turn), or nil.
func (f families) find(t testing.TB, name string, want ...string) *dto.Metric {
	t.Helper()
	var found []*dto.Metric
	for _, m := range f[name].GetMetric() {
		all := labels(m)
		fits := true
		for i := 0; i < len(want); i += 2 {
			fits = fits && all[want[i]] == want[i+1]
		}
		if fits {
			found = append(found, m)
		}
	}
	require.LessOrEqual(t, len(found), 1, "%s %v", name, want)
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

// read returns a figure of the one series with a name and labels, or -1 if it is missing.
func (f families) read(t testing.TB, figure func(*dto.Metric) float64, name string, want ...string) float64 {
	t.Helper()
	if m := f.find(t, name, want...); m != nil {
		return figure(m)
	}
	return -1
}

// value returns the value of a counter or a gauge, or -1 if it is missing.
func (f families) value(t testing.TB, name string, want ...string) float64 {
	t.Helper()
	figure := func(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetGauge().GetValue() }
	return f.read(t, figure, name, want...)
}

// count returns the number of observations of a histogram, or -1 if it is missing.
func (f families) count(t testing.TB, name string, want ...string) float64 {
	t.Helper()
	return f.read(t, func(m *dto.Metric) float64 { return float64(m.GetHistogram().GetSampleCount()) }, name, want...)
}

// sum returns the sum of the observations of a histogram, or -1 if it is missing.
func (f families) sum(t testing.TB, name string, want ...string) float64 {
	t.Helper()
	return f.read(t, func(m *dto.Metric) float64 { return m.GetHistogram().GetSampleSum() }, name, want...)
}

func (f families) names() []string { return slices.Sorted(maps.Keys(f)) }
