//go:build verify && unix

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/output"
	"kvbooth/internal/wait"
)

// A real collector accepts what is exported, and passes it on unchanged.
func TestRealCollector(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "collector")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..", "..", "tools", "collector")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	r := startReceiver(t)
	l, err := net.Listen("tcp", "127.0.0.1:0") // the collector does not print a port that the system chooses
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	conf := filepath.Join(dir, "collector.yaml")
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, `
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters:
  debug: {verbosity: basic}
  otlp_http: {endpoint: %q, compression: none, tls: {insecure: true}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [otlp], exporters: [debug, otlp_http]}
    traces: {receivers: [otlp], exporters: [debug, otlp_http]}
`, address, r.URL), 0o600))
	var log output.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	collector := exec.CommandContext(ctx, program, "--config="+conf)
	collector.Stdout, collector.Stderr = &log, &log
	require.NoError(t, collector.Start())
	defer func() {
		cancel()
		_ = collector.Wait()
		t.Log(log.String())
	}()
	wait.Eventually(t, "the collector listens", func() (any, bool) {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return &log, err == nil
	})
	exportsTo(t, "http://"+address, r)
}
