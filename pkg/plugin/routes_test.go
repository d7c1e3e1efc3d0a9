package plugin

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// calls are all routes with a call of each, and who may make it where Editors
// operate. A route without a row here fails the test.
var calls = map[string]struct {
	url, body string
	roles     string // that are let through
	heard     string // by the sidecar
}{
	"GET /status":              {"status", "", "nil None Viewer Editor Admin", "/api/v1/status"},
	"GET /snapshot":            {"snapshot", "", "nil None Viewer Editor Admin", "/api/v1/snapshot"},
	"GET /cluster":             {"cluster?lane=main", "", "nil None Viewer Editor Admin", "/api/v1/cluster?lane=main"},
	"GET /shadow":              {"shadow?lane=twin", "", "nil None Viewer Editor Admin", "/api/v1/shadow?lane=twin"},
	"GET /twin":                {"twin", "", "nil None Viewer Editor Admin", "/api/v1/twin"},
	"PATCH /twin":              {"twin", `{"arranged":"swapped"}`, "Editor Admin", "/api/v1/twin"},
	"POST /twin/showcase":      {"twin/showcase", `{}`, "Editor Admin", "/api/v1/twin/showcase"},
	"DELETE /twin/showcase":    {"twin/showcase", "", "Editor Admin", "/api/v1/twin/showcase"},
	"POST /workload/start":     {"workload/start?lane=twin", `{"concurrency":120}`, "Editor Admin", "/api/v1/workload/start?lane=twin"},
	"POST /workload/stop":      {"workload/stop", `{"drain":true}`, "Editor Admin", "/api/v1/workload/stop"},
	"PATCH /workload":          {"workload", `{"turns":{"min":3,"max":5}}`, "Editor Admin", "/api/v1/workload"},
	"PUT /cluster/mode":        {"cluster/mode", `{"mode":"kv"}`, "Editor Admin", "/api/v1/cluster/mode"},
	"DELETE /cluster/mode":     {"cluster/mode?lane=main", "", "Editor Admin", "/api/v1/cluster/mode?lane=main"},
	"GET /history":             {"history?lane=main", "", "nil None Viewer Editor Admin", "/api/v1/history?lane=main"},
	"GET /settings":            {"settings", "", "nil None Viewer Editor Admin", "/api/v1/settings"},
	"PATCH /settings":          {"settings", `{"title":"Booth"}`, "Admin", "/api/v1/settings"},
	"GET /conversations":       {"conversations?status=ok&topic=gpu&cursor=c&limit=5&lane=main", "", "nil None Viewer Editor Admin", "/api/v1/conversations?status=ok&topic=gpu&cursor=c&limit=5&lane=main"},
	"GET /conversations/{id}":  {"conversations/main-7", "", "nil None Viewer Editor Admin", "/api/v1/conversations/main-7"},
	"GET /starters/{id}":       {"starters/gpu architecture?lane=twin", "", "nil None Viewer Editor Admin", "/api/v1/starters/gpu%20architecture?lane=twin"},
	"GET /turns.csv":           {"turns.csv?step=9007199254740993", "", "nil None Viewer Editor Admin", "/api/v1/turns.csv?step=9007199254740993"},
	"GET /events":              {"events?limit=5", "", "nil None Viewer Editor Admin", "/api/v1/events?limit=5"},
	"GET /decisions":           {"decisions?lane=main&limit=5", "", "nil None Viewer Editor Admin", "/api/v1/decisions?lane=main&limit=5"},
	"GET /baselines":           {"baselines", "", "nil None Viewer Editor Admin", "/api/v1/baselines"},
	"GET /baselines/{name}":    {"baselines/this target", "", "nil None Viewer Editor Admin", "/api/v1/baselines/this%20target"},
	"GET /comparison":          {"comparison?lane=twin&baseline=this+target", "", "nil None Viewer Editor Admin", "/api/v1/comparison?lane=twin&baseline=this+target"},
	"DELETE /baselines/{name}": {"baselines/a%2Fb", "", "Admin", "/api/v1/baselines/a%2Fb"},
	"GET /simulations":         {"simulations", "", "nil None Viewer Editor Admin", "/api/v1/simulations"},
	"POST /simulations":        {"simulations", `{"workers":6}`, "Editor Admin", "/api/v1/simulations"},
	"GET /simulations/{id}":    {"simulations/a1", "", "nil None Viewer Editor Admin", "/api/v1/simulations/a1"},
	"DELETE /simulations/{id}": {"simulations/a1", "", "Editor Admin", "/api/v1/simulations/a1"},
	"POST /baselines":          {"baselines", `{"name":"a","title":"","kind":"","deployment":{},"rows":[]}`, "Admin", "/api/v1/baselines"},

	"GET /sweeps":                  {"sweeps", "", "nil None Viewer Editor Admin", "/api/v1/sweeps"},
	"POST /sweeps":                 {"sweeps?lane=main", `{"kind":"trial","levels":[120]}`, "Editor Admin", "/api/v1/sweeps?lane=main"},
	"GET /sweeps/{id}":             {"sweeps/a1", "", "nil None Viewer Editor Admin", "/api/v1/sweeps/a1"},
	"PATCH /sweeps/{id}":           {"sweeps/a1", `{"state":"paused"}`, "Editor Admin", "/api/v1/sweeps/a1"},
	"DELETE /sweeps/{id}":          {"sweeps/a1", "", "Editor Admin", "/api/v1/sweeps/a1"},
	"POST /sweeps/{id}/baseline":   {"sweeps/a1/baseline", `{"name":"ours"}`, "Editor Admin", "/api/v1/sweeps/a1/baseline"},
	"GET /sweeps/{id}/seconds.csv": {"sweeps/a1/seconds.csv", "", "nil None Viewer Editor Admin", "/api/v1/sweeps/a1/seconds.csv"},
	"GET /sweeps/{id}/report.json": {"sweeps/a1/report.json", "", "nil None Viewer Editor Admin", "/api/v1/sweeps/a1/report.json"},
	"GET /report.json":             {"report.json?a=this+target&a_mode=kv&b=of%202026%2B1", "", "nil None Viewer Editor Admin", "/api/v1/report.json?a=this+target&a_mode=kv&b=of%202026%2B1"},
	"GET /sweeps/{id}/report.tsv":  {"sweeps/a1/report.tsv", "", "nil None Viewer Editor Admin", "/api/v1/sweeps/a1/report.tsv"},
	"GET /report.tsv":              {"report.tsv?a=this+target&a_mode=kv&b=of%202026%2B1", "", "nil None Viewer Editor Admin", "/api/v1/report.tsv?a=this+target&a_mode=kv&b=of%202026%2B1"},
	"GET /sweeps/{id}/report.md":   {"sweeps/a1/report.md", "", "nil None Viewer Editor Admin", "/api/v1/sweeps/a1/report.md"},
	"GET /report.md":               {"report.md?a=this+target&a_mode=kv&b=of%202026%2B1", "", "nil None Viewer Editor Admin", "/api/v1/report.md?a=this+target&a_mode=kv&b=of%202026%2B1"},
	"GET /sweeps/{id}/report.html": {"sweeps/a1/report.html", "", "nil None Viewer Editor Admin", "/api/v1/sweeps/a1/report.html"},
	"GET /report.html":             {"report.html?a=this+target&a_mode=kv&b=of%202026%2B1", "", "nil None Viewer Editor Admin", "/api/v1/report.html?a=this+target&a_mode=kv&b=of%202026%2B1"},
}

