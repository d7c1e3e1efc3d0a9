// Package promtest runs a real Prometheus in tests of queries.
package promtest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
)

// Listening finds the address in the log of a Prometheus.
var Listening = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

// On starts a Prometheus that scrapes one page of metrics, whose samples keep their own labels, including job and
// instance. It returns after the first scrape, with a function that runs an instant query. The test is skipped if
// Prometheus is not installed.
func On(t *testing.T, page string) (ask func(query string) model.Vector) {
	t.Helper()
	program, err := local.FindPrometheus(t.Context(), "")
	if errors.Is(err, local.ErrNoPrometheus) {
		t.Skip("no Prometheus: go tool mage test builds one, and " + local.PrometheusVariable + " names its path")
	}
	require.NoError(t, err)
	dir := t.TempDir()
	command := local.PrometheusCommand(program, local.PrometheusOptions{
		Config: filepath.Join(dir, "prometheus.yml"), Data: filepath.Join(dir, "data"), Listen: "127.0.0.1:0",
		Log: filepath.Join(dir, "log"),
	})
	require.NoError(t, os.WriteFile(command.Log, nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), config(serve(t, page)), 0o600))
	started, err := process.Start(command)
	require.NoError(t, err)
	t.Cleanup(func() { started.Stop(t.Context()) })

	var address string
	wait.Eventually(t, "Prometheus listens", func() (any, bool) {
		log, err := os.ReadFile(command.Log)
		require.NoError(t, err)
		found := Listening.FindSubmatch(log)
		if found == nil {
			return string(log), false
		}
		address = string(found[1])
		return nil, true
	})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := api.NewClient(api.Config{Address: "http://" + address, RoundTripper: transport})
	require.NoError(t, err)
	at := func(query string, when time.Time) (model.Vector, error) {
		value, _, _, err := v1.NewAPI(client).Query(t.Context(), query, when)
		vector, _ := value.(model.Vector)
		return vector, err
	}
	// Queries use the time of a scrape: on a busy machine, the samples could be stale at the current time.
	var scraped time.Time
	wait.Eventually(t, "the page is scraped", func() (any, bool) {
		found, err := at("timestamp(up == 1)", time.Now())
		if err != nil || len(found) != 1 {
			return fmt.Sprint(found, err), false // 503 until it is ready
		}
		scraped = time.UnixMilli(int64(float64(found[0].Value) * 1000))
		return nil, true
	})
	return func(query string) model.Vector {
		t.Helper()
		found, err := at(query, scraped)
		require.NoError(t, err)
		return found
	}
}

// serve serves the page and returns the server's address.
func serve(t *testing.T, page string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, page)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func config(address string) []byte {
	return fmt.Appendf(nil, `scrape_configs:
- job_name: page
  scrape_interval: 200ms
  scrape_timeout: 200ms
  honor_labels: true
  static_configs: [{targets: [%q]}]
`, address)
}
