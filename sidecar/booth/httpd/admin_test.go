package httpd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
)

// page reads a handler's /metrics.
func page(h http.Handler) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// metric returns the sum of a metric's series.
func metric(text, name string) (sum float64) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == '{' || rest[0] == ' ') {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
			if err != nil {
				panic(err)
			}
			sum += v
		}
	}
	return sum
}

func TestStateDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, func(o *Options) { o.Engine, o.Faults.Stall = "vllm", .25 })
		var s map[string]any
		b.get("/sim/v1/state", &s)
		workers := s["workers"].([]any)
		require.Len(t, workers, 3)
		assert.Equal(t, "dynamo-worker-3", workers[2].(map[string]any)["name"])
		assert.Len(t, s["offers"], 12)
		delete(s, "workers")
		delete(s, "offers")
		assert.Equal(t, map[string]any{
			"mode": "kv", "speculation": "not_recorded", "calibrated": true, "ready": true, "ready_in_seconds": 0.,
			"profile": "h200-tp1", "engine": "vllm", "speed": float64(quick), "inflight": 0.,
			"faults": map[string]any{"http_500": 0., "http_429": 0., "stall": .25, "disconnect": 0.},
		}, s)
	})
}

// TestModeChangeRestartsCluster checks that requests in progress fail, that the caches are empty afterwards, that the
// endpoints report the restart, and that the state file is written before the response.
func TestModeChangeRestartsCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "state.json")
		b := open(t, func(o *Options) { o.Speed, o.StateFile, o.Cluster.Restart = 10, file, 10*time.Second })
		b.complete(ask("before", 3, ""))
		running := b.chat(ask("running", 900, ""))

		status, _ := b.call(http.MethodPut, "/sim/v1/mode", `{"mode":"kv","speculation":"not_recorded"}`)
		assert.Equal(t, http.StatusOK, status, "no change")
		assert.NoFileExists(t, file)
		status, text := b.call(http.MethodPut, "/sim/v1/mode", `{"mode":"round_robin","speculation":"draft"}`)
		require.Equal(t, http.StatusAccepted, status, text)
		var s state
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		assert.False(t, s.Ready || s.Calibrated)
		assert.InDelta(t, 1, s.ReadyIn, .5, "in wall-clock seconds")
		kept, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.JSONEq(t, `{"mode":"round_robin","speculation":"draft"}`, string(kept))

		all, err := readEvents(running.Body)
		require.NoError(t, err)
		assertStreamError(t, all, http.StatusServiceUnavailable)
		for _, path := range []string{"/health", "/live", "/v1/models", "/metrics", "/v1/chat/completions"} {
			method := http.MethodGet
			if strings.Contains(path, "chat") {
				method = http.MethodPost
			}
			res := b.do(method, path, "{}")
			assert.Equal(t, http.StatusServiceUnavailable, res.StatusCode, path)
			assert.Equal(t, "1", res.Header.Get("Retry-After"), path)
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			if path == "/health" {
				assert.Contains(t, string(body), `"unhealthy"`)
			}
		}
		b.ready("the cluster has restarted")
		a := b.complete(ask("after", 3, ""))
		assert.Nil(t, a.finish.NVExt.Timing.KVHitRate, "round_robin predicts no hit rate")
		b.counts(1) // since the restart

		status, _ = b.call(http.MethodPut, "/sim/v1/mode?restart=true", `{"mode":"round_robin","speculation":"draft"}`)
		assert.Equal(t, http.StatusAccepted, status, "restart without a change of mode")
		assert.False(t, b.state().Ready)
		b.ready("the cluster has restarted again")

		status, text = b.call(http.MethodPut, "/sim/v1/mode?workers=keep", `{"mode":"kv","speculation":"off"}`)
		assert.Equal(t, http.StatusBadRequest, status, "workers that are kept cannot change their speculation")
		assert.Contains(t, text, "speculation")
		status, _ = b.call(http.MethodPut, "/sim/v1/mode?workers=keep", `{"mode":"kv"}`)
		assert.Equal(t, http.StatusAccepted, status)
		assert.True(t, b.state().Ready, "only the frontend restarts, at once")
		warm := b.complete(ask("after", 3, ""))
		assert.NotNil(t, warm.finish.NVExt.Timing.KVHitRate)
		b.counts(1) // since the restart of the frontend
		status, _ = b.call(http.MethodPut, "/sim/v1/mode?workers=keep", `{"mode":"round_robin"}`)
		assert.Equal(t, http.StatusAccepted, status)
		_, text = b.call(http.MethodGet, "/metrics", "")
		assert.Zero(t, metric(text, "dynamo_frontend_requests_total"), "the counters begin at zero")

		status, text = b.call(http.MethodPut, "/sim/v1/mode?in_place=true", `{"mode":"kv","speculation":"off"}`)
		assert.Equal(t, http.StatusBadRequest, status, text)
		before := b.complete(ask("before", 3, ""))
		status, _ = b.call(http.MethodPut, "/sim/v1/mode?in_place=true", `{"mode":"kv"}`)
		assert.Equal(t, http.StatusOK, status, "nothing restarts")
		assert.Equal(t, api.ModeKV, b.state().Mode)
		assert.NotNil(t, before)
		b.counts(1) // the counters go on
		status, _ = b.call(http.MethodPut, "/sim/v1/mode?in_place=true", `{"mode":"round_robin"}`)
		assert.Equal(t, http.StatusOK, status)

		// The next process reads the mode from the state file.
		again, err := New(b.options)
		require.NoError(t, err)
		defer again.Close()
		assert.Equal(t, api.ModeRoundRobin, again.snapshot().State.Mode)
	})
}

