package plugin_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/log"
	"github.com/grafana/grafana-plugin-sdk-go/data"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/internal/wait"
	"kvbooth/pkg/plugin"
	"kvbooth/sidecar/api"
)

func TestMain(m *testing.M) {
	backend.Logger, log.DefaultLogger = log.NewNullLogger(), log.NewNullLogger()
	goleak.VerifyTestMain(m)
}

const token = "a-token-for-the-tests"

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
	n     int // frames so far
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
	return nil
}

// requireNumber waits until the card shows a number above 0, or none.
func (c *card) requireNumber(t testing.TB, what string, number bool) {
	t.Helper()
	wait.Eventually(t, what, func() (any, bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.value, c.n > 0 && number == (c.value != nil && *c.value > 0)
	})
}

func watch(t testing.TB, a *plugin.App, path, field string) *card {
	c := &card{field: field}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.RunStream(t.Context(), &backend.RunStreamRequest{Path: path}, backend.NewStreamSender(c))
	}()
	t.Cleanup(func() { <-done }) // the context has ended by then
	return c
}

// A presenter's minute: dashes, Start, numbers, the slider, Stop; each with the
// login in the load generator's events, and none of it for a Viewer.
func TestOperate(t *testing.T) {
	a := newApp(t, startGenerator(t, token), token)
	rps, hit := watch(t, a, "main/kpi", "rps"), watch(t, a, "main/kpi", "kv_hit_ratio")
	rps.requireNumber(t, "dashes before Start", false)
	wait.Eventually(t, "the connection's test finds the target", func() (any, bool) {
		res, err := a.CheckHealth(t.Context(), &backend.CheckHealthRequest{
			PluginContext: backend.PluginContext{User: &backend.User{Login: "ada", Role: "Admin"}},
		})
		require.NoError(t, err)
		return res.Message, strings.Contains(res.Message, "Load generator 1.2.3 answers") && res.Status == backend.HealthStatusOk
	})

	var p api.Problem
	require.Equal(t, 403, call(t, a, "vera", "Viewer", "POST", "workload/start", `{"concurrency":3}`, &p))
	require.Contains(t, p.Detail, "Editor")
	var s api.State
	require.Equal(t, 200, call(t, a, "edith", "Editor", "POST", "workload/start", `{"concurrency":3}`, &s))
	require.True(t, s.Running)
	rps.requireNumber(t, "a rate", true)
	hit.requireNumber(t, "a ratio", true)
	require.Equal(t, 200, call(t, a, "edith", "Editor", "POST", "workload/start?lane=main", `{"concurrency":4}`, &s))
	require.Equal(t, 4, s.Concurrency.Target)
	require.Equal(t, 200, call(t, a, "adam", "Admin", "PATCH", "settings", `{"title":"Booth 7"}`, nil))
	require.Equal(t, 200, call(t, a, "gräfin@example.com", "Editor", "POST", "workload/stop", `{"drain":false}`, nil))
	rps.requireNumber(t, "dashes after Stop", false)

	by := map[string]string{} // a stop is written down when it has happened
	wait.Eventually(t, "the stop's event", func() (any, bool) {
		var l api.EventList
		require.Equal(t, 200, call(t, a, "vera", "Viewer", "GET", "events?limit=100", "", &l))
		clear(by)
		for _, e := range l.Events {
			by[string(e.Kind)] += " " + e.By
		}
		return by, by["stop"] != ""
	})
	require.Contains(t, by["start"], "edith")
	require.Contains(t, by["settings"], "adam")
	require.Contains(t, by["stop"], "gräfin@example.com")
	for _, who := range by {
		require.NotContains(t, who, "vera")
	}
	var list api.ConversationList
	wait.Eventually(t, "a conversation is stored", func() (any, bool) {
		require.Equal(t, 200, call(t, a, "vera", "Viewer", "GET", "conversations?limit=1", "", &list))
		return list, len(list.Conversations) == 1
	})
	require.Equal(t, 200, call(t, a, "vera", "Viewer", "GET", "conversations/"+list.Conversations[0].ID, "", nil))
	wait.Eventually(t, "the turns of step 1 are stored", func() (any, bool) {
		status := call(t, a, "vera", "Viewer", "GET", "turns.csv?step=1", "", nil)
		return status, status == 200
	})

	// The load generator's refusals come as it wrote them.
	require.Equal(t, 422, call(t, a, "edith", "Editor", "POST", "workload/start", `{"concurrency":181}`, &p))
	require.Equal(t, []string{"concurrency", "181"}, []string{p.Field, p.Value})
	require.NotEmpty(t, p.Allowed)
	require.Equal(t, 404, call(t, a, "vera", "Viewer", "GET", "conversations/nothing", "", &p))
	require.Equal(t, 400, call(t, a, "edith", "Editor", "POST", "workload/start", "", &p))
}
