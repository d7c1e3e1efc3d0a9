package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/sidecar/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Worker ids of the fixtures, as in /health and on the frontend's page.
const (
	trtllmWorker = "16549284283275536882" // e5aade5faf97e9f2 on its own page
	vllmWorker   = "1519048204850184142"  // 1514be4b46ca3fce on its own page
	sglangWorker = "9955330718172049575"  // 8a28708ae62df0a7 on its own page
)

func fixture(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(text)
}

var update = flag.Bool("update", false, "rewrite what tests compare with in testdata")

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "go test ./sidecar/loadgen/cluster -update rewrites it")
}

var counterLine = regexp.MustCompile(`(?m)^(\S+_(?:total|sum|count)(?:\{.*\})?) \S+$`)

// atRest returns a page as it is before its first request, with all counters at zero.
func atRest(page string) string { return counterLine.ReplaceAllString(page, "$1 0") }

// scene holds metrics pages by host and port. It serves them as an http.RoundTripper, without a network.
type scene map[string]string

func (s scene) RoundTrip(req *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	if page, known := s[req.URL.Host]; known && req.URL.Path == "/metrics" {
		fmt.Fprint(rec, page)
	} else {
		rec.WriteHeader(http.StatusNotFound)
	}
	return rec.Result(), nil
}

// watched reads the scenes in order, one a second, and returns the cluster after
// the last. A scene's frontend is at frontend:8000.
func watched(t *testing.T, configured api.Speculation, scenes ...scene) api.Cluster {
	t.Helper()
	h := history{}
	now := time.Unix(1_800_000_000, 0)
	var c api.Cluster
	for _, s := range scenes {
		var further []string
		for host := range s {
			further = append(further, "http://"+host)
		}
		direct, err := NewDirect("http://frontend:8000", further, &http.Client{Transport: s})
		require.NoError(t, err)
		samples, _ := direct.Fetch(context.Background())
		now = now.Add(time.Second)
		samples = h.add(now, samples)
		c = summarize(t.Context(), samples, configured)
	}
	return c
}

// clusterOfFixtures returns the cluster of a recorded frontend and worker, read before the first request and after.
func clusterOfFixtures(t *testing.T, frontend, worker string) api.Cluster {
	t.Helper()
	frontend, worker = fixture(t, frontend), fixture(t, worker)
	c := watched(t, api.SpeculationOff,
		scene{"frontend:8000": atRest(frontend), "worker:8081": atRest(worker)},
		scene{"frontend:8000": frontend, "worker:8081": worker})
	require.True(t, c.Available)
	require.Empty(t, c.Problem)
	require.Len(t, c.Workers, 1, "the frontend, which has an id, is no worker")
	return c
}

// workerPage returns a worker's page with its requests in flight and further lines.
func workerPage(hexID string, inflight int, further ...string) string {
	return fmt.Sprintf("dynamo_component_inflight_requests{dynamo_endpoint=%q,worker_id=%q} %d\n%s\n",
		generate, hexID, inflight, strings.Join(further, "\n"))
}

// scraped holds the samples that a Prometheus has of each target.
type scraped []struct {
	labels model.LabelSet
	page   string
}

var nameMatcher = regexp.MustCompile(`__name__=~"([^"]*)"`)

// ServeHTTP answers an instant query by its first matcher on names.
func (s scraped) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !strings.HasSuffix(req.URL.Path, "/api/v1/query") {
		http.NotFound(w, req)
		return
	}
	names := regexp.MustCompile("^(?:" + nameMatcher.FindStringSubmatch(req.FormValue("query"))[1] + "|" +
		processStart[0] + ")$")
	var result model.Vector
	for _, target := range s {
		for _, sample := range allMetrics(target.page) {
			if names.MatchString(string(sample.Metric[model.MetricNameLabel])) {
				sample.Metric = model.Metric(model.LabelSet(sample.Metric).Merge(target.labels))
				result = append(result, sample)
			}
		}
	}
	text, _ := json.Marshal(result)
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":%s}}`, text)
}

func allMetrics(page string) model.Vector {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, _ := parser.TextToMetricFamilies(bytes.NewReader([]byte(page)))
	var all model.Vector
	for _, family := range families {
		samples, _ := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, family)
		all = append(all, samples...)
	}
	return all
}

// near requires a number that is known and close to want.
func near(t *testing.T, want float64, got *float64, what string) {
	t.Helper()
	require.NotNil(t, got, what)
	require.InDelta(t, want, *got, 1e-6, what)
}

// anyModel is the model of a watcher that takes the metrics of all models.
func anyModel() string { return "" }
