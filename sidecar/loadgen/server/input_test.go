package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

const v1 = api.Prefix

// Bad input is refused before the backend hears of it, by a problem that names
// the field and what it may be, and the document does not allow it either.
func TestBadInput(t *testing.T) {
	for _, tt := range []struct {
		name, method, path, body string
		status                   int
		field, allowed           string
		silent                   bool // the document cannot say it
	}{
		// what cannot be read
		{name: "empty body", method: "POST", path: "/workload/start", status: 400},
		{name: "half a body", method: "POST", path: "/workload/start", body: `{"concurrency":`, status: 400},
		{name: "a list", method: "POST", path: "/workload/start", body: `[]`, status: 400},
		{name: "null", method: "POST", path: "/workload/start", body: `null`, status: 400},
		{name: "trailing data", method: "POST", path: "/workload/start", body: `{"concurrency":1} {"concurrency":2}`, status: 400, silent: true},
		{name: "trailing bracket", method: "POST", path: "/workload/stop", body: `{"drain":true}}`, status: 400, silent: true},
		// fields
		{name: "unknown field", method: "POST", path: "/workload/start", body: `{"concurency":5}`, status: 422, field: "concurency", allowed: "only concurrency"},
		{name: "unknown deeper field", method: "PATCH", path: "/workload", body: `{"turns":{"min":1,"max":2,"mean":1}}`, status: 422, field: "mean", allowed: "only concurrency, turns, turns.min, turns.max, max_tokens, openings, start_rate, target_rps"},
		{name: "text for a number", method: "POST", path: "/workload/start", body: `{"concurrency":"5"}`, status: 422, field: "concurrency", allowed: "a whole number"},
		{name: "a fraction", method: "POST", path: "/workload/start", body: `{"concurrency":1.5}`, status: 422, field: "concurrency", allowed: "a whole number"},
		{name: "beyond 64 bits", method: "POST", path: "/workload/start", body: `{"concurrency":1e30}`, status: 422, field: "concurrency", allowed: "a whole number"},
		{name: "a number for a choice", method: "POST", path: "/workload/stop", body: `{"drain":1}`, status: 422, field: "drain", allowed: "true or false"},
		{name: "a number for text", method: "PATCH", path: "/settings", body: `{"title":1}`, status: 422, field: "title", allowed: "a string"},
		{name: "a number for an object", method: "PATCH", path: "/settings", body: `{"slo":1}`, status: 422, field: "slo", allowed: "an object"},
		{name: "text deeper", method: "PATCH", path: "/settings", body: `{"slo":{"ttft":"1","tpot":1}}`, status: 422, field: "slo.ttft", allowed: "a number"},
		// ranges
		{name: "no conversations", method: "POST", path: "/workload/start", body: `{"concurrency":0}`, status: 422, field: "concurrency", allowed: "1 to 100000"},
		{name: "too many", method: "POST", path: "/workload/start", body: `{"concurrency":100001}`, status: 422, field: "concurrency", allowed: "1 to 100000"},
		{name: "fewer than none", method: "PATCH", path: "/workload", body: `{"concurrency":-1}`, status: 422, field: "concurrency", allowed: "1 to 100000"},
		{name: "turns upside down", method: "PATCH", path: "/workload", body: `{"turns":{"min":5,"max":3}}`, status: 422, field: "turns.min", allowed: "1 to 3", silent: true},
		{name: "too many turns", method: "PATCH", path: "/workload", body: `{"turns":{"min":5,"max":51}}`, status: 422, field: "turns.max", allowed: "1 to 50", silent: true},
		{name: "no tokens", method: "PATCH", path: "/workload", body: `{"max_tokens":0}`, status: 422, field: "max_tokens", allowed: "1 to 131072"},
		{name: "too many tokens", method: "PATCH", path: "/workload", body: `{"max_tokens":131073}`, status: 422, field: "max_tokens", allowed: "1 to 131072"},
		{name: "no starts", method: "PATCH", path: "/workload", body: `{"start_rate":0}`, status: 422, field: "start_rate", allowed: "more than 0, up to 1000 conversations per second"},
		{name: "too many starts", method: "PATCH", path: "/workload", body: `{"start_rate":1000.5}`, status: 422, field: "start_rate", allowed: "more than 0, up to 1000 conversations per second"},
		{name: "negative cap", method: "PATCH", path: "/workload", body: `{"target_rps":-0.1}`, status: 422, field: "target_rps", allowed: "0 to 10000 requests per second"},
		{name: "negative openings", method: "PATCH", path: "/workload", body: `{"openings":-1}`, status: 422, field: "openings", allowed: "0 to 1000000"},
		{name: "too many openings", method: "PATCH", path: "/workload", body: `{"openings":1000001}`, status: 422, field: "openings", allowed: "0 to 1000000"},
		{name: "cap too high", method: "PATCH", path: "/workload", body: `{"target_rps":10001}`, status: 422, field: "target_rps", allowed: "0 to 10000 requests per second"},
		{name: "no mode", method: "PUT", path: "/cluster/mode", body: `{}`, status: 422, field: "mode", allowed: "one of kv, round_robin, least_loaded, unknown"},
		{name: "unknown mode", method: "PUT", path: "/cluster/mode", body: `{"mode":"random"}`, status: 422, field: "mode", allowed: "one of kv, round_robin, least_loaded, unknown"},
		{name: "unknown speculation", method: "PUT", path: "/cluster/mode", body: `{"mode":"kv","speculation":"ngram"}`, status: 422, field: "speculation", allowed: "one of off, draft, eagle3, not_recorded"},
		{name: "SLO of zero", method: "PATCH", path: "/settings", body: `{"slo":{"ttft":0,"tpot":0.1}}`, status: 422, field: "slo.ttft", allowed: "more than 0, up to 3600 seconds"},
		{name: "SLO in milliseconds", method: "PATCH", path: "/settings", body: `{"slo":{"ttft":0.6,"tpot":6000}}`, status: 422, field: "slo.tpot", allowed: "more than 0, up to 3600 seconds"},
		{name: "half an SLO", method: "PATCH", path: "/settings", body: `{"slo":{"ttft":0.6}}`, status: 422, field: "slo.tpot", allowed: "more than 0, up to 3600 seconds"},
		{name: "slider upside down", method: "PATCH", path: "/settings", body: `{"slider":{"min":9,"max":3,"increment":1}}`, status: 422, field: "slider.min", allowed: "less than 3 (slider.max)", silent: true},
		{name: "slider without steps", method: "PATCH", path: "/settings", body: `{"slider":{"min":1,"max":3,"increment":0}}`, status: 422, field: "slider.increment", allowed: "1 to 100000"},
		{name: "a vendor that is none", method: "PATCH", path: "/settings", body: `{"vendor":"acme"}`, status: 422, field: "vendor", allowed: "one of neutral, digitalocean"},
		{name: "no limit", method: "PATCH", path: "/settings", body: `{"max_concurrency":0}`, status: 422, field: "max_concurrency", allowed: "1 to 100000"},
		{name: "long title", method: "PATCH", path: "/settings", body: `{"title":"` + strings.Repeat("ü", 201) + `"}`, status: 422, field: "title", allowed: "at most 200 characters"},
		// sweeps
		{name: "no kind", method: "POST", path: "/sweeps", body: `{}`, status: 422, field: "kind", allowed: "one of trial, sweep, capacity"},
		{name: "unknown field of a sweep", method: "POST", path: "/sweeps", body: `{"kind":"trial","level":60}`, status: 422, field: "level", allowed: "only kind, title, modes, levels, primary, smallest, repeats, order, warm_up_seconds, span_seconds, snapshots, resolution, max_seconds, together, slo, slo.ttft, slo.tpot, seed"},
		{name: "another kind's field", method: "POST", path: "/sweeps", body: `{"kind":"trial","repeats":3}`, status: 422, field: "repeats", allowed: "only a sweep has this field", silent: true},
		{name: "level of a sweep", method: "POST", path: "/sweeps", body: `{"kind":"sweep","levels":[100001]}`, status: 422, field: "levels", allowed: "1 to 100000"},
		{name: "level for levels", method: "POST", path: "/sweeps", body: `{"kind":"sweep","levels":60}`, status: 422, field: "levels", allowed: "a list"},
		{name: "mode of a sweep", method: "POST", path: "/sweeps", body: `{"kind":"sweep","modes":[{"mode":"random","speculation":"off"}]}`, status: 422, field: "modes.mode", allowed: "one of kv, round_robin, least_loaded"},
		{name: "a metric that is none", method: "POST", path: "/sweeps", body: `{"kind":"trial","primary":"itl"}`, status: 422, field: "primary", allowed: "one of ttft_p95, ttft_p50, tpot_p95, output_tokens_per_second, kv_hit_ratio, goodput"},
		{name: "smallest difference in percent", method: "POST", path: "/sweeps", body: `{"kind":"trial","smallest":5}`, status: 422, field: "smallest", allowed: "0.001 to 0.5"},
		{name: "seed as a number", method: "POST", path: "/sweeps", body: `{"kind":"trial","seed":5}`, status: 422, field: "seed", allowed: "a whole number in quotes"},
		{name: "seed in words", method: "POST", path: "/sweeps", body: `{"kind":"trial","seed":"five"}`, status: 422, field: "seed", allowed: "a whole number in quotes"},
		{name: "seed below 0", method: "POST", path: "/sweeps", body: `{"kind":"trial","seed":"-5"}`, status: 422, field: "seed", allowed: "a whole number"},
		{name: "a sweep that is no object", method: "POST", path: "/sweeps", body: `[60]`, status: 400},
		{name: "unknown parameter of a sweep", method: "POST", path: "/sweeps?id=7", body: `{"kind":"trial"}`, status: 422, field: "query", allowed: "only lane", silent: true},
		{name: "a sweep cannot be made done", method: "PATCH", path: "/sweeps/a1", body: `{"state":"done"}`, status: 422, field: "state", allowed: "one of paused, running, cancelled", silent: true},
		{name: "a state that is none", method: "PATCH", path: "/sweeps/a1", body: `{"state":"stopped"}`, status: 422, field: "state", allowed: "one of paused, running, cancelled"},
		{name: "unknown field of a state", method: "PATCH", path: "/sweeps/a1", body: `{"state":"paused","by":"me"}`, status: 422, field: "by", allowed: "only state"},
		{name: "long title of a baseline", method: "POST", path: "/sweeps/a1/baseline", body: `{"name":"x","title":"` + strings.Repeat("x", 201) + `"}`, status: 422, field: "title", allowed: "at most 200 characters"},
		{name: "unknown field of a baseline's making", method: "POST", path: "/sweeps/a1/baseline", body: `{"name":"x","kind":"recorded"}`, status: 422, field: "kind", allowed: "only name, title"},
		{name: "parameter of a sweep's report", path: "/sweeps/a1/report.md?mode=kv", status: 422, field: "query", allowed: "none", silent: true},
		{name: "parameter of seconds", path: "/sweeps/a1/seconds.csv?span=1", status: 422, field: "query", allowed: "none", silent: true},
		{name: "a report on nothing", path: "/report.md", status: 422, field: "a", allowed: "the name of a baseline, at most 100 characters"},
		{name: "a report on one side", path: "/report.html?a=ours", status: 422, field: "b", allowed: "the name of a baseline, at most 100 characters"},
		{name: "long name in a report", path: "/report.tsv?a=ours&b=" + strings.Repeat("x", 101), status: 422, field: "b", allowed: "the name of a baseline, at most 100 characters"},
		{name: "unknown mode in a report", path: "/report.json?a=ours&b=ours&b_mode=random", status: 422, field: "b_mode", allowed: "one of kv, round_robin, least_loaded, unknown"},
		{name: "unknown speculation in a report", path: "/report.json?a=ours&b=ours&a_speculation=ngram", status: 422, field: "a_speculation", allowed: "one of off, draft, eagle3, not_recorded"},
		// queries
		{name: "limit zero", path: "/conversations?limit=0", status: 422, field: "limit", allowed: "a whole number from 1 to 200"},
		{name: "limit too high", path: "/conversations?limit=201", status: 422, field: "limit", allowed: "a whole number from 1 to 200"},
		{name: "limit of events", path: "/events?limit=1001", status: 422, field: "limit", allowed: "a whole number from 1 to 1000"},
		{name: "limit of decisions", path: "/decisions?limit=1001", status: 422, field: "limit", allowed: "a whole number from 1 to 1000"},
		{name: "limit in words", path: "/events?limit=ten", status: 422, field: "limit", allowed: "a whole number from 1 to 1000"},
		{name: "negative step", path: "/turns.csv?step=-1", status: 422, field: "step", allowed: "a whole number from 0 to 9223372036854775807"},
		{name: "unknown status", path: "/conversations?status=done", status: 422, field: "status", allowed: "one of active, completed, retired, cancelled, error"},
		{name: "long topic", path: "/conversations?topic=" + strings.Repeat("x", 201), status: 422, field: "topic", allowed: "at most 200 characters"},
		{name: "long cursor", path: "/conversations?cursor=" + strings.Repeat("x", 201), status: 422, field: "cursor", allowed: "at most 200 characters"},
		{name: "long baseline", path: "/comparison?baseline=" + strings.Repeat("x", 101), status: 422, field: "baseline", allowed: "at most 100 characters"},
		{name: "unknown parameter of a comparison", path: "/comparison?name=x", status: 422, field: "query", allowed: "only lane, baseline", silent: true},
		{name: "long lane", path: "/cluster?lane=" + strings.Repeat("x", 65), status: 422, field: "lane", allowed: "at most 64 characters"},
		{name: "long lane of a write", method: "POST", path: "/workload/stop?lane=" + strings.Repeat("x", 65), body: `{"drain":true}`, status: 422, field: "lane", allowed: "at most 64 characters"},
		{name: "long lane of a starter", path: "/starters/gpu?lane=" + strings.Repeat("x", 65), status: 422, field: "lane", allowed: "at most 64 characters"},
		{name: "unknown parameter of a starter", path: "/starters/gpu?topic=x", status: 422, field: "query", allowed: "only lane", silent: true},
		{name: "unknown parameter", path: "/cluster?lanes=main", status: 422, field: "query", allowed: "only lane", silent: true},
		{name: "parameter of a call without", path: "/status?lane=main", status: 422, field: "query", allowed: "none", silent: true},
		{name: "two lanes", path: "/cluster?lane=main&lane=twin", status: 422, field: "lane", allowed: "one", silent: true},
		{name: "a query that is none", path: "/cluster?lane=%zz", status: 400, silent: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &recorder{}
			_, ts := start(t, b, nil)
			c := newContract(t)
			c.bad = !tt.silent
			method := tt.method
			if method == "" {
				method = "GET"
			}
			r, err := http.NewRequest(method, ts.URL+v1+tt.path, strings.NewReader(tt.body))
			require.NoError(t, err)
			if method != "GET" {
				r.Header.Set("Content-Type", "application/json")
			}
			res, err := (&http.Client{Transport: c}).Do(r)
			require.NoError(t, err)
			p := readProblem(t, res)
			require.Equal(t, tt.status, p.Status, p.Detail)
			require.Equal(t, tt.field, p.Field, p.Detail)
			require.Equal(t, tt.allowed, p.Allowed)
			require.NotEmpty(t, p.Detail)
			require.Empty(t, b.last().name, "the backend was called")
		})
	}
}

