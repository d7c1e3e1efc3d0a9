//go:build unix

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/output"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/process/processtest"
)

// Each worker and its GPUs have consecutive ports of their own.
func TestClusterServesAllPorts(t *testing.T) {
	port := processtest.Ports(t, 5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out output.Buffer
	ended := make(chan int, 1)
	args := []string{
		"cluster", "--workers=2", fmt.Sprintf("--port=%d", port), fmt.Sprintf("--worker-port=%d", port+1),
		fmt.Sprintf("--gpu-port=%d", port+3),
	}
	go func() { ended <- run(ctx, context.WithoutCancel(ctx), args, &out, &out) }()
	urls := []string{fmt.Sprintf("http://127.0.0.1:%d/v1/models", port)}
	for page := port; page < port+5; page++ {
		urls = append(urls, fmt.Sprintf("http://127.0.0.1:%d/metrics", page))
	}
	for _, url := range urls {
		require.NoError(t, local.Ready(wait.Context(t), url, nil), &out)
	}
	cancel()
	assert.Equal(t, success, wait.Receive(t, "the command ends", ended))
	for _, want := range []string{
		"2 workers simulating trtllm on H200, router mode KV-aware", "meta-llama/Llama-3.1-70B-Instruct",
		"NVIDIA Dynamo " + local.DynamoVersion,
		fmt.Sprintf("http://127.0.0.1:%d,", port), fmt.Sprintf(
			"http://127.0.0.1:%d/metrics to http://127.0.0.1:%d/metrics", port+1, port+2),
	} {
		assert.Contains(t, out.String(), want)
	}
	for page := port; page < port+5; page++ {
		listener, err := net.Listen("tcp", process.Loopback(page))
		require.NoError(t, err)
		listener.Close()
	}
}

func TestClusterEndsRequestsInProgress(t *testing.T) {
	port := processtest.Ports(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	begun, stop := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(begun)
		<-stop
	})
	served := make(chan error, 1)
	go func() {
		all := []endpoint{{flag: "port", port: port, handler: handler}}
		served <- serveAll(ctx, "127.0.0.1", all, func([]string) {}, func() { close(stop) })
	}()
	answered := make(chan error, 1)
	go func() { answered <- local.Ready(t.Context(), fmt.Sprintf("http://127.0.0.1:%d", port), nil) }()
	<-begun
	cancel()
	assert.NoError(t, <-served)
	assert.NoError(t, <-answered, "the request gets an answer")
}

func TestChildCommandsRejectBadInput(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	free := processtest.Ports(t, 4) // for the frontend and three GPUs
	for _, test := range []struct {
		args    []string
		message string
	}{
		{
			[]string{"cluster", fmt.Sprintf("--port=%d", port)},
			fmt.Sprintf("booth: port: %d is not allowed: a free port of 127.0.0.1", port),
		},
		{[]string{"cluster", "--port=-1"}, "booth: port: -1 is not allowed: 1 to 65535"},
		{
			[]string{"cluster", fmt.Sprintf("--port=%d", free), fmt.Sprintf("--gpu-port=%d", free+1), "--worker-port=65534"},
			"booth: worker-port: 65536 is not allowed: 1 to 65535",
		},
		{[]string{"cluster", "--fault-stall=2"}, "2 is not allowed"},
		{
			[]string{"cluster", "--no-router-assume-kv-reuse", "--router-kv-overlap-score-credit=2"},
			"router_kv_overlap_score_credit: 2 is not allowed: 0 to 1",
		},
		{[]string{"prometheus", "--config-file=x"}, "booth prometheus was removed; run prometheus --config.file=FILE"},
	} {
		var out output.Buffer
		assert.Equal(t, badInput, run(t.Context(), t.Context(), test.args, &out, &out), test.args)
		assert.Contains(t, out.String(), test.message)
	}
}
