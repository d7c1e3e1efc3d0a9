//go:build unix

package local_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/booth/local/localtest"
)

// prometheusScript returns a program that reports a version like Prometheus.
func prometheusScript(version string) string {
	return "#!/bin/sh\necho prometheus, version " + version + "\n"
}

func TestFindPrometheusOrder(t *testing.T) {
	install := func(version string) string {
		path := filepath.Join(t.TempDir(), "prometheus")
		require.NoError(t, os.WriteFile(path, []byte(prometheusScript(version)), 0o755))
		return path
	}
	built, onPath, named := install("3.1.0"), install("3.2.0"), install("3.3.0")
	find := func() (string, error) { return local.FindPrometheus(t.Context(), filepath.Dir(built)) }

	t.Setenv("PATH", filepath.Dir(onPath))
	t.Setenv(local.PrometheusVariable, named)
	path, err := find()
	require.NoError(t, err)
	assert.Equal(t, named, path, "the variable comes first")

	t.Setenv(local.PrometheusVariable, "")
	path, err = find()
	require.NoError(t, err)
	assert.Equal(t, built, path, "then the folder of the booth")

	require.NoError(t, os.Remove(built))
	path, err = find()
	require.NoError(t, err)
	assert.Equal(t, onPath, path, "then the PATH")

	require.NoError(t, os.WriteFile(onPath, []byte(prometheusScript("2.53.0")), 0o755))
	_, err = find()
	require.EqualError(t, err, "Prometheus 2.53.0 in "+filepath.Dir(onPath)+" is too old: 3.0.0 or later is required")

	t.Setenv("PATH", t.TempDir())
	_, err = find()
	assert.ErrorIs(t, err, local.ErrNoPrometheus)
}

// TestInstallPrometheusFindsChecksumInList checks that the checksum is taken from the archive's line in the release's
// list.
func TestInstallPrometheusFindsChecksumInList(t *testing.T) {
	program := localtest.Entry{Name: "prometheus-v/prometheus", Content: prometheusScript(local.PrometheusRelease)}
	archive := localtest.Archive(t, program)
	sums := fmt.Sprintf("%064d  prometheus-%s.plan9-386.tar.gz\n%x  prometheus-%[2]s.%[4]s-%[5]s.tar.gz\n",
		0, local.PrometheusRelease, sha256.Sum256(archive), runtime.GOOS, runtime.GOARCH)
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/sha256sums.txt") {
			fmt.Fprint(w, sums)
			return
		}
		_, _ = w.Write(archive)
	}))
	t.Cleanup(mirror.Close)
	t.Setenv(local.PrometheusMirrorVariable, mirror.URL)
	cache := t.TempDir()
	var progress bytes.Buffer
	path, err := local.InstallPrometheus(wait.Context(t), cache, &progress)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(cache, "prometheus-"+local.PrometheusRelease, "prometheus"), path)
	assert.Contains(t, progress.String(), "its SHA-256 matches the one published at "+mirror.URL+"/sha256sums.txt")

	sums = strings.ReplaceAll(sums, "plan9", runtime.GOOS)
	_, err = local.InstallPrometheus(wait.Context(t), t.TempDir(), &progress)
	assert.NoError(t, err, "lines of other files are ignored")
}

func TestWriteScrapeConfigGroupsByJob(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prometheus.yml")
	require.NoError(t, local.WriteScrapeConfig(path, time.Minute, []local.ScrapeTarget{
		{Job: "worker", Address: "127.0.0.1:8081", Labels: map[string]string{"pod": `odd "one": yes`}},
		{Job: "frontend", Address: "127.0.0.1:8000"},
		{Job: "worker", Address: "[::1]:8082"},
	}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.YAMLEq(t, `
global:
  scrape_interval: 60000ms
  scrape_timeout: 10000ms
  scrape_native_histograms: true
  always_scrape_classic_histograms: true
scrape_configs:
- job_name: worker
  static_configs:
  - {targets: ["127.0.0.1:8081"], labels: {pod: 'odd "one": yes'}}
  - targets: ["[::1]:8082"]
- job_name: frontend
  static_configs: [{targets: ["127.0.0.1:8000"]}]
`, string(text))
}
