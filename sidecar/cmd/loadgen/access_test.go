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
	bearer       = "Authorization: Bearer "
)

// call sends a request with these headers.
func (p *program) call(path, headers string) (status int, body string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.address+path, nil)
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

// The program requires the token and the hosts of its configuration, and prints no secret. (The tests of server cover
// the access of every route.)
func TestAccess(t *testing.T) {
	t.Parallel()
	const status = api.Prefix + "/status"
	open := start(t, "http://127.0.0.1:1", "--hosts=booth.example")
	closed := newProgram(t, "--log-level=debug")
	closed.environ = append(
		closed.environ, "LOADGEN_TOKEN="+token, "LOADGEN_METRICS_TOKEN="+metricsToken,
		"LOADGEN_TARGET_API_KEY=the-key-of-the-target",
	)
	closed.serve("http://127.0.0.1:1")
	for _, row := range []struct {
		p             *program
		path, headers string
		want          int
	}{
		{open, status, "Host: booth.example", http.StatusOK},
		{open, status, "Host: evil.example", http.StatusMisdirectedRequest},
		{open, "/metrics", "", http.StatusOK},
		{closed, "/metrics", "", http.StatusUnauthorized},
		{closed, "/metrics", bearer + metricsToken, http.StatusOK},
		{closed, status, "", http.StatusUnauthorized},
		{closed, status, bearer + token, http.StatusOK},
	} {
		got, body := row.p.call(row.path, row.headers)
		assert.Equal(t, row.want, got, "%s %s: %s", row.path, row.headers, body)
	}
	_, body := closed.call(status, bearer+token)
	for _, secret := range []string{token, metricsToken, "the-key-of-the-target"} {
		assert.NotContains(t, body, secret)
		assert.NotContains(t, closed.log.String(), secret)
	}
	open.endsWell()
	closed.client = nil
	closed.endsWell()
}
