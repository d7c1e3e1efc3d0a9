package plugin

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// followed is an answer to one who wants events: its pieces as they come.
type followed struct {
	pieces chan *backend.CallResourceResponse
	leave  context.CancelFunc
}

func followSimulation(t *testing.T, a *App) *followed {
	ctx, cancel := context.WithCancel(t.Context())
	f := &followed{make(chan *backend.CallResourceResponse, 100), cancel}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(f.pieces)
		req := &backend.CallResourceRequest{
			PluginContext: backend.PluginContext{PluginID: ID, Namespace: "default", User: user("Viewer")},
			Method:        "GET", Path: "simulations/a1", URL: "simulations/a1", Headers: map[string][]string{"Accept": {api.EventStream}},
		}
		assert.NoError(t, a.CallResource(ctx, req, backend.CallResourceResponseSenderFunc(func(r *backend.CallResourceResponse) error {
			f.pieces <- r
			return nil
		})))
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return f
}

// next is the next piece of the answer, nil at its end.
func (f *followed) next(t *testing.T) *backend.CallResourceResponse {
	t.Helper()
	select {
	case p := <-f.pieces:
		return p
	case <-time.After(patience):
		t.Fatal("nothing comes")
		return nil
	}
}

// Each event is passed on before there is another one.
func TestFollow(t *testing.T) {
	s := newSidecar(t)
	events, gone := make(chan string), make(chan struct{})
	s.change(func() {
		s.answer = func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, api.EventStream, r.Header.Get("Accept"))
			w.Header().Set("Content-Type", api.EventStream)
			for e := range events {
				_, _ = io.WriteString(w, e)
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
			close(gone)
		}
	})
	f := followSimulation(t, start(t, at127(s.URL)))
	for i, e := range []string{"event: point\ndata: {}\n\n", "event: progress\ndata: {}\n\n"} {
		events <- e
		p := f.next(t)
		assert.Equal(t, e, string(p.Body))
		if i == 0 { // the first piece alone has a head
			assert.Equal(t, http.StatusOK, p.Status)
			assert.Equal(t, []string{api.EventStream}, p.Headers["Content-Type"])
		}
	}
	close(events)
	f.leave()
	select {
	case <-gone: // the load generator hears that nobody follows
	case <-time.After(patience):
		t.Fatal("the load generator is still asked")
	}
}

// The end of the answer is passed on, and so is a silence that is none.
func TestFollowEnds(t *testing.T) {
	s := newSidecar(t)
	var silent atomic.Bool
	s.change(func() {
		s.answer = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", api.EventStream)
			_, _ = io.WriteString(w, "event: end\ndata: {}\n\n")
			_ = http.NewResponseController(w).Flush()
			if silent.Load() {
				<-r.Context().Done()
			}
		}
	})
	a := start(t, at127(s.URL))
	for range 2 {
		f := followSimulation(t, a)
		require.NotNil(t, f.next(t))
		assert.Nil(t, f.next(t))
		silent.Store(true)
	}
}

// What is refused is a problem document for one who wants events, too.
func TestFollowIsRefused(t *testing.T) {
	s := newSidecar(t)
	s.change(func() {
		s.answer = func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, api.Problem{Title: "Not Found", Status: http.StatusNotFound, Detail: "there is no simulation"})
		}
	})
	a := start(t, at127(s.URL))
	assert.Equal(t, "there is no simulation", problem(t, followSimulation(t, a).next(t)).Detail)
	s.change(func() {
		s.answer = func(w http.ResponseWriter, _ *http.Request) { give(w, struct{}{}) } // an older one
	})
	assert.Equal(t, http.StatusBadGateway, problem(t, followSimulation(t, a).next(t)).Status)
}