// assertStreamError checks that a stream ended with an error in Dynamo's format.
func assertStreamError(t *testing.T, all []event, code int) {
	t.Helper()
	require.NotEmpty(t, all)
	var c chunk
	require.NoError(t, json.Unmarshal([]byte(all[len(all)-1].data), &c), "%v", all)
	assert.Equal(t, code, c.Code)
	assert.Equal(t, http.StatusText(code), c.Type)
	assert.NotEmpty(t, c.Message)
	assert.Empty(t, c.Choices)
}

func TestUnusableStateFile(t *testing.T) {
	dir := t.TempDir()
	o := Options{Cluster: sim.DefaultOptions(sim.H200()), Engine: "trtllm", Speed: 1}
	for i, content := range []string{
		"", "{", `{"mode":"kv"}`, `{"mode":"fastest","speculation":"off"}`,
		`{"mode":"kv","speculation":"off","more":1}`,
	} {
		o.StateFile = filepath.Join(dir, fmt.Sprint(i))
		require.NoError(t, os.WriteFile(o.StateFile, []byte(content), 0o600))
		_, err := New(o)
		require.ErrorContains(t, err, o.StateFile, content)
	}
	// The mode does not change if the file cannot be written.
	synctest.Test(t, func(t *testing.T) {
		b := open(t, func(o *Options) { o.StateFile = filepath.Join(dir, "missing", "state") })
		status, text := b.call(http.MethodPut, "/sim/v1/mode", `{"mode":"least_loaded"}`)
		assert.Equal(t, http.StatusInternalServerError, status)
		assert.Contains(t, text, "missing")
		assert.Equal(t, api.ModeKV, b.state().Mode)
	})
}

func TestNewRefusesOptionsOutOfRange(t *testing.T) {
	for field, change := range map[string]func(*Options){
		"speed":    func(o *Options) { o.Speed = 0 },
		"engine":   func(o *Options) { o.Engine = "mlx" },
		"http_429": func(o *Options) { o.Faults = Faults{HTTP500: .6, HTTP429: .6} },
		"stall":    func(o *Options) { o.Faults.Stall = -.1 },
		"mode":     func(o *Options) { o.Cluster.Mode = "random" },
	} {
		o := Options{Cluster: sim.DefaultOptions(sim.H200()), Engine: "trtllm", Speed: 1}
		change(&o)
		_, err := New(o)
		var f *api.FieldError
		require.ErrorAs(t, err, &f)
		assert.Equal(t, field, f.Field)
	}
}

func TestGuardedEndpointsRejectRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, func(o *Options) { o.Hosts = []string{"cluster"} })
		for _, row := range []struct {
			intent, method, path, body string
			header                     []string
			status                     int
			names                      string
		}{
			{"a rebound name", "GET", "/sim/v1/state", "", []string{"Host", "evil.example"}, 421, "Host"},
			{"localhost by name", "GET", "/sim/v1/state", "", []string{"Host", "localhost:8000"}, 200, ""},
			{"IPv6 loopback", "GET", "/sim/v1/state", "", []string{"Host", "[::1]:8000"}, 200, ""},
			{"a configured host", "GET", "/sim/v1/state", "", []string{"Host", "cluster:8000"}, 200, ""},
			{"a longer name", "GET", "/sim/v1/state", "", []string{"Host", "cluster.evil.example"}, 421, "Host"},
			{"a page of another site", "GET", "/sim/v1/state", "", []string{"Origin", "http://evil.example"}, 403, "Origin"},
			{"its own page", "GET", "/sim/v1/state", "", []string{"Origin", b.url}, 200, ""},
			{"a form", "PUT", "/sim/v1/faults", "{}", []string{"Content-Type", "text/plain"}, 415, "Content-Type"},
			{"an unknown field", "PUT", "/sim/v1/faults", `{"http_404":1}`, nil, 400, "http_404"},
			{"more than an object", "PUT", "/sim/v1/faults", `{}{}`, nil, 400, "unexpected data after"},
			{"a large body", "PUT", "/sim/v1/faults", strings.Repeat(" ", maxAdminBody+1), nil, 413, "bytes"},
			{"out of range", "PUT", "/sim/v1/faults", `{"stall":2}`, nil, 400, "stall: 2 is not allowed: 0 to 1"},
			{"a sum above 1", "PUT", "/sim/v1/faults", `{"stall":0.7,"disconnect":0.7}`, nil, 400, "disconnect"},
			{
				"an unknown mode", "PUT", "/sim/v1/mode", `{"mode":"random"}`, nil, 400,
				`mode: \"random\" is not allowed: kv, round_robin, least_loaded`,
			},
			{
				"an unknown speculation", "PUT", "/sim/v1/mode", `{"mode":"kv","speculation":"medusa"}`, nil, 400,
				"not_recorded, off, draft, eagle3",
			},
			{"a wrong method", "DELETE", "/sim/v1/mode", `{}`, nil, 405, ""},
			{"an unknown worker", "POST", "/sim/v1/workers/12/lose", `{"seconds":1}`, nil, 404, "12"},
			{"no duration", "POST", "/sim/v1/workers/12/lose", `{}`, nil, 400, "seconds"},
		} {
			status, text := b.call(row.method, row.path, row.body, row.header...)
			assert.Equal(t, row.status, status, "%s: %s", row.intent, text)
			assert.Contains(t, text, row.names, row.intent)
		}
		assert.Equal(t, Faults{}, b.state().Faults)
	})
}

