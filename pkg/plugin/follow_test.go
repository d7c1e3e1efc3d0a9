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

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// follow requests the events of a simulation. The channel delivers the pieces of the answer as they are sent, and is
// closed at their end.
func follow(t *testing.T, a *App) (pieces <-chan *backend.CallResourceResponse, leave func()) {
	ctx, cancel := context.WithCancel(t.Context())
	c := make(chan *backend.CallResourceResponse, 100)
	go func() {
		defer close(c)
		req := &backend.CallResourceRequest{
			Method: "GET", URL: "simulations/a1",
			Headers: map[string][]string{"Accept": {api.EventStream}},
		}
		assert.NoError(t, call(ctx, a, req, func(r *backend.CallResourceResponse) { c <- r }))
	}()
	t.Cleanup(func() {
		cancel()
		for range c { // until the call has ended
		}
	})
	return c, cancel
}

// Each event is forwarded before the next one exists. The connection to the load generator ends with the last
// subscriber.
func TestFollow(t *testing.T) {
	events, gone := make(chan string), make(chan struct{})
	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, api.EventStream, r.Header.Get("Accept"))
		w.Header().Set("Content-Type", api.EventStream)
		for e := range events {
			_, _ = io.WriteString(w, e)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
		close(gone)
	})
	pieces, leave := follow(t, startAt(t, s.URL))
	for i, e := range []string{"event: point\ndata: {}\n\n", "event: progress\ndata: {}\n\n"} {
		events <- e
		p := wait.Receive(t, "an event", pieces)
		assert.Equal(t, e, string(p.Body))
		if i == 0 { // only the first piece has a head
			assert.Equal(t, http.StatusOK, p.Status)
			assert.Equal(t, []string{api.EventStream}, p.Headers["Content-Type"])
		}
	}
	close(events)
	leave()
	wait.Receive(t, "the end of the load generator's answer", gone)
}

// The end of the answer is forwarded, and a silence without keep-alives ends it.
func TestFollowEnds(t *testing.T) {
	var silent atomic.Bool
	s := answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", api.EventStream)
		_, _ = io.WriteString(w, "event: end\ndata: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		if silent.Load() {
			<-r.Context().Done()
		}
	})
	stalls := impatient
	stalls.stall = 200 * time.Millisecond
	a := startWith(t, configured(s.URL, ""), stalls)
	for range 2 {
		pieces, _ := follow(t, a)
		require.NotNil(t, wait.Receive(t, "an event", pieces))
		require.Nil(t, wait.Receive(t, "the end", pieces))
		silent.Store(true)
	}
}

// A refusal is a problem document for a caller that requests events, too.
func TestFollowIsRefused(t *testing.T) {
	for status, answer := range map[int]http.HandlerFunc{
		http.StatusNotFound:   refusal(http.StatusNotFound),
		http.StatusBadGateway: func(w http.ResponseWriter, _ *http.Request) { give(w, struct{}{}) }, // an older one
	} {
		pieces, _ := follow(t, startAt(t, answering(t, answer).URL))
		require.Equal(t, status, problem(t, wait.Receive(t, "a refusal", pieces)).Status)
	}
}
