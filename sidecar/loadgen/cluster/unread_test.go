package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// prometheusWith is a server that has scraped some targets and fails to scrape others.
// With nil reasons it does not report why.
type prometheusWith struct {
	scraped
	failing []model.LabelSet
	healthy bool // the server reports the health of its targets
	reasons map[string]string
	queries int // number of queries for the targets
}

func (p *prometheusWith) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch {
	case strings.HasSuffix(req.URL.Path, "/api/v1/targets") && p.reasons != nil:
		type target struct {
			Labels model.LabelSet `json:"labels"`
			Error  string         `json:"lastError"`
		}
		var all []target
		for _, labels := range p.failing {
			all = append(all, target{labels, p.reasons[string(labels["instance"])]})
		}
		text, _ := json.Marshal(all)
		fmt.Fprintf(w, `{"status":"success","data":{"activeTargets":%s}}`, text)
	case strings.HasPrefix(req.FormValue("query"), "up"):
		p.queries++
		var result model.Vector
		for _, labels := range p.failing {
			result = append(result, &model.Sample{Metric: model.Metric(labels)})
		}
		if p.healthy {
			result = append(result, &model.Sample{Metric: model.Metric{}, Value: 7})
		}
		text, _ := json.Marshal(result)
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":%s}}`, text)
	default:
		p.scraped.ServeHTTP(w, req)
	}
}

func labels(job, instance string) model.LabelSet {
	return model.LabelSet{"job": model.LabelValue(job), "instance": model.LabelValue(instance)}
}

// A part without samples is not scraped, or its scrape fails.
func TestUnreadThroughPrometheus(t *testing.T) {
	frontend := scraped{{labels("dynamo", "frontend:8000"), fixture(t, "frontend-kv.prom")}}
	all := append(frontend, scraped{
		{labels("dynamo", "worker:8081"), fixture(t, "worker-trtllm.prom")},
		{labels("gpus", "node:9400"), "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 40\n"},
	}...)
	frontendOnly := prometheusWith{scraped: frontend, healthy: true}
	failing := frontendOnly
	failing.failing = []model.LabelSet{
		labels("another", "b:1"), labels("another", "c:1"), labels("another", "d:1"),
		labels("dynamo", "worker:8081"), labels("dcgm-exporter", "node:80"),
	}
	failing.reasons = map[string]string{
		"worker:8081": `Get "http://worker:8081/metrics": dial tcp 10.0.0.3:8081: connect: connection refused`,
		"b:1":         "server returned HTTP status 401 Unauthorized",
		"node:80":     `Get "http://node:80/metrics": context deadline exceeded`,
	}
	var text strings.Builder
	for _, row := range []struct {
		name, namespace string
		server          prometheusWith
	}{
		{"all", "", prometheusWith{scraped: all, healthy: true}},
		{"not scraped", "", frontendOnly},
		{"not in the namespace", "booth", frontendOnly},
		{"health not reported", "", prometheusWith{scraped: frontend}},
		{"the scrape fails", "", failing},
		{"reasons not reported", "", prometheusWith{
			scraped: all[1:], healthy: true, failing: []model.LabelSet{labels("dynamo", "frontend:8000")},
		}},
	} {
		server := httptest.NewServer(&row.server)
		source, err := NewPrometheus(server.URL, Scope{Namespace: row.namespace}, server.Client())
		require.NoError(t, err)
		samples, err := source.Fetch(t.Context())
		require.NoError(t, err)
		unread := source.explain(t.Context(), samples)
		require.Equal(t, unread, source.explain(t.Context(), samples))
		require.LessOrEqual(t, row.server.queries, 1, "the targets are not requested with every reading")
		server.Close()
		writeUnread(&text, row.name, unread)
	}
	golden(t, "unread-through-prometheus.golden", text.String())
}

// writeUnread writes the reasons why parts of a cluster are not read.
func writeUnread(text *strings.Builder, name string, unread api.Unread) {
	fmt.Fprintln(text, name)
	for i, why := range []string{unread.Frontend, unread.Workers, unread.GPUs} {
		if why != "" {
			fmt.Fprintf(text, "  %s: %s\n", []string{"frontend", "workers", "GPUs"}[i], why)
		}
	}
}