// The bounds themselves are allowed, by the document too.
func TestInputAtItsBounds(t *testing.T) {
	for _, tt := range []struct{ method, path, body string }{
		{"POST", "/workload/start", `{}`},
		{"POST", "/workload/start", `{"concurrency":1}`},
		{"POST", "/workload/start", ` {"concurrency":100000} ` + "\n"},
		{"PATCH", "/workload", `{"turns":{"min":1,"max":1},"max_tokens":1,"start_rate":0.001,"target_rps":0}`},
		{"PATCH", "/workload", `{"turns":{"min":50,"max":50},"max_tokens":131072,"start_rate":1000,"target_rps":10000}`},
		{"PUT", "/cluster/mode", `{"mode":"least_loaded"}`},
		{"PATCH", "/settings", `{"slo":{"ttft":3600,"tpot":3600},"slider":{"min":1,"max":100000,"increment":100000},"max_concurrency":100000}`},
		{"PATCH", "/settings", `{"title":"` + strings.Repeat("ü", 200) + `","subtitle":"","default_baseline":"","vendor":"digitalocean"}`},
		{"GET", "/conversations?limit=200&status=error", ""},
		{"GET", "/turns.csv?step=9223372036854775807", ""},
	} {
		b := &recorder{}
		_, ts := start(t, b, nil)
		r, err := http.NewRequest(tt.method, ts.URL+v1+tt.path, strings.NewReader(tt.body))
		require.NoError(t, err)
		if tt.method != "GET" {
			r.Header.Set("Content-Type", "application/json")
		}
		res, err := (&http.Client{Transport: newContract(t)}).Do(r)
		require.NoError(t, err)
		require.Less(t, res.StatusCode, 300, tt.path+tt.body)
		require.NotEmpty(t, b.last().name)
	}
}

