package prometheus

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/internal/wait"
)

// childVariable makes the test binary a Prometheus of its own, in the folder that
// it names.
const childVariable = "KVBOOTH_PROMETHEUS_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		child(dir)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // what these tests do is mostly to wait for scrapes
	goleak.VerifyTestMain(m)
}

const interval = time.Second // longer than a scrape takes on a machine that is busy

// page is a target.
func page(t *testing.T, handler http.HandlerFunc) (address string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// text is a page of metrics that stays as it is.
func text(metrics string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, metrics)
	}
}

// options are those of a Prometheus in a folder of its own.
func options(t *testing.T, targets ...Target) Options {
	t.Helper()
	dir := t.TempDir()
	o := Options{
		ConfigFile: filepath.Join(dir, "prometheus.yml"), DataDir: filepath.Join(dir, "data"),
		Listen: "127.0.0.1:0", Retention: MinRetention, RetentionSize: MinRetentionSize,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	require.NoError(t, WriteConfig(o.ConfigFile, interval, targets))
	return o
}

// server is a Prometheus that runs, and a client of it.
type server struct {
	v1.API
	t    *testing.T
	url  string
	stop func() // waits for its end
}

func start(t *testing.T, o Options) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // which ends before the clean-ups
	ready, ended := make(chan net.Addr, 1), make(chan error, 1)
	o.Ready = func(a net.Addr) { ready <- a }
	go func() { ended <- Run(ctx, o) }()
	s := &server{t: t, stop: func() {
		if ctx.Err() != nil {
			return
		}
		cancel()
		require.NoError(t, wait.Receive(t, "Prometheus stops", ended))
	}}
	select {
	case a := <-ready:
		s.connect(a.String())
	case err := <-ended:
		cancel()
		t.Fatalf("it ended: %v", err)
	}
	t.Cleanup(s.stop)
	return s
}

func (s *server) connect(address string) {
	s.t.Helper()
	s.url = "http://" + address
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	client, err := api.NewClient(api.Config{Address: s.url, RoundTripper: transport})
	require.NoError(s.t, err)
	s.API = v1.NewAPI(client)
}

// query gives an instant vector.
func (s *server) query(query string) model.Vector {
	s.t.Helper()
	value, _, _, err := s.Query(s.t.Context(), query, time.Now())
	require.NoError(s.t, err)
	return value.(model.Vector)
}

// value waits until a query finds one sample, and gives its value.
func (s *server) value(query string) float64 {
	s.t.Helper()
	var found model.Vector
	wait.Eventually(s.t, query, func() (any, bool) {
		found = s.query(query)
		return found, len(found) == 1
	})
	return float64(found[0].Value)
}

// valueAt is that of a query's only sample at a time.
func (s *server) valueAt(query string, at time.Time) float64 {
	s.t.Helper()
	value, _, _, err := s.Query(s.t.Context(), query, at)
	require.NoError(s.t, err)
	require.Len(s.t, value, 1, query)
	return float64(value.(model.Vector)[0].Value)
}

// has waits until a query finds something.
func (s *server) has(query string) {
	s.t.Helper()
	wait.Eventually(s.t, query, func() (any, bool) {
		found := s.query(query)
		return found, len(found) > 0
	})
}

// call makes a request and gives status and body.
func (s *server) call(method, path string, form url.Values, host string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(form.Encode()))
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Host = host
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return response.StatusCode, string(body)
}
