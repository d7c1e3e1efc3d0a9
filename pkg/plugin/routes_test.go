package plugin

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// The roles that have an access where Editors operate.
const (
	anyRole   = "nil None Viewer Editor Admin"
	operators = "Editor Admin"
	admins    = "Admin"
)

// calls has an example of each route, with the roles that may make it. A route without a row here fails the test.
var calls = map[string]struct {
	url, body string
	roles     string
	upstream  string // URL that the load generator receives; empty: the URL below the API's prefix
}{
	"GET /status":              {"status", "", anyRole, ""},
	"GET /snapshot":            {"snapshot", "", anyRole, ""},
	"GET /cluster":             {"cluster?lane=main", "", anyRole, ""},
	"GET /shadow":              {"shadow?lane=twin", "", anyRole, ""},
	"GET /twin":                {"twin", "", anyRole, ""},
	"PATCH /twin":              {"twin", `{"arranged":"swapped"}`, operators, ""},
	"POST /twin/showcase":      {"twin/showcase", `{}`, operators, ""},
	"DELETE /twin/showcase":    {"twin/showcase", "", operators, ""},
	"POST /workload/start":     {"workload/start?lane=twin", `{"concurrency":120}`, operators, ""},
	"POST /workload/stop":      {"workload/stop", `{"drain":true}`, operators, ""},
	"PATCH /workload":          {"workload", `{"turns":{"min":3,"max":5}}`, operators, ""},
	"POST /workload/measure":   {"workload/measure?lane=main", `{}`, operators, ""},
	"PUT /cluster/mode":        {"cluster/mode", `{"mode":"kv"}`, operators, ""},
	"DELETE /cluster/mode":     {"cluster/mode?lane=main", "", operators, ""},
	"GET /history":             {"history?lane=main", "", anyRole, ""},
	"GET /settings":            {"settings", "", anyRole, ""},
	"PATCH /settings":          {"settings", `{"title":"Booth"}`, admins, ""},
	"GET /conversations":       {"conversations?status=ok&topic=gpu&cursor=c&limit=5&lane=main", "", anyRole, ""},
	"GET /conversations/{id}":  {"conversations/main-7", "", anyRole, ""},
	"GET /starters/{id}":       {"starters/a gpu?lane=twin", "", anyRole, "/api/v1/starters/a%20gpu?lane=twin"},
	"GET /turns.csv":           {"turns.csv?step=9007199254740993", "", anyRole, ""},
	"GET /events":              {"events?limit=5", "", anyRole, ""},
	"GET /decisions":           {"decisions?lane=main&limit=5", "", anyRole, ""},
	"GET /baselines":           {"baselines", "", anyRole, ""},
	"GET /baselines/{name}":    {"baselines/this target", "", anyRole, "/api/v1/baselines/this%20target"},
	"GET /comparison":          {"comparison?lane=twin&baseline=this+target", "", anyRole, ""},
	"DELETE /baselines/{name}": {"baselines/a%2Fb", "", admins, ""},
	"GET /simulations":         {"simulations", "", anyRole, ""},
	"POST /simulations":        {"simulations", `{"workers":6}`, operators, ""},
	"GET /simulations/{id}":    {"simulations/a1", "", anyRole, ""},
	"DELETE /simulations/{id}": {"simulations/a1", "", operators, ""},
	"POST /baselines":          {"baselines", `{"name":"a","title":"","kind":"","deployment":{},"rows":[]}`, admins, ""},

	"GET /sweeps":                  {"sweeps", "", anyRole, ""},
	"POST /sweeps":                 {"sweeps?lane=main", `{"kind":"trial","levels":[120]}`, operators, ""},
	"POST /sweeps/outlook":         {"sweeps/outlook?lane=main", `{"kind":"trial"}`, operators, ""},
	"POST /traffic/preview":        {"traffic/preview?lane=main", `{"shape":{"preset":"chat"}}`, operators, ""},
	"GET /sweeps/{id}":             {"sweeps/a1", "", anyRole, ""},
	"PATCH /sweeps/{id}":           {"sweeps/a1", `{"state":"paused"}`, operators, ""},
	"DELETE /sweeps/{id}":          {"sweeps/a1", "", operators, ""},
	"POST /sweeps/{id}/baseline":   {"sweeps/a1/baseline", `{"name":"ours"}`, operators, ""},
	"GET /sweeps/{id}/seconds.csv": {"sweeps/a1/seconds.csv", "", anyRole, ""},
	"GET /runs":                    {"runs?name=nightly", "", anyRole, ""},
	"PATCH /runs/{id}":             {"runs/a1", `{"accepted":true}`, operators, ""},
	"GET /sweeps/{id}/report.json": {"sweeps/a1/report.json", "", anyRole, ""},
	"GET /report.json":             {"report.json?a=this+target&a_mode=kv&b=of%202026%2B1", "", anyRole, ""},
	"GET /sweeps/{id}/report.tsv":  {"sweeps/a1/report.tsv", "", anyRole, ""},
	"GET /report.tsv":              {"report.tsv?a=this+target&a_mode=kv&b=of%202026%2B1", "", anyRole, ""},
	"GET /sweeps/{id}/report.md":   {"sweeps/a1/report.md", "", anyRole, ""},
	"GET /report.md":               {"report.md?a=this+target&a_mode=kv&b=of%202026%2B1", "", anyRole, ""},
	"GET /sweeps/{id}/report.html": {"sweeps/a1/report.html", "", anyRole, ""},
	"GET /report.html":             {"report.html?a=this+target&a_mode=kv&b=of%202026%2B1", "", anyRole, ""},
}

