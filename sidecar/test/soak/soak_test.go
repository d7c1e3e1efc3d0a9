//go:build soak && linux

package soak

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

const (
	conversations = 180
	token         = "a-token-for-the-operators"

	// warmUp is the time after which the figures must not grow, or half of a shorter soak.
	warmUp  = 10 * time.Minute
	look    = time.Second
	parts   = 10                 // of the time after the warm-up; the figure of each is compared with that of the first
	allowed = 1.1                // largest factor on that of the first
	spare   = conversations / 10 // additional descriptors and goroutines that are always allowed
)

// quantity is an observed quantity, with the additional amount that is always allowed, or +Inf if it is only printed.
type quantity struct {
	name, unit string
	scale      float64
	rank       float64 // of the figure of a part among its samples: 0.5 is the median
	spare      float64
}

// quantities are in the order of [sample]. Beside other load, collections of garbage take longer and count as live what
// is allocated meanwhile, so only the lowest figure of the heap shows a leak. The resident memory follows the highest.
// The heap may fill the histories of an hour: 120 batches of a step, of about 40 kB, and what is kept of the cluster.
var quantities = []quantity{
	{"live heap", "MB", 1e-6, 0, 8e6},
	{"memory outside the heap", "MB", 1e-6, .5, 4e6},
	{"resident memory", "MB", 1e-6, .5, math.Inf(1)},
	{"descriptors", "", 1, .5, spare},
	{"goroutines", "", 1, .5, spare},
	{"database", "MB", 1e-6, .5, 1e6},
}

// Memory, descriptors, goroutines and database do not grow, and no turn is lost. The load is constant: without think
// times, every conversation always has a turn in flight and its connection open.
func TestSoakKeepsResourcesConstant(t *testing.T) {
	length := time.Hour
	if text := os.Getenv("SOAK"); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		require.NoError(t, err, "SOAK")
	}
	dir, bin := t.TempDir(), boothtest.Programs(t)
	target := boothtest.SimulatedAs(t, bin, "trtllm", "--speed=2")
	part := &boothtest.Part{
		Prints: boothtest.LoadgenPrints, Ready: "http://" + boothtest.AnyPort + "/readyz",
		Command: process.Command{
			Name: "the load generator", Path: filepath.Join(bin, "loadgen"), Log: boothtest.Log(t, "soak"),
			Args: append(target.Loadgen,
				"--target-url=http://"+target.Frontend, "--listen="+boothtest.AnyPort, "--data-dir="+dir, "--start",
				fmt.Sprintf("--concurrency=%d", conversations), "--start-rate=100", "--target-rps=0", "--think-time=0s",
				"--max-tokens=64", "--output-tokens-mean=40", "--output-tokens-cv=.15", "--store-max-conversations=1000",
				"--cluster-metrics-urls="+target.MetricsURLs()),
			Env: append(process.Environment(), "LOADGEN_TOKEN="+token),
		},
	}
	part.Run(t)
	client, err := api.NewClient(nil, part.URL(), token)
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	warm := time.Now().Add(min(warmUp, length/2))
	var samples [][]float64 // the quantities at one time each, in their order
	tick := time.NewTicker(look)
	defer tick.Stop()
	for last := (api.Snapshot{}); ; {
		select {
		case <-ctx.Done():
			lane := last.Lanes[0]
			figure.Headline(t, "%d conversations, %s: %d turns ended well, %d failed, %d lost", lane.State.Concurrency.Actual,
				length, lane.Totals.OK, lane.Totals.Errors, lane.Totals.LostTurns)
			// Some conversations have ended, and the next are about to begin.
			assert.InDelta(t, conversations, lane.State.Concurrency.Actual, spare)
			assert.Zero(t, lane.Totals.LostTurns)
			judge(t, samples)
			return
		case now := <-tick.C:
			s, err := client.Snapshot(t.Context())
			require.NoError(t, err)
			last = s
			if now.After(warm) {
				samples = append(samples, sample(t, part.URL(), dir))
			}
		}
	}
}

// sample returns the quantities of the process.
func sample(t *testing.T, at, dir string) []float64 {
	t.Helper()
	size := int64(0)
	for _, name := range []string{"kvbooth.db", "kvbooth.db-wal"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			size += info.Size()
		}
	}
	gauge := gauges(t, at)
	resident := gauge("process_resident_memory_bytes")
	heap := gauge("go_memstats_heap_sys_bytes") - gauge("go_memstats_heap_released_bytes")
	// The collector starts at this size, which is proportional to the live heap.
	live := gauge("go_memstats_next_gc_bytes") / (1 + gauge("go_gc_gogc_percent")/100)
	return []float64{live, resident - heap, resident, gauge("process_open_fds"), gauge("go_goroutines"), float64(size)}
}

// gauges reads the metrics of a program and returns a function from the name of a gauge to its value.
func gauges(t *testing.T, at string) func(name string) float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/metrics", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(res.Body)
	require.NoError(t, err)
	return func(name string) float64 {
		require.Contains(t, families, name)
		return families[name].GetMetric()[0].GetGauge().GetValue()
	}
}

// judge compares the figures of the parts of the time after the warm-up.
func judge(t *testing.T, samples [][]float64) {
	t.Helper()
	require.GreaterOrEqual(t, len(samples), parts, "the soak is too short")
	for i, q := range quantities {
		var figures []float64
		var shown []string
		for chunk := range slices.Chunk(samples[len(samples)%parts:], len(samples)/parts) {
			values := make([]float64, len(chunk))
			for j, s := range chunk {
				values[j] = s[i]
			}
			slices.Sort(values)
			f := values[int(q.rank*float64(len(values)))]
			figures = append(figures, f)
			shown = append(shown, fmt.Sprintf("%.4g", f*q.scale))
		}
		kind := "medians"
		if q.rank == 0 {
			kind = "lowest values"
		}
		figure.Report(t, "%s%s, %s of tenths of the time after the warm-up: %s", q.name,
			strings.TrimRight(" in "+q.unit, " in"), kind, strings.Join(shown, ", "))
		assert.LessOrEqual(t, slices.Max(figures), max(allowed*figures[0], figures[0]+q.spare), q.name)
	}
}
