//go:build unix

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gateway is a server that requires a client certificate and a header.
type gateway struct {
	*httptest.Server
	files   certFiles
	header  string
	served  atomic.Int64
	refused atomic.Int64
}

// startGateway forwards requests with the header, "NAME: VALUE", to handler.
func startGateway(t *testing.T, header string, handler http.HandlerFunc) *gateway {
	t.Helper()
	dir := t.TempDir()
	g := &gateway{files: certFiles{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}, header: header}
	pool := g.files.issue(t, 1)
	cert, err := tls.LoadX509KeyPair(g.files.cert, g.files.key)
	require.NoError(t, err)
	name, value, _ := strings.Cut(header, ": ")
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(name) != value {
			g.refused.Add(1)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		g.served.Add(1)
		handler(w, r)
	}))
	g.Config.ErrorLog = log.New(io.Discard, "", 0)
	g.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	g.StartTLS()
	t.Cleanup(func() {
		g.CloseClientConnections()
		g.Close()
	})
	return g
}

// flags returns the access flags of a section. A variable has the value of the header.
func (g *gateway) flags(section, variable string) []string {
	name, _, _ := strings.Cut(g.header, ": ")
	return []string{
		fmt.Sprintf("--%s-headers=%s=env:%s", section, name, variable),
		"--" + section + "-ca-file=" + g.files.cert, "--" + section + "-cert-file=" + g.files.cert,
		"--" + section + "-key-file=" + g.files.key,
	}
}

// A target, a follow-up model and metrics pages are reached at their own paths, each with its own header and client
// certificate. No value of a header is shown.
func TestBehindGateways(t *testing.T) {
	t.Parallel()
	server := startTarget(t)
	var paths, questions, pages atomic.Int64
	front := startGateway(t, "Api-Key: s3cret-of-target", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/deployments/x/metrics" {
			pages.Add(1)
			fmt.Fprintln(w, "dynamo_frontend_inflight_requests 1")
			return
		}
		if r.URL.String() == "/deployments/x/chat/completions?api-version=2024-10-21" {
			paths.Add(1)
			r.URL.Path, r.URL.RawQuery = "/v1/chat/completions", ""
		}
		server.ServeHTTP(w, r)
	})
	asker := startGateway(t, "X-Tenant: s3cret-of-asker", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() == "/ask/chat/completions?v=1" {
			questions.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"What follows from that?"},"finish_reason":"stop"}]}`)
	})
	worker := startGateway(t, "X-Scrape: s3cret-of-worker", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `vllm:num_requests_running{model_name="llama"} 2`)
	})
	args := append(front.flags("target", "T"), asker.flags("followup", "F")...)
	args = append(
		append(args, worker.flags("cluster", "W")...), "--target-model=llama", "--cluster-metrics-urls="+worker.URL,
		"--followup-url="+asker.URL+"/ask?v=1", "--followup-model=q", "--start", "--concurrency=2", "--turns-min=2",
	)
	p := newProgram(t, args...)
	p.environ = append(p.environ, "T=s3cret-of-target", "F=s3cret-of-asker", "W=s3cret-of-worker")
	p.serve(front.URL + "/deployments/x/chat/completions?api-version=2024-10-21")
	p.eventually("turns end, a question is asked, and the pages are read", func() bool {
		return paths.Load() > 3 && questions.Load() > 0 && pages.Load() > 0 && worker.served.Load() > 0
	})
	res, err := p.http.Get(p.address + "/api/v1/config")
	require.NoError(t, err)
	defer res.Body.Close()
	shown, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	p.endsWell()
	assert.NotContains(t, string(shown)+p.log.String(), "s3cret")
	assert.Zero(t, front.refused.Load()+asker.refused.Load()+worker.refused.Load())
}