// A write without the right content type is what a form on another site can send.
func TestContentType(t *testing.T) {
	for _, tt := range []struct {
		method, path, contentType string
		status                    int
	}{
		{"POST", "/workload/stop", "", 415},
		{"POST", "/workload/stop", "text/plain", 415},
		{"POST", "/workload/stop", "application/x-www-form-urlencoded", 415},
		{"POST", "/workload/stop", "text/csv", 415},
		{"POST", "/workload/stop", "application/jsonp", 415},
		{"POST", "/workload/stop", "application/json; charset=utf-8", 200},
		{"POST", "/workload/start", "text/plain", 415},
		{"PATCH", "/workload", "text/plain", 415},
		{"PATCH", "/settings", "text/plain", 415},
		{"PUT", "/cluster/mode", "text/plain", 415},
		{"POST", "/baselines", "text/plain", 415},
		{"POST", "/baselines", "", 415},
		{"POST", "/session", "text/plain", 415},
		{"POST", "/sweeps", "text/plain", 415},
		{"PATCH", "/sweeps/a1", "text/plain", 415},
		{"POST", "/sweeps/a1/baseline", "text/plain", 415},
	} {
		_, ts := start(t, &recorder{}, nil)
		q := request{method: tt.method, path: v1 + tt.path, body: `{"drain":true}`, header: map[string]string{"Content-Type": tt.contentType}}
		res, text := do(t, ts.URL, q)
		require.Equal(t, tt.status, res.StatusCode, "%+v: %s", tt, text)
	}
}

