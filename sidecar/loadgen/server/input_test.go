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
		name, method, path, body string
		status                   int
		field, allowed           string
		silent                   bool // whether the document cannot express it
	}{
		// unreadable input
		{name: "half a body", method: "POST", path: "/workload/start", body: `{"concurrency":`, status: 400},
		{name: "a list", method: "POST", path: "/workload/start", body: `[]`, status: 400},
		{name: "null", method: "POST", path: "/workload/start", body: `null`, status: 400},
		{name: "trailing data", method: "POST", path: "/workload/start", body: `{"concurrency":1} {"concurrency":2}`, status: 400, silent: true},
		{name: "trailing bracket", method: "POST", path: "/workload/stop", body: `{"drain":true}}`, status: 400, silent: true},
		// fields
		{name: "unknown deeper field", method: "PATCH", path: "/workload", body: `{"turns":{"min":1,"max":2,"mean":1}}`, status: 422, field: "mean", allowed: "only concurrency, turns, turns.min, turns.max, max_tokens, openings, start_rate, target_rps"},
		{name: "text for a number", method: "POST", path: "/workload/start", body: `{"concurrency":"5"}`, status: 422, field: "concurrency", allowed: "a whole number"},
		{name: "a fraction", method: "POST", path: "/workload/start", body: `{"concurrency":1.5}`, status: 422, field: "concurrency", allowed: "a whole number"},
		{name: "beyond 64 bits", method: "POST", path: "/workload/start", body: `{"concurrency":1e30}`, status: 422, field: "concurrency", allowed: "a whole number"},
		{name: "a number for a choice", method: "POST", path: "/workload/stop", body: `{"drain":1}`, status: 422, field: "drain", allowed: "true or false"},
		{name: "a number for text", method: "PATCH", path: "/settings", body: `{"title":1}`, status: 422, field: "title", allowed: "a string"},
		{name: "a number for an object", method: "PATCH", path: "/settings", body: `{"slo":1}`, status: 422, field: "slo", allowed: "an object"},
		{name: "text deeper", method: "PATCH", path: "/settings", body: `{"slo":{"ttft":"1","tpot":1}}`, status: 422, field: "slo.ttft", allowed: "a number of seconds, such as 0.6"},
		{name: "a time with a unit", method: "POST", path: "/sweeps", body: `{"kind":"levels","levels":[4],"warm_up_seconds":"10s"}`, status: 422, field: "warm_up_seconds", allowed: "a number of seconds, such as 0.6"},
		// ranges
		{name: "too many", method: "POST", path: "/workload/start", body: `{"concurrency":100001}`, status: 422, field: "concurrency", allowed: "1 to 100000"},
		{name: "turns upside down", method: "PATCH", path: "/workload", body: `{"turns":{"min":5,"max":3}}`, status: 422, field: "turns.min", allowed: "1 to 3", silent: true},
		{name: "no mode", method: "PUT", path: "/cluster/mode", body: `{}`, status: 422, field: "mode", allowed: "one of kv, round_robin, least_loaded, unknown", silent: true},
		{name: "slider upside down", method: "PATCH", path: "/settings", body: `{"slider":{"min":9,"max":3,"increment":1}}`, status: 422, field: "slider.min", allowed: "less than 3 (slider.max)", silent: true},
		{name: "long title", method: "PATCH", path: "/settings", body: `{"title":"` + strings.Repeat("ü", 201) + `"}`, status: 422, field: "title", allowed: "at most 200 characters"},
		// sweeps
		{name: "unknown field of a sweep", method: "POST", path: "/sweeps", body: `{"kind":"trial","level":60}`, status: 422, field: "level", allowed: "only kind, title, modes, levels, primary, question, smallest, repeats, order, warm_up_seconds, span_seconds, snapshots, resolution, max_seconds, together, slo, slo.ttft, slo.tpot, seed"},
		{name: "level for levels", method: "POST", path: "/sweeps", body: `{"kind":"sweep","levels":60}`, status: 422, field: "levels", allowed: "a list"},
		{name: "seed as a number", method: "POST", path: "/sweeps", body: `{"kind":"trial","seed":5}`, status: 422, field: "seed", allowed: "a whole number in quotes"},
		{name: "seed in words", method: "POST", path: "/sweeps", body: `{"kind":"trial","seed":"five"}`, status: 422, field: "seed", allowed: "a whole number in quotes"},
		{name: "a sweep cannot be made done", method: "PATCH", path: "/sweeps/a1", body: `{"state":"done"}`, status: 422, field: "state", allowed: "one of paused, running, cancelled"},
		{name: "long title of a baseline", method: "POST", path: "/sweeps/a1/baseline", body: `{"name":"x","title":"` + strings.Repeat("x", 201) + `"}`, status: 422, field: "title", allowed: "at most 200 characters"},
		{
			name: "a report on nothing", path: "/report.md", status: 422, field: "a",
			allowed: "the name of a baseline, at most 100 characters",
		},
		{
			name: "a report on one side", path: "/report.html?a=ours", status: 422, field: "b",
			allowed: "the name of a baseline, at most 100 characters",
		},
		{
			name: "long name in a report", path: "/report.tsv?a=ours&b=" + strings.Repeat("x", 101), status: 422,
			field: "b", allowed: "at most 100 characters",
		},
		{
			name: "unknown mode in a report", path: "/report.json?a=ours&b=ours&b_mode=random", status: 422,
			field: "b_mode", allowed: "one of kv, round_robin, least_loaded, unknown",
		},
		{
			name: "unknown speculation in a report", path: "/report.json?a=ours&b=ours&a_speculation=ngram", status: 422,
			field: "a_speculation", allowed: "one of off, draft, eagle3, not_recorded",
		},
		// queries
		{
			name: "limit zero", path: "/conversations?limit=0", status: 422, field: "limit",
			allowed: "a whole number, 1 to 200",
		},
		{
			name: "limit too high", path: "/conversations?limit=201", status: 422, field: "limit",
			allowed: "a whole number, 1 to 200",
		},
		{
			name: "limit of events", path: "/events?limit=1001", status: 422, field: "limit",
			allowed: "a whole number, 1 to 1000",
		},
		{
			name: "limit of baselines", path: "/baselines?limit=201", status: 422, field: "limit",
			allowed: "a whole number, 1 to 200",
		},
		{
			name: "limit in words", path: "/events?limit=ten", status: 422, field: "limit",
			allowed: "a whole number, 1 to 1000",
		},
		{name: "negative step", path: "/turns.csv?step=-1", status: 422, field: "step", allowed: "a whole number, 0 or more"},
		{
			name: "unknown status", path: "/conversations?status=done", status: 422, field: "status",
			allowed: "one of active, completed, retired, cancelled, error",
		},
		{
			name: "long lane", path: "/cluster?lane=" + strings.Repeat("x", 65), status: 422, field: "lane",
			allowed: "at most 64 characters",
		},
		{
			name: "unknown parameter", path: "/cluster?lanes=main", status: 422, field: "query", allowed: "only lane",
			silent: true,
		},
		{name: "two lanes", path: "/cluster?lane=main&lane=twin", status: 422, field: "lane", allowed: "one", silent: true},
		{name: "a query that is none", path: "/cluster?lane=%zz", status: 400, silent: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &recorder{}
			c := newContract(t)
			c.bad = !tt.silent
			p := readProblem(t, c.send(start(t, b, nil), request{method: tt.method, path: tt.path, body: tt.body}))
			require.Equal(t, tt.status, p.Status, p.Detail)
			require.Equal(t, tt.field, p.Field, p.Detail)
			require.Equal(t, tt.allowed, p.Allowed)
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
		{method: "PATCH", path: "/workload", body: `{"turns":{"min":50,"max":50},"max_tokens":131072,"target_rps":10000}`},
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
	res, text := do(t, s, request{
		method: "POST", path: v1 + "/workload/stop", body: stop,
		header: map[string]string{"Content-Type": "application/json; charset=utf-8"},
	})
	require.Equal(t, http.StatusOK, res.StatusCode, text)
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
		res, text := do(t, s, request{
			method: "POST", path: v1 + path, body: tt.body,
			header: map[string]string{"Content-Type": tt.contentType},
		})
		require.Equal(t, http.StatusCreated, res.StatusCode, text)
		require.Equal(t, v1+tt.location, res.Header.Get("Location"))
		res, _ = do(t, s, request{path: res.Header.Get("Location")})
		require.Equal(t, http.StatusOK, res.StatusCode)
	}
}

