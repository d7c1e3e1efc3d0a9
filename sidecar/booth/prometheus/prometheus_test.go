package prometheus

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/source"
	"kvbooth/internal/wait"
	kv "kvbooth/sidecar/api"
)

const metrics = `# HELP queue Requests that wait.
# TYPE queue gauge
queue{pod="its-own",worker="a"} 3
queue{pod="its-own",worker="b"} 4
`

// TestServed asks one Prometheus in every way that it is asked.
func TestServed(t *testing.T) {
	t.Parallel()
	address := page(t, text(metrics))
	s := start(t, options(t, Target{Job: "frontend", Address: address, Labels: map[string]string{"pod": "dynamo-frontend", "namespace": "dynamo-workload"}}))
	s.has("queue")
	t.Run("labels", func(t *testing.T) { labels(t, s, address) })
	t.Run("client", func(t *testing.T) { clientCalls(t, s, address) })
	t.Run("routes", func(t *testing.T) { routes(t, s) })
	t.Run("hosts", func(t *testing.T) { hosts(t, s) })
	t.Run("other sites", func(t *testing.T) { otherSites(t, s) })
}

// The labels as given stand in the series, and the target's own step back.
func labels(t *testing.T, s *server, address string) {
	found := s.query(`last_over_time(queue{worker="a"}[1m])`)
	require.Len(t, found, 1)
	assert.Equal(t, model.Metric{
		"__name__": "queue", "job": "frontend", "instance": model.LabelValue(address),
		"namespace": "dynamo-workload", "pod": "dynamo-frontend", "exported_pod": "its-own", "worker": "a",
	}, found[0].Metric)
	s.has("up == 1")
}

// What Grafana's data source asks, through the client.
func clientCalls(t *testing.T, s *server, address string) {
	ctx, now := t.Context(), time.Now()

	value, _, _, err := s.QueryRange(ctx, "sum(last_over_time(queue[1m]))", v1.Range{Start: now.Add(-time.Second), End: now.Add(time.Second), Step: 100 * time.Millisecond})
	require.NoError(t, err)
	require.Len(t, value, 1)
	assert.InDelta(t, 7, float64(value.(model.Matrix)[0].Values[0].Value), 0)

	values, _, _, err := s.LabelValues(ctx, "worker", nil, now.Add(-time.Minute), now.Add(time.Minute))
	require.NoError(t, err)
	assert.Equal(t, model.LabelValues{"a", "b"}, values)

	names, _, _, err := s.LabelNames(ctx, []string{"queue"}, now.Add(-time.Minute), now.Add(time.Minute))
	require.NoError(t, err)
	assert.Subset(t, names, model.LabelNames{"__name__", "exported_pod", "instance", "job", "namespace", "pod", "worker"})

	series, _, _, err := s.Series(ctx, []string{"queue"}, now.Add(-time.Minute), now.Add(time.Minute))
	require.NoError(t, err)
	assert.Len(t, series, 2)

	metadata, err := s.Metadata(ctx, "queue", "")
	require.NoError(t, err)
	assert.Equal(t, map[string][]v1.Metadata{"queue": {{Type: "gauge", Help: "Requests that wait."}}}, metadata)

	wait.Eventually(t, "one healthy target", func() (any, bool) {
		targets, err := s.Targets(ctx)
		require.NoError(t, err)
		require.Len(t, targets.Active, 1)
		assert.Equal(t, "http://"+address+"/metrics", targets.Active[0].ScrapeURL)
		return targets.Active, targets.Active[0].Health == v1.HealthGood
	})

	build, err := s.Buildinfo(ctx)
	require.NoError(t, err)
	assert.Equal(t, Version, build.Version)

	info, err := s.Runtimeinfo(ctx)
	require.NoError(t, err)
	assert.True(t, info.ReloadConfigSuccess)
	assert.Equal(t, "2h0m0s or 67108864 bytes", info.StorageRetention)
}