// Every route for everybody: who is let through reaches the same call of the
// sidecar, and nobody else reaches it at all.
func TestRoles(t *testing.T) {
	s := newSidecar(t)
	users := map[string]*backend.User{
		"nil": nil, "None": user("None"), "Viewer": user("Viewer"), "Editor": user("Editor"), "Admin": user("Admin"),
		"": user(""), "admin": user("admin"), "Root": user("Root"), // no roles of Grafana's
	}
	for _, operators := range []string{"", "Editor", "Admin"} {
		a := start(t, configured(s.URL, `,"operatorRole":"`+operators+`"`))
		for pattern := range routes {
			call, ok := calls[pattern]
			require.True(t, ok, "%s has no row", pattern)
			method, _, _ := strings.Cut(pattern, " ")
			for role, u := range users {
				may := strings.HasPrefix(call.roles, "nil") || strings.Contains(" "+call.roles+" ", " "+role+" ") && role != ""
				if operators == "Admin" && role == "Editor" && !strings.HasPrefix(call.roles, "nil") {
					may = false
				}
				res := resource(t, a, u, method, call.url, call.body)
				requests := s.take()
				if !may {
					require.Equal(t, http.StatusForbidden, problem(t, res).Status, "%s as %q", pattern, role)
					require.Empty(t, requests, "%s as %q", pattern, role)
					continue
				}
				require.Less(t, res.Status, 300, "%s as %q: %s", pattern, role, res.Body)
				require.Len(t, requests, 1)
				require.Equal(t, method, requests[0].method)
				require.Equal(t, call.heard, requests[0].uri)
				if call.body != "" {
					require.JSONEq(t, call.body, requests[0].body)
				}
			}
		}
	}
	require.Len(t, calls, len(routes), "a row without a route")
}

