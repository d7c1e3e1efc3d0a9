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
			for _, name := range []string{m.Requests, m.Running, m.Waiting, m.Queued, m.Errors, m.Latency} {
				if name != "" {
					assert.Contains(t, families, name)
				}
			}
			for _, name := range []string{m.Requests, m.Running, m.Waiting} {
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
	assert.Equal(t, Dynamo, ByMetric(frontend).ID)
	assert.Nil(t, ByMetric(func(yield func(string) bool) { yield("vllm:num_requests_running") }))
	assert.Nil(t, ByID("nginx"))
	assert.Len(t, IDs(), len(All))
	for _, test := range []struct{ header, path, body, id string }{
		{"x-smg-routed-worker-id", "/workers", `{"workers":[{"connection_mode":"HTTP"}]}`, "smg"},
		{"x-litellm-model-id", "", "", "litellm"},
		{"target-pod", "", "", "aibrix"},
		{"", "/list_workers", `{"urls":["http://a"]}`, "vllm-router"},
		{"", "/workers", `{"workers":[{"connection_mode":"HTTP"}]}`, "sglang-router"},
		{"", "/workers", `{"workers":[]}`, "envoy"},
	} {
		e := Evidence{Header: http.Header{"X-Envoy-Upstream-Service-Time": {"1"}}} // an Envoy may stand before each
		if test.header != "" {
			e.Header.Set(test.header, "w")
		}
		e.Get = func(path string) (int, []byte) {
			if path == test.path {
				return http.StatusOK, []byte(test.body)
			}
			return http.StatusNotFound, nil
		}
		r := Recognize(e)
		require.NotNil(t, r, test)
		assert.Equal(t, test.id, r.ID)
		if e.Instance = true; test.id == "envoy" {
			assert.Equal(t, Dynamo, Recognize(e).ID)
		}
	}
	nothing := Evidence{Get: func(string) (int, []byte) { return 0, nil }}
	assert.Nil(t, Recognize(nothing))
}

// A setting that the server's answer contradicts has a remark that names the setting and what to do.
func TestRemarksOnSettings(t *testing.T) {
	const smg, named = "X-Smg-Routed-Worker-Id", "target.router is litellm, and the answers are those of smg; correct"
	for _, row := range []struct {
		settings Settings
		header   string
		id, want string
	}{
		{Settings{}, smg, "smg", ""},
		{Settings{Router: "litellm"}, smg, "litellm", named},
		{Settings{Router: "ray-serve"}, "X-Envoy-Upstream-Service-Time", "ray-serve", ""},
		{Settings{WorkerHeader: "X-Engine"}, smg, "smg", "target.worker_header is X-Engine, and the server's answer has no"},
		{Settings{WorkerHeader: smg}, smg, "smg", ""},
		{Settings{WorkerHeader: smg}, liteLLMPrefix + smg, "", ""},
		{Settings{Session: "returned:X-Session-Id"}, smg, "smg", "target.session is returned:X-Session-Id, and"},
		{Settings{Session: "returned:" + smg}, smg, "smg", ""},
		{Settings{Session: "header:X-Session-Id"}, smg, "smg", ""},
		{Settings{RequestID: "on"}, smg, "smg", ""},
		{Settings{Router: "vllm-router", RequestID: "on"}, "X-Other", "vllm-router", "target.request_id is on, and"},
		{Settings{Router: "vllm-router", RequestID: "auto"}, "X-Other", "vllm-router", ""},
	} {
		found, remarks := row.settings.Identify(Evidence{
			Header: http.Header{row.header: {"1"}}, Get: func(string) (int, []byte) { return 0, nil },
		})
		id, text := "", ""
		if found != nil {
			id = found.ID
		}
		for _, r := range remarks {
			text += r.String()
		}
		assert.Equal(t, row.id, id, row)
		assert.Equal(t, row.want == "", text == "", "%v: %s", row, text)
		assert.Contains(t, text, row.want)
	}
}

func TestTableIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range All {
		assert.False(t, seen[r.ID], r.ID)
		seen[r.ID] = true
		assert.NotEmpty(t, r.Name, r.ID)
		assert.NotEmpty(t, r.Worker, r.ID)
		for _, s := range r.Sessions {
			kind, _, _ := strings.Cut(s, ":")
			assert.Contains(t, []string{"header", "body", "returned"}, kind, r.ID)
		}
		for _, h := range append([]string{r.Header}, r.WorkerHeaders...) {
			assert.Equal(t, http.CanonicalHeaderKey(h), h, r.ID)
		}
	}
	assert.NotEmpty(t, WorkerHeaders(""))
}