// Every route is called with every role. A permitted caller reaches the same call of the load generator, and no other
// reaches it at all.
func TestRoles(t *testing.T) {
	s := newSidecar(t)
	users := map[string]*backend.User{
		"nil": nil, "None": user("None"), "Viewer": user("Viewer"), "Editor": user("Editor"), "Admin": user("Admin"),
		"": user(""), "admin": user("admin"), "Root": user("Root"), // no roles of Grafana's
	}
	for _, operator := range []string{"", "Editor", "Admin"} {
		a := start(t, configured(s.URL, `,"operatorRole":"`+operator+`"`))
		for pattern := range routes {
			call, ok := calls[pattern]
			require.True(t, ok, "%s has no row", pattern)
			method, _, _ := strings.Cut(pattern, " ")
			allowed := strings.Fields(call.roles)
			if call.roles == operators && operator == "Admin" {
				allowed = []string{"Admin"}
			}
			for role, u := range users {
				res := resource(t, a, u, method, call.url, call.body)
				requests := s.take()
				if call.roles != anyRole && !slices.Contains(allowed, role) {
					require.Equal(t, http.StatusForbidden, problem(t, res).Status, "%s as %q", pattern, role)
					require.Empty(t, requests, "%s as %q", pattern, role)
					continue
				}
				require.Less(t, res.Status, 300, "%s as %q: %s", pattern, role, res.Body)
				require.Len(t, requests, 1)
				require.Equal(t, method, requests[0].method)
				require.Equal(t, cmp.Or(call.upstream, api.Prefix+"/"+call.url), requests[0].uri)
				if call.body != "" {
					require.JSONEq(t, call.body, requests[0].body)
				}
			}
		}
	}
	require.Len(t, calls, len(routes), "a row without a route")
}

// The zero access is that of an administrator.
func TestZeroAccess(t *testing.T) {
	a := startAt(t, "http://127.0.0.1:1")
	var none access
	require.False(t, a.may(user("Editor"), none))
	require.False(t, a.may(nil, none))
	require.True(t, a.may(user("Admin"), none))
}

