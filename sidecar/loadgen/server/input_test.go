package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

const v1 = api.Prefix

// Invalid input is refused before it reaches the backend. The problem names the field and its allowed values. The
// document does not allow the input either.
func TestBadInput(t *testing.T) {
	for _, tt := range []struct {
		call, body, field, allowed string
		silent                     bool // whether the document cannot express it
	}{
		// unreadable input
		{"POST /workload/start", `{"concurrency":`, "", "", false},
		{"POST /workload/start", `[]`, "", "", false},
		{"POST /workload/start", `null`, "", "", false},
		{"POST /workload/start", `{"concurrency":1} {"concurrency":2}`, "", "", true},
		{"POST /workload/stop", `{"drain":true}}`, "", "", true},
		// fields
		{"PATCH /workload", `{"turns":{"min":1,"max":2,"mean":1}}`, "mean", "only concurrency, ramp, ramp.from, ramp.seconds, turns, turns.min, turns.max, max_tokens, openings, start_rate, target_rps, shape, shape.preset, " +
			"shape.groups, shape.prefix_tokens, shape.suffix_tokens, shape.answer_tokens, shape.zipf, shape.turns, " +
			"shape.context_tokens, shape.mix, arrivals, burstiness, max_inflight", false},
		{"POST /workload/start", `{"concurrency":"5"}`, "concurrency", "a whole number, or a rate such as 12/s", false},
		{"POST /workload/start", `{"concurrency":1.5}`, "concurrency", "a whole number, or a rate such as 12/s", false},
		{"POST /workload/start", `{"concurrency":1e30}`, "concurrency", "1 to 100000", false},
		{"POST /workload/stop", `{"drain":1}`, "drain", "true or false", false},
		{"PATCH /settings", `{"title":1}`, "title", "a string", false},
		{"PATCH /settings", `{"slo":1}`, "slo", "an object", false},
		{"PATCH /settings", `{"slo":{"ttft":"1","tpot":1}}`, "slo.ttft", "a number of seconds, such as 0.6", false},
		{"POST /sweeps", `{"kind":"levels","levels":[4],"warm_up":"10s"}`, "warm_up", "a number of seconds, such as 0.6", false},
		// ranges
		{"POST /workload/start", `{"concurrency":100001}`, "concurrency", "1 to 100000", false},
		{"PATCH /workload", `{"turns":{"min":5,"max":3}}`, "turns.min", "1 to 3", true},
		{"PUT /cluster/mode", `{}`, "mode", "one of kv, round_robin, least_loaded, unknown", true},
		{"PATCH /settings", `{"slider":{"min":9,"max":3,"increment":1}}`, "slider.min", "less than 3 (slider.max)", true},
		{"PATCH /settings", `{"title":"` + strings.Repeat("ü", 201) + `"}`, "title", "at most 200 characters", false},
		// sweeps
		{"POST /sweeps", `{"kind":"trial","level":60}`, "level", "only kind, title, modes, levels, primary, question, smallest, repeats, order, warm_up, span, snapshots, by, resolution, max_time, together, caches, slo, slo.ttft, slo.tpot, seed, like, like.id, like.modes, like.levels, like.span, like.together, like.workload, like.variances, like.block_seconds", false},
		{"POST /sweeps", `{"kind":"sweep","levels":60}`, "levels", "a list", false},
		{"POST /sweeps", `{"kind":"trial","seed":5}`, "seed", "a whole number in quotes", false},
		{"POST /sweeps", `{"kind":"trial","seed":"five"}`, "seed", "a whole number in quotes", false},
		{"PATCH /sweeps/a1", `{"state":"done"}`, "state", "one of paused, running, cancelled", false},
		{"POST /sweeps/a1/baseline", `{"name":"x","title":"` + strings.Repeat("x", 201) + `"}`, "title", "at most 200 characters", false},
		{"GET /report.md", "", "a", "the name of a baseline, at most 100 characters", false},
		{"GET /report.html?a=ours", "", "b", "the name of a baseline, at most 100 characters", false},
		{"GET /report.tsv?a=ours&b=" + strings.Repeat("x", 101), "", "b", "at most 100 characters", false},
		{"GET /report.json?a=x&b=y&b_mode=random", "", "b_mode", "one of kv, round_robin, least_loaded, unknown", false},
		{"GET /report.md?a=x&b=y&a_speculation=ngram", "", "a_speculation", "one of off, draft, eagle3, not_recorded", false},
		// queries
		{"GET /conversations?limit=0", "", "limit", "a whole number, 1 to 200", false},
		{"GET /conversations?limit=201", "", "limit", "a whole number, 1 to 200", false},
		{"GET /events?limit=1001", "", "limit", "a whole number, 1 to 1000", false},
		{"GET /baselines?limit=201", "", "limit", "a whole number, 1 to 200", false},
		{"GET /events?limit=ten", "", "limit", "a whole number, 1 to 1000", false},
		{"GET /turns.csv?step=-1", "", "step", "a whole number, 0 or more", false},
		{"GET /conversations?status=done", "", "status", "one of active, completed, retired, cancelled, error", false},
		{"GET /cluster?lane=" + strings.Repeat("x", 65), "", "lane", "at most 64 characters", false},
		{"GET /cluster?lanes=main", "", "query", "only lane", true},
		{"GET /cluster?lane=main&lane=twin", "", "lane", "one", true},
		{"GET /cluster?lane=%zz", "", "", "", true},
	} {
		t.Run(fmt.Sprintf("%.60s %.60s", tt.call, tt.body), func(t *testing.T) {
			b := &recorder{}
			c := newContract(t)
			c.bad = !tt.silent
			method, path, _ := strings.Cut(tt.call, " ")
			p := readProblem(t, c.send(start(t, b, nil), request{method: method, path: path, body: tt.body}))
			status := http.StatusUnprocessableEntity
			if tt.field == "" {
				status = http.StatusBadRequest
			}
			require.Equal(t, []any{status, tt.field, tt.allowed}, []any{p.Status, p.Field, p.Allowed}, p.Detail)
			require.Empty(t, b.calls)
		})
	}
}

