package plugin

import (
	"context"
	"encoding/json"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/log"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

func TestMain(m *testing.M) {
	backend.Logger, log.DefaultLogger = log.NewNullLogger(), log.NewNullLogger()
	goleak.VerifyTestMain(m)
}

const (
	token = "a-token-for-tests"
	ms    = time.Millisecond
)

// impatient are short limits for tests that run on the wall clock.
var impatient = limits{
	answer: 64 << 10, answers: 2, exports: 1, stall: wait.Limit,
	silence: 200 * time.Millisecond, repeat: 50 * time.Millisecond, linger: 100 * time.Millisecond,
	pauses: [2]time.Duration{10 * time.Millisecond, 50 * time.Millisecond}, refused: 50 * time.Millisecond,
}

// recordedRequest is a request as the sidecar received it.
type recordedRequest struct {
	method, uri, body string
	header            http.Header
}

// sidecar is a load generator of the tests. Its answers may change while it runs.
type sidecar struct {
	*httptest.Server

	mu       sync.Mutex
	answer   http.HandlerFunc // replaces its own; nil: its own
	status   api.Status
	snapshot api.Snapshot
	requests []recordedRequest
	streams  int     // open ones
	text     *string // replaces the snapshot in streams; nil: the snapshot
	silent   bool    // streams are open and send nothing
	down     bool    // streams end, and none begins
}

func newSidecar(t testing.TB) *sidecar { return answering(t, nil) }

// answering starts a load generator that answers every call by the test's handler.
func answering(t testing.TB, answer http.HandlerFunc) *sidecar {
	s := unstarted()
	s.answer = answer
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func unstarted() *sidecar {
	s := &sidecar{snapshot: sample(), status: api.Status{Version: "1.2.3", Lanes: []api.LaneStatus{{Name: "main"}}}}
	s.Server = httptest.NewUnstartedServer(s)
	s.Server.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	return s
}

func (s *sidecar) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *sidecar) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams
}

// take returns the requests since the last call.
func (s *sidecar) take() []recordedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.requests
	s.requests = nil
	return all
}

func (s *sidecar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, recordedRequest{r.Method, r.RequestURI, string(body), r.Header.Clone()})
	answer, status, snapshot, down := s.answer, s.status, s.snapshot, s.down
	s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, api.Prefix)
	switch {
	case answer != nil:
		answer(w, r)
	case r.Header.Get("Authorization") != "Bearer "+token:
		refuse(w, api.Problem{Status: http.StatusUnauthorized, Detail: "the token is wrong"})
	case path == "/stream" && down:
		refuse(w, api.Problem{Status: http.StatusServiceUnavailable, Detail: "not now"})
	case path == "/stream":
		s.stream(w, r)
	case strings.Contains(path, "/report."):
		_, format, _ := strings.Cut(path, "/report.")
		w.Header().Set("Content-Type", api.ReportFormat(format).MediaType())
		w.Header().Set("Content-Disposition", "inline; filename=report."+format)
		_, _ = io.WriteString(w, "a report")
	case path == "/turns.csv", strings.HasSuffix(path, "/seconds.csv"):
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		_, _ = io.WriteString(w, "lane,turn\nmain,1\n")
	case path == "/status":
		give(w, status)
	case path == "/snapshot":
		give(w, snapshot)
	case path == "/baselines" && r.Method == http.MethodPost:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "{}")
	default:
		give(w, struct{}{})
	}
}

func give(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, p api.Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// stream sends a snapshot every 20 ms.
func (s *sidecar) stream(w http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	s.change(func() { s.streams++ })
	defer s.change(func() { s.streams-- })
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _, _ = conn.NextReader()
	}()
	defer func() { _ = conn.Close(); <-gone }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s.mu.Lock()
		snapshot, text, silent, down := s.snapshot, s.text, s.silent, s.down
		s.mu.Unlock()
		switch {
		case down, text != nil && conn.WriteMessage(websocket.TextMessage, []byte(*text)) != nil:
			return
		case text == nil && !silent && conn.WriteJSON(snapshot) != nil:
			return
		}
		select {
		case <-gone:
			return
		case <-tick.C:
		}
	}
}

// sample returns a snapshot of a running lane with two workers.
func sample() api.Snapshot {
	gpu := func(use float64) api.GPU {
		return api.GPU{Index: "0", Utilisation: &use, MemoryUsed: new(60e9), MemoryTotal: new(80e9)}
	}
	return api.Snapshot{
		Time:     time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Settings: api.Settings{SLO: api.SLO{TTFT: .6, TPOT: .06}},
		Client:   api.ClientHealth{Verdict: api.VerdictFine},
		Lanes: []api.LaneSnapshot{{
			Name:   "main",
			Target: api.Target{URL: "http://target:8000", Reachable: true},
			State: api.State{
				Running: true, Phase: api.PhaseRunning, Concurrency: api.Concurrency{Target: api.AtConversations(120), Actual: 118},
				Mode: api.ModeKV, Speculation: api.SpeculationOff, Settling: true, Step: api.Step{ID: 7},
			},
			Window: api.Window{
				RequestsPerSecond: 4.5, OutputTokensPerSecond: 3168, ErrorRatio: new(.01),
				Awaiting: api.Awaiting{N: 3, OldestSeconds: .4},
			},
			Totals:     api.Totals{OK: 900, Errors: 9},
			TTFTByTurn: []api.TurnFigures{{Turn: "1", P50: new(.5), P95: new(.7), N: 20}, {Turn: "6+", P50: new(.2), N: 2}},
			KV:         api.KV{HitRatio: new(.72), PredictedRatio: new(.75)},
			Cluster: api.Cluster{Available: true, Queued: new(0.), Inflight: new(117.), Workers: []api.Worker{
				{Name: "dynamo-worker-2", Inflight: new(60.), GPUs: []api.GPU{gpu(.5), gpu(.7)}},
				{Name: "dynamo-worker-1", Inflight: new(57.), CacheUse: new(.8), GPUs: []api.GPU{gpu(.9)}},
			}},
		}},
	}
}