// A Prometheus that answers without metrics differs from one that does not answer.
func TestPrometheusWithoutMetrics(t *testing.T) {
	server := httptest.NewServer(&prometheusWith{
		healthy: true,
		failing: []model.LabelSet{labels("dynamo", "frontend:8000")},
	})
	defer server.Close()
	source, err := NewPrometheus(server.URL, Scope{}, server.Client())
	require.NoError(t, err)
	w := NewWatcher(source, anyModel, discard)
	w.early(time.Now().Add(-noticesAfter))
	require.Zero(t, w.read(t.Context(), &history{}))
	c := w.Current()
	require.False(t, c.Available)
	require.Contains(t, c.Problem, "it has scraped no metrics of Dynamo")
	require.Equal(t, "Prometheus has no metrics of the workers, and a scrape of its own fails: frontend:8000 (job dynamo)",
		c.Unread.Workers)
	server.Close()
	require.Zero(t, w.read(t.Context(), &history{}))
	require.Empty(t, w.Current().Unread, "the server does not answer any more")
}

// For pages that are read directly, the reason is in cluster.metrics_urls.
func TestUnreadDirectly(t *testing.T) {
	frontend, worker := fixture(t, "frontend-kv.prom"), fixture(t, "worker-vllm.prom")
	dcgm, smg := "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 40\n", "smg_worker_requests_total{worker=\"http://w:1\"} 7\n"
	var text strings.Builder
	for _, row := range []struct {
		name    string
		scene   scene
		further []string
		router  string
	}{
		{"none named", scene{"frontend:8000": frontend}, nil, ""},
		{"a page fails", scene{"frontend:8000": frontend}, []string{"http://u:secret@worker:8081"}, ""},
		{"other pages", scene{"frontend:8000": frontend, "node:9400": dcgm}, []string{"http://node:9400"}, ""},
		{"an engine itself", scene{"frontend:8000": worker}, nil, ""},
		{"the frontend fails", scene{"worker:8081": worker}, []string{"http://worker:8081"}, ""},
		{"a router's page is not named", scene{"worker:8081": worker}, []string{"http://worker:8081"}, "smg"},
		{"a router's page is named", scene{"router:29000": smg}, []string{"http://router:29000"}, "smg"},
	} {
		direct, err := NewDirect("http://frontend:8000", row.further, &http.Client{Transport: row.scene})
		require.NoError(t, err)
		direct.Router = func() string { return row.router }
		_, _ = direct.Fetch(t.Context())
		samples, _ := direct.Fetch(t.Context()) // the first one shows which page is the router's
		require.NotEmpty(t, samples)
		writeUnread(&text, row.name, SelectedSource(func() Source { return direct }).explain(t.Context(), samples))
	}
	golden(t, "unread-directly.golden", text.String())
}

// The watcher shows the reason in the cluster and in the problem that it logs.
func TestWatcherReportsUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		w := watch(t, scene{"frontend:8000": fixture(t, "frontend-kv.prom")}, slog.New(slog.NewTextHandler(&text, nil)))
		after(3 * time.Second)
		c := w.Current()
		require.Equal(t, "the workers' metrics are not read; cluster.metrics_urls names no page", c.Unread.Workers)
		require.Equal(t, "no workers' metrics: load per worker is unknown ("+c.Unread.Workers+")", c.Problem)
	})
}

// A KV router predicts the hit rate of each request that it starts. The others count
// requests and predict nothing, as scrapes of a real Dynamo show.
func TestRoutesByKV(t *testing.T) {
	kv, roundRobin := fixture(t, "frontend-kv.prom"), fixture(t, "frontend-round-robin.prom")
	routesByKV := func(pages ...string) *bool {
		var scenes []scene
		for _, page := range pages {
			scenes = append(scenes, scene{"frontend:8000": page})
		}
		return watched(t, api.SpeculationOff, scenes...).RoutesByKV
	}
	require.Equal(t, new(true), routesByKV(atRest(kv), kv))
	require.Equal(t, new(false), routesByKV(atRest(roundRobin), roundRobin))
	require.Nil(t, routesByKV(kv, kv), "nothing was routed")
	require.Nil(t, routesByKV(atRest(roundRobin), strings.ReplaceAll(roundRobin, "} 120\n", "} 9\n")),
		"too few requests to conclude that none was predicted")
	require.Nil(t, routesByKV(fixture(t, "worker-vllm.prom"), fixture(t, "worker-vllm.prom")), "no router")
	mixed := watched(t, api.SpeculationOff, scene{"a:8000": atRest(kv), "b:8000": atRest(roundRobin)},
		scene{"a:8000": kv, "b:8000": roundRobin})
	require.Nil(t, mixed.RoutesByKV, "two routers")
}
