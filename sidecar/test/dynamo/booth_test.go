//go:build dynamo

package dynamo

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/booth/local"
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
	args = append(args, fmt.Sprintf("--concurrency=%d", conversations), "--start-rate=20", "--target-rps=0",
		"--max-tokens=64", "--output-tokens-mean=32", "--output-tokens-cv=.15")
	for _, w := range d.Workers() {
		args = append(args, "--cluster-metrics-urls="+w.MetricsURL)
	}
	p, client := boothtest.Loadgen(t, boothtest.Programs(t), "loadgen", os.Getenv("LOADGEN_TOKEN"), args...)
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

// turns returns the turns of the last step.
func (b *booth) turns(t *testing.T) (turns []api.Turn) {
	t.Helper()
	// Turns are committed within 200 ms after their end.
	step := b.status(t).Lanes[0].State.Step.ID
	b.wait(t, "the turns of the step", 10*time.Second, func(s api.LaneStatus) bool {
		turns = boothtest.Turns(t, b.client, api.DefaultLane, step)
		return int64(len(turns)) >= s.Totals.OK+s.Totals.Errors+s.Totals.Cancelled
	})
	return turns
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