// configured returns settings with a URL, the token for it, and further JSON.
func configured(url, more string) backend.AppInstanceSettings {
	return backend.AppInstanceSettings{
		JSONData:                []byte(`{"sidecarUrl":"` + url + `"` + more + `}`),
		DecryptedSecureJSONData: map[string]string{"token": url + " " + token},
	}
}

func start(t testing.TB, s backend.AppInstanceSettings) *App {
	t.Helper()
	return startWith(t, s, impatient)
}

func startWith(t testing.TB, s backend.AppInstanceSettings, l limits) *App {
	t.Helper()
	a := newApp(t.Context(), s, l)
	t.Cleanup(a.Dispose)
	return a
}

// startAt starts an app whose load generator is at a URL.
func startAt(t testing.TB, url string) *App { return start(t, configured(url, "")) }

func user(role string) *backend.User { return &backend.User{Login: "user", Role: role} }

// call makes a resource call and passes the answer to a sender, piece by piece.
func call(ctx context.Context, a *App, req *backend.CallResourceRequest,
	send func(*backend.CallResourceResponse),
) error {
	req.PluginContext.PluginID, req.PluginContext.Namespace = ID, "default"
	req.Path, _, _ = strings.Cut(req.URL, "?")
	return a.CallResource(ctx, req, backend.CallResourceResponseSenderFunc(func(r *backend.CallResourceResponse) error {
		send(r)
		return nil
	}))
}

// resource makes a resource call and returns its whole answer. Headers are name and value in turn.
func resource(t testing.TB, a *App, u *backend.User, method, url, body string,
	headers ...string,
) *backend.CallResourceResponse {
	t.Helper()
	req := &backend.CallResourceRequest{Method: method, URL: url, Body: []byte(body), Headers: map[string][]string{}}
	req.PluginContext.User = u
	if body != "" {
		req.Headers["Content-Type"] = []string{"application/json"}
	}
	for i := 0; i < len(headers); i += 2 {
		req.Headers[headers[i]] = []string{headers[i+1]}
	}
	var res *backend.CallResourceResponse
	require.NoError(t, call(t.Context(), a, req, func(r *backend.CallResourceResponse) {
		if res == nil {
			res = r
		} else { // a further piece
			res.Body = append(res.Body, r.Body...)
		}
	}))
	require.NotNil(t, res)
	return res
}

// get makes a read without a user.
func get(t testing.TB, a *App, url string) *backend.CallResourceResponse {
	t.Helper()
	return resource(t, a, nil, "GET", url, "")
}

// problem reads a response that must be a problem document.
func problem(t testing.TB, res *backend.CallResourceResponse) (p api.Problem) {
	t.Helper()
	require.Equal(t, []string{"application/problem+json"}, res.Headers["Content-Type"], string(res.Body))
	require.NoError(t, json.Unmarshal(res.Body, &p))
	require.Equal(t, res.Status, p.Status)
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Detail)
	return p
}

// stream records the packets of a channel.
type stream struct {
	mu      sync.Mutex
	packets []string
	ended   chan error
}

func (s *stream) Send(p *backend.StreamPacket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packets = append(s.packets, string(p.Data))
	return nil
}

// all returns the packets so far.
func (s *stream) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.packets)
}

// last returns the newest packet, empty if there is none.
func (s *stream) last() string {
	all := s.all()
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// contains waits for a packet that contains a text.
func (s *stream) contains(t testing.TB, text string) {
	t.Helper()
	wait.Eventually(t, text, func() (any, bool) { last := s.last(); return last, strings.Contains(last, text) })
}

// run runs a channel until the test ends.
func run(t testing.TB, a *App, path string) *stream {
	t.Helper()
	s := &stream{ended: make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ended <- a.RunStream(t.Context(), &backend.RunStreamRequest{Path: path}, backend.NewStreamSender(s))
	}()
	t.Cleanup(func() { <-done }) // the context has ended by then
	return s
}

// requireOpen waits for a number of open streams.
func (s *sidecar) requireOpen(t testing.TB, streams int) {
	t.Helper()
	wait.Eventually(t, "the open streams", func() (any, bool) { n := s.open(); return n, n == streams })
}
