package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/app"
	"github.com/grafana/grafana-plugin-sdk-go/data"
	"github.com/stretchr/testify/require"
)

func TestSubscribe(t *testing.T) {
	a := start(t, at127("http://127.0.0.1:1"))
	for path, want := range map[string]backend.SubscribeStreamStatus{
		"main/snapshot":                  backend.SubscribeStreamStatusOK,
		"main/kpi":                       backend.SubscribeStreamStatusOK,
		"main/ttft-by-turn":              backend.SubscribeStreamStatusOK,
		"main/workers":                   backend.SubscribeStreamStatusOK,
		"twin/state":                     backend.SubscribeStreamStatusOK,
		"main/snapshot/4f-2":             backend.SubscribeStreamStatusOK, // a word of the subscriber's own
		"":                               backend.SubscribeStreamStatusNotFound,
		"main":                           backend.SubscribeStreamStatusNotFound,
		"main/":                          backend.SubscribeStreamStatusNotFound,
		"/snapshot":                      backend.SubscribeStreamStatusNotFound,
		"main/nothing":                   backend.SubscribeStreamStatusNotFound,
		"main/snapshot/":                 backend.SubscribeStreamStatusNotFound,
		"main/snapshot/a/b":              backend.SubscribeStreamStatusNotFound,
		"main/snapshot/..":               backend.SubscribeStreamStatusNotFound,
		"ma in/snapshot":                 backend.SubscribeStreamStatusNotFound,
		strings.Repeat("x", 65) + "/kpi": backend.SubscribeStreamStatusNotFound,
	} {
		res, err := a.SubscribeStream(t.Context(), &backend.SubscribeStreamRequest{Path: path})
		require.NoError(t, err)
		require.Equal(t, want, res.Status, path)
	}
	require.Error(t, a.RunStream(t.Context(), &backend.RunStreamRequest{Path: "main/nothing"}, nil))
}

func TestPublish(t *testing.T) {
	a := start(t, at127("http://127.0.0.1:1"))
	res, err := a.PublishStream(t.Context(), &backend.PublishStreamRequest{
		Path: "main/snapshot", PluginContext: backend.PluginContext{User: user("Admin")},
	})
	require.NoError(t, err)
	require.Equal(t, backend.PublishStreamStatusPermissionDenied, res.Status)
}

// rps is what a KPI card would show: the number, or that there is none.
func rps(t *testing.T, packet string) (n float64, ok bool) {
	var f data.Frame
	require.NoError(t, json.Unmarshal([]byte(packet), &f))
	field, _ := f.FieldByName("rps")
	if p := field.At(field.Len() - 1).(*float64); p != nil {
		return *p, true
	}
	return 0, false
}

// Every channel over one socket; and when the sidecar is lost, silent or gone,
// nulls, and numbers again when it is back.
func TestStream(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	snapshot, kpi := run(t, a, "main/snapshot"), run(t, a, "main/kpi")
	state, workers := run(t, a, "main/state/nonce"), run(t, a, "main/workers")
	number := func() bool {
		p := kpi.last()
		if p == "" {
			return false
		}
		n, ok := rps(t, p)
		return ok && n == 4.5
	}
	null := func() bool { _, ok := rps(t, kpi.last()); return !ok }
	eventually(t, number, "numbers")
	eventually(t, func() bool { return strings.Contains(snapshot.last(), `"lanes"`) }, "a snapshot")
	eventually(t, func() bool { return strings.Contains(workers.last(), "dynamo-worker-1") }, "workers")
	require.Equal(t, 1, s.open(), "one socket for all")

	for name, lose := range map[string]func(yes bool){
		"silent": func(yes bool) { s.change(func() { s.silent = yes }) },
		"down":   func(yes bool) { s.change(func() { s.down = yes }) },
		"refused": func(yes bool) {
			s.change(func() {
				s.down, s.answer = yes, nil
				if yes {
					s.answer = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }
				}
			})
		},
	} {
		lose(true)
		eventually(t, null, name)
		eventually(t, func() bool { return strings.Contains(snapshot.last(), `"lost":true`) }, name)
		eventually(t, func() bool { return strings.Contains(state.last(), `"lost"`) }, name)
		before := kpi.sent()
		eventually(t, func() bool { return kpi.sent() > before+2 }, "nulls go on")
		lose(false)
		eventually(t, number, name)
		eventually(t, func() bool { return strings.Contains(snapshot.last(), `"lanes"`) }, name)
		require.Empty(t, kpi.ended, "errors are data")
	}
}

// Disposing ends streams with an error, so that Grafana subscribes again, and the
// socket with them.
func TestDispose(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	live := run(t, a, "main/kpi")
	eventually(t, func() bool { return live.sent() > 0 }, "a frame")
	a.Dispose()
	require.ErrorIs(t, <-live.ended, errDisposed)
	eventually(t, func() bool { return s.open() == 0 }, "the socket is closed")
	require.ErrorIs(t, a.RunStream(t.Context(), &backend.RunStreamRequest{Path: "main/kpi"}, nil), errDisposed)
	a.Dispose()
}

// The socket is opened by the first subscriber and closed some time after the last.
func TestSocketIsLet(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	require.Zero(t, s.open())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- a.RunStream(ctx, &backend.RunStreamRequest{Path: "main/kpi"}, backend.NewStreamSender(&stream{}))
	}()
	eventually(t, func() bool { return s.open() == 1 }, "opened")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	eventually(t, func() bool { return s.open() == 0 }, "closed")
}

type broken struct{}

var errBroken = errors.New("nobody listens")

func (broken) Send(*backend.StreamPacket) error { return errBroken }

func TestBrokenSender(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	require.ErrorIs(t, a.RunStream(t.Context(), &backend.RunStreamRequest{Path: "main/kpi"}, backend.NewStreamSender(broken{})), errBroken)
}

// Two organisations have two apps, each with its own sidecar; and changed
// settings make another app.
func TestOrganisations(t *testing.T) {
	one, two := newSidecar(t), newSidecar(t)
	manager := app.NewInstanceManager(NewApp)
	get := func(namespace, url string, updated time.Time) *App {
		s := at127(url)
		s.Updated = updated
		instance, err := manager.Get(t.Context(), backend.PluginContext{PluginID: ID, Namespace: namespace, AppInstanceSettings: &s})
		require.NoError(t, err)
		return instance.(*App)
	}
	a, b := get("default", one.URL, noon), get("org-2", two.URL, noon)
	defer a.Dispose()
	defer b.Dispose()
	require.Same(t, a, get("default", one.URL, noon))
	require.Equal(t, 200, resource(t, a, nil, "GET", "status", "").Status)
	require.Len(t, one.take(), 1)
	require.Empty(t, two.take())
	require.Equal(t, 200, resource(t, b, nil, "GET", "status", "").Status)
	require.Len(t, two.take(), 1)
	require.Empty(t, one.take())
}
