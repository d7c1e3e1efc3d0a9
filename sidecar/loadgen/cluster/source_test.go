package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

func TestURLs(t *testing.T) {
	for _, raw := range []string{"", "localhost:8000", "ftp://x", "http://", "http://a b", "://"} {
		var field *api.FieldError
		_, err := NewDirect(raw, nil, nil)
		require.ErrorAs(t, err, &field, raw)
		require.Equal(t, "target.url", field.Field)
		_, err = NewDirect("http://x", []string{raw}, nil)
		require.ErrorAs(t, err, &field, raw)
		require.Equal(t, "cluster.metrics_urls", field.Field)
		_, err = NewPrometheus(raw, "", nil)
		require.ErrorAs(t, err, &field, raw)
		require.Equal(t, "cluster.prometheus_url", field.Field)
		_, err = NewPinned(raw, api.SpeculationOff, nil, nil)
		require.ErrorAs(t, err, &field, raw)
		_, err = Probe(t.Context(), raw, nil)
		require.ErrorAs(t, err, &field, raw)
	}
}

func TestPagesOfATarget(t *testing.T) {
	d, err := NewDirect("http://host:8000/v1/", []string{"http://w:1", "http://w:1/metrics", "http://w:2/other?x=1", "http://host:8000/metrics"}, nil)
	require.NoError(t, err)
	var pages []string
	for _, page := range d.pages {
		pages = append(pages, page.String())
	}
	require.Equal(t, []string{"http://host:8000/metrics", "http://w:1/metrics", "http://w:2/other?x=1"}, pages, "each once")
}

func TestDirectOverTheNetwork(t *testing.T) {
	page := fixture(t, "worker-vllm.prom")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page) }))
	defer server.Close()
	direct, err := NewDirect(server.URL+"/v1", nil, nil)
	require.NoError(t, err)
	samples, err := direct.Fetch(t.Context())
	direct.client.CloseIdleConnections()
	require.NoError(t, err)
	for _, s := range samples {
		require.Equal(t, strings.TrimPrefix(server.URL, "http://"), string(s.Labels[model.InstanceLabel]))
		require.NotContains(t, s.Name, "_bucket")
	}
}

// What a reading says when nothing comes of it, and that it ends in time.
func TestDirectFailures(t *testing.T) {
	hang := make(chan struct{})
	rows := []struct {
		name, want string
		handler    http.HandlerFunc
	}{
		{"none", "answered 404 Not Found", http.NotFound},
		{"locked", "answered 401 Unauthorized", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }},
		{"HTML", "not in the Prometheus text format", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html><body>hi</body></html>") }},
		{"other metrics", "no metrics of Dynamo", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "go_goroutines 7\n") }},
		{"silent", "no answer in time", func(w http.ResponseWriter, req *http.Request) {
			select {
			case <-hang:
			case <-req.Context().Done():
			}
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			server := httptest.NewServer(row.handler)
			defer server.Close()
			direct, err := NewDirect(server.URL, nil, server.Client())
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if row.name == "silent" {
				ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			}
			defer cancel()
			samples, err := direct.Fetch(ctx)
			require.Empty(t, samples)
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, err, server.URL+"/metrics")
		})
	}
	close(hang)
}

func TestPrometheusFailures(t *testing.T) {
	answers := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	rows := map[string]http.HandlerFunc{
		`has scraped no metrics of Dynamo, TensorRT-LLM, vLLM, SGLang or DCGM in namespace "booth"`: answers(200, `{"status":"success","data":{"resultType":"vector","result":[]}}`),
		"answers a query for a vector with":   answers(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`),
		"query timed out":                     answers(422, `{"status":"error","errorType":"execution","error":"query timed out"}`),
		"answered 503 Service Unavailable":    answers(503, "<html>overloaded</html>"),
		"answered 404 Not Found":              http.NotFound,
		"larger than 16 MiB":                  answers(200, strings.Repeat(" ", maxBody+1)),
		"not an answer of the Prometheus API": answers(200, "<html>log in first</html>"),
	}
	for want, handler := range rows {
		server := httptest.NewServer(handler)
		source, err := NewPrometheus(server.URL, "booth", server.Client())
		require.NoError(t, err)
		samples, err := source.Fetch(t.Context())
		require.Empty(t, samples)
		require.ErrorContains(t, err, want)
		server.Close()
		_, err = source.Fetch(t.Context())
		require.EqualError(t, err, "Prometheus at "+server.URL+": connection refused", "the same words every time")
	}
}

// The one query asks for every metric, in one namespace if one is configured.
func TestPrometheusQuery(t *testing.T) {
	all := promQuery("")
	require.True(t, strings.HasPrefix(all, `{__name__=~"DCGM_FI_DEV_FB_FREE|`), all)
	require.NotContains(t, all, "namespace")
	one := promQuery(`a"b`)
	require.Contains(t, one, `,namespace="a\"b"} or {__name__=~"DCGM_FI_DEV_GPU_UTIL|`)
	require.True(t, strings.HasSuffix(one, `,exported_namespace="a\"b"}`), one)
}
