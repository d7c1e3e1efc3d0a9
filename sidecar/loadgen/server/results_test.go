package server

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// following is an answer of server-sent events that is being read.
type following struct {
	res   *http.Response
	lines *bufio.Scanner
}

func follow(t *testing.T, b *bubble) *following {
	t.Helper()
	res, err := b.send(t, request{path: v1 + "/simulations/a1", header: map[string]string{"Accept": "text/event-stream"}})
	require.NoError(t, err)
	t.Cleanup(func() { res.Body.Close() })
	return &following{res, bufio.NewScanner(res.Body)}
}

// next returns the next event; empty at the end.
func (f *following) next() (name, data string) {
	for f.lines.Scan() {
		if f.lines.Text() == "" {
			return name, data
		}
		if text, ok := strings.CutPrefix(f.lines.Text(), "event: "); ok {
			name = text
		}
		if text, ok := strings.CutPrefix(f.lines.Text(), "data: "); ok {
			data = text
		}
	}
	return "", ""
}

func TestFollowSimulation(t *testing.T) {
	r := &recorder{}
	inBubble(t, r, nil, func(t *testing.T, b *bubble) {
		r.follow = make(chan struct{})
		f := follow(t, b)
		require.Equal(t, "text/event-stream", f.res.Header.Get("Content-Type"))
		name, data := f.next() // before there is an end
		require.Equal(t, "point", name)
		var p api.SimulationPoint
		require.NoError(t, json.Unmarshal([]byte(data), &p))
		require.Equal(t, sample[api.SimulationPoint](), p)
		close(r.follow)
		name, _ = f.next()
		require.Equal(t, "end", name)
		name, _ = f.next()
		require.Empty(t, name, "nothing follows")
	})
}

// An answer of events counts as one of the open streams, and ends with the server.
func TestFollowSimulationIsAStream(t *testing.T) {
	r := &recorder{}
	inBubble(t, r, nil, func(t *testing.T, b *bubble) {
		r.follow = make(chan struct{})
		f := follow(t, b)
		name, _ := f.next()
		require.Equal(t, "point", name)
		others := reader{share: "127.0.0.1/32", most: maxStreams / 2}
		var open []*stream
		for range maxStreams/2 - 1 {
			opened, err := b.streams.begin(t.Context(), others)
			require.NoError(t, err)
			b.streams.reads(opened)
			open = append(open, opened)
		}
		require.Equal(t, http.StatusServiceUnavailable, follow(t, b).res.StatusCode)
		for _, each := range open {
			b.streams.done(each)
		}
		go func() { _ = b.end() }()
		synctest.Wait()
		name, _ = f.next()
		require.Empty(t, name)
	})
}

// Callers with the same token are distinguished by their logins.
func TestStartSimulation(t *testing.T) {
	b := &recorder{}
	s := newServer(t, b, withToken)
	asked := map[string]bool{}
	for _, login := range []string{"ada", "bob"} {
		header := bearer(token)
		header[api.UserHeader] = login
		answer(t, s, http.StatusCreated, post("/simulations", `{"opening_tokens":20000}`, header))
		// The limits of the configuration are narrower.
		require.Equal(t, call{"start simulation", "", login, api.SimulationRequest{OpeningTokens: new(20000)}}, b.last())
		asked[b.who] = true
	}
	require.Len(t, asked, 2)
}

// Requests of clients of former versions have earlier names.
func TestRequestHasEarlierNames(t *testing.T) {
	b := &recorder{}
	s := newServer(t, b, withToken)
	header := bearer(token)
	header[api.UserHeader] = "ada"
	answer(t, s, http.StatusCreated, post("/simulations", `{"think_time_seconds":1.5}`, header))
	require.Equal(t, call{"start simulation", "", "ada", api.SimulationRequest{ThinkTime: new(1.5)}}, b.last())
	answer(t, s, http.StatusCreated,
		post("/sweeps", `{"kind":"sweep","levels":[60],"warm_up_seconds":9,"span_seconds":30}`, header))
	require.Equal(t, call{"start sweep", "main", "ada", api.SweepRequest{
		Kind: api.SweepLevels, Levels: api.LevelsOf(60), WarmUp: new(9.), Seconds: new(30.),
	}}, b.last())
}