func TestMe(t *testing.T) {
	const url = `"sidecarUrl":"http://localhost:1"`
	for _, tt := range []struct {
		settings, role string
		want           caller
	}{
		{url, "", caller{Configured: true}},
		{url, "Viewer", caller{"user", "Viewer", false, false, true}},
		{url, "Editor", caller{"user", "Editor", true, false, true}},
		{url, "Admin", caller{"user", "Admin", true, true, true}},
		{url + `,"operatorRole":"Admin"`, "Editor", caller{"user", "Editor", false, false, true}},
		// Nothing can be operated, but an administrator can configure the app.
		{"", "Editor", caller{"user", "Editor", false, false, false}},
		{"", "Admin", caller{"user", "Admin", false, true, false}},
	} {
		var u *backend.User
		if tt.role != "" {
			u = user(tt.role)
		}
		a := start(t, backend.AppInstanceSettings{JSONData: []byte("{" + tt.settings + "}")})
		res := resource(t, a, u, "GET", "me", "")
		var got caller
		require.NoError(t, json.Unmarshal(res.Body, &got))
		require.Equal(t, tt.want, got, tt.settings)
	}
}

// The sidecar receives token and login from the app, and nothing from the caller's headers.
func TestHeaders(t *testing.T) {
	s := newSidecar(t)
	a := startAt(t, s.URL)
	spoofed := []string{
		api.UserHeader, "root", "Cookie", "grafana_session=1", "Authorization", "Bearer of-the-caller",
		"Origin", "http://elsewhere", "X-Forwarded-For", "1.2.3.4", "X-Other", "1",
	}
	for want, u := range map[string]*backend.User{
		"user": user("Editor"), "anonymous": {Role: "Editor"},
		"gräfin@example.com": {Login: "gräfin@example.com", Role: "Editor"},
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

// Only the routes can be reached, whatever the path.
func TestPaths(t *testing.T) {
	s := newSidecar(t)
	a := startAt(t, s.URL)
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
				require.Equal(t, 200, res.Status) // the same as without the slash
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
	a := startAt(t, s.URL+"/behind/a/proxy/")
	for path, want := range map[string]string{
		"baselines/of 2026+1":   "/behind/a/proxy/api/v1/baselines/of%202026+1",
		"baselines/a%2Fb":       "/behind/a/proxy/api/v1/baselines/a%2Fb",
		"baselines/a%3Fb%23":    "/behind/a/proxy/api/v1/baselines/a%3Fb%23",
		"starters/a%2Fb?lane=x": "/behind/a/proxy/api/v1/starters/a%2Fb?lane=x",
		"baselines/..x":         "/behind/a/proxy/api/v1/baselines/..x",
		"conversations/x;y=@z":  "/behind/a/proxy/api/v1/conversations/x;y=@z",
	} {
		get(t, a, path)
		require.Equal(t, want, s.take()[0].uri)
	}
}

// The load generator validates queries and bodies, so that the app forwards them unchanged. The app buffers no more
// than the largest body.
func TestBodies(t *testing.T) {
	s := newSidecar(t)
	a := startAt(t, s.URL)
	long := strings.Repeat("x", api.MaxBaseline+1)
	for _, contentType := range []string{"application/json", "text/csv", ""} {
		p := problem(t, resource(t, a, user("Admin"), "POST", "baselines", long, "Content-Type", contentType))
		require.Equal(t, 413, p.Status)
		require.Contains(t, p.Detail, "larger than 1048576 bytes")
		require.Empty(t, s.take())
	}
	for method, path := range map[string]string{
		"PATCH": "workload", "PUT": "cluster/mode", "POST": "sweeps", "DELETE": "baselines/x", "GET": "status",
	} {
		p := problem(t, resource(t, a, user("Admin"), method, path, long[:api.MaxBody+1], "Content-Type", "application/json"))
		require.Equal(t, 413, p.Status, path)
		require.Contains(t, p.Detail, "larger than 65536 bytes")
		require.Empty(t, s.take(), "the load generator must not be called: %s", path)
	}
	resource(t, a, user("Admin"), "PATCH", "workload", long[:api.MaxBody], "Content-Type", "application/json")
	require.Len(t, s.take()[0].body, api.MaxBody)
	resource(t, a, user("Admin"), "POST", "baselines?lane=%2&lane=b&token", long[1:], "Content-Type", "text/plain")
	got := s.take()[0]
	require.Equal(t, "/api/v1/baselines?lane=%2&lane=b&token", got.uri)
	require.Equal(t, "text/plain", got.header.Get("Content-Type"))
	require.Len(t, got.body, api.MaxBaseline)
	require.Equal(t, []string{"1048576"}, got.header.Values("Content-Length"))
	require.Equal(t, "lane,turn\nmain,1\n", string(get(t, a, "turns.csv").Body))
}

// Reports are forwarded with their type, a page under a policy that forbids scripts.
func TestReports(t *testing.T) {
	a := startAt(t, newSidecar(t).URL)
	for _, f := range api.ReportFormats {
		for _, path := range []string{"sweeps/a1/report.", "report."} {
			res := get(t, a, path+string(f))
			require.Equal(t, 200, res.Status, string(res.Body))
			require.Equal(t, "a report", string(res.Body))
			require.Equal(t, []string{f.MediaType()}, res.Headers["Content-Type"])
			require.Equal(t, []string{"inline; filename=report." + string(f)}, res.Headers["Content-Disposition"])
			require.Equal(t, []string{"nosniff"}, res.Headers["X-Content-Type-Options"])
			require.Contains(t, res.Headers["Content-Security-Policy"][0], "default-src 'none'")
		}
	}
	require.Equal(t, 404, problem(t, get(t, a, "sweeps/a1/report.pdf")).Status)
}

// A refusal by the load generator is forwarded where it concerns the call. An error between it and the app is a 502
// with what to do.
func TestRefusals(t *testing.T) {
	for theirs, want := range map[int]struct {
		status int
		text   string
	}{
		400: {400, "because"}, 404: {404, "because"}, 409: {409, "because"}, 413: {413, "because"}, 415: {415, "because"},
		500: {500, "because"}, 503: {503, "because"}, 418: {502, "because"},
		401: {502, "enter the token"}, 403: {502, "enter the token"}, 429: {502, "enter the token"},
		421: {502, "rejects the host name in its URL: because"},
	} {
		a := startAt(t, answering(t, refusal(theirs)).URL)
		p := problem(t, resource(t, a, user("Editor"), "POST", "workload/stop", `{}`))
		require.Equal(t, want.status, p.Status, theirs)
		require.Contains(t, p.Detail, want.text)
	}
	field := api.Problem{
		Type: "about:blank", Title: "Unprocessable Entity", Status: 422, Detail: "concurrency: 0 is not allowed: 1 to 180",
		Field: "concurrency", Value: "0", Allowed: "1 to 180",
	}
	a := startAt(t, answering(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, field) }).URL)
	require.Equal(t, field, problem(t, resource(t, a, user("Editor"), "POST", "workload/start", `{"concurrency":0}`)))
}