// A page of baselines has at most the requested number, and no more than 10,000 rows, but always one baseline. Its
// cursor leads to the next page.
func TestPagesOfBaselines(t *testing.T) {
	all := []api.Baseline{}
	for i, rows := range []int{1, 9_998, 1, 1, 20_000, 3} {
		all = append(all, api.Baseline{Name: fmt.Sprint(i), Rows: make([]api.BaselineRow, rows)})
	}
	for n, want := range map[int][]int{100: {3, 1, 1, 1}, 2: {2, 2, 1, 1}, 1: {1, 1, 1, 1, 1, 1}} {
		var sizes []int
		var names string
		for cursor := ""; cursor != "" || sizes == nil; {
			page, err := pageOf(all, cursor, n)
			require.NoError(t, err)
			sizes = append(sizes, len(page.Baselines))
			for _, b := range page.Baselines {
				names += b.Name
			}
			cursor = page.NextCursor
		}
		require.Equal(t, want, sizes)
		require.Equal(t, "012345", names)
	}
	_, err := pageOf(all, "gone", 1)
	var refused *api.FieldError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "cursor", refused.Field)
	page, err := pageOf(all, "5", 1)
	require.NoError(t, err)
	require.Equal(t, api.BaselineList{Baselines: []api.Baseline{}}, page)
}