// Calls that no client makes, each with the status and a part of the answer.
func routes(t *testing.T, s *server) {
	span := "&start=" + time.Now().Add(-time.Second).UTC().Format(time.RFC3339) + "&end=" + time.Now().UTC().Format(time.RFC3339) + "&step=1"
	form := url.Values{"query": {"last_over_time(queue[1m])"}}
	for _, c := range []struct {
		method, path string
		form         url.Values
		status       int
		part         string
	}{
		{"GET", "/", nil, 200, "Grafana"},
		{"GET", "/graph", nil, 404, ""},
		{"GET", "/-/healthy", nil, 200, "Healthy"},
		{"GET", "/-/ready", nil, 200, "Ready"},
		{"GET", "/metrics", nil, 200, "prometheus_tsdb_head_series "},
		{"GET", "/metrics", nil, 200, "prometheus_target_scrape_pools_total 1"},
		{"GET", "/api/v1/query?query=last_over_time(queue[1m])", nil, 200, `"worker":"b"`},
		{"POST", "/api/v1/query", form, 200, `"worker":"b"`},
		{"GET", "/api/v1/query_range?query=queue" + span, nil, 200, `"resultType":"matrix"`},
		{"POST", "/api/v1/query_range?" + span, form, 200, `"resultType":"matrix"`},
		{"GET", "/api/v1/query?query=queue{", nil, 400, "parse error"},
		{"GET", "/api/v1/format_query?query=sum(queue)by(pod)", nil, 200, "sum by (pod) (queue)"},
		{"GET", "/api/v1/parse_query?query=queue", nil, 200, "vectorSelector"},
		{"GET", "/api/v1/status/flags", nil, 200, "success"},
		{"GET", "/api/v1/status/config", nil, 200, "job_name: frontend"},
		{"GET", "/api/v1/status/tsdb", nil, 200, "headStats"},
		{"GET", "/api/v1/status/walreplay", nil, 200, "success"},
		{"GET", "/api/v1/rules", nil, 200, `"groups":[]`},
		{"GET", "/api/v1/alerts", nil, 200, `"alerts":[]`},
		{"GET", "/api/v1/query_exemplars?query=queue" + span, nil, 200, "success"},
		{"GET", "/api/v1/alertmanagers", nil, 200, `"activeAlertmanagers":[]`},
		{"GET", "/api/v1/notifications", nil, 200, "success"},
		{"GET", "/api/v1/notifications/live", nil, 204, ""},
		{"GET", "/api/v1/features", nil, 200, "success"},
		{"GET", "/api/v1/status/tsdb/blocks", nil, 200, "success"},
		{"GET", "/api/v1/openapi.yaml", nil, 404, ""},
		{"GET", "/api/v1/no_such_call", nil, 404, ""},
		// Nothing writes, and nothing ends it.
		{"POST", "/api/v1/admin/tsdb/delete_series", url.Values{"match[]": {"queue"}}, 500, "admin APIs disabled"},
		{"POST", "/api/v1/write", nil, 404, ""},
		{"POST", "/api/v1/otlp/v1/metrics", nil, 404, ""},
		{"POST", "/api/v1/read", nil, 404, ""},
		{"POST", "/-/quit", nil, 404, ""},
		{"POST", "/-/reload", nil, 404, ""},
		// More than any query is.
		{"POST", "/api/v1/query", url.Values{"query": {strings.Repeat("1+", bodyLimit) + "1"}}, 400, "bad_data"},
		{"GET", "/api/v1/query?query=count_over_time(vector(1)[2h:1ms])", nil, 422, "too many samples"},
	} {
		status, body := s.call(c.method, c.path, c.form, "")
		assert.Equal(t, c.status, status, "%s %.80s: %.200s", c.method, c.path, body)
		assert.Contains(t, body, c.part, "%s %.80s", c.method, c.path)
	}
}

func hosts(t *testing.T, s *server) {
	for host, status := range map[string]int{
		"localhost": 200, "LOCALHOST:9090": 200, "127.0.0.1:9090": 200, "127.8.9.1": 200, "[::1]:9090": 200,
		"evil.example": 421, "evil.example:9090": 421, "localhost.evil.example": 421, "192.0.2.1": 421, "[2001:db8::1]": 421,
	} {
		got, _ := s.call("GET", "/api/v1/labels", nil, host)
		assert.Equal(t, status, got, host)
	}
}

// Listening for others, it cannot know its names.
func TestHostsOfAnyAddress(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Listen = "0.0.0.0:0"
	s := start(t, o)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	s.url = "http://127.0.0.1:" + port
	status, _ := s.call("GET", "/-/ready", nil, "booth.example")
	assert.Equal(t, 200, status)
}

func otherSites(t *testing.T, s *server) {
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/api/v1/labels", nil)
	require.NoError(t, err)
	r.Header.Set("Origin", "https://evil.example")
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Empty(t, response.Header.Get("Access-Control-Allow-Origin"))
}

// Clients that hang, and queries that take long, do not hold up the end.
func TestStopsAmidRequests(t *testing.T) {
	t.Parallel()
	s := start(t, options(t))
	half, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { half.Close() })
	_, err = half.Write([]byte("GET /api/v1/query HTTP/1.1\r\n"))
	require.NoError(t, err)
	ended := make(chan error)
	for range 2 {
		go func() {
			var err error
			for err == nil {
				_, _, _, err = s.Query(context.WithoutCancel(t.Context()), "count_over_time(vector(1)[10m:1ms])", time.Now())
			}
			ended <- err
		}()
	}
	wait.Eventually(t, "two queries are in progress", func() (any, bool) {
		_, body := s.call("GET", "/metrics", nil, "")
		return body, strings.Contains(body, "\nprometheus_engine_queries 2\n")
	})
	s.stop()
	for range 2 {
		require.Error(t, wait.Receive(t, "a query ends", ended))
	}
	_, err = io.ReadAll(half)
	require.NoError(t, err, "it was closed")
}

