//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// A server that puts control characters into its model's name, its errors, its finish reasons and its worker cannot
// control a terminal, a table or a page of metrics: all show escapes.
func TestControlCharactersOfAServer(t *testing.T) {
	t.Parallel()
	const evil = `\u001b[31mred\u001b]0;title\u0007\r\u009b2J\u202e` // in JSON
	var turns atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch turn := turns.Add(1); {
		case r.URL.Path == "/v1/models":
			fmt.Fprintf(w, `{"data":[{"id":"model%s"}]}`, evil)
		case r.URL.Path != "/v1/chat/completions":
			http.NotFound(w, r)
		case turn%3 == 0:
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, `{"error":{"message":"message%s"}}`, evil)
		case turn%3 == 1:
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "page\x1b[2J\x9b\x00")
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			send(w, oneWord)
			send(w, fmt.Sprintf(`{"choices":[{"delta":{},"finish_reason":"stop%s"}],`+
				`"nvext":{"worker_id":{"decode_worker_id":"worker%[1]s"}}}`, evil))
			send(w, "[DONE]")
		}
	}))
	t.Cleanup(server.Close)
	p := newProgram(t, "--target-url="+server.URL, "--turns-min=1", "--turns-max=1", "--concurrency=3",
		"--start-rate=100", "--start")
	p.launch()
	p.connect("")
	p.eventually("turns fail", func() bool { return strings.Contains(p.turns(), `message\u001b`) })
	table := p.turns()
	res, err := p.http.Get(p.address + "/metrics")
	require.NoError(t, err)
	metrics, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	shown, err := p.client.Snapshot(t.Context())
	require.NoError(t, err)
	p.stop(os.Interrupt)
	for name, text := range map[string]string{
		"turns.csv": table, "/metrics": string(metrics), "standard output": p.out.String(), "standard error": p.log.String(),
		"the model": shown.Lanes[0].Target.Model,
	} {
		for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }) {
			assert.Equal(t, strings.TrimSpace(api.Printable(line)), strings.TrimSpace(line), name)
		}
	}
	assert.Contains(t, table, `message\u001b[31mred`)
	assert.Contains(t, string(metrics), `model\\u001b[31mred`)
	assert.Contains(t, p.out.String(), `\u001b`)
	assert.Equal(t, `model\u001b[31mred\u001b]0;title\u0007\u000d\u009b2J\u202e`, shown.Lanes[0].Target.Model)
}