// Bodies are bounded, whether or not their length is announced.
func TestBodySize(t *testing.T) {
	padded := func(body string, size int) string { return body + strings.Repeat(" ", size-len(body)) }
	for _, tt := range []struct {
		method, path, contentType, body string
		status                          int
	}{
		{"POST", "/workload/stop", "application/json", padded(`{"drain":true}`, api.MaxBody), 200},
		{"POST", "/workload/stop", "application/json", padded(`{"drain":true}`, api.MaxBody+1), 413},
		{"PATCH", "/settings", "application/json", padded(`{}`, api.MaxBody+1), 413},
		{"POST", "/sweeps", "application/json", padded(`{"kind":"trial"}`, api.MaxBody), 201},
		{"POST", "/sweeps", "application/json", padded(`{"kind":"trial"}`, api.MaxBody+1), 413},
		{"POST", "/baselines", "application/json", padded(`{"name":"x"}`, api.MaxBaseline), 201},
		{"POST", "/baselines", "application/json", padded(`{"name":"x"}`, api.MaxBaseline+1), 413},
		{"POST", "/baselines?name=x", "text/csv", strings.Repeat("x", api.MaxBaseline), 201},
		{"POST", "/baselines?name=x", "text/csv", strings.Repeat("x", api.MaxBaseline+1), 413},
	} {
		_, ts := start(t, &recorder{}, nil)
		for _, body := range []io.Reader{strings.NewReader(tt.body), io.MultiReader(strings.NewReader(tt.body))} {
			r, err := http.NewRequest(tt.method, ts.URL+v1+tt.path, body)
			require.NoError(t, err)
			r.Header.Set("Content-Type", tt.contentType)
			res, err := ts.Client().Do(r)
			require.NoError(t, err)
			_ = res.Body.Close()
			require.Equal(t, tt.status, res.StatusCode, "%s %s %d", tt.path, tt.contentType, len(tt.body))
		}
	}
}

