package plugin_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/log"
	"github.com/grafana/grafana-plugin-sdk-go/data"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/pkg/plugin"
	"kvbooth/sidecar/api"
)

func TestMain(m *testing.M) {
	backend.Logger, log.DefaultLogger = log.NewNullLogger(), log.NewNullLogger()
	goleak.VerifyTestMain(m)
}

const (
	token    = "a-token-for-the-tests"
	patience = 20 * time.Second
)

func newApp(t testing.TB, url, token string) *plugin.App {
	t.Helper()
	instance, err := plugin.NewApp(t.Context(), backend.AppInstanceSettings{
		JSONData:                []byte(`{"sidecarUrl":"` + url + `"}`),
		DecryptedSecureJSONData: map[string]string{"token": url + " " + token},
	})
	require.NoError(t, err)
	a := instance.(*plugin.App)
	t.Cleanup(a.Dispose)
	return a
}

// call makes a resource call as a user, and reads its answer into out, if that
// is not nil.
func call(t testing.TB, a *plugin.App, login, role, method, url, body string, out any) int {
	t.Helper()
	path, _, _ := strings.Cut(url, "?")
	req := &backend.CallResourceRequest{
		PluginContext: backend.PluginContext{PluginID: plugin.ID, User: &backend.User{Login: login, Role: role}},
		Method:        method, Path: path, URL: url, Body: []byte(body), Headers: map[string][]string{"Content-Type": {"application/json"}},
	}
	var res *backend.CallResourceResponse
	require.NoError(t, a.CallResource(t.Context(), req, backend.CallResourceResponseSenderFunc(func(r *backend.CallResourceResponse) error {
		res = r
		return nil
	})))
	if out != nil {
		require.NoError(t, json.Unmarshal(res.Body, out), string(res.Body))
	}
	return res.Status
}

// card is the newest number of a field of a channel.
type card struct {
	mu    sync.Mutex
	field string
	value *float64
	n     int           // frames so far
	sent  chan struct{} // has one where a frame came since the last look
}

func (c *card) Send(p *backend.StreamPacket) error {
	var f data.Frame
	if err := json.Unmarshal(p.Data, &f); err != nil {
		return err
	}
	field, _ := f.FieldByName(c.field)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value, c.n = field.At(field.Len()-1).(*float64), c.n+1
	select {
	case c.sent <- struct{}{}:
	default: // the last one has not been looked at
	}
	return nil
}

// shows says whether the card shows a number; before the first frame it shows none.
func (c *card) shows() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value != nil && *c.value > 0
}

func (c *card) frames() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func watch(t testing.TB, a *plugin.App, path, field string) *card {
	c := &card{field: field, sent: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.RunStream(t.Context(), &backend.RunStreamRequest{Path: path}, backend.NewStreamSender(c))
	}()
	t.Cleanup(func() { <-done }) // the context has ended by then
	return c
}

// until looks at the card again with every frame, until it is as wanted.
func (c *card) until(t testing.TB, within time.Duration, message string, wanted func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for !wanted() {
		select {
		case <-c.sent:
		case <-ctx.Done():
			require.FailNow(t, message)
		}
	}
}

// A presenter's minute: dashes, Start, numbers, the slider, Stop; each with the
// login in the load generator's events, and none of it for a Viewer.
func TestOperate(t *testing.T) {
	t.Parallel()
	a := newApp(t, newGenerator(t, token).url(), token)
	rps, hit := watch(t, a, "main/kpi", "rps"), watch(t, a, "main/kpi", "kv_hit_ratio")
	rps.until(t, patience, "dashes before Start", func() bool { return rps.frames() > 0 && !rps.shows() })

	var p api.Problem
	require.Equal(t, 403, call(t, a, "vera", "Viewer", "POST", "workload/start", `{"concurrency":3}`, &p))
	require.Contains(t, p.Detail, "Editor")
	var s api.State
	require.Equal(t, 200, call(t, a, "vera", "Viewer", "GET", "status", "", nil))
	require.Equal(t, 200, call(t, a, "edith", "Editor", "POST", "workload/start", `{"concurrency":3}`, &s))
	require.True(t, s.Running)
	rps.until(t, patience, "a rate", rps.shows)
	hit.until(t, patience, "a ratio", hit.shows)
	require.Equal(t, 200, call(t, a, "edith", "Editor", "POST", "workload/start?lane=main", `{"concurrency":4}`, &s))
	require.Equal(t, 4, s.Concurrency.Target)
	require.Equal(t, 200, call(t, a, "adam", "Admin", "PATCH", "settings", `{"title":"Booth 7"}`, nil))
	require.Equal(t, 200, call(t, a, "gräfin@example.com", "Editor", "POST", "workload/stop", `{"drain":false}`, nil))
	rps.until(t, patience, "dashes after Stop", func() bool { return !rps.shows() })

	// Who has done what; a stop is written down when it has happened.
	by := map[string]string{}
	require.Eventually(t, func() bool {
		var l api.EventList
		require.Equal(t, 200, call(t, a, "vera", "Viewer", "GET", "events?limit=100", "", &l))
		clear(by)
		for _, e := range l.Events {
			by[string(e.Kind)] += " " + e.By
		}
		return by["stop"] != ""
	}, patience, 10*time.Millisecond, "the stop's event")
	require.Contains(t, by["start"], "edith")
	require.Contains(t, by["settings"], "adam")
	require.Contains(t, by["stop"], "gräfin@example.com")
	for _, who := range by {
		require.NotContains(t, who, "vera")
	}
	var list api.ConversationList
	require.Equal(t, 200, call(t, a, "vera", "Viewer", "GET", "conversations?limit=1", "", &list))
	require.Len(t, list.Conversations, 1)
	require.Equal(t, 200, call(t, a, "vera", "Viewer", "GET", "conversations/"+list.Conversations[0].ID, "", nil))
	require.Equal(t, 404, call(t, a, "vera", "Viewer", "GET", "conversations/nothing", "", &p))
	require.Equal(t, 200, call(t, a, "vera", "Viewer", "GET", "turns.csv?step=1", "", nil))
}