// Invalid and late answers report what to do. No redirect is followed, since it would receive the token, and no answer
// beyond the limit is buffered.
func TestTrouble(t *testing.T) {
	wordless := func(w http.ResponseWriter, _ *http.Request) { refuse(w, api.Problem{Status: 409}) }
	otherJSON := func(w http.ResponseWriter, _ *http.Request) { give(w, []int{1}) }
	aborted := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for _, tt := range []struct {
		name, call string
		answer     http.HandlerFunc
		status     int
		text       string
	}{
		{"a page", "GET baselines", page, 502, "not a load generator's response"},
		{"a page for a report", "GET sweeps/a1/report.md", page, 502, ""},
		{"a page for a report on two results", "GET report.json", page, 502, ""},
		{"a page for a file", "GET sweeps/a1/seconds.csv", page, 502, ""},
		{"a refusal without words", "POST workload/stop", wordless, 409, "Conflict (409)"},
		{"an answer that drips", "GET baselines", dripping, 504, "timed out"},
		{"a report without an end", "GET report.json?a=x&b=y", endless, 502, "larger than 65536 bytes"},
		{"other JSON", "GET baselines", otherJSON, 502, "not what this version"},
		{"a broken connection", "POST workload/stop", aborted, 502, "is unreachable"},
		{"silence", "GET baselines", silence, 504, "timed out"},
		{"a redirected read", "GET status", redirect, 502, "redirects"},
		{"a redirected write", "POST workload/stop", redirect, 502, "redirects"},
		{"a redirected file", "GET turns.csv", redirect, 502, "redirects"},
		{"no end", "GET baselines", endless, 502, "larger than 65536 bytes; request a smaller part"},
	} {
		s := answering(t, tt.answer)
		a := start(t, configured(s.URL, `,"timeout":1`))
		method, path, _ := strings.Cut(tt.call, " ")
		body := map[string]string{"POST": "{}"}[method]
		p := problem(t, resource(t, a, user("Admin"), method, path, body))
		require.Equal(t, tt.status, p.Status, tt.name)
		require.Contains(t, p.Detail, tt.text, tt.name)
		require.Len(t, s.take(), 1, tt.name)
	}
}

