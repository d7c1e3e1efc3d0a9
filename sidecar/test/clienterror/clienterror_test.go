//go:build verify && linux

package clienterror_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/stats/selfcheck"
	"kvbooth/sidecar/test/known"
)

const (
	target  = "CLIENT_ERROR_TARGET" // set in the process that measures
	streams = 40
	window  = 4 * time.Second
	repeats = 5
)

func TestMain(m *testing.M) {
	if url := os.Getenv(target); url != "" {
		if err := measure(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// measure is the client process: for each line of its input, it measures a window and writes TTFT with its error.
func measure(url string) error {
	client, err := chat.New(chat.Options{URL: url, Model: "bench"})
	if err != nil {
		return err
	}
	watch := new(selfcheck.Watch)
	ctx, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { _ = watch.Run(ctx) })
	defer watching.Wait()
	defer stop()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		began := time.Now()
		var mu sync.Mutex
		var all []float64
		var turns sync.WaitGroup
		for i := range streams {
			turns.Go(func() {
				<-time.After(time.Duration(i) * 200 * time.Millisecond / streams) // spreads the streams over the window
				for time.Since(began) < window {
					r := client.Do(ctx, chat.Request{MaxTokens: 2})
					if ttft, ok := r.TTFT(); ok {
						mu.Lock()
						all = append(all, ttft.Seconds())
						mu.Unlock()
					}
				}
			})
		}
		turns.Wait()
		m := api.Metrics{TTFT: stats.Summarize(all)}
		lag, _ := watch.Lag(began, time.Now())
		lag.Allow(&m, 2)
		if err := json.NewEncoder(os.Stdout).Encode(m.TTFT); err != nil {
			return err
		}
	}
	return nil
}

// quantile holds the windows' figures of one quantile, in milliseconds.
type quantile struct {
	name          string
	truth, ratios []float64
	covered       int
}

func (q *quantile) add(measured, truth, bound float64) {
	e := measured - truth
	if e <= bound {
		q.covered++
	}
	q.truth, q.ratios = append(q.truth, 1000*e), append(q.ratios, bound/e)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return stats.Percentile(values, .5)
}

// The bound covers the true error of TTFT p50 and p95 in at least 95 % of the windows, and its median is at most four
// times the error, with answers of equal and of different length.
func TestBoundCoversTheTrueError(t *testing.T) {
	all := []*quantile{{name: "p50"}, {name: "p95"}}
	for _, ms := range []time.Duration{0, 2, 5, 10, 20, 50} {
		stop := ms * time.Millisecond
		for _, spread := range []time.Duration{0, 100 * time.Millisecond} {
			server := known.New(known.Timing{First: 200 * time.Millisecond, Spread: spread, Gap: 10 * time.Millisecond})
			these := windows(t, server, stop)
			for i, q := range these {
				t.Logf("stopped for %v at once, answers differ by %v: error of TTFT %s %.2f ms (median), bound %.1f times "+
					"that, covers %d of %d", stop, spread, q.name, median(q.truth), median(q.ratios), q.covered, repeats)
				all[i].truth = append(all[i].truth, median(q.truth))
				all[i].covered += q.covered
				all[i].ratios = append(all[i].ratios, q.ratios...)
			}
		}
	}
	for _, q := range all {
		n := len(q.ratios)
		figure.Report(t, "TTFT %s: errors of %.2f to %.1f ms (medians of %d settings), "+
			"covered in %d of %d windows by a bound of %.1f times the error (median)",
			q.name, slices.Min(q.truth), slices.Max(q.truth), len(q.truth), q.covered, n, median(q.ratios))
		figure.Headline(t, "TTFT %s within its bound in %d of %d windows", q.name, q.covered, n)
		assert.GreaterOrEqual(t, float64(q.covered), .95*float64(n), q.name)
		assert.LessOrEqual(t, median(q.ratios), 4., q.name)
	}
}

// windows measures with a client that is stopped repeatedly for a time.
func windows(t *testing.T, server *known.Server, stop time.Duration) []*quantile {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { _ = server.Serve(ctx, l) })
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), target+"=http://"+l.Addr().String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	running.Go(func() { throttle(ctx, cmd.Process.Pid, stop) })
	found := []*quantile{{name: "p50"}, {name: "p95"}}
	for decoder := json.NewDecoder(out); len(found[0].truth) < repeats; {
		server.Take()
		_, err := fmt.Fprintln(in)
		require.NoError(t, err)
		var q api.Quantiles
		require.NoError(t, decoder.Decode(&q))
		truth := stats.Summarize(server.Take().TTFT)
		found[0].add(*q.P50, *truth.P50, *q.P50Error)
		found[1].add(*q.P95, *truth.P95, *q.P95Error)
	}
	cancel()
	_ = cmd.Wait()
	return found
}

// throttle stops a process for a quarter of the time, as a limit on its CPU does, until ctx ends.
func throttle(ctx context.Context, pid int, stop time.Duration) {
	for stop > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(2*stop + rand.N(2*stop)): // random, so that it is not in step with the client
		}
		_ = unix.Kill(pid, unix.SIGSTOP)
		<-time.After(stop)
		_ = unix.Kill(pid, unix.SIGCONT)
	}
}
