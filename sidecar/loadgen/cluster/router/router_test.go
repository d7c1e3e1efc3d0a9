package router

import (
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each scrape of a real router is recognized, and has the metrics of the table under their names and label.
func TestScrapesShowTheirRouter(t *testing.T) {
	for _, id := range []string{"envoy", "litellm", "sglang-router", "smg", "vllm-router"} {
		t.Run(id, func(t *testing.T) {
			page, err := os.Open("testdata/" + id + ".prom")
			require.NoError(t, err)
			defer page.Close()
			parser := expfmt.NewTextParser(model.LegacyValidation)
			families, err := parser.TextToMetricFamilies(page)
			require.NoError(t, err)
			r := ByMetric(maps.Keys(families))
			require.NotNil(t, r)
			assert.Equal(t, id, r.ID)
			assert.True(t, r.Measured)
			m := r.Metrics
			for _, name := range []string{m.Requests, m.Running, m.Queued, m.Errors, m.Latency} {
				if name != "" {
					assert.Contains(t, families, name)
				}
			}
			for _, name := range []string{m.Requests, m.Running} {
				if name == "" {
					continue
				}
				workers := map[string]bool{}
				for _, series := range families[name].GetMetric() {
					for _, l := range series.GetLabel() {
						if l.GetName() == m.Label {
							workers[l.GetValue()] = true
						}
					}
				}
				assert.NotEmpty(t, workers, "%s by %s", name, m.Label)
			}
		})
	}
}

func TestRecognition(t *testing.T) {
	frontend := func(yield func(string) bool) { yield("dynamo_frontend_inflight_requests") }
	assert.Equal(t, "dynamo", ByMetric(frontend).ID)
	assert.Nil(t, ByMetric(func(yield func(string) bool) { yield("vllm:num_requests_running") }))
	assert.Nil(t, ByID("nginx"))
	assert.Len(t, IDs(), len(All))
	for _, test := range []struct{ header, id string }{
		{"x-smg-routed-worker-id", "smg"},
		{"x-litellm-model-id", "litellm"},
		{"target-pod", "aibrix"},
		{"x-envoy-upstream-service-time", "envoy"},
	} {
		h := http.Header{}
		h.Set("X-Envoy-Upstream-Service-Time", "1") // any of them may stand behind an Envoy
		h.Set(test.header, "w")
		r := ByHeader(h)
		require.NotNil(t, r, test.header)
		assert.Equal(t, test.id, r.ID)
	}
	assert.Nil(t, ByHeader(http.Header{"X-Request-Id": {"a"}}))
}

func TestTableIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range All {
		assert.False(t, seen[r.ID], r.ID)
		seen[r.ID] = true
		assert.NotEmpty(t, r.Name, r.ID)
		assert.NotEmpty(t, r.Worker, r.ID)
		assert.NotEmpty(t, r.Cached, r.ID)
		for _, s := range r.Sessions {
			kind, _, _ := strings.Cut(s, ":")
			assert.Contains(t, []string{"header", "body", "returned"}, kind, r.ID)
		}
		for _, h := range append([]string{r.Header}, r.WorkerHeaders...) {
			assert.Equal(t, http.CanonicalHeaderKey(h), h, r.ID)
		}
	}
	assert.NotEmpty(t, WorkerHeaders())
}