// The load generator's refusals come as it wrote them.
func TestFieldProblem(t *testing.T) {
	t.Parallel()
	a := newApp(t, newGenerator(t, "").url(), "")
	var p api.Problem
	require.Equal(t, 422, call(t, a, "edith", "Editor", "POST", "workload/start", `{"concurrency":181}`, &p))
	require.Equal(t, "concurrency", p.Field)
	require.Equal(t, "181", p.Value)
	require.NotEmpty(t, p.Allowed)
	require.Equal(t, 404, call(t, a, "edith", "Editor", "POST", "workload/stop?lane=twin", `{"drain":true}`, &p))
	for _, tt := range []struct {
		method, url, body string
		status            int
		field             string
	}{
		{"GET", "status?lane=main", "", 422, "query"},
		{"GET", "cluster?lane=a&lane=b", "", 422, "lane"},
		{"GET", "cluster?path=/metrics", "", 422, "query"},
		{"GET", "cluster?lane=%2", "", 400, ""},
		{"GET", "events?limit=ten", "", 422, "limit"},
		{"GET", "events?limit=99999999999", "", 422, "limit"},
		{"GET", "turns.csv?step=1.5", "", 422, "step"},
		{"GET", "conversations?token=secret", "", 422, "query"},
		{"GET", "baselines/a?lane=main", "", 422, "query"},
		{"GET", "starters/a?topic=b", "", 422, "query"},
		{"POST", "baselines?lane=main", "{}", 422, "query"},
		{"POST", "workload/start", "", 400, ""},
		{"POST", "workload/start", "[]", 400, ""},
		{"POST", "workload/start", `{"concurrency":120} {}`, 400, ""},
		{"POST", "workload/start", `{"concurrency":"120"}`, 422, "concurrency"},
		{"PATCH", "workload", `{"turns":{"min":1.5}}`, 422, "turns.min"},
		{"PATCH", "workload", `{"target":"http://elsewhere"}`, 422, "target"},
		{"PATCH", "settings", `{"title":"` + strings.Repeat("x", api.MaxBody) + `"}`, 413, ""},
	} {
		p = api.Problem{}
		require.Equal(t, tt.status, call(t, a, "ada", "Admin", tt.method, tt.url, tt.body, &p), "%s %s", tt.url, tt.body)
		require.Equal(t, tt.field, p.Field, tt.url)
		require.NotEmpty(t, p.Detail)
	}
}

// Everybody sees what can be asked, and operators ask; where simulations are turned
// off, it is the load generator that says so.
func TestSimulations(t *testing.T) {
	t.Parallel()
	a := newApp(t, newGenerator(t, token).url(), token)
	var l api.SimulationList
	require.Equal(t, 200, call(t, a, "vera", "Viewer", "GET", "simulations", "", &l))
	require.NotEmpty(t, l.Profiles)
	require.False(t, l.Available)
	var p api.Problem
	require.Equal(t, 403, call(t, a, "vera", "Viewer", "POST", "simulations", `{}`, &p))
	require.Equal(t, "this requires the Grafana role Editor or higher", p.Detail)
	require.Equal(t, 503, call(t, a, "edith", "Editor", "POST", "simulations", `{}`, &p))
	require.Contains(t, p.Detail, "whatif.cpus")
	require.Equal(t, 404, call(t, a, "vera", "Viewer", "GET", "simulations/nothing", "", &p))
}

// Within 5 s of the load generator's end no card shows a number, and within 5 s
// of its return the streams go on, without anybody subscribing again.
func TestRestart(t *testing.T) {
	t.Parallel()
	g := newGenerator(t, token)
	a := newApp(t, g.url(), token)
	step := watch(t, a, "main/state", "target_concurrency")
	step.until(t, patience, "a number", step.shows)
	g.stop()
	step.until(t, 5*time.Second, "no old number", func() bool { return !step.shows() })
	var p api.Problem
	require.Equal(t, 502, call(t, a, "edith", "Editor", "POST", "workload/stop", `{}`, &p))
	require.Contains(t, p.Detail, "start it")
	g.start()
	step.until(t, 5*time.Second, "a number again", step.shows)
}

// The connection's test against the real thing.
func TestHealth(t *testing.T) {
	t.Parallel()
	g := newGenerator(t, token)
	text := func(token string) (backend.HealthStatus, string) {
		res, err := newApp(t, g.url(), token).CheckHealth(t.Context(), &backend.CheckHealthRequest{
			PluginContext: backend.PluginContext{User: &backend.User{Login: "ada", Role: "Admin"}},
		})
		require.NoError(t, err)
		return res.Status, res.Message
	}
	status, message := text("a-token-that-is-wrong")
	require.Equal(t, backend.HealthStatusError, status)
	require.Contains(t, message, "the token is wrong")
	require.Eventually(t, func() bool { // the load generator looks for its target first
		status, message = text(token)
		return status == backend.HealthStatusOk
	}, patience, 10*time.Millisecond, "health")
	require.Contains(t, message, "Load generator 1.2.3 answers")
	require.Contains(t, message, "lane main is stopped, KV-aware")
	require.Contains(t, message, "Prometheus is not there: start it")
}