// A forgotten access is that of an administrator.
func TestZeroAccess(t *testing.T) {
	a := start(t, at127("http://127.0.0.1:1"))
	var none access
	require.False(t, a.may(user("Editor"), none))
	require.False(t, a.may(nil, none))
	require.True(t, a.may(user("Admin"), none))
}

func TestMe(t *testing.T) {
	for _, tt := range []struct {
		settings string
		user     *backend.User
		want     caller
	}{
		{`{"sidecarUrl":"http://localhost:1"}`, nil, caller{Configured: true}},
		{`{"sidecarUrl":"http://localhost:1"}`, user("Viewer"), caller{"somebody", "Viewer", false, false, true}},
		{`{"sidecarUrl":"http://localhost:1"}`, user("Editor"), caller{"somebody", "Editor", true, false, true}},
		{`{"sidecarUrl":"http://localhost:1"}`, user("Admin"), caller{"somebody", "Admin", true, true, true}},
		{`{"sidecarUrl":"http://localhost:1","operatorRole":"Admin"}`, user("Editor"), caller{"somebody", "Editor", false, false, true}},
		// Nothing can be operated, but somebody has to mend it.
		{`{}`, user("Editor"), caller{"somebody", "Editor", false, false, false}},
		{`{}`, user("Admin"), caller{"somebody", "Admin", false, true, false}},
	} {
		res := resource(t, start(t, backend.AppInstanceSettings{JSONData: []byte(tt.settings)}), tt.user, "GET", "me", "")
		var got caller
		require.NoError(t, json.Unmarshal(res.Body, &got))
		require.Equal(t, tt.want, got, tt.settings)
	}
}

// The sidecar learns token and login from the app, and nothing from the caller's
// headers.
func TestHeaders(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	spoofed := []string{
		api.UserHeader, "root", "Cookie", "grafana_session=1", "Authorization", "Bearer of-the-caller",
		"Origin", "http://elsewhere", "X-Forwarded-For", "1.2.3.4", "X-Other", "1",
	}
	for want, u := range map[string]*backend.User{
		"somebody": user("Editor"), "gräfin@example.com": {Login: "gräfin@example.com", Role: "Editor"}, "anonymous": {Role: "Editor"},
	} {
		res := resource(t, a, u, "POST", "workload/stop", `{"drain":false}`, spoofed...)
		require.Equal(t, 200, res.Status, string(res.Body))
		h := s.take()[0].header
		require.Equal(t, []string{want}, h.Values(api.UserHeader))
		require.Equal(t, []string{"Bearer " + token}, h.Values("Authorization"))
		for _, name := range []string{"Cookie", "Origin", "X-Forwarded-For", "X-Other"} {
			require.Empty(t, h.Values(name), name)
		}
	}
}

