package plugin

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"kvbooth/sidecar/api"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/stretchr/testify/require"
)

// check returns the health check's result for a user.
func check(t *testing.T, a *App, u *backend.User) (*backend.CheckHealthResult, healthDetails) {
	t.Helper()
	res, err := a.CheckHealth(t.Context(), &backend.CheckHealthRequest{PluginContext: backend.PluginContext{User: u}})
	require.NoError(t, err)
	var d healthDetails
	require.NoError(t, json.Unmarshal(res.JSONDetails, &d))
	return res, d
}

// Every state has a message and a reason of its own.
func TestHealth(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*sidecar)
		ok     bool
		reason reason
		text   string
	}{
		{
			"running", func(*sidecar) {}, true, reasonNone,
			"Load generator 1.2.3 answers at URL: lane main is running, KV-aware with 118 conversations.",
		},
		{"stopped", func(s *sidecar) {
			s.snapshot.Lanes[0].State.Running, s.snapshot.Lanes[0].State.Phase = false, api.PhaseStopped
		}, true, reasonNone, "Load generator 1.2.3 answers at URL: lane main is stopped, KV-aware."},
		{"no metrics", func(s *sidecar) {
			s.snapshot.Lanes[0].Cluster = api.Cluster{Problem: "Prometheus at http://p:9090 cannot be reached: start it"}
		}, true, reasonMetrics, "Load generator 1.2.3 answers at URL: lane main is running, KV-aware with 118 " +
			"conversations. Warning: cluster metrics for lane main are unavailable: Prometheus at http://p:9090 " +
			"cannot be reached: start it."},
		{"target down", func(s *sidecar) {
			s.snapshot.Lanes[0].Target.Reachable, s.snapshot.Lanes[0].Target.Problem = false, "connection refused: start it."
		}, false, reasonTarget, "Load generator 1.2.3 answers at URL, but the target http://target:8000 of lane main " +
			"is down: connection refused: start it."},
		{"target failing", func(s *sidecar) {
			t := &s.snapshot.Lanes[0].Target
			t.Reachable, t.Problem, t.ProblemStatus = false, "it is overloaded.", 503
		}, false, reasonTarget, "Load generator 1.2.3 answers at URL, but the target http://target:8000 of lane main " +
			"answers 503: it is overloaded."},
		{
			"unreachable", func(s *sidecar) { s.Close() }, false, reasonUnreachable,
			"The load generator at URL is unreachable (dial tcp HOST: connect: connection refused); start it, or " +
				"correct its URL in the app's settings.",
		},
		{
			"wrong token", func(s *sidecar) { s.answer = refusal(401) }, false, reasonToken,
			"The load generator at URL rejects the app's token (because); in the app's settings, enter the token " +
				"that it was started with.",
		},
		{
			"another name", func(s *sidecar) { s.answer = refusal(421) }, false, reasonHost,
			"The load generator at URL rejects the host name in its URL: because.",
		},
		{
			"another server", func(s *sidecar) { s.answer = http.NotFound }, false, reasonForeign,
			"The server at URL is not a KV Booth load generator: URL/api/v1/status answered 404 Not Found, which is " +
				"not a load generator's response: check the URL and any proxy in between.",
		},
		{
			"a page for everything", func(s *sidecar) { s.answer = page }, false, reasonForeign,
			"The load generator at URL sent an invalid response: URL/api/v1/status answered with " +
				"\"text/html; charset=utf-8\", which is not a load generator's response: check the URL.",
		},
		{"a refusal without words", func(s *sidecar) {
			s.answer = func(w http.ResponseWriter, _ *http.Request) { refuse(w, api.Problem{Status: 418}) }
		}, false, reasonForeign, "I'm a teapot (418)."},
		{
			"an answer without an end", func(s *sidecar) { s.answer = endless }, false, reasonForeign,
			"The server at URL is not a KV Booth load generator: " +
				"the response is larger than 65536 bytes; request a smaller part.",
		},
		{
			"another API", func(s *sidecar) { s.status = api.Status{} }, false, reasonForeign,
			"The load generator at URL sent an invalid response: the response has no version or no lanes; check the URL.",
		},
	} {
		s := newSidecar(t)
		tt.change(s)
		res, d := check(t, startAt(t, s.URL), user("Admin"))
		want := strings.Replace(replaceURL(tt.text, s.URL), "HOST", strings.TrimPrefix(s.URL, "http://"), 1)
		require.Equal(t, want, res.Message, tt.name)
		require.Equal(t, tt.reason, d.Reason, tt.name)
		require.Equal(t, tt.ok, res.Status == backend.HealthStatusOk, tt.name)
		require.Equal(t, s.URL, d.URL)
	}
	s := newSidecar(t)
	_, d := check(t, startAt(t, s.URL), user("Admin"))
	require.Equal(t, healthDetails{
		Reason: reasonNone, URL: s.URL, Version: "1.2.3", Warnings: []string{},
		Lanes: []laneHealth{
			{
				Name:        "main",
				Target:      "http://target:8000",
				Reachable:   true,
				Phase:       api.PhaseRunning,
				Mode:        api.ModeKV,
				Speculation: api.SpeculationOff,
				Concurrency: api.Concurrency{Target: api.AtConversations(120), Actual: 118},
			},
		},
	}, d)
}

// replaceURL inserts the URL in place of the word URL.
func replaceURL(text, url string) string {
	return regexp.MustCompile(`(at |: )URL`).ReplaceAllString(text, "${1}"+url)
}

// refusal answers with a problem of a status.
func refusal(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, api.Problem{Status: status, Detail: "because"})
	}
}
