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

// prometheusWith is a server that has scraped some targets, and whose scrape of others
// fails, with the reasons that it gives for that; nil: it does not say.
type prometheusWith struct {
	scraped
	failing []model.LabelSet
	healthy bool // it tells the health of its targets at all
	reasons map[string]string
	queries int // for the targets
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

// What Prometheus has nothing of, it does not scrape, or its scrape fails; only what it
// has scraped can be silent itself.
func TestUnreadThroughPrometheus(t *testing.T) {
	frontend := scraped{{labels("dynamo", "frontend:8000"), fixture(t, "frontend-kv.prom")}}
	all := append(frontend, scraped{
		{labels("dynamo", "worker:8081"), fixture(t, "worker-trtllm.prom")},
		{labels("gpus", "node:9400"), "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 40\n"},
	}...)
	const refused = `Get "http://worker:8081/metrics": dial tcp 10.0.0.3:8081: connect: connection refused`
	rows := map[string]struct {
		server    prometheusWith
		namespace string
		want      api.Unread
	}{
		"all": {server: prometheusWith{scraped: all, healthy: true}},
		"not scraped": {
			server: prometheusWith{scraped: frontend, healthy: true},
			want:   api.Unread{Workers: "Prometheus does not scrape the workers", GPUs: "Prometheus does not scrape a DCGM exporter"},
		},
		"not in the namespace": {
			server: prometheusWith{scraped: frontend, healthy: true}, namespace: "booth",
			want: api.Unread{Workers: `Prometheus does not scrape the workers in namespace "booth"`, GPUs: `Prometheus does not scrape a DCGM exporter in namespace "booth"`},
		},
		"health not told": {
			server: prometheusWith{scraped: frontend},
			want:   api.Unread{Workers: "Prometheus has no metrics of the workers", GPUs: "Prometheus has no metrics of a DCGM exporter"},
		},
		"the scrape fails": {
			server: prometheusWith{
				scraped: frontend, healthy: true,
				failing: []model.LabelSet{labels("another", "b:1"), labels("another", "c:1"), labels("another", "d:1"), labels("dynamo", "worker:8081"), labels("dcgm-exporter", "node:80")},
				reasons: map[string]string{"worker:8081": refused, "b:1": "server returned HTTP status 401 Unauthorized", "node:80": `Get "http://node:80/metrics": context deadline exceeded`},
			},
			want: api.Unread{
				Workers: "Prometheus has no metrics of the workers, and a scrape of its own fails: worker:8081 (job dynamo): connection refused; b:1 (job another): server returned HTTP status 401 Unauthorized; c:1 (job another); and 1 more",
				GPUs:    "Prometheus has no metrics of a DCGM exporter, and a scrape of its own fails: node:80 (job dcgm-exporter): context deadline exceeded",
			},
		},
		"reasons not told": {
			server: prometheusWith{scraped: all[1:], healthy: true, failing: []model.LabelSet{labels("dynamo", "frontend:8000")}},
			want:   api.Unread{Frontend: "Prometheus has no metrics of a Dynamo frontend, and a scrape of its own fails: frontend:8000 (job dynamo)"},
		},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(&row.server)
			defer server.Close()
			source, err := NewPrometheus(server.URL, row.namespace, server.Client())
			require.NoError(t, err)
			samples, err := source.Fetch(t.Context())
			require.NoError(t, err)
			require.Equal(t, row.want, source.explain(t.Context(), samples))
			require.Equal(t, row.want, source.explain(t.Context(), samples))
			require.LessOrEqual(t, row.server.queries, 1, "not asked for its targets with every reading")
		})
	}
}

// A Prometheus that answers and has nothing is not one that is gone.
func TestPrometheusHasNothing(t *testing.T) {
	server := httptest.NewServer(&prometheusWith{healthy: true, failing: []model.LabelSet{labels("dynamo", "frontend:8000")}})
	defer server.Close()
	source, err := NewPrometheus(server.URL, "", server.Client())
	require.NoError(t, err)
	w := NewWatcher(source, slog.New(slog.DiscardHandler))
	require.Zero(t, w.read(t.Context(), history{}))
	c := w.Current()
	require.False(t, c.Available)
	require.Contains(t, c.Problem, "it has scraped no metrics of Dynamo")
	require.Equal(t, "Prometheus has no metrics of the workers, and a scrape of its own fails: frontend:8000 (job dynamo)", c.Unread.Workers)
	server.Close()
	require.Zero(t, w.read(t.Context(), history{}))
	require.Empty(t, w.Current().Unread, "now it is gone")
}

