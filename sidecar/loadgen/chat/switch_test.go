package chat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// frontend is a server with a model, which counts its turns.
type frontend struct {
	*httptest.Server
	models string // empty: it lists none
	status int    // of an answer, 0 for 200
	turns  atomic.Int64
}

func newFrontend(t *testing.T, models string, status int) *frontend {
	t.Helper()
	f := &frontend{models: models, status: status}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/models" && f.models == "":
			http.NotFound(w, r)
		case r.URL.Path == "/v1/models":
			fmt.Fprintf(w, `{"data":[{"id":%q}]}`, f.models)
		case f.status != 0:
			w.WriteHeader(f.status)
		default:
			f.turns.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, event("a"), doneEvent)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

func newSwitch(t *testing.T, model string, fronts ...*frontend) *Switch {
	t.Helper()
	var endpoints []Endpoint
	for _, f := range fronts {
		endpoints = append(endpoints, Endpoint{
			Name: f.URL, URL: f.URL + "/v1", Field: fmt.Sprintf("arms[%d].url", len(endpoints)),
		})
	}
	s, err := NewSwitch(Options{URL: fronts[0].URL, Model: model}, endpoints...)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// send sends one turn.
func send(t *testing.T, s *Switch) {
	t.Helper()
	if r := s.Do(t.Context(), Request{Messages: hello(), MaxTokens: 1}); !r.OK() {
		t.Fatalf("the turn failed: %v", r.Err)
	}
}

// Turns go to the address in use, there and back; the root stays what it was.
func TestSwitchTurns(t *testing.T) {
	a, b := newFrontend(t, "m", 0), newFrontend(t, "m", 0)
	s := newSwitch(t, "", a, b)
	require.Nil(t, s.Probe(t.Context()))
	for i, to := range []*frontend{a, b, a} {
		require.NoError(t, s.Redirect(t.Context(), to.URL, 1), "switch %d", i)
		before := to.turns.Load()
		send(t, s)
		assert.Equal(t, before+1, to.turns.Load(), "the turn after switch %d goes to its address", i)
		assert.Equal(t, []string{to.URL, a.URL, "m"}, []string{s.Endpoint(), s.Root(), s.Model()}, "switch %d", i)
		assert.NotNil(t, s.Extensions())
	}
}

// Endpoints of one address may differ in their headers alone, which are added to those of the target.
func TestEndpointsHaveHeaders(t *testing.T) {
	for _, shared := range []map[string]string{nil, {"X-Shared": "s"}} {
		s := serve(t, always(answerOf(event("a"), doneEvent)))
		var arms []string
		switched, err := NewSwitch(Options{URL: s.url, Model: "m", Access: Access{Headers: shared}},
			Endpoint{Name: "none", URL: s.url}, Endpoint{Name: "a", URL: s.url, Headers: map[string]string{"X-Arm": "a"}},
			Endpoint{Name: "b", URL: s.url, Headers: map[string]string{"X-Arm": "b"}},
			Endpoint{Name: "again", URL: s.url, Headers: map[string]string{"X-Arm": "a"}})
		require.NoError(t, err)
		t.Cleanup(switched.Close)
		for _, name := range []string{"none", "a", "b", "again"} {
			require.NoError(t, switched.Redirect(t.Context(), name, 1))
			client := switched.current.Load()
			arms = append(arms, client.opts.Access.Headers["X-Arm"])
			assert.Equal(t, shared["X-Shared"], client.opts.Access.Headers["X-Shared"])
		}
		assert.Equal(t, []string{"", "a", "b", "a"}, arms)
		assert.Len(t, switched.clients, 3, "two endpoints are the same")
	}
}

// An address that cannot take over leaves the turns where they were.
func TestSwitchStays(t *testing.T) {
	gone := newFrontend(t, "m", 0)
	gone.Close()
	for name, row := range map[string]struct {
		to    *frontend
		model string // set by the user
		want  string // empty: it can
	}{
		"another model":                  {newFrontend(t, "other", 0), "", `serves ["other"], not the model in use, "m"`},
		"a list without the model set":   {newFrontend(t, "unknown", 0), "m", ""},
		"no server":                      {gone, "m", "connection refused"},
		"no server, and no model set":    {gone, "", "is its address right (arms[1].url)?"},
		"no answers":                     {newFrontend(t, "m", 500), "m", "the server failed (500)"},
		"no list of models":              {newFrontend(t, "", 0), "", ""},
		"no list of models, and one set": {newFrontend(t, "", 0), "m", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := newFrontend(t, "m", 0)
			s := newSwitch(t, row.model, a, row.to)
			require.Nil(t, s.Probe(t.Context()))
			err := s.Redirect(t.Context(), row.to.URL, 1)
			if row.want == "" {
				require.NoError(t, err)
				assert.Equal(t, row.to.URL, s.Endpoint())
				return
			}
			require.ErrorContains(t, err, row.want)
			assert.Equal(t, a.URL, s.Endpoint())
			send(t, s)
		})
	}
	s := newSwitch(t, "m", newFrontend(t, "m", 0))
	var field *api.FieldError
	if err := s.Redirect(t.Context(), "http://elsewhere:1", 1); !errors.As(err,
		&field) || field.Field != "mode.endpoints" {
		t.Errorf("an unknown address gives %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Error(t, s.Redirect(cancelled, s.Root(), 1), "after the end of its context")
}

func TestNewSwitchRefuses(t *testing.T) {
	for _, row := range []struct {
		url   string
		urls  []string
		field string
	}{
		{"http://a", []string{"http://a", "ftp://b"}, "mode.endpoints"},
		{"http://a", nil, "mode.endpoints"},
		{"a", []string{"http://a"}, "target.url"},
	} {
		var bad *api.FieldError
		var endpoints []Endpoint
		for _, address := range row.urls {
			endpoints = append(endpoints, Endpoint{Name: address, URL: address})
		}
		if _, err := NewSwitch(Options{URL: row.url}, endpoints...); !errors.As(err, &bad) || bad.Field != row.field {
			t.Errorf("%v: got %v, want an error of %s", row, err, row.field)
		}
	}
}