// An import answers where the baseline now is.
func TestImportLocation(t *testing.T) {
	_, ts := start(t, &recorder{}, nil)
	res, _ := do(t, ts.URL, request{method: "POST", path: v1 + "/baselines?name=our+run", body: "x", header: map[string]string{"Content-Type": "text/csv"}})
	require.Equal(t, http.StatusCreated, res.StatusCode)
	require.Equal(t, v1+"/baselines/our%20run", res.Header.Get("Location"))
	got, _ := do(t, ts.URL, request{path: res.Header.Get("Location")})
	require.Equal(t, http.StatusOK, got.StatusCode)
}

// A trial import stores nothing; name and title stand in the query for either form.
func TestImportDryRun(t *testing.T) {
	b := &recorder{}
	_, ts := start(t, b, nil)
	csv := map[string]string{"Content-Type": "text/csv"}
	res, text := do(t, ts.URL, request{method: "POST", path: v1 + "/baselines?name=ours&title=Our+run&dry_run=true", body: "x", header: csv})
	require.Equal(t, http.StatusOK, res.StatusCode, text)
	require.Contains(t, text, `"title":"Our run"`)
	require.Len(t, b.calls, 1)
	require.Equal(t, "check baseline", b.calls[0].name)
	res, text = do(t, ts.URL, request{method: "POST", path: v1 + "/baselines?name=ours&dry_run=yes", body: "x", header: csv})
	require.Equal(t, http.StatusUnprocessableEntity, res.StatusCode)
	require.Contains(t, text, `"field":"dry_run"`)
}