// Nothing but the routes can be reached, whatever a path looks like.
func TestPaths(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	for _, path := range []string{
		"", "/", ".", "..", "nothing", "stream", "session", "metrics", "healthz", "api/v1/status", "Status",
		"status/", "/status", "//status", "./status", "x/../status", "status/..", "status/../../metrics",
		"conversations/", "conversations/..", "conversations/.", "conversations/../status", "conversations/a/b",
		"conversations/..%2fstatus", "conversations/%2e%2e", "conversations/..%2F..%2Fmetrics", "%2e%2e/metrics",
		"conversations//x", "status%3flane=x", "status%00", "@127.0.0.1/status", "http://127.0.0.1/status",
	} {
		for _, method := range []string{"GET", "POST", "CONNECT", "OPTIONS"} {
			res := resource(t, a, user("Admin"), method, path, "")
			if path == "/status" && method == "GET" {
				require.Equal(t, 200, res.Status) // as good as without the slash
				require.Len(t, s.take(), 1)
				continue
			}
			require.Equal(t, 404, problem(t, res).Status, "%s %s", method, path)
			require.Empty(t, s.take(), "%s %s", method, path)
			require.Empty(t, res.Headers["Location"])
		}
	}
	for _, call := range []string{"POST status", "DELETE workload", "TRACE status", "GET workload/start"} {
		method, path, _ := strings.Cut(call, " ")
		require.Equal(t, 404, problem(t, resource(t, a, user("Admin"), method, path, "")).Status)
	}
	require.Empty(t, s.take())
}

// A name that needs escaping stays one segment.
func TestEscapes(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL+"/behind/a/proxy/"))
	for path, want := range map[string]string{
		"baselines/of 2026+1":   "/behind/a/proxy/api/v1/baselines/of%202026+1",
		"baselines/a%2Fb":       "/behind/a/proxy/api/v1/baselines/a%2Fb",
		"baselines/a%3Fb%23":    "/behind/a/proxy/api/v1/baselines/a%3Fb%23",
		"starters/a%2Fb?lane=x": "/behind/a/proxy/api/v1/starters/a%2Fb?lane=x",
		"baselines/..x":         "/behind/a/proxy/api/v1/baselines/..x",
		"conversations/x;y=@z":  "/behind/a/proxy/api/v1/conversations/x;y=@z",
	} {
		resource(t, a, nil, "GET", path, "")
		require.Equal(t, want, s.take()[0].uri)
	}
}

// What a query and a body hold is the load generator's to judge, and it gets them
// as they came; but nobody makes the app hold more than the largest body.
func TestBodies(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	long := strings.Repeat("x", api.MaxBaseline+1)
	for _, contentType := range []string{"application/json", "text/csv", ""} {
		p := problem(t, resource(t, a, user("Admin"), "POST", "baselines", long, "Content-Type", contentType))
		require.Equal(t, 413, p.Status)
		require.Contains(t, p.Detail, "larger than 1048576 bytes")
		require.Empty(t, s.take())
	}
	resource(t, a, user("Admin"), "POST", "baselines?lane=%2&lane=b&token", long[1:], "Content-Type", "text/plain")
	got := s.take()[0]
	require.Equal(t, "/api/v1/baselines?lane=%2&lane=b&token", got.uri)
	require.Equal(t, "text/plain", got.header.Get("Content-Type"))
	require.Len(t, got.body, api.MaxBaseline)
	require.Equal(t, []string{"1048576"}, got.header.Values("Content-Length"))
}

// What is no JSON goes through too.
func TestCSV(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	res := resource(t, a, nil, "GET", "turns.csv", "")
	require.Equal(t, "lane,turn\nmain,1\n", string(res.Body))
	require.Equal(t, []string{"text/csv; charset=utf-8"}, res.Headers["Content-Type"])
	s.take()
	res = resource(t, a, user("Admin"), "POST", "baselines?name=mine", "concurrency\n60\n", "Content-Type", "text/csv")
	require.Equal(t, 201, res.Status, string(res.Body))
	got := s.take()[0]
	require.Equal(t, "/api/v1/baselines?name=mine", got.uri)
	require.Equal(t, "concurrency\n60\n", got.body)
	require.Equal(t, "text/csv", got.header.Get("Content-Type"))
}

