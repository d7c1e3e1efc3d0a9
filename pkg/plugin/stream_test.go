package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/app"
	"github.com/stretchr/testify/require"
)

// Every role may subscribe to a channel that exists, and none may publish.
func TestSubscribe(t *testing.T) {
	a := startAt(t, "http://127.0.0.1:1")
	for status, paths := range map[backend.SubscribeStreamStatus][]string{
		backend.SubscribeStreamStatusOK: {
			"main/snapshot", "main/kpi", "main/ttft-by-turn", "main/workers", "twin/state",
			"main/snapshot/4f-2", // a nonce
		},
		backend.SubscribeStreamStatusNotFound: {
			"", "main", "main/", "/snapshot", "main/nothing", "main/snapshot/", "main/snapshot/a/b", "main/snapshot/..",
			"ma in/snapshot", strings.Repeat("x", 65) + "/kpi",
		},
	} {
		for _, path := range paths {
			res, err := a.SubscribeStream(t.Context(), &backend.SubscribeStreamRequest{Path: path})
			require.NoError(t, err)
			require.Equal(t, status, res.Status, path)
		}
	}
	require.Error(t, a.RunStream(t.Context(), &backend.RunStreamRequest{Path: "main/nothing"}, nil))
	res, err := a.PublishStream(t.Context(), &backend.PublishStreamRequest{
		Path: "main/snapshot", PluginContext: backend.PluginContext{User: user("Admin")},
	})
	require.NoError(t, err)
	require.Equal(t, backend.PublishStreamStatusPermissionDenied, res.Status)
}

// All channels use one socket, which is closed some time after the last subscriber has left. Channels publish null and
// a reason when the load generator is lost, and numbers when it is back.
func TestStream(t *testing.T) {
	s := newSidecar(t)
	a := startAt(t, s.URL)
	require.Zero(t, s.open())
	snapshot, kpi := run(t, a, "main/snapshot"), run(t, a, "main/kpi")
	state, workers, turns := run(t, a, "main/state/nonce"), run(t, a, "main/workers"), run(t, a, "main/ttft-by-turn")
	numbers := func() {
		t.Helper()
		snapshot.contains(t, `"lanes"`)
		kpi.contains(t, "[4.5]")
		state.contains(t, `"connected"`)
		workers.contains(t, "dynamo-worker-1")
		turns.contains(t, "[0.7]")
	}
	numbers()
	s.requireOpen(t, 1)
	for _, lose := range []*bool{&s.silent, &s.down} {
		s.change(func() { *lose = true })
		kpi.contains(t, "[null],[null],[null]") // the first three of its fields
		snapshot.contains(t, `"lost":true`)
		state.contains(t, `"lost"`)
		s.change(func() { *lose = false })
		numbers()
		require.Empty(t, kpi.ended, "errors are data")
	}
}

// A message that is no snapshot of this version is not published as one: the channels report the error, and recover
// with the next snapshot.
func TestStreamOfAnotherVersion(t *testing.T) {
	for name, text := range map[string]string{
		"no lanes": `{"time":"2026-11-21T12:00:00Z"}`, "null": "null", "a list": "[]", "no JSON": "x", "an empty message": "",
		"other types": `{"time":"2026-11-21T12:00:00Z","lanes":[{"name":1}]}`,
		"50 MB":       `{"lanes":"` + strings.Repeat("x", 50<<20) + `"}`,
	} {
		s := newSidecar(t)
		s.change(func() { s.text = &text })
		a := startAt(t, s.URL)
		snapshot, state := run(t, a, "main/snapshot"), run(t, a, "main/state")
		snapshot.contains(t, outlines[reasonForeign])
		state.contains(t, outlines[reasonForeign])
		s.change(func() { s.text = nil })
		snapshot.contains(t, `"lanes"`)
		state.contains(t, `"connected"`)
		require.NotContains(t, snapshot.all(), text, name)
	}
}

// Disposing ends streams with an error, so that Grafana subscribes again, and closes the socket. A subscriber that
// leaves or is unreachable ends its stream, too.
func TestStreamEnds(t *testing.T) {
	s := newSidecar(t)
	a := startAt(t, s.URL)
	kpi := &backend.RunStreamRequest{Path: "main/kpi"}
	require.ErrorIs(t, a.RunStream(t.Context(), kpi, backend.NewStreamSender(broken{})), errBroken)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.RunStream(ctx, kpi, backend.NewStreamSender(&stream{})) }()
	s.requireOpen(t, 1)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	s.requireOpen(t, 0)

	live := run(t, a, "main/kpi")
	live.contains(t, "rps")
	a.Dispose()
	require.ErrorIs(t, <-live.ended, errDisposed)
	s.requireOpen(t, 0)
	require.ErrorIs(t, a.RunStream(t.Context(), kpi, nil), errDisposed)
	a.Dispose()
}

type broken struct{}

var errBroken = errors.New("the subscriber is gone")

func (broken) Send(*backend.StreamPacket) error { return errBroken }

// Two organizations have two apps, each with its own sidecar. Changed settings make another app.
func TestOrganizations(t *testing.T) {
	one, two := newSidecar(t), newSidecar(t)
	manager := app.NewInstanceManager(NewApp)
	instance := func(namespace, url string, updated time.Time) *App {
		settings := configured(url, "")
		settings.Updated = updated
		scope := backend.PluginContext{PluginID: ID, Namespace: namespace, AppInstanceSettings: &settings}
		found, err := manager.Get(t.Context(), scope)
		require.NoError(t, err)
		return found.(*App)
	}
	a, b := instance("default", one.URL, noon), instance("org-2", two.URL, noon)
	defer a.Dispose()
	defer b.Dispose()
	require.Same(t, a, instance("default", one.URL, noon))
	require.Equal(t, 200, get(t, a, "status").Status)
	require.Len(t, one.take(), 1)
	require.Empty(t, two.take())
	require.Equal(t, 200, get(t, b, "status").Status)
	require.Len(t, two.take(), 1)
	require.Empty(t, one.take())
}
