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

	"kvbooth/sidecar/booth/local"
)

// Mock workers of SGLang tell nobody of cached tokens: there is no hit rate and not
// one of 0 %, while the router predicts one. What SGLang does tell has its row, and
// without a Prometheus the GPUs of a DCGM page find their workers.
func TestSGLang(t *testing.T) {
	d := Start(t, 18000, func(o *local.Options) { o.Engine = "sglang" })
	gpus := startExporter(t, len(d.Workers()))
	b := startAgainst(t, d, "--target-url="+d.URL(), "--mode-driver=pinned", "--cluster-metrics-urls="+gpus)
	b.start(t)
	b.waitOK(t, 100, 2*time.Minute)
	s, err := b.client.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lane := s.Lanes[0]
	if kv := lane.KV; kv.HitRatio != nil || kv.NotReported != "the engine does not report cached tokens" {
		t.Errorf("hit rate %v, not reported: %q", kv.HitRatio, kv.NotReported)
	}
	if lane.KV.PredictedRatio == nil || *lane.KV.PredictedRatio < .3 {
		t.Errorf("the router predicts %v", lane.KV.PredictedRatio)
	} else {
		t.Logf("the router predicts %.1f %%, nobody tells what came of it", 100**lane.KV.PredictedRatio)
	}
	c := lane.Cluster
	if c.Engine != "sglang" || len(c.Workers) != len(d.Workers()) {
		t.Fatalf("engine %q, %d workers, problem %q", c.Engine, len(c.Workers), c.Problem)
	}
	if !strings.Contains(c.Problem, "by index") {
		t.Errorf("that the GPUs were matched by their order is not said: %q", c.Problem)
	}
	for i, w := range c.Workers {
		if w.Inflight == nil || w.Waiting == nil || w.HitRatio == nil {
			t.Errorf("%s: in flight %v, waiting %v, hit rate %v; not reported: %v", w.Name, w.Inflight, w.Waiting, w.HitRatio, w.NotReported)
		}
		if len(w.GPUs) != 1 || w.GPUs[0].Index != fmt.Sprint(i) {
			t.Errorf("%s has GPUs %v", w.Name, w.GPUs)
		}
	}
	page := get(t, b.base+"/metrics")
	if strings.Contains(page, "\nloadgen_cached_tokens_total") || !strings.Contains(page, "\nloadgen_input_tokens_total") {
		t.Error("the metrics count cached tokens that nobody told")
	}
	b.drain(t)
}

// startExporter serves the page of a DCGM exporter of this machine, since mock workers
// have no GPUs.
func startExporter(t *testing.T, gpus int) string {
	t.Helper()
	var page strings.Builder
	for i := range gpus {
		labels := fmt.Sprintf(`{gpu="%d",UUID="GPU-%d",device="nvidia%d",modelName="NVIDIA H200",Hostname="this-machine"}`, i, i, i)
		fmt.Fprintf(&page, "DCGM_FI_DEV_GPU_UTIL%s %d\nDCGM_FI_DEV_FB_USED%s 71000\nDCGM_FI_DEV_FB_FREE%s 60000\n", labels, 50+i, labels, labels)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page.String()) }))
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