func TestUpQuery(t *testing.T) {
	require.Equal(t, "up == 0 or count(up)", upQuery(""))
	require.Equal(t, `up{namespace="a\"b"} == 0 or up{job=~".*dcgm.*"} == 0 or count(up)`, upQuery(`a"b`))
}

// Where the pages are read directly, the configuration names those of the workers, or
// it does not.
func TestUnreadDirectly(t *testing.T) {
	frontend, worker := fixture(t, "frontend-kv.prom"), fixture(t, "worker-vllm.prom")
	rows := map[string]struct {
		scene   scene
		further []string
		want    api.Unread
	}{
		"none named": {scene{"frontend:8000": frontend}, nil, api.Unread{
			Workers: "the workers' metrics are not read; cluster.metrics_urls names no page",
			GPUs:    "no DCGM exporter is read; cluster.metrics_urls names no page",
		}},
		"a page fails": {scene{"frontend:8000": frontend}, []string{"http://u:secret@worker:8081"}, api.Unread{
			Workers: "the workers' metrics are not read; pages in cluster.metrics_urls fail: http://u:xxxxx@worker:8081/metrics: answered 404 Not Found",
			GPUs:    "no DCGM exporter is read; pages in cluster.metrics_urls fail: http://u:xxxxx@worker:8081/metrics: answered 404 Not Found",
		}},
		"other pages": {scene{"frontend:8000": frontend, "node:9400": "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 40\n"}, []string{"http://node:9400"}, api.Unread{
			Workers: "the workers' metrics are not read; no page in cluster.metrics_urls is a worker's",
		}},
		"an engine itself": {scene{"frontend:8000": worker}, nil, api.Unread{
			GPUs: "no DCGM exporter is read; cluster.metrics_urls names no page",
		}},
		"the frontend fails": {scene{"worker:8081": worker}, []string{"http://worker:8081"}, api.Unread{
			Frontend: "the metrics page of the target fails: http://frontend:8000/metrics: answered 404 Not Found",
			GPUs:     "no DCGM exporter is read; no page in cluster.metrics_urls is that of one",
		}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			direct, err := NewDirect("http://frontend:8000", row.further, &http.Client{Transport: row.scene})
			require.NoError(t, err)
			samples, _ := direct.Fetch(t.Context())
			require.NotEmpty(t, samples)
			require.Equal(t, row.want, Chosen(func() Source { return direct }).explain(t.Context(), samples))
		})
	}
}

// The watcher carries the reason to the screens, and into the problem that it logs.
func TestWatcherSaysWhatIsUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		w := watch(t, scene{"frontend:8000": fixture(t, "frontend-kv.prom")}, slog.New(slog.NewTextHandler(&text, nil)))
		after(3 * time.Second)
		c := w.Current()
		require.Equal(t, "the workers' metrics are not read; cluster.metrics_urls names no page", c.Unread.Workers)
		require.Equal(t, "no workers' metrics: load per worker is unknown ("+c.Unread.Workers+")", c.Problem)
	})
}

// A KV router predicts the hit rate of each request that it starts; the others count
// requests and predict nothing, as scrapes of a real Dynamo show.
func TestRouterTellsItsMode(t *testing.T) {
	kv, roundRobin := fixture(t, "frontend-kv.prom"), fixture(t, "frontend-round-robin.prom")
	told := func(pages ...string) *bool {
		var scenes []scene
		for _, page := range pages {
			scenes = append(scenes, scene{"frontend:8000": page})
		}
		return watched(t, api.SpeculationOff, scenes...).RoutesByKV
	}
	require.Equal(t, new(true), told(atRest(kv), kv))
	require.Equal(t, new(false), told(atRest(roundRobin), roundRobin))
	require.Nil(t, told(kv, kv), "nothing was routed")
	require.Nil(t, told(atRest(roundRobin), strings.ReplaceAll(roundRobin, "} 120\n", "} 9\n")), "too few requests to say that none was predicted")
	require.Nil(t, told(fixture(t, "worker-vllm.prom"), fixture(t, "worker-vllm.prom")), "no router")
	mixed := watched(t, api.SpeculationOff, scene{"a:8000": atRest(kv), "b:8000": atRest(roundRobin)}, scene{"a:8000": kv, "b:8000": roundRobin})
	require.Nil(t, mixed.RoutesByKV, "two routers")
}
