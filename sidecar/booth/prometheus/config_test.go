package prometheus

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	kv "kvbooth/sidecar/api"
)

func TestWriteConfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "prometheus.yml")
	require.NoError(t, os.WriteFile(path, []byte("the old one"), 0o600))
	require.NoError(t, WriteConfig(path, 2*time.Second, []Target{
		{Job: "worker", Address: "127.0.0.1:8081", Labels: map[string]string{"pod": "dynamo-worker-1"}},
		{Job: "frontend", Address: "127.0.0.1:8000", Path: "/m"},
		{Job: "worker", Address: "[::1]:8082", Path: "/metrics", Labels: map[string]string{"pod": `odd "one": yes`}},
	}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, `global:
    scrape_interval: 2000ms
    scrape_timeout: 2000ms
    scrape_native_histograms: true
    always_scrape_classic_histograms: true
scrape_configs:
    - job_name: worker
      metrics_path: /metrics
      static_configs:
        - targets:
            - 127.0.0.1:8081
          labels:
            pod: dynamo-worker-1
        - targets:
            - '[::1]:8082'
          labels:
            pod: 'odd "one": yes'
    - job_name: frontend
      metrics_path: /m
      static_configs:
        - targets:
            - 127.0.0.1:8000
`, string(text))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

func TestScrapeTimeout(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "prometheus.yml")
	for given, timeout := range map[time.Duration]time.Duration{
		100 * time.Millisecond:  100 * time.Millisecond,
		1500 * time.Millisecond: 1500 * time.Millisecond,
		time.Minute:             10 * time.Second,
	} {
		require.NoError(t, WriteConfig(path, given, []Target{{Job: "a", Address: "127.0.0.1:1"}}))
		cfg, err := readConfig(path)
		require.NoError(t, err)
		assert.Equal(t, given, time.Duration(cfg.ScrapeConfigs[0].ScrapeInterval))
		assert.Equal(t, timeout, time.Duration(cfg.ScrapeConfigs[0].ScrapeTimeout))
	}
}

// Each refused list of targets, with the field and a part of what is said.
func TestWriteConfigRefuses(t *testing.T) {
	t.Parallel()
	one := Target{Job: "a", Address: "127.0.0.1:1"}
	for name, c := range map[string]struct {
		interval    time.Duration
		targets     []Target
		field, part string
	}{
		"no interval":             {0, nil, "interval", "at least 100ms"},
		"half a millisecond":      {time.Second + 500*time.Microsecond, nil, "interval", "1.0005s"},
		"an address without port": {time.Second, []Target{one, {Job: "a", Address: "localhost"}}, "targets[1].address", `"localhost"`},
		"a URL":                   {time.Second, []Target{{Job: "a", Address: "http://127.0.0.1:1/metrics"}}, "targets[0].address", "host:port"},
		"two paths of one job":    {time.Second, []Target{one, {Job: "a", Address: "127.0.0.1:2", Path: "/m"}}, "targets[1].path", `"/metrics", like the first target of job a`},
		"no job":                  {time.Second, []Target{{Address: "127.0.0.1:1"}}, "targets", "job_name is empty"},
		"a label that is none":    {time.Second, []Target{{Job: "a", Address: "127.0.0.1:1", Labels: map[string]string{"": "x"}}}, "targets", "label"},
	} {
		path := filepath.Join(t.TempDir(), "prometheus.yml")
		err := WriteConfig(path, c.interval, c.targets)
		var field *kv.FieldError
		require.ErrorAs(t, err, &field, name)
		assert.Equal(t, c.field, field.Field, name)
		assert.Contains(t, err.Error(), c.part, name)
		assert.NoFileExists(t, path, name)
	}
	require.Error(t, WriteConfig(filepath.Join(t.TempDir(), "missing", "prometheus.yml"), time.Second, nil))
}
