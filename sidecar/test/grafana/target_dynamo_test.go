//go:build grafana

package grafana

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/local"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/test/boothtest"
	"kvbooth/sidecar/test/dynamo"
)

// dynamoPort is the first port that is tried for Dynamo's processes, which need explicit ports.
const dynamoPort = 23000

// realDynamo starts a real Dynamo with mock workers. Its mode changes without a restart: under round-robin, the load
// generator names the worker of each turn.
func realDynamo(t *testing.T, _ string) boothtest.Target {
	t.Helper()
	d, p := dynamo.Start(t, dynamoPort), sim.H200()
	c := boothtest.Target{Frontend: host(t, d.URL())}
	for _, w := range d.Workers() {
		c.Workers = append(c.Workers, host(t, w.MetricsURL))
	}
	c.Loadgen = []string{
		"--mode-driver=pinned", "--target-model=" + dynamo.Model, "--default-baseline=" + p.Baseline,
		"--deployment-kind=mocked", "--deployment-engine=mock of trtllm", "--deployment-gpu=mock of " + p.GPU,
		fmt.Sprintf("--deployment-workers=%d", len(c.Workers)),
	}
	return c
}

func host(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Host
}

// withoutGPUs are the panels without data for a Dynamo with mock workers, with their reasons.
var withoutGPUs = map[string]string{
	"kvbooth-booth: GPU memory (per GPU)":           "no DCGM exporter is scraped",
	"gtc-demo: GPU memory (per GPU)":                "no DCGM exporter is scraped",
	"gtc-demo: GPU Utilization (per GPU)":           "no DCGM exporter is scraped",
	"gtc-demo: Engine Queue Wait Time (per worker)": "not scraped, or not reported by this engine",
	"gtc-demo: Speculative decoding":                "not scraped, or not reported by this engine",
}

// TestRealDynamo runs the core journeys with a real Dynamo, and follows the page on an existing Grafana with it.
func TestRealDynamo(t *testing.T) {
	if _, _, err := local.FindPython(t.Context()); err != nil {
		t.Skipf("skipped: no Python 3.10 or later (%v)", err)
	}
	b := run(t, "", "anywhere", realDynamo)
	t.Run("ExistingGrafana", func(t *testing.T) { follow(t, find(t), b.Target(), withoutGPUs) })
}
