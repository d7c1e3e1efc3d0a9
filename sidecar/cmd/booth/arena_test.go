package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// engineOf is an engine that lists one model, and answers everything else with a name.
func engineOf(t *testing.T, model, name string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			fmt.Fprintf(w, `{"data": [{"id": %q}]}`, model)
			return
		}
		fmt.Fprint(w, name)
	}))
	t.Cleanup(s.Close)
	return s
}

// Bad flags of an arena are named before anything is installed or started.
func TestArenaRejectsBadInput(t *testing.T) {
	one, other := engineOf(t, "one", ""), engineOf(t, "other", "")
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--routers=apache"}, "routers: apache is not allowed: one of sglang-router, smg, vllm-router"},
		{[]string{"--routers=smg:best"}, "routers: smg:best is not allowed: a policy of smg: cache_aware"},
		{[]string{"--routers=dynamo:best"}, "mode: best is not allowed: kv, round-robin"},
		{[]string{"--routers=dynamo,dynamo:random"}, "routers: dynamo:random is not allowed: one dynamo"},
		{[]string{"--routers=smg,smg:cache_aware"}, "smg:cache_aware is not allowed: each router once"},
		{
			[]string{"--routers=smg,smg:random,envoy,envoy:random,envoy:hash,nginx,haproxy,dynamo"},
			"1 to 7 routers",
		},
		{[]string{"--port=0"}, "port: 0 is not allowed: 1 to 65535"},
		{[]string{"--engines=gpu-1"}, "engines: gpu-1 is not allowed: URLs of engines"},
		{[]string{"--engines=" + closed.URL}, "an engine that answers"},
		{
			[]string{"--engines=" + one.URL + "," + other.URL},
			"engines of one model: it serves other, and " + strings.TrimPrefix(one.URL, "http://") + " serves one",
		},
		{[]string{"--engines=" + one.URL, "--routers=dynamo"}, "no dynamo with --engines"},
		{[]string{"--profile=none"}, "none"},
	} {
		var out bytes.Buffer
		args := append([]string{"arena", "--cache-dir=" + t.TempDir()}, test.args...)
		assert.Equal(t, badInput, run(t.Context(), t.Context(), args, io.Discard, &out), test.args)
		assert.Contains(t, out.String(), test.want)
	}
}

// Bad flags of real engines are named before anything is installed or started.
func TestEnginesRejectBadInput(t *testing.T) {
	for flag, want := range map[string]string{
		"--count=0":  "count: 0 is not allowed: 1 to 16",
		"--count=17": "count: 17 is not allowed: 1 to 16",
		"--port=0":   "port: 0 is not allowed: 1 to 65535",
	} {
		var out bytes.Buffer
		args := []string{"engines", "--cache-dir=" + t.TempDir(), flag}
		assert.Equal(t, badInput, run(t.Context(), t.Context(), args, io.Discard, &out), flag)
		assert.Contains(t, out.String(), want)
	}
}

// Requests go to the engines in turn. One that does not answer is named.
func TestRouteTakesTurns(t *testing.T) {
	a, b := engineOf(t, "", "a"), engineOf(t, "", "b")
	var workers []*url.URL
	for _, s := range []*httptest.Server{a, b} {
		u, err := url.Parse(s.URL)
		require.NoError(t, err)
		workers = append(workers, u)
	}
	proxy := httptest.NewServer(inTurn(workers))
	defer proxy.Close()
	ask := func() (status int, text string) {
		r, err := http.Get(proxy.URL + "/v1/chat/completions")
		require.NoError(t, err)
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r.StatusCode, string(body)
	}
	for _, want := range []string{"a", "b", "a", "b"} {
		_, text := ask()
		assert.Equal(t, want, text)
	}
	a.Close()
	status, text := ask()
	assert.Equal(t, http.StatusBadGateway, status)
	assert.Contains(t, text, strings.TrimPrefix(a.URL, "http://")+" does not answer")
}
