package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// BenchmarkReading measures the work of one second: parsing what was read,
// taking it into the history and computing the cluster.
func BenchmarkReading(b *testing.B) {
	for _, n := range []int{3, 256, 2000} {
		pages := manyPages(b, n)
		read := make([]page, n)
		for i := range read {
			read[i].URL = &url.URL{Host: fmt.Sprintf("worker-%d:9090", i)}
		}
		b.Run(fmt.Sprintf("pages/workers=%d", n), func(b *testing.B) {
			var size int
			for i := range pages {
				size += len(pages[i])
			}
			h, now := history{}, start
			b.SetBytes(int64(size))
			defer cpu(b)()
			for b.Loop() {
				var samples []Sample
				for i, page := range pages {
					told, err := read[i].parse(bytes.NewReader(page))
					require.NoError(b, err)
					samples = append(samples, told...)
				}
				now = now.Add(period)
				samples = h.add(now, samples)
				c := summarise(b.Context(), samples, api.SpeculationOff)
				require.True(b, c.Available)
			}
		})
		b.Run(fmt.Sprintf("prometheus/workers=%d", n), func(b *testing.B) {
			var targets scraped
			for i, page := range pages {
				pod := model.LabelValue(fmt.Sprintf("dynamo-worker-%d", i))
				targets = append(targets, scraped{{model.LabelSet{"instance": pod + ":9090", "pod": pod, "job": "dynamo", "namespace": "dynamo-workload", "container": "main"}, string(page)}}...)
			}
			rec := httptest.NewRecorder()
			targets.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/api/v1/query?query="+`__name__=~"`+strings.Join(wantedNames, "|")+`"`, nil))
			answer := rec.Body.String()
			source, err := NewPrometheus("http://prometheus:9090", "", &http.Client{Transport: answering(answer)})
			require.NoError(b, err)
			h, now := history{}, start
			b.SetBytes(int64(len(answer)))
			defer cpu(b)()
			for b.Loop() {
				samples, err := source.Fetch(context.Background())
				require.NoError(b, err)
				now = now.Add(period)
				samples = h.add(now, samples)
				c := summarise(b.Context(), samples, api.SpeculationOff)
				require.True(b, c.Available)
			}
		})
		b.Run(fmt.Sprintf("summarise/workers=%d", n), func(b *testing.B) {
			var samples []Sample
			for i, page := range pages {
				told, err := read[i].parse(bytes.NewReader(page))
				require.NoError(b, err)
				samples = append(samples, told...)
			}
			h := history{}
			for i := range 60 {
				samples = h.add(start.Add(time.Duration(i)*period), samples)
			}
			defer cpu(b)()
			for b.Loop() {
				summarise(b.Context(), samples, api.SpeculationOff)
			}
		})
	}
}

// cpuTime is that of all threads, which other programs do not stretch.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpu reports it for each round.
func cpu(b *testing.B) func() {
	before := cpuTime(b)
	return func() { b.ReportMetric((cpuTime(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/op") }
}

// answering is a server with one answer.
type answering string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

// manyPages are the metrics pages of n workers, each as long as a real one's.
func manyPages(tb testing.TB, n int) [][]byte {
	page := fixture(tb, "worker-trtllm.prom")
	pages := make([][]byte, n)
	for i := range pages {
		pages[i] = []byte(strings.ReplaceAll(page, "e5aade5faf97e9f2", fmt.Sprintf("e5aade5f%08x", i)))
	}
	return pages
}

// Of many workers the snapshot lists the ends and sums up the rest, and stays small.
func TestManyWorkers(t *testing.T) {
	cluster := func(n int) api.Cluster {
		var samples []Sample
		for i := range n {
			labels := model.LabelSet{"worker_id": model.LabelValue(strconv.FormatInt(int64(i), 16)), model.InstanceLabel: model.LabelValue(fmt.Sprintf("dynamo-worker-%04d:9090", i))}
			gpu := model.LabelSet{"gpu": "0", "pod": "nobody's"}
			samples = append(samples,
				Sample{Name: workerInflight[0], Labels: labels, Value: float64(i % 1000)},
				Sample{Name: workerRequests[0], Labels: labels, Value: 2},
				Sample{Name: waiting[0], Labels: labels, Value: 1},
				Sample{Name: cacheUse[0], Labels: labels, Value: float64(i) / float64(n)},
				Sample{Name: gpuUtilisation[0], Labels: gpu, Value: 50})
		}
		return summarise(t.Context(), samples, api.SpeculationOff)
	}
	few := cluster(mostListed)
	require.Len(t, few.Workers, mostListed)
	require.Nil(t, few.AllWorkers)

	c := cluster(2000)
	require.Equal(t, 2000, c.WorkerCount())
	near(t, 0, c.InflightMin, "of all")
	near(t, 999, c.InflightMax, "of all")
	near(t, 999*1000, c.Inflight, "of all")
	near(t, 2000, c.AllWorkers.Waiting, "of all")
	near(t, 4000, c.AllWorkers.Routed, "of all")
	require.Equal(t, &api.Spread{Min: 0, P10: 99, P50: 499, P90: 899, Max: 999}, c.AllWorkers.Inflight)
	require.InDelta(t, 0.5, c.AllWorkers.CacheUse.P50, 0.001)
	var listed []float64
	for _, w := range c.Workers {
		listed = append(listed, *w.Inflight)
	}
	slices.Sort(listed)
	require.Equal(t, []float64{0, 0, 1, 1, 2, 2, 3, 3, 996, 996, 997, 997, 998, 998, 999, 999}, listed)
	text, err := json.Marshal(c)
	require.NoError(t, err)
	require.Less(t, len(text), 10_000, "bytes of the snapshot")
	t.Log(len(text), "bytes for 2,000 workers")
}