// The bounds themselves are allowed, by the document too.
func TestInputAtItsBounds(t *testing.T) {
	for _, q := range []request{
		{method: "POST", path: "/workload/start", body: `{}`},
		{method: "POST", path: "/workload/start", body: `{"concurrency":1}`},
		{method: "POST", path: "/workload/start", body: ` {"concurrency":100000} ` + "\n"},
		{method: "PATCH", path: "/workload", body: `{"turns":{"min":1,"max":1},"max_tokens":1,"start_rate":0.001,"target_rps":0}`},
		{method: "PATCH", path: "/workload", body: `{"turns":{"min":1000,"max":1000},"max_tokens":131072,"target_rps":10000}`},
		{method: "PUT", path: "/cluster/mode", body: `{"mode":"least_loaded"}`},
		{method: "PATCH", path: "/settings", body: `{"slo":{"ttft":3600,"tpot":3600},"slider":{"min":1,"max":100000,"increment":100000}}`},
		{method: "PATCH", path: "/settings", body: `{"title":"` + strings.Repeat("ü", 200) + `","subtitle":"","default_baseline":""}`},
		{path: "/conversations?limit=200&status=error"},
		{path: "/turns.csv?step=9223372036854775807"},
	} {
		b := &recorder{}
		res := newContract(t).send(start(t, b, nil), q)
		require.Less(t, res.StatusCode, 300, q.path+q.body)
		require.NotEmpty(t, b.calls)
	}
}

// Every route refuses a parameter that it does not have.
func TestEveryRouteRefusesUnknownParameters(t *testing.T) {
	b := &recorder{}
	s := newServer(t, b, nil)
	for _, q := range everyRoute(s) {
		if q.access == probe || q.access == scrape || q.pattern == "POST "+v1+"/session" {
			continue // others call them, or the token in the body decides
		}
		q.path += "?lanes=main"
		p := refusal(t, s, q.request)
		require.Equal(t, http.StatusUnprocessableEntity, p.Status, q.pattern)
		require.Equal(t, "query", p.Field, q.pattern)
		require.Regexp(t, "^(none|only .+)$", p.Allowed, q.pattern)
	}
	require.Empty(t, b.calls)
}

// Every body is checked by the same rules. A write without the right content type could be sent by a form on another
// site.
func TestEveryBodyIsChecked(t *testing.T) {
	b := &recorder{}
	s := newServer(t, b, func(o *Options) { o.ParseCSV, o.ParseJSON = baseline.ReadCSV, baseline.ReadJSON })
	for _, q := range everyRoute(s) {
		if q.method == http.MethodGet || q.method == http.MethodDelete {
			continue
		}
		most, malformed := api.MaxBody, http.StatusBadRequest
		if q.path == v1+"/baselines" { // its reader reports the error
			most, malformed = api.MaxBaseline, http.StatusUnprocessableEntity
		}
		refused := func(status int, body, contentType string) api.Problem {
			q.body, q.header = body, map[string]string{"Content-Type": contentType}
			p := refusal(t, s, q.request)
			require.Equal(t, status, p.Status, "%s %.20q %s: %s", q.pattern, body, contentType, p.Detail)
			return p
		}
		for _, contentType := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"} {
			refused(http.StatusUnsupportedMediaType, stop, contentType)
		}
		for _, body := range []string{"", " ", "[]", "null", "{", `"text"`} {
			refused(malformed, body, "application/json")
		}
		p := refused(http.StatusUnprocessableEntity, `{"unheard_of":1}`, "application/json")
		require.True(t, p.Field == "unheard_of" || q.path == v1+"/baselines", "%s: %s", q.pattern, p.Field)
		refused(http.StatusRequestEntityTooLarge, "{}"+strings.Repeat(" ", most-1), "application/json")
	}
	require.Empty(t, b.calls)
	charset := map[string]string{"Content-Type": "application/json; charset=utf-8"}
	answer(t, s, http.StatusOK, post("/workload/stop", stop, charset))
}