// Reports go through as what they are, a page under a policy that lets it run nothing;
// nothing else does in their place.
func TestReports(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	for _, f := range api.ReportFormats {
		for _, path := range []string{"sweeps/a1/report.", "report."} {
			res := resource(t, a, nil, "GET", path+string(f), "")
			require.Equal(t, 200, res.Status, string(res.Body))
			require.Equal(t, "a report", string(res.Body))
			require.Equal(t, []string{f.MediaType()}, res.Headers["Content-Type"])
			require.Equal(t, []string{"inline; filename=report." + string(f)}, res.Headers["Content-Disposition"])
			require.Equal(t, []string{"nosniff"}, res.Headers["X-Content-Type-Options"])
			require.Contains(t, res.Headers["Content-Security-Policy"][0], "default-src 'none'")
		}
	}
	s.change(func() {
		s.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<h1>please log in</h1>")
		}
	})
	for _, path := range []string{"sweeps/a1/report.md", "report.json", "sweeps/a1", "sweeps/a1/seconds.csv"} {
		require.Equal(t, 502, problem(t, resource(t, a, nil, "GET", path, "")).Status, path)
	}
	require.Equal(t, 404, problem(t, resource(t, a, nil, "GET", "sweeps/a1/report.pdf", "")).Status)
}

// What the sidecar refuses is passed on where it is about the call; what is
// between it and the app is a 502 that says what to do.
func TestRefusals(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	for _, tt := range []struct {
		theirs, ours int
		text         string
	}{
		{400, 400, "because"},
		{404, 404, "because"},
		{409, 409, "because"},
		{413, 413, "because"},
		{415, 415, "because"},
		{500, 500, "because"},
		{503, 503, "because"},
		{401, 502, "enter the token"},
		{403, 502, "enter the token"},
		{429, 502, "enter the token"},
		{421, 502, "rejects the host name in its URL: because"},
		{418, 502, "because"},
	} {
		s.change(func() {
			s.answer = func(w http.ResponseWriter, _ *http.Request) {
				refuse(w, api.Problem{Status: tt.theirs, Detail: "because"})
			}
		})
		p := problem(t, resource(t, a, user("Editor"), "POST", "workload/stop", `{}`))
		require.Equal(t, tt.ours, p.Status, tt.theirs)
		require.Contains(t, p.Detail, tt.text)
	}
	s.change(func() {
		s.answer = func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, api.Problem{Status: 422, Field: "concurrency", Value: "0", Allowed: "1 to 180"})
		}
	})
	p := problem(t, resource(t, a, user("Editor"), "POST", "workload/start", `{"concurrency":0}`))
	require.Equal(t, api.Problem{
		Type: "about:blank", Title: "Unprocessable Entity", Status: 422, Detail: "concurrency: 0 is not allowed: 1 to 180",
		Field: "concurrency", Value: "0", Allowed: "1 to 180",
	}, p)
}

// Redirects are not followed: they would carry the token on.
func TestNoRedirects(t *testing.T) {
	s, elsewhere := newSidecar(t), newSidecar(t)
	s.answer = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}
	a := start(t, at127(s.URL))
	for _, call := range []string{"GET status", "POST workload/stop", "GET turns.csv"} {
		method, path, _ := strings.Cut(call, " ")
		body := map[string]string{"POST": "{}"}[method]
		p := problem(t, resource(t, a, user("Admin"), method, path, body))
		require.Equal(t, 502, p.Status)
		require.Contains(t, p.Detail, "redirects")
	}
	require.Empty(t, elsewhere.take())
}

