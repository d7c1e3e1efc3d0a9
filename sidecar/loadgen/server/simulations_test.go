package server

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// following is an answer of server-sent events that is being read.
type following struct {
	res   *http.Response
	lines *bufio.Scanner
}

func follow(t *testing.T, base string) *following {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+api.Prefix+"/simulations/a1", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/event-stream")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { res.Body.Close() })
	return &following{res, bufio.NewScanner(res.Body)}
}

// next is the next event; empty at the end.
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
	b := &recorder{follow: make(chan struct{})}
	_, ts := start(t, b, nil)
	f := follow(t, ts.URL)
	assert.Equal(t, "text/event-stream", f.res.Header.Get("Content-Type"))
	name, data := f.next() // before there is an end
	assert.Equal(t, "point", name)
	var p api.SimulationPoint
	require.NoError(t, json.Unmarshal([]byte(data), &p))
	assert.Equal(t, sample[api.SimulationPoint](), p)
	close(b.follow)
	name, _ = f.next()
	assert.Equal(t, "end", name)
	name, _ = f.next()
	assert.Empty(t, name, "nothing follows")
}

// Who follows has one of the streams that may be open, and the server's end is its end.
func TestFollowSimulationIsAStream(t *testing.T) {
	b := &recorder{follow: make(chan struct{})}
	s, ts := start(t, b, nil)
	f := follow(t, ts.URL)
	name, _ := f.next()
	assert.Equal(t, "point", name)
	var others []reader
	for range maxOfMany - 1 {
		who := reader{share: "127.0.0.1/32", most: maxOfMany}
		require.NoError(t, s.streams.begin(who))
		others = append(others, who)
	}
	assert.Equal(t, http.StatusServiceUnavailable, follow(t, ts.URL).res.StatusCode)
	for _, who := range others {
		s.streams.done(who)
	}
	s.streams.end()
	name, _ = f.next()
	assert.Empty(t, name)
}

func TestSimulationsRefuse(t *testing.T) {
	b := &recorder{}
	_, ts := start(t, b, withToken)
	for want, q := range map[string]request{
		"a token is required: Authorization: Bearer …":        {method: http.MethodPost, path: "/simulations", body: `{}`},
		"query: a parameter \"lane\" is not allowed: none":    {method: http.MethodPost, path: "/simulations?lane=main", body: `{}`, header: bearer(token)},
		"seeds: a JSON string is not allowed: a whole number": {method: http.MethodPost, path: "/simulations", body: `{"seeds": "6"}`, header: bearer(token)},
		"query: a parameter \"from\" is not allowed: none":    {path: "/simulations/a1?from=3", header: bearer(token)},
		"the body is not a JSON object":                       {method: http.MethodPost, path: "/simulations", body: `[60]`, header: bearer(token)},
	} {
		q.path = api.Prefix + q.path
		assert.Equal(t, want, refusal(t, ts.URL, q).Detail)
	}
	assert.Contains(t, refusal(t, ts.URL, request{method: http.MethodPost, path: api.Prefix + "/simulations", body: `{"gpus": 3}`, header: bearer(token)}).Detail,
		"gpus: an unknown field is not allowed: only profile, levels, modes, seeds,")
	assert.Empty(t, b.last().name)
}

// Those who share a token are told apart by their logins; the opening tokens of a
// question are not those of the configuration, whose limits are narrower.
func TestStartSimulation(t *testing.T) {
	b := &recorder{}
	_, ts := start(t, b, withToken)
	var asked []string
	for _, login := range []string{"ada", "bob"} {
		res, _ := do(t, ts.URL, request{method: http.MethodPost, path: api.Prefix + "/simulations", body: `{"opening_tokens": 20000}`, header: bearer(token, api.UserHeader, login)})
		require.Equal(t, http.StatusCreated, res.StatusCode)
		assert.Equal(t, api.Prefix+"/simulations/text", res.Header.Get("Location"))
		assert.Equal(t, call{"start simulation", "", login, api.SimulationRequest{OpeningTokens: new(20000)}}, b.last())
		asked = append(asked, b.who)
	}
	assert.NotEqual(t, asked[0], asked[1])
}
