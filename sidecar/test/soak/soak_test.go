//go:build soak && linux

package soak

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
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
	warmUp  = 5 * time.Minute
	look    = time.Second
	parts   = 10                 // of the time after the warm-up; the median of each is compared with that of the first
	allowed = 1.1                // largest factor on that of the first
	spare   = conversations / 10 // additional descriptors and goroutines that are always allowed
)

// quantities are the observed quantities, with the additional amount that is always allowed.
var quantities = []struct {
	name, unit string
	scale      float64
	spare      float64
}{
	{"memory", "MB", 1e-6, 4e6},
	{"descriptors", "", 1, spare},
	{"goroutines", "", 1, spare},
	{"database", "MB", 1e-6, 1e6},
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
			figure.Report(t, "%d conversations, %s: %d turns ended well, %d failed, %d lost", lane.State.Concurrency.Actual,
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
				samples = append(samples, sample(t, part, dir))
			}
		}
	}
}

// sample returns the quantities of the process.
func sample(t *testing.T, part *boothtest.Part, dir string) []float64 {
	t.Helper()
	p, err := procfs.NewProc(part.PID())
	require.NoError(t, err)
	status, err := p.NewStatus()
	require.NoError(t, err)
	open, err := p.FileDescriptorsLen()
	require.NoError(t, err)
	size := int64(0)
	for _, name := range []string{"kvbooth.db", "kvbooth.db-wal"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			size += info.Size()
		}
	}
	return []float64{float64(status.VmRSS), float64(open), goroutines(t, part), float64(size)}
}

func goroutines(t *testing.T, part *boothtest.Part) float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, part.URL()+"/metrics", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(res.Body)
	require.NoError(t, err)
	return families["go_goroutines"].GetMetric()[0].GetGauge().GetValue()
}

// judge compares the medians of the parts of the time after the warm-up.
func judge(t *testing.T, samples [][]float64) {
	t.Helper()
	require.GreaterOrEqual(t, len(samples), parts, "the soak is too short")
	for i, q := range quantities {
		var medians []float64
		var shown []string
		for chunk := range slices.Chunk(samples[len(samples)%parts:], len(samples)/parts) {
			values := make([]float64, len(chunk))
			for j, s := range chunk {
				values[j] = s[i]
			}
			slices.Sort(values)
			median := values[len(values)/2]
			medians = append(medians, median)
			shown = append(shown, fmt.Sprintf("%.4g", median*q.scale))
		}
		figure.Report(t, "%s%s, medians of tenths of the time after the warm-up: %s", q.name,
			strings.TrimRight(" in "+q.unit, " in"), strings.Join(shown, ", "))
		assert.LessOrEqual(t, slices.Max(medians), max(allowed*medians[0], medians[0]+q.spare), q.name)
	}
}
