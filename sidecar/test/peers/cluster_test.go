//go:build peers

package peers

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/sim"
)

// cluster is a simulated cluster that records at its socket, by wall clock, when requests arrived and when their
// answers began and ended.
type cluster struct {
	t   *testing.T
	url string

	mu          sync.Mutex
	first, last time.Time
	waits       []time.Duration // of each answer until its first byte
}

// answer is a response whose first byte is recorded.
type answer struct {
	http.ResponseWriter
	first func()
}

func (a *answer) Write(data []byte) (int, error) {
	a.first()
	return a.ResponseWriter.Write(data)
}

// Unwrap lets the response be flushed.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func start(t *testing.T) *cluster {
	t.Helper()
	server, err := httpd.New(httpd.Options{Cluster: sim.DefaultOptions(sim.H200()), Engine: "trtllm", Speed: 1})
	require.NoError(t, err)
	c := &cluster{t: t}
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			came := time.Now()
			c.record(func() {
				if c.first.IsZero() {
					c.first = came
				}
			})
			defer c.record(func() { c.last = time.Now() })
			w = &answer{w, sync.OnceFunc(func() { c.record(func() { c.waits = append(c.waits, time.Since(came)) }) })}
		}
		server.Frontend().ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		listener.Close()
	})
	c.url = listener.URL
	return c
}

func (c *cluster) record(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// figures are the cluster's figures of the requests that it answered.
type figures struct {
	requests, failed, promptTokens, outputTokens float64

	ttft       time.Duration // mean, at the socket
	simulated  time.Duration // mean in the cluster's own time, without delays of the machine
	throughput float64       // output tokens per second, from the first request's arrival to the last answer's end
}

func (c *cluster) figures() (f figures) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+"/metrics", nil)
	require.NoError(c.t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	require.NoError(c.t, err)
	sum := func(name, label string) (sum float64) {
		for line := range strings.Lines(string(page)) {
			series, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
			if strings.HasPrefix(series, name+"{") && strings.Contains(series, label) {
				v, err := strconv.ParseFloat(value, 64)
				require.NoError(c.t, err)
				sum += v
			}
		}
		return sum
	}
	const prefix = "dynamo_frontend_"
	f.requests = sum(prefix+"requests_total", `status="success"`)
	f.failed = sum(prefix+"requests_total", `status="error"`)
	f.promptTokens = sum(prefix+"input_sequence_tokens_sum", "")
	f.outputTokens = sum(prefix+"output_tokens_total", "")
	const ttft = prefix + "time_to_first_token_seconds"
	f.simulated = time.Duration(sum(ttft+"_sum", "") / sum(ttft+"_count", "") * float64(time.Second))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, wait := range c.waits {
		f.ttft += wait / time.Duration(len(c.waits))
	}
	f.throughput = f.outputTokens / c.last.Sub(c.first).Seconds()
	return f
}

// run runs a program to its end, and returns its standard output.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &stdout, &stderr, t.TempDir()
	require.NoError(t, cmd.Run(), "%s\n%s", &stdout, &stderr)
	return stdout.String()
}

// The load generator's parameters, and what must hold however slow the machine is.
const (
	requests     = 24
	streams      = 8
	promptTokens = 4000
	outputTokens = 60
)

// agrees compares a load generator's figures with the cluster's of the same requests.
//
// Requests and tokens are counted, so they are equal. A client's first token cannot arrive before the cluster has
// sent it, and not before it was generated in the cluster's own time; the client's span includes the cluster's. The
// client adds parsing, waiting for a core, start and end: on an idle machine with two cores, less than a fifth of a
// TTFT of near a second and of a span of ten.
func (c *cluster) agrees(by figures) {
	c.t.Helper()
	ours := c.figures()
	figure.Report(c.t, "TTFT mean %.0f ms simulated; tokens/s %.1f by the tool and %.1f", ours.simulated.Seconds()*1000,
		by.throughput, ours.throughput)
	figure.Headline(c.t, "TTFT mean %.0f ms, at the socket %.0f ms", by.ttft.Seconds()*1000, ours.ttft.Seconds()*1000)
	assert.InDelta(c.t, requests, ours.requests, 0)
	assert.Zero(c.t, ours.failed)
	assert.InDelta(c.t, ours.requests, by.requests, 0)
	assert.Zero(c.t, by.failed)
	assert.InDelta(c.t, requests*outputTokens, ours.outputTokens, 0, "ignore_eos: the requested number of tokens")
	assert.InDelta(c.t, ours.outputTokens, by.outputTokens, 0)
	assert.InDelta(c.t, ours.promptTokens, by.promptTokens, 0)
	assert.GreaterOrEqual(c.t, ours.ttft, ours.simulated)
	assert.GreaterOrEqual(c.t, by.ttft+time.Millisecond, ours.ttft, "up to rounding")
	assert.Less(c.t, by.ttft.Seconds(), 1.2*ours.ttft.Seconds())
	assert.LessOrEqual(c.t, by.throughput, 1.01*ours.throughput)
	assert.Greater(c.t, by.throughput, .8*ours.throughput)
}
