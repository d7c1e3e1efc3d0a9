//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/output"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/booth/prometheus"
	"kvbooth/sidecar/process"
)

// by runs a command by hand, until the returned function ends it and gives its code.
func by(t *testing.T, args ...string) (end func() int, said *output.Buffer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	said = new(output.Buffer)
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, context.Background(), args, said, said) }()
	return func() int {
		cancel()
		select {
		case code := <-ended:
			return code
		case <-time.After(soon):
			t.Fatalf("it does not end: %s", said)
			return 0
		}
	}, said
}

// answers waits until a URL answers with 200.
func answers(t *testing.T, url string, said *output.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.NoError(t, local.Ready(ctx, url, nil), said)
}

// The cluster by hand: every worker and its GPUs have ports of their own, next to
// one another, and all of them are given back.
func TestCluster(t *testing.T) {
	port := 25_000 + rand.IntN(2_000)
	args := []string{"cluster", "--workers=2", fmt.Sprintf("--port=%d", port), fmt.Sprintf("--worker-port=%d", port+10), fmt.Sprintf("--gpu-port=%d", port+20)}
	end, said := by(t, args...)
	answers(t, fmt.Sprintf("http://127.0.0.1:%d/v1/models", port), said)
	for _, page := range []int{port, port + 10, port + 11, port + 20, port + 21} {
		answers(t, fmt.Sprintf("http://127.0.0.1:%d/metrics", page), said)
	}
	assert.Equal(t, success, end())
	for _, told := range []string{
		"2 workers simulating trtllm on H200, router mode KV-aware", "meta-llama/Llama-3.1-70B-Instruct", "NVIDIA Dynamo " + local.DynamoVersion,
		fmt.Sprintf("http://127.0.0.1:%d,", port), fmt.Sprintf("http://127.0.0.1:%d/metrics to http://127.0.0.1:%d/metrics", port+10, port+11),
	} {
		assert.Contains(t, said.String(), told)
	}
	for _, page := range []int{port, port + 10, port + 11, port + 20, port + 21} {
		listener, err := net.Listen("tcp", process.Loopback(page))
		require.NoError(t, err)
		listener.Close()
	}
}

// Requests that are in progress end with the cluster, and do not hold it up.
func TestClusterEndsRequests(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	begun, stop := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-stop
	})
	served := make(chan error, 1)
	go func() {
		served <- serveAll(ctx, "127.0.0.1", []endpoint{{"port", port, handler}}, func([]string) {}, func() { close(stop) })
	}()
	answered := make(chan error, 1)
	go func() { answered <- local.Ready(t.Context(), fmt.Sprintf("http://127.0.0.1:%d", port), nil) }()
	<-begun
	cancel()
	assert.NoError(t, <-served)
	assert.NoError(t, <-answered, "it was ended, not cut off")
}

// What cannot be run is named by its flag.
func TestChildrenRefuse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	free, err := process.FreePorts(27_000+rand.IntN(1_000), 4) // of the frontend and of three GPUs
	require.NoError(t, err)
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"cluster", fmt.Sprintf("--port=%d", port)}, fmt.Sprintf("booth: port: %d is not allowed: a free port of 127.0.0.1", port)},
		{[]string{"cluster", "--port=-1"}, "booth: port: -1 is not allowed: 1 to 65535"},
		{[]string{"cluster", fmt.Sprintf("--port=%d", free[0]), fmt.Sprintf("--gpu-port=%d", free[1]), "--worker-port=65534"}, "booth: worker-port: 65536 is not allowed: 1 to 65535"},
		{[]string{"cluster", "--speed=-1"}, "booth: speed: -1 is not allowed"},
		{[]string{"cluster", "--fault-stall=2"}, "2 is not allowed"},
		{[]string{"cluster", "--overlap-weight=-1"}, "overlap_weight: -1 is not allowed"},
		{[]string{"cluster", "--no-router-assume-kv-reuse", "--router-kv-overlap-score-credit=2"}, "router_kv_overlap_score_credit: 2 is not allowed: 0 to 1"},
		{[]string{"prometheus", "--config-file=missing", "--data-dir=" + t.TempDir()}, "booth: config_file: "},
		{[]string{"prometheus", "--data-dir=x"}, "--config-file"},
	} {
		end, said := by(t, test.args...)
		assert.Eventually(t, func() bool { return said.String() != "" }, soon, 10*time.Millisecond)
		assert.Equal(t, badInput, end(), test.args)
		assert.Contains(t, said.String(), test.says)
	}
}

// Prometheus by hand, on a configuration as the booth writes it.
func TestPrometheus(t *testing.T) {
	ports, err := process.FreePorts(27_000+rand.IntN(1_000), 1)
	require.NoError(t, err)
	address, config := process.Loopback(ports[0]), filepath.Join(t.TempDir(), "prometheus.yml")
	at := addresses{frontend: "127.0.0.1:1", workers: []string{"127.0.0.1:2"}, gpus: []string{"127.0.0.1:3"}}
	require.NoError(t, prometheus.WriteConfig(config, scrapeEvery, targets(at, "127.0.0.1:4", address)))

	end, said := by(t, "prometheus", "--config-file="+config, "--data-dir="+t.TempDir(), "--listen="+address)
	answers(t, "http://"+address+"/-/ready", said)
	assert.Equal(t, success, end(), said)
}