func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
}

func silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func redirect(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
}

// dripping never ends, and never pauses for long.
func dripping(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		_, _ = io.WriteString(w, " ")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}

func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for block := make([]byte, 4<<10); ; {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

// A viewer receives that something is wrong, but no addresses. An operator receives what to do.
func TestAddressesAreNotForViewers(t *testing.T) {
	for reason, change := range map[reason]func(*sidecar){
		reasonHost:        func(s *sidecar) { s.answer = refusal(421) },
		reasonToken:       func(s *sidecar) { s.answer = refusal(401) },
		reasonUnreachable: func(s *sidecar) { s.Close() },
	} {
		s := newSidecar(t)
		change(s)
		a := startAt(t, s.URL)
		for _, u := range []*backend.User{nil, user("Viewer")} {
			p := problem(t, resource(t, a, u, "GET", "status", ""))
			health, _ := check(t, a, u)
			require.Contains(t, p.Detail, outlines[reason])
			require.NotContains(t, p.Detail+p.Value+p.Allowed+health.Message+string(health.JSONDetails), "127.0.0")
		}
		p := problem(t, resource(t, a, user("Editor"), "POST", "workload/start", "{}"))
		require.Equal(t, 502, p.Status)
		require.Contains(t, p.Detail, s.URL)
		require.NotContains(t, p.Detail, "an administrator")
	}
}

// Only a limited number of answers is buffered at once: the others wait until one is sent.
func TestFewAnswersAreHeld(t *testing.T) {
	s := newSidecar(t)
	a := startAt(t, s.URL)
	const callers = 6
	var group sync.WaitGroup
	var held, most atomic.Int32
	free := make(chan struct{})
	for range callers {
		group.Go(func() {
			assert.NoError(t, call(t.Context(), a, &backend.CallResourceRequest{Method: "GET", URL: "status"},
				func(r *backend.CallResourceResponse) {
					most.Store(max(held.Add(1), most.Load()))
					<-free
					held.Add(-1)
					assert.Equal(t, 200, r.Status)
				}))
		})
	}
	asked := 0
	wait.Eventually(t, "all ask, some are answered", func() (any, bool) {
		asked += len(s.take())
		return []int{asked, int(held.Load())}, asked == callers && int(held.Load()) == impatient.answers
	})
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

// Raw data of any length is forwarded piece by piece: the first pieces arrive while the load generator still writes.
func TestExportIsStreamed(t *testing.T) {
	first := make(chan struct{})
	s := answering(t, csvOf(func(w http.ResponseWriter, r *http.Request) {
		block := make([]byte, piece)
		for i := range 40 { // much more than another answer may have
			_, _ = w.Write(block)
			if i == 20 {
				select {
				case <-first:
				case <-r.Context().Done():
				}
			}
		}
	}))
	got, pieces := 0, 0
	export := &backend.CallResourceRequest{Method: "GET", URL: "turns.csv"}
	require.NoError(t, call(t.Context(), startAt(t, s.URL), export, func(r *backend.CallResourceResponse) {
		if pieces++; pieces == 1 {
			require.Equal(t, 200, r.Status)
			close(first)
		}
		require.LessOrEqual(t, len(r.Body), piece)
		got += len(r.Body)
	}))
	require.Equal(t, 40*piece, got)
	require.GreaterOrEqual(t, pieces, 40)
}

// Grafana forwards a truncated export as complete; its last line reports it.
func TestExportThatBreaksOffSaysSo(t *testing.T) {
	for name, end := range map[string]func(r *http.Request){
		"a broken connection": func(*http.Request) { panic(http.ErrAbortHandler) },
		"silence":             func(r *http.Request) { <-r.Context().Done() },
	} {
		s := answering(t, csvOf(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, exported+"main,1\r\nmai")
			w.(http.Flusher).Flush()
			end(r)
		}))
		stalls := impatient
		stalls.stall = 200 * time.Millisecond
		res := get(t, startWith(t, configured(s.URL, ""), stalls), "turns.csv")
		require.Equal(t, 200, res.Status, name)
		require.Equal(t, exported+"main,1\r\nmai\r\n"+incomplete, string(res.Body), name)
		_, err := csv.NewReader(bytes.NewReader(res.Body)).ReadAll()
		require.ErrorIs(t, err, csv.ErrFieldCount, "programs stumble over it, too")
	}
}

