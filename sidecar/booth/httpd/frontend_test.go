package httpd

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/httpd/httpdtest"
)

// TestAnswersMatchDynamo checks that the cluster accepts and refuses the requests that a real Dynamo accepts and
// refuses, with the same status, structure and message. Exchanges with deliberate differences name their reason.
func TestAnswersMatchDynamo(t *testing.T) {
	all, err := httpdtest.Exchanges()
	require.NoError(t, err)
	require.Greater(t, len(all), 100)
	server := httptest.NewServer(newServer(t, nil).Frontend())
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	for _, e := range all {
		status, answer, err := e.Ask(t.Context(), server.URL)
		require.NoError(t, err, e.Name)
		if e.Ours != nil {
			require.NotEmpty(t, e.Ours.Why, e.Name)
			assert.NotEqual(t, e.Status, e.Ours.Status, "%s: the difference has Dynamo's own status", e.Name)
			assert.Equal(t, e.Ours.Status, status, "%s: %s", e.Name, answer)
			if status >= http.StatusBadRequest {
				require.NotEmpty(t, e.Ours.Message, e.Name)
				hasMessage := strings.HasPrefix(message(t, answer), e.Ours.Message)
				assert.True(t, hasMessage, "%s: %s", e.Name, answer)
			}
			continue
		}
		assert.Equal(t, e.Status, status, "%s: %s", e.Name, answer)
		assert.Equal(t, httpdtest.Shape(e.Answer), httpdtest.Shape(answer), e.Name)
		if status < http.StatusBadRequest || len(e.Answer) == 0 {
			continue
		}
		want, got := message(t, e.Answer), message(t, answer)
		assert.Equal(t, httpdtest.Common(want), httpdtest.Common(got), "%s: %s", e.Name, answer)
	}
}

// message returns the message of an error and checks that its type and code match its status.
func message(t *testing.T, answer []byte) string {
	t.Helper()
	var p httpdtest.Problem
	require.NoError(t, json.Unmarshal(answer, &p), "%s", answer)
	require.Equal(t, http.StatusText(p.Code), p.Type)
	require.NotEmpty(t, p.Message)
	return p.Message
}

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
