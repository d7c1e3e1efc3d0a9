package httpd

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A worker's port serves that worker alone, takes what routers add to a body, and names itself.
func TestWorkerServesAsAnEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, nil)
		call := func(method, path, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8082}
			w := httptest.NewRecorder()
			b.Worker(1).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local)))
			return w
		}
		for range 3 {
			body := inOne(ask("word", 10, ""))
			w := call(http.MethodPost, "/v1/chat/completions", strings.Replace(body, "{", `{"no_stop_trim":false,`, 1))
			require.Equal(t, http.StatusOK, w.Code, w.Body)
			assert.Equal(t, "127.0.0.1:8082", w.Header().Get(WorkerHeader))
			assert.NotContains(t, w.Body.String(), "nvext")
		}
		assert.EqualValues(t, 3, metric(page(b.Worker(1)), "dynamo_component_requests_total"))
		assert.Zero(t, metric(page(b.Worker(0)), "dynamo_component_requests_total"))
		assert.Contains(t, call(http.MethodGet, "/server_info", "").Body.String(), `"served_model_name":"meta-llama/`)
		assert.Contains(t, call(http.MethodPost, "/tokenize", `{"messages":[{"role":"user","content":"word"}]}`).Body.String(),
			`"tokens":[`)
		assert.Equal(t, http.StatusOK, call(http.MethodGet, "/health", "").Code)
		assert.Equal(t, http.StatusNotFound, call(http.MethodGet, "/sim/v1/state", "").Code)
	})
}
