//go:build dynamo

package dynamo

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/process"
	"kvbooth/sidecar/test/boothtest"
)

// booth is a Dynamo with a load generator.
type booth struct {
	dynamo *local.Dynamo
	client *api.Client
	base   string
}

// startBooth starts a booth, which ends with the test.
func startBooth(t *testing.T) *booth {
	t.Helper()
	d := Start(t, 18000)
	return startAgainst(t, d, "--target-url="+d.URL(), "--mode-driver=pinned")
}

// startAgainst starts a load generator for a Dynamo, which ends with the test.
func startAgainst(t *testing.T, d *local.Dynamo, args ...string) *booth {
	t.Helper()
	args = append(args,
		"--data-dir="+t.TempDir(), fmt.Sprintf("--concurrency=%d", conversations), "--start-rate=20", "--target-rps=0",
		"--max-tokens=64", "--output-tokens-mean=32", "--output-tokens-cv=.15")
	for _, w := range d.Workers() {
		args = append(args, "--cluster-metrics-urls="+w.MetricsURL)
	}
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--listen=") }) {
		args = append(args, "--listen="+boothtest.AnyPort)
	}
	p := &boothtest.Part{Prints: boothtest.LoadgenPrints, Command: process.Command{
		Name: "the load generator", Path: filepath.Join(boothtest.Programs(t), "loadgen"), Args: args, Log: boothtest.Log(
			t, "loadgen"), Env: os.Environ(),
	}}
	p.Run(t)
	client, err := api.NewClient(http.DefaultClient, p.URL(), os.Getenv("LOADGEN_TOKEN")) // the load generator's
	require.NoError(t, err)
	b := &booth{dynamo: d, base: p.URL(), client: client}
	b.wait(t, "a probed target", time.Minute,
		func(s api.LaneStatus) bool { return s.Target.Reachable && s.Extensions["nvext"] })
	return b
}

// wait polls the lane's status until the wanted condition holds.
func (b *booth) wait(t *testing.T, what string, limit time.Duration, wanted func(api.LaneStatus) bool) {
	t.Helper()
	wait.Within(t, limit, what, func() (any, bool) {
		s, err := b.client.Status(t.Context())
		if err != nil {
			return err, false
		}
		return s.Lanes[0], wanted(s.Lanes[0])
	})
}

func (b *booth) waitOK(t *testing.T, n int64, limit time.Duration) {
	t.Helper()
	b.wait(t, fmt.Sprintf("%d whole turns", n), limit, func(s api.LaneStatus) bool { return s.Totals.OK >= n })
}

func (b *booth) status(t *testing.T) api.Status {
	t.Helper()
	s, err := b.client.Status(t.Context())
	require.NoError(t, err)
	return s
}

func (b *booth) start(t *testing.T) {
	t.Helper()
	_, err := b.client.Start(t.Context(), api.DefaultLane, api.StartRequest{})
	require.NoError(t, err)
}

func (b *booth) stop(t *testing.T) { b.end(t, false) }

func (b *booth) drain(t *testing.T) { b.end(t, true) }

func (b *booth) end(t *testing.T, drain bool) {
	t.Helper()
	_, err := b.client.Stop(t.Context(), api.DefaultLane, api.StopRequest{Drain: drain})
	require.NoError(t, err)
	b.wait(t, "the end of the workload", time.Minute,
		func(s api.LaneStatus) bool { return s.State.Phase == api.PhaseStopped })
}

func (b *booth) setMode(t *testing.T, m api.Mode) {
	t.Helper()
	_, err := b.client.SetMode(t.Context(), api.DefaultLane, api.ModeRequest{Mode: m})
	require.NoError(t, err)
	b.wait(t, "mode "+string(m), time.Minute, func(s api.LaneStatus) bool {
		return s.State.Mode == m && s.State.Phase == api.PhaseStopped
	})
}

// turn is a row of turns.csv.
type turn struct {
	id, status, class, worker string
	ttft, serverTTFT          float64
}

// turns returns the turns of the last step.
func (b *booth) turns(t *testing.T) []turn {
	t.Helper()
	// Turns are committed within 200 ms after their end.
	step := b.status(t).Lanes[0].State.Step.ID
	var rows [][]string
	b.wait(t, "the turns of the step", 10*time.Second, func(s api.LaneStatus) bool {
		var err error
		rows, err = readCSV(t.Context(), fmt.Sprintf("%s/api/v1/turns.csv?step=%d", b.base, step))
		total := s.Totals.OK + s.Totals.Errors + s.Totals.Cancelled
		return err == nil && int64(len(rows)-1) >= total
	})
	column := func(name string) int {
		i := slices.Index(rows[0], name)
		require.GreaterOrEqual(t, i, 0, "turns.csv has no column %s: %v", name, rows[0])
		return i
	}
	id, status, class, worker := column("request_id"), column("status"), column("error_class"), column("worker")
	ttft, server := column("ttft_seconds"), column("server_ttft_seconds")
	var turns []turn
	for _, r := range rows[1:] {
		turns = append(turns, turn{r[id], r[status], r[class], r[worker], number(r[ttft]), number(r[server])})
	}
	return turns
}

func readCSV(ctx context.Context, url string) ([][]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return csv.NewReader(res.Body).ReadAll()
}

func number(s string) float64 {
	v, _ := strconv.ParseFloat(s, 64) // an empty field counts as 0
	return v
}

// counts are sums of the frontend's metrics.
type counts struct{ prompt, cached float64 }

func (b *booth) frontendCounts(t *testing.T) counts {
	t.Helper()
	families := scrape(t, b.dynamo.URL())
	return counts{
		prompt: families["dynamo_frontend_input_sequence_tokens"],
		cached: families["dynamo_frontend_cached_tokens"],
	}
}

// uptime returns the frontend process's uptime in seconds. A restart resets it.
func (b *booth) uptime(t *testing.T) float64 {
	t.Helper()
	return scrape(t, b.dynamo.URL())["dynamo_component_uptime_seconds"]
}

// scrape reads a frontend's metrics: the sum of a histogram, the value of a gauge or counter.
func scrape(t *testing.T, frontend string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for name, f := range families(t, frontend) {
		for _, m := range f.Metric {
			values[name] += m.GetHistogram().GetSampleSum() + m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

// families reads the metrics of a server.
func families(t *testing.T, root string) map[string]*dto.MetricFamily {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, root+"/metrics", nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(res.Body)
	require.NoError(t, err)
	return all
}