// What the caller says of another program's results reaches the reader and its rows, and
// merge adds rows instead of replacing the baseline. A table says its modes itself.
func TestImportOfAnotherProgramsResults(t *testing.T) {
	b := &recorder{}
	_, ts := start(t, b, nil)
	as := func(contentType, query string) (int, string) {
		res, text := do(t, ts.URL, request{method: "POST", path: v1 + "/baselines?name=ours&" + query, body: "{}", header: map[string]string{"Content-Type": contentType}})
		return res.StatusCode, text
	}
	for query, want := range map[string]string{
		"mode=kv&speculation=draft&merge=true":              "merge baseline",
		"mode=kv&speculation=draft&merge=true&dry_run=true": "check merged baseline",
		"mode=kv&speculation=draft&merge=false":             "save baseline",
	} {
		b.calls = nil
		status, text := as("application/json", query)
		require.Less(t, status, 300, text)
		require.Contains(t, text, `"mode":"kv","speculation":"draft"`)
		require.Len(t, b.calls, 1)
		require.Equal(t, want, b.calls[0].name, query)
	}
	status, text := as("application/json", "merge=1")
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, text, `"field":"merge"`)
	for _, query := range []string{"mode=kv", "speculation=off"} {
		status, text = as("text/csv", query)
		require.Equal(t, http.StatusUnprocessableEntity, status)
		require.Contains(t, text, `"field":"mode, speculation"`)
	}
}

// A download that fails at its start is a problem; one that fails later breaks
// off, so that nobody takes a part for the whole.
func TestTurnsThatFail(t *testing.T) {
	b := &recorder{err: fmt.Errorf("%w: no such step", api.ErrNotFound)}
	_, ts := start(t, b, nil)
	require.Equal(t, http.StatusNotFound, refusal(t, ts.URL, request{path: v1 + "/turns.csv"}).Status)

	b.csv = "id,ttft\n" + strings.Repeat("1,0.2\n", 10_000)
	res, err := ts.Client().Get(ts.URL + v1 + "/turns.csv")
	require.NoError(t, err)
	defer res.Body.Close()
	_, err = io.ReadAll(res.Body)
	require.Error(t, err)

	b.csv, b.err = "", nil
	res, text := do(t, ts.URL, request{path: v1 + "/turns.csv"})
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "text/csv; charset=utf-8", res.Header.Get("Content-Type"))
	require.Empty(t, text)
}

// What is not there, and what is there but not so, are told apart, as problems.
func TestNoSuchCall(t *testing.T) {
	_, ts := start(t, &recorder{}, nil)
	require.Equal(t, 404, refusal(t, ts.URL, request{path: v1 + "/sweep"}).Status)
	require.Equal(t, 404, refusal(t, ts.URL, request{path: "/api/v2/status"}).Status)
	require.Equal(t, 404, refusal(t, ts.URL, request{method: "POST", path: "/"}).Status)
	p := refusal(t, ts.URL, request{method: "DELETE", path: v1 + "/settings"})
	require.Equal(t, 405, p.Status)
	require.Contains(t, p.Detail, "GET, HEAD, PATCH")
	require.Equal(t, 405, refusal(t, ts.URL, request{method: "OPTIONS", path: v1 + "/status"}).Status)
}