// TestLostWorkerFailsItsStreams checks that a lost worker's streams end with an error, that the worker is not listed
// until it is back, and that its own counters begin at zero.
func TestLostWorkerFailsItsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, func(o *Options) { o.Speed = 10 })
		ids := b.ids()
		pin := fmt.Sprintf(`,"backend_instance_id":%d`, ids[0])
		b.complete(ask("x", 3, pin))
		running := b.chat(ask("x", 900, pin))
		pinOther := fmt.Sprintf(`,"backend_instance_id":%d`, ids[1])
		other := b.chat(ask("x", 30, pinOther))
		status, text := b.call(http.MethodPost, "/sim/v1/workers/any/lose", `{"seconds":0.5}`)
		require.Equal(t, http.StatusOK, status, text)
		var s state
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		assert.False(t, s.WorkerStates[0].Ready)
		assert.InDelta(t, .5, s.WorkerStates[0].ReadyIn, .3)

		all, err := readEvents(running.Body)
		require.NoError(t, err)
		assertStreamError(t, all, http.StatusInternalServerError)
		assert.Contains(t, all[len(all)-1].data, sim.ErrWorkerLost.Error())
		assert.Positive(t, complete(t, other.Body).last.Usage.Completion, "streams of other workers continue")
		b.becomes("the worker is back", func(state) bool { return len(b.ids()) == 3 })
		assert.Zero(t, metric(page(b.Worker(0)), "dynamo_component_requests_total"))
	})
}

func TestInjectedFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, nil)
		put := func(f string) {
			status, text := b.call(http.MethodPut, "/sim/v1/faults", f)
			require.Equal(t, http.StatusOK, status, text)
		}
		put(`{"http_500":1}`)
		status, _ := b.call(http.MethodPost, "/v1/chat/completions", ask("x", 5, ""))
		assert.Equal(t, http.StatusInternalServerError, status)

		put(`{"http_429":1}`)
		res := b.chat(ask("x", 5, ""))
		assert.Equal(t, http.StatusTooManyRequests, res.StatusCode)
		assert.Equal(t, "1", res.Header.Get("Retry-After"))

		put(`{"disconnect":1}`)
		for _, tokens := range []int{900, 2} {
			all, err := readEvents(b.chat(ask("x", tokens, "")).Body)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.NotEmpty(t, all)
			assert.LessOrEqual(t, len(all), maxWhole)
		}
		b.idle("aborted requests have ended")

		put(`{"stall":1}`)
		stalled := b.chat(ask("x", 900, ""))
		first := make([]byte, 1)
		_, err := io.ReadFull(stalled.Body, first)
		require.NoError(t, err)
		b.idle("the answer is complete, and is not sent")
		put(`{}`)
		b.complete(ask("x", 5, ""))
		go b.Close() // ends the stalled stream
		all, err := readEvents(io.MultiReader(bytes.NewReader(first), stalled.Body))
		require.NoError(t, err)
		assert.LessOrEqual(t, len(all), maxWhole+1)
		assertStreamError(t, all, http.StatusServiceUnavailable)
	})
}

func TestFaultsAreDrawnByShare(t *testing.T) {
	i := newInjector(1, Faults{HTTP500: .1, HTTP429: .2, Stall: .3, Disconnect: .3})
	counts := map[faultKind]float64{}
	for range 10_000 {
		f := i.draw()
		counts[f.kind]++
		if f.kind != faultNone {
			require.True(t, 1 <= f.after && f.after <= maxWhole)
		}
	}
	want := map[faultKind]float64{faultNone: .1, faultHTTP500: .1, faultHTTP429: .2, faultStall: .3, faultDisconnect: .3}
	for kind, share := range want {
		assert.InDelta(t, share, counts[kind]/10_000, .02)
	}
}

func TestCloseEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, func(o *Options) { o.Speed = 1 })
		res := b.chat(ask("x", 900, ""))
		go b.Close()
		all, err := readEvents(res.Body)
		require.NoError(t, err)
		assertStreamError(t, all, http.StatusServiceUnavailable)
		b.Close() // a second call has no effect
		status, _ := b.call(http.MethodGet, "/v1/models", "")
		assert.Equal(t, http.StatusServiceUnavailable, status)
	})
}
