//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// startWorker starts a target with an engine's metrics page: what it computes, and when its process began.
func startWorker(t *testing.T, began float64) *httptest.Server {
	engine := startTarget(t)
	engine.words.Store(50)
	engine.gap.Store(int64(20 * time.Millisecond))
	worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			fmt.Fprintf(w, "vllm:num_requests_running{engine=\"0\",model_name=\"llama\"} %d\n", engine.inside.Load())
			fmt.Fprintf(w, "vllm:num_requests_waiting{engine=\"0\",model_name=\"llama\"} 0\nprocess_start_time_seconds %v\n", began)
			return
		}
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { worker.CloseClientConnections(); worker.Close() })
	return worker
}

// startRouter starts a router without a metrics page of its own: it passes every call to its workers in turn.
func startRouter(t *testing.T, workers ...*httptest.Server) *httptest.Server {
	var calls atomic.Int64
	router := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, _ := url.Parse(workers[int(calls.Add(1))%len(workers)].URL)
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // of a canceled turn
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { router.CloseClientConnections(); router.Close() })
	return router
}

// Two workers behind a router whose metrics page is one of theirs are two, whether that page is read or not.
func TestRouterThatShowsAWorkersPage(t *testing.T) {
	t.Parallel()
	for name, pages := range map[string][]string{"read": nil, "excluded": {"no-target"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := startWorker(t, 1.7e9+.25), startWorker(t, 1.7e9+7)
			pages := append(pages, one.URL, two.URL)
			p := start(t, startRouter(t, one, two).URL, "--concurrency=4", "--start", "--cluster-metrics-urls="+strings.Join(pages, ","))
			p.eventually("each of four conversations is in flight once", func() bool {
				c, err := p.client.Cluster(t.Context(), api.DefaultLane)
				require.NoError(t, err)
				if c.Available {
					require.Len(t, c.Workers, 2)
				}
				return c.Inflight != nil && *c.Inflight == 4
			})
		})
	}
}