// Answers that are none, or none in time.
func TestTrouble(t *testing.T) {
	s := newSidecar(t)
	hold := make(chan struct{})
	defer close(hold)
	a := start(t, configured(s.URL, `,"timeout":1`))
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		status int
		text   string
	}{
		{"a page", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") }, 502, "not a load generator's response"},
		{"other JSON", func(w http.ResponseWriter, _ *http.Request) { give(w, []int{1}) }, 502, "not what this version"},
		{"a broken connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 502, "is unreachable"},
		{"silence", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}, 504, "timed out"},
	} {
		s.change(func() { s.answer = tt.answer })
		p := problem(t, resource(t, a, user("Editor"), "GET", "baselines", ""))
		require.Equal(t, tt.status, p.Status, tt.name)
		require.Contains(t, p.Detail, tt.text, tt.name)
	}
}

// Who only looks learns that something is wrong, and not where things are.
func TestAddressesAreNotForViewers(t *testing.T) {
	s := newSidecar(t)
	host := strings.TrimPrefix(s.URL, "http://")
	for _, tt := range []struct {
		app    *App
		change func()
		says   string
	}{
		{start(t, at127(s.URL)), func() { s.answer = refusal(421) }, outlines[reasonHost]},
		{start(t, at127(s.URL)), func() { s.answer = refusal(401) }, outlines[reasonToken]},
		{start(t, at127(s.URL)), s.Close, outlines[reasonUnreachable]},
	} {
		tt.change()
		for _, u := range []*backend.User{nil, user("Viewer")} {
			p := problem(t, resource(t, tt.app, u, "GET", "status", ""))
			health, err := tt.app.CheckHealth(t.Context(), &backend.CheckHealthRequest{PluginContext: backend.PluginContext{User: u}})
			require.NoError(t, err)
			require.Contains(t, p.Detail, tt.says)
			for _, address := range []string{host, "127.0.0"} {
				require.NotContains(t, p.Detail+p.Value+p.Allowed+health.Message+string(health.JSONDetails), address)
			}
		}
		require.NotContains(t, problem(t, resource(t, tt.app, user("Editor"), "GET", "status", "")).Detail, "an administrator", "an operator learns more")
	}
}

// An answer beyond all measure is not held in memory.
func TestTooMuch(t *testing.T) {
	s := newSidecar(t)
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for block := make([]byte, 4<<10); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	p := problem(t, resource(t, start(t, at127(s.URL)), nil, "GET", "baselines", ""))
	require.Equal(t, 502, p.Status)
	require.Contains(t, p.Detail, "larger than 65536 bytes; request a smaller part")
}

// Only so many answers are held at once: the others wait until one is sent.
func TestFewAnswersAreHeld(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	const callers = 6
	var group sync.WaitGroup
	var held, most atomic.Int32
	free := make(chan struct{})
	for range callers {
		group.Go(func() {
			req := &backend.CallResourceRequest{Method: "GET", Path: "status", URL: "status"}
			assert.NoError(t, a.CallResource(t.Context(), req, backend.CallResourceResponseSenderFunc(func(r *backend.CallResourceResponse) error {
				most.Store(max(held.Add(1), most.Load()))
				<-free
				held.Add(-1)
				assert.Equal(t, 200, r.Status)
				return nil
			})))
		})
	}
	asked := 0
	eventually(t, func() bool { asked += len(s.take()); return asked == callers && int(held.Load()) == impatient.answers }, "all ask, some are answered")
	close(free)
	group.Wait()
	require.EqualValues(t, impatient.answers, most.Load())
}

// exported is an export without a turn.
const exported = "lane,turn\r\n"

func csvOf(f func(w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		f(w, r)
	}
}