// Bodies are bounded, whether or not their length is announced.
func TestBodySize(t *testing.T) {
	s := newServer(t, &recorder{}, nil)
	for _, tt := range []struct {
		path, contentType, body string
		most                    int
	}{
		{"/workload/stop", "application/json", stop, api.MaxBody},
		{"/baselines", "application/json", `{"name":"x"}`, api.MaxBaseline},
		{"/baselines?name=x", "text/csv", "x", api.MaxBaseline},
	} {
		for size, fits := range map[int]bool{tt.most: true, tt.most + 1: false} {
			for _, announced := range []bool{true, false} {
				r := httptest.NewRequest("POST", "http://localhost"+v1+tt.path,
					strings.NewReader(tt.body+strings.Repeat(" ", size-len(tt.body))))
				r.Header.Set("Content-Type", tt.contentType)
				if !announced {
					r.ContentLength = -1
				}
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				require.Equal(t, !fits, w.Code == http.StatusRequestEntityTooLarge, "%s %d: %s", tt.path, size, w.Body)
				require.Equal(t, fits, w.Code < 300, "%s %d: %s", tt.path, size, w.Body)
			}
		}
	}
}

// The answer to a creating call has the resource's location.
func TestLocations(t *testing.T) {
	s := newServer(t, &recorder{}, nil)
	for path, tt := range map[string]struct{ contentType, body, location string }{
		"/baselines?name=our+run": {"text/csv", "x", "/baselines/our%20run"},
		"/sweeps":                 {"application/json", `{"kind":"capacity"}`, "/sweeps/text"},
		"/sweeps/a1/baseline":     {"application/json", `{"name":"ours"}`, "/baselines/of%202026+1"},
		"/simulations":            {"application/json", `{}`, "/simulations/text"},
	} {
		q := post(path, tt.body, map[string]string{"Content-Type": tt.contentType})
		res, _ := answer(t, s, http.StatusCreated, q)
		require.Equal(t, v1+tt.location, res.Header.Get("Location"))
		answer(t, s, http.StatusOK, request{path: v1 + tt.location})
	}
}

// The query controls an import: dry_run stores nothing, and merge adds rows instead of replacing the baseline. The
// caller's mode of another program's results reaches the reader. A table has its own modes.
func TestImport(t *testing.T) {
	const kv = `"mode":"kv","speculation":"draft"`
	for _, tt := range []struct{ contentType, query, call, contains, field string }{
		{"text/csv", "title=Our+run&dry_run=true", "check baseline", `"title":"Our run"`, ""},
		{"text/csv", "title=Our+run", "save baseline", `"title":"Our run"`, ""},
		{"application/json", "mode=kv&speculation=draft&merge=true", "merge baseline", kv, ""},
		{"application/json", "mode=kv&speculation=draft&merge=true&dry_run=true", "check merged baseline", kv, ""},
		{"application/json", "mode=kv&speculation=draft&merge=false", "save baseline", kv, ""},
		{"application/json", "dry_run=yes", "", "", "dry_run"},
		{"application/json", "merge=1", "", "", "merge"},
		{"text/csv", "mode=kv", "", "", "mode, speculation"},
		{"text/csv", "speculation=off", "", "", "mode, speculation"},
	} {
		b := &recorder{}
		s := newServer(t, b, nil)
		q := post("/baselines?name=ours&"+tt.query, "{}", map[string]string{"Content-Type": tt.contentType})
		if tt.field != "" {
			require.Equal(t, tt.field, refusal(t, s, q).Field, tt.query)
			require.Empty(t, b.calls)
			continue
		}
		res, text := do(t, s, q)
		require.Less(t, res.StatusCode, 300, text)
		require.Contains(t, text, tt.contains)
		require.Len(t, b.calls, 1)
		require.Equal(t, tt.call, b.calls[0].name, tt.query)
	}
}

// A file that fails at its start is a problem and no file. One that fails later is truncated, so that a part is not
// taken for the whole. An empty file is an answer.
func TestDownloads(t *testing.T) {
	for path, file := range map[string]string{
		"/turns.csv":             "turns.csv",
		"/sweeps/a1/seconds.csv": "sweep-a1-seconds.csv",
	} {
		b := &recorder{err: fmt.Errorf("%w: no such step", api.ErrNotFound)}
		s := newServer(t, b, nil)
		require.Equal(t, http.StatusNotFound, refusal(t, s, request{path: v1 + path}).Status)

		b.csv = "id,ttft\n"
		require.PanicsWithError(t, http.ErrAbortHandler.Error(), func() { do(t, s, request{path: v1 + path}) })

		b.csv, b.err = "", nil
		res, text := answer(t, s, http.StatusOK, request{path: v1 + path})
		require.Equal(t, "text/csv; charset=utf-8", res.Header.Get("Content-Type"))
		require.Equal(t, "attachment; filename="+file, res.Header.Get("Content-Disposition"))
		require.Empty(t, text)
	}
}

