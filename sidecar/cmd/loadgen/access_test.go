//go:build unix

package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

const (
	token        = "a-token-of-thirty-two-characters"
	metricsToken = "a-token-for-the-metrics"
	// A WebSocket's handshake, as a browser begins it.
	upgrade = "Connection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\n"
	asJSON  = "Content-Type: application/json\n"
)

// call sends a request with these headers.
func (p *program) call(method, path, headers string) (status int, body string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.address+path, strings.NewReader("{}"))
	require.NoError(p.t, err)
	for line := range strings.Lines(headers) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		req.Header.Set(name, value)
		if name == "Host" {
			req.Host = value
		}
	}
	res, err := p.http.Do(req)
	require.NoError(p.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	require.NoError(p.t, err)
	return res.StatusCode, string(text)
}

// Who has no business here is refused by the program as it is wired, with a
// token and without one. (That every route is guarded, the server's tests hold.)
func TestAccess(t *testing.T) {
	t.Parallel()
	const (
		status = api.Prefix + "/status"
		stream = api.Prefix + "/stream"
		begin  = api.Prefix + "/workload/start"
		bearer = "Authorization: Bearer "
	)
	open := start(t, "http://127.0.0.1:1", "--hosts=booth.example")
	closed := newProgram(t)
	closed.cmd.Env = append(closed.cmd.Env, "LOADGEN_TOKEN="+token, "LOADGEN_METRICS_TOKEN="+metricsToken, "LOADGEN_TARGET_API_KEY=the-key-of-the-target")
	closed.start("http://127.0.0.1:1", "--log-level=debug")
	for _, row := range []struct {
		p                     *program
		method, path, headers string
		want                  int
	}{
		{open, "GET", status, "", 200},
		{open, "GET", status, "Host: booth.example", 200},               // configured
		{open, "GET", status, "Origin: " + open.address, 200},           // its own page
		{open, "GET", status, "Host: evil.example", 421},                // a name that was rebound to this address
		{open, "GET", stream, upgrade + "Host: evil.example:8088", 421}, // the same, for a WebSocket
		{open, "GET", status, "Origin: https://evil.example", 403},      // a page of another site
		{open, "GET", status, "Origin: null", 403},                      // a sandboxed one
		{open, "GET", stream, upgrade + "Origin: https://evil.example", 403},
		{open, "POST", begin, asJSON + "Origin: https://evil.example", 403},
		{open, "POST", begin, "Content-Type: text/plain", 415}, // a form of another site

		{closed, "GET", "/healthz", "", 200},
		{open, "GET", "/metrics", "", 200},
		{closed, "GET", "/metrics", "", 401},
		{closed, "GET", "/metrics", bearer + metricsToken, 200}, // as Prometheus's authorization: {credentials: …} sends it
		{closed, "GET", "/metrics", bearer + token, 200},
		{closed, "GET", status, bearer + metricsToken, 401},
		{closed, "GET", status, "", 401},
		{closed, "GET", stream, upgrade, 401},
		{closed, "POST", begin, asJSON, 401},
		{closed, "POST", begin, asJSON + bearer + token + "x", 401},
		{closed, "GET", status + "?token=" + token, "", 401}, // a token never stands in a URL
		{closed, "GET", status, bearer + token, 200},
		{closed, "GET", status, bearer + token + "\nOrigin: https://evil.example", 403}, // a token opens no other site's page
		{closed, "GET", status, bearer + token + "\nHost: evil.example", 421},
	} {
		got, body := row.p.call(row.method, row.path, row.headers)
		assert.Equal(t, row.want, got, "%s %s %s: %s", row.method, row.path, row.headers, body)
		if got >= 400 {
			assert.Contains(t, body, `"detail":`)
		}
	}
	assert.False(t, open.lane().State.Running, "none of it has started anything")

	_, body := closed.call("GET", status, bearer+token)
	for _, secret := range []string{token, metricsToken, "the-key-of-the-target"} {
		assert.NotContains(t, body, secret)
		assert.NotContains(t, closed.log.String(), secret)
	}
	open.endsWell()
	closed.endsWell()
}
