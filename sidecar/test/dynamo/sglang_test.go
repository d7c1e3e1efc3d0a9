//go:build dynamo

package dynamo

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/local"
)

// Mock workers of SGLang do not report cached tokens: there is no hit rate instead of one of 0 %, while the router
// still predicts one. Other metrics of SGLang are in the table, and without Prometheus, the GPUs of a DCGM page are
// matched with their workers.
func TestSGLangWithoutCachedTokens(t *testing.T) {
	d := Start(t, 18000, func(o *local.Options) { o.Engine = "sglang" })
	gpus := startExporter(t, len(d.Workers()))
	b := startAgainst(t, d, "--target-url="+d.URL(), "--mode-driver=pinned", "--cluster-metrics-urls="+gpus)
	b.start(t)
	b.waitOK(t, 100, 2*time.Minute)
	s, err := b.client.Snapshot(t.Context())
	require.NoError(t, err)
	lane := s.Lanes[0]
	assert.Nil(t, lane.KV.HitRatio)
	assert.Equal(t, "the engine does not report cached tokens", lane.KV.NotReported)
	require.NotNil(t, lane.KV.PredictedRatio)
	assert.Greater(t, *lane.KV.PredictedRatio, .3)
	c := lane.Cluster
	assert.Equal(t, "sglang", c.Engine)
	require.Len(t, c.Workers, len(d.Workers()), c.Problem)
	assert.Contains(t, c.Problem, "by index", "the GPUs must be matched by their order")
	for i, w := range c.Workers {
		assert.True(t, w.Inflight != nil && w.Waiting != nil && w.HitRatio != nil, "%s lacks %v", w.Name, w.NotReported)
		require.Len(t, w.GPUs, 1, w.Name)
		assert.Equal(t, fmt.Sprint(i), w.GPUs[0].Index, w.Name)
	}
	metrics := families(t, b.base)
	assert.NotContains(t, metrics, "loadgen_cached_tokens_total", "must not be exported")
	assert.Contains(t, metrics, "loadgen_input_tokens_total")
	b.drain(t)
}

// startExporter serves the page of a DCGM exporter of this machine, since mock workers have no GPUs.
func startExporter(t *testing.T, gpus int) string {
	t.Helper()
	var page strings.Builder
	for i := range gpus {
		labels := fmt.Sprintf(`{gpu="%d",UUID="GPU-%d",device="nvidia%d",modelName="NVIDIA H200",Hostname="this-machine"}`,
			i, i, i)
		fmt.Fprintf(&page, "DCGM_FI_DEV_GPU_UTIL%s %d\nDCGM_FI_DEV_FB_USED%s 71000\nDCGM_FI_DEV_FB_FREE%s 60000\n", labels,
			50+i, labels, labels)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, page.String())
	}))
	t.Cleanup(server.Close)
	return server.URL
}