// A load generator that accepts a call and sends nothing holds no download and no events for longer than the stall
// time, whatever the caller does.
func TestDownloadThatNeverBeginsIsGivenUp(t *testing.T) {
	stalls := impatient
	stalls.stall = 100 * time.Millisecond
	a := startWith(t, configured(answering(t, silence).URL, ""), stalls)
	for _, path := range []string{"turns.csv", "sweeps/a1/seconds.csv", "simulations/a1", "turns.csv"} {
		p := problem(t, resource(t, a, user("Editor"), "GET", path, "", "Accept", api.EventStream))
		require.Equal(t, http.StatusGatewayTimeout, p.Status, path)
		require.Contains(t, p.Detail, "timed out", path)
	}
}

// An export beyond the limit is refused, and does not wait.
func TestFewExportsRun(t *testing.T) {
	s := newSidecar(t)
	a := startAt(t, s.URL)
	s.answer = csvOf(func(w http.ResponseWriter, _ *http.Request) {
		p := problem(t, get(t, a, "turns.csv"))
		assert.Equal(t, 429, p.Status)
		assert.Equal(t, "the maximum of 1 concurrent raw-data downloads is reached; try again when one has finished",
			p.Detail)
		_, _ = io.WriteString(w, exported)
	})
	for range 2 { // the first one's end makes room for the second
		require.Equal(t, exported, string(get(t, a, "turns.csv").Body))
	}
}

// Every call of the load generator's API has a route, except those that are for others.
func TestAllCalls(t *testing.T) {
	want := []string{
		"GET /stream",                                      // goes through the live channels
		"GET /session", "POST /session", "DELETE /session", // for the load generator's own page
		"GET /openapi.yaml", // for programs
	}
	for pattern := range routes {
		want = append(want, pattern)
	}
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	require.NoError(t, err)
	var documented []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			if path, ok := strings.CutPrefix(path, api.Prefix); ok {
				documented = append(documented, method+" "+path)
			}
		}
	}
	require.ElementsMatch(t, want, documented)
}