// The query controls an import: dry_run stores nothing, and merge adds rows instead of replacing the baseline. The
// caller's mode of another program's results reaches the reader. A table has its own modes.
func TestImport(t *testing.T) {
	for _, tt := range []struct{ contentType, query, call, contains, field string }{
		{contentType: "text/csv", query: "title=Our+run&dry_run=true", call: "check baseline", contains: `"title":"Our run"`},
		{contentType: "text/csv", query: "title=Our+run", call: "save baseline", contains: `"title":"Our run"`},
		{
			query: "mode=kv&speculation=draft&merge=true", call: "merge baseline",
			contains: `"mode":"kv","speculation":"draft"`,
		},
		{
			query: "mode=kv&speculation=draft&merge=true&dry_run=true", call: "check merged baseline",
			contains: `"mode":"kv","speculation":"draft"`,
		},
		{
			query: "mode=kv&speculation=draft&merge=false", call: "save baseline",
			contains: `"mode":"kv","speculation":"draft"`,
		},
		{query: "dry_run=yes", field: "dry_run"},
		{query: "merge=1", field: "merge"},
		{contentType: "text/csv", query: "mode=kv", field: "mode, speculation"},
		{contentType: "text/csv", query: "speculation=off", field: "mode, speculation"},
	} {
		b := &recorder{}
		s := newServer(t, b, nil)
		q := request{method: "POST", path: v1 + "/baselines?name=ours&" + tt.query, body: "{}"}
		if tt.contentType != "" {
			q.header = map[string]string{"Content-Type": tt.contentType}
		}
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
		res, text := do(t, s, request{path: v1 + path})
		require.Equal(t, http.StatusOK, res.StatusCode)
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
			res, text := do(t, s, request{path: v1 + path})
			require.Equal(t, http.StatusOK, res.StatusCode, text)
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
	res, _ := do(t, s, request{path: "/index.html"})
	require.Equal(t, http.StatusNotFound, res.StatusCode)

	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w,
			"page of "+r.URL.Path)
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