func TestNativeHistograms(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	ttft := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "ttft_seconds", Buckets: []float64{.5, 1}, NativeHistogramBucketFactor: 1.1})
	reg.MustRegister(ttft)
	ttft.Observe(.6)
	s := start(t, options(t, Target{Job: "loadgen", Address: page(t, promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP)}))
	assert.InDelta(t, .6, s.value("histogram_quantile(0.5, ttft_seconds)"), .06)
	assert.InDelta(t, 1, s.value(`ttft_seconds_bucket{le="1.0"}`), 0)
	assert.InDelta(t, 1, s.value("histogram_count(ttft_seconds)"), 0)
}

// silent is a log in which no warning may come.
func silent(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(failing{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// failing is a log that must stay empty.
type failing struct{ t *testing.T }

func (f failing) Write(line []byte) (int, error) {
	f.t.Errorf("it logged %s", line)
	return len(line), nil
}

func TestSecondOnOneFolder(t *testing.T) {
	t.Parallel()
	o := options(t, Target{Job: "frontend", Address: page(t, text(metrics))})
	s := start(t, o)
	err := Run(t.Context(), o)
	var field *kv.FieldError
	require.ErrorAs(t, err, &field)
	assert.Equal(t, "data_dir", field.Field)
	assert.Contains(t, err.Error(), o.DataDir)
	s.has("queue") // the first is unharmed
}

// Each options that it refuses, with the field and a part of what it says.
func TestRefused(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { taken.Close() })
	for name, c := range map[string]struct {
		change func(*Options)
		config string // instead of the valid one
		field  string
		part   string
	}{
		"no folder":             {change: func(o *Options) { o.DataDir = "" }, field: "data_dir", part: "a directory"},
		"too short a retention": {change: func(o *Options) { o.Retention = time.Hour }, field: "retention", part: "1h0m0s is not allowed: a duration of at least 2h0m0s"},
		"no retention":          {change: func(o *Options) { o.Retention = 0 }, field: "retention", part: "0s"},
		"too little space":      {change: func(o *Options) { o.RetentionSize = 1 }, field: "retention_size", part: "67108864"},
		"no port":               {change: func(o *Options) { o.Listen = "localhost" }, field: "listen", part: "host:port"},
		"no such port":          {change: func(o *Options) { o.Listen = "127.0.0.1:99999" }, field: "listen", part: "99999"},
		"a taken address":       {change: func(o *Options) { o.Listen = taken.Addr().String() }, field: "listen", part: "address already in use"},
		"no configuration":      {change: func(o *Options) { o.ConfigFile += ".missing" }, field: "config_file", part: "no such file"},
		"not YAML":              {config: "scrape_configs: [", field: "config_file", part: "yaml"},
		"an unknown field":      {config: "scrape_config: []", field: "config_file", part: "field scrape_config not found"},
		"two jobs of one name":  {config: "scrape_configs: [{job_name: a}, {job_name: a}]", field: "config_file", part: `multiple scrape configs with job name "a"`},
		"another discovery":     {config: "scrape_configs: [{job_name: a, kubernetes_sd_configs: [{role: pod}]}]", field: "config_file", part: "kubernetes_sd_configs"},
		"rules":                 {config: "rule_files: [rules.yml]", field: "config_file", part: "rule_files"},
		"too long a time-out":   {config: "scrape_configs: [{job_name: a, scrape_interval: 1s, scrape_timeout: 2s}]", field: "config_file", part: "scrape timeout greater"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			if c.config != "" {
				require.NoError(t, os.WriteFile(o.ConfigFile, []byte(c.config), 0o600))
			}
			if c.change != nil {
				c.change(&o)
			}
			o.Ready = func(net.Addr) { t.Error("it served") }
			err := Run(t.Context(), o)
			var field *kv.FieldError
			require.ErrorAs(t, err, &field)
			assert.Equal(t, c.field, field.Field)
			assert.Contains(t, err.Error(), c.part)
		})
	}
}

// One that is stopped while it starts stops all the same.
func TestStoppedAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, Run(ctx, options(t, Target{Job: "frontend", Address: page(t, text(metrics))})))
}

func TestVersion(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	require.NoError(t, err)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	parts := strings.Split(Version, ".")
	assert.Contains(t, string(mod), "github.com/prometheus/prometheus v0."+parts[0]+parts[1]+"."+parts[2])
}