// Raw data of any length is passed on piece by piece: the first ones arrive while
// the load generator still writes.
func TestExportIsStreamed(t *testing.T) {
	s := newSidecar(t)
	first := make(chan struct{})
	block := []byte(strings.Repeat("x", piece))
	s.answer = csvOf(func(w http.ResponseWriter, r *http.Request) {
		for i := range 40 { // much more than another answer may have
			_, _ = w.Write(block)
			if i == 20 {
				select {
				case <-first:
				case <-r.Context().Done():
				}
			}
		}
	})
	got, pieces := 0, 0
	req := &backend.CallResourceRequest{Method: "GET", Path: "turns.csv", URL: "turns.csv"}
	require.NoError(t, start(t, at127(s.URL)).CallResource(t.Context(), req, backend.CallResourceResponseSenderFunc(func(r *backend.CallResourceResponse) error {
		if pieces++; pieces == 1 {
			require.Equal(t, 200, r.Status)
			close(first)
		}
		require.LessOrEqual(t, len(r.Body), piece)
		got += len(r.Body)
		return nil
	})))
	require.Equal(t, 40*piece, got)
	require.GreaterOrEqual(t, pieces, 40)
}

// Grafana passes on as whole what breaks off: the last line says it.
func TestExportThatBreaksOffSaysSo(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	for name, end := range map[string]func(r *http.Request){
		"a broken connection": func(*http.Request) { panic(http.ErrAbortHandler) },
		"silence":             func(r *http.Request) { <-r.Context().Done() },
	} {
		s.change(func() {
			s.answer = csvOf(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, exported+"main,1\r\nmai")
				w.(http.Flusher).Flush()
				end(r)
			})
		})
		res := resource(t, a, nil, "GET", "turns.csv", "")
		require.Equal(t, 200, res.Status, name)
		require.Equal(t, exported+"main,1\r\nmai\r\n"+incomplete, string(res.Body), name)
		_, err := csv.NewReader(bytes.NewReader(res.Body)).ReadAll()
		require.ErrorIs(t, err, csv.ErrFieldCount, "programs stumble over it, too")
	}
}

// An export beyond the limit is refused, and does not wait.
func TestFewExportsRun(t *testing.T) {
	s := newSidecar(t)
	a := start(t, at127(s.URL))
	s.answer = csvOf(func(w http.ResponseWriter, r *http.Request) {
		p := problem(t, resource(t, a, nil, "GET", "turns.csv", ""))
		assert.Equal(t, 429, p.Status)
		assert.Equal(t, "the maximum of 1 concurrent raw-data downloads is reached; try again when one has finished", p.Detail)
		_, _ = io.WriteString(w, exported)
	})
	for range 2 { // the first one's end makes room for the second
		require.Equal(t, exported, string(resource(t, a, nil, "GET", "turns.csv", "").Body))
	}
}

func TestUnreachable(t *testing.T) {
	s := newSidecar(t)
	s.Close()
	begun := time.Now()
	p := problem(t, resource(t, start(t, at127(s.URL)), user("Editor"), "POST", "workload/start", `{}`))
	require.Equal(t, 502, p.Status)
	require.Contains(t, p.Detail, "is unreachable")
	require.Contains(t, p.Detail, "start it, or correct its URL")
	require.Contains(t, p.Detail, s.URL)
	require.Less(t, time.Since(begun), dialTimeout)
}

// Every call of the sidecar's API has a route, but those that are for others.
func TestAllCalls(t *testing.T) {
	elsewhere := map[string]bool{
		"GET /stream":  true,                                                 // goes through the live channels
		"GET /session": true, "POST /session": true, "DELETE /session": true, // for the sidecar's own page
		"GET /openapi.yaml": true, // for programs
	}
	patterns := map[string]bool{}
	for pattern := range routes {
		patterns[pattern] = true
	}
	var path string
	for line := range strings.Lines(string(api.OpenAPI)) {
		if p, ok := strings.CutPrefix(line, "  "+api.Prefix+"/"); ok {
			path = "/" + strings.TrimSuffix(p, ":\n")
			continue
		}
		if strings.HasPrefix(line, "  /") || strings.HasPrefix(line, "components") {
			path = ""
		}
		method := strings.ToUpper(strings.Trim(line, " :\n"))
		if call := method + " " + path; path != "" && strings.HasPrefix(line, "    ") && line[4] != ' ' && !elsewhere[call] {
			require.True(t, patterns[call], "%s has no route", call)
			delete(patterns, call)
		}
	}
	require.Empty(t, patterns, "no call of the sidecar's")
}