// A report as a page is shown and runs no script; the others are files. One that fails is a problem and no file,
// whatever was written before.
func TestReports(t *testing.T) {
	for _, f := range api.ReportFormats {
		for path, file := range map[string]string{
			"/sweeps/a1/report." + string(f):    "sweep-a1.",
			"/report." + string(f) + "?a=x&b=y": "report.",
		} {
			b := &recorder{}
			s := newServer(t, b, nil)
			res, text := answer(t, s, http.StatusOK, request{path: v1 + path})
			require.Equal(t, reports[f], text)
			require.Equal(t, f.MediaType(), res.Header.Get("Content-Type"))
			policy, how := res.Header.Get("Content-Security-Policy"), "attachment"
			if f == api.ReportHTML {
				how = "inline"
				require.Contains(t, policy, "default-src 'none'")
				require.Contains(t, policy, "sandbox")
				require.NotContains(t, policy, "script-src")
			}
			require.Equal(t, how+"; filename="+file+string(f), res.Header.Get("Content-Disposition"))

			b.err = fmt.Errorf("%w: no sweep a1", api.ErrNotFound)
			res, _ = do(t, s, request{path: v1 + path})
			require.Equal(t, http.StatusNotFound, readProblem(t, res).Status)
			require.Empty(t, res.Header.Get("Content-Disposition"))
		}
	}
}

// An unknown path and a wrong method on a known path are answered with different problems.
func TestNoSuchCall(t *testing.T) {
	s := newServer(t, &recorder{}, nil)
	for _, path := range []string{
		v1 + "/sweep", "/api/v2/status", v1 + "/sweeps/a1/report.pdf",
		v1 + "/sweeps/a1/report", v1 + "/report.pdf", v1 + "/sweeps/a1/rows",
	} {
		require.Equal(t, 404, refusal(t, s, request{path: path}).Status, path)
	}
	require.Equal(t, 404, refusal(t, s, request{method: "POST", path: "/"}).Status)
	p := refusal(t, s, request{method: "DELETE", path: v1 + "/settings"})
	require.Equal(t, 405, p.Status)
	require.Contains(t, p.Detail, "GET, HEAD, PATCH")
	require.Equal(t, 405, refusal(t, s, request{method: "OPTIONS", path: v1 + "/status"}).Status)
}

// The page's files are served unchanged, without a token. Without a page, / describes where things are.
func TestPage(t *testing.T) {
	s := newServer(t, &recorder{}, nil)
	_, text := do(t, s, request{path: "/"})
	for _, want := range []string{v1, "/metrics", "go tool mage build"} {
		require.Contains(t, text, want)
	}
	answer(t, s, http.StatusNotFound, request{path: "/index.html"})

	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "page of "+r.URL.Path)
	})
	s = newServer(t, &recorder{}, func(o *Options) { o.Page, o.Token = page, token })
	for _, path := range []string{"/", "/guide", "/assets/page.js"} {
		_, text := do(t, s, request{path: path})
		require.Equal(t, "page of "+path, text)
	}
	require.Equal(t, http.StatusNotFound, refusal(t, s, request{path: v1 + "/nothing"}).Status)
}

// A call that ends because its caller has disconnected is no error of the server, and not an empty 200 either: a caller
// that has only closed its sending side reads the answer.
func TestCallerGone(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, &recorder{err: errors.New("interrupted")},
		func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://localhost"+v1+"/events", nil))
	require.Equal(t, http.StatusServiceUnavailable, readProblem(t, w.Result()).Status)
	require.Empty(t, log.String())
}
