package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// Who begins a sweep learns where it is, and so who makes a baseline of one.
func TestSweepLocations(t *testing.T) {
	_, ts := start(t, &recorder{}, nil)
	for path, want := range map[string]string{"/sweeps": "/sweeps/text", "/sweeps/a1/baseline": "/baselines/of%202026+1"} {
		body := map[string]string{"/sweeps": `{"kind":"capacity"}`}[path]
		if body == "" {
			body = `{"name":"ours"}`
		}
		res, text := do(t, ts.URL, request{method: http.MethodPost, path: v1 + path, body: body})
		require.Equal(t, http.StatusCreated, res.StatusCode, text)
		require.Equal(t, v1+want, res.Header.Get("Location"))
		got, _ := do(t, ts.URL, request{path: res.Header.Get("Location")})
		require.Equal(t, http.StatusOK, got.StatusCode)
	}
}

// Two sweeps at once are a conflict that says why.
func TestSecondSweep(t *testing.T) {
	b := &recorder{err: fmt.Errorf("%w: the trial 7 is in progress", api.ErrConflict)}
	_, ts := start(t, b, nil)
	p := refusal(t, ts.URL, request{method: http.MethodPost, path: v1 + "/sweeps", body: `{"kind":"trial"}`})
	require.Equal(t, http.StatusConflict, p.Status)
	require.Contains(t, p.Detail, "the trial 7 is in progress")
}

// A report as a page is shown and runs nothing; the others are files.
func TestReportHeaders(t *testing.T) {
	_, ts := start(t, &recorder{}, nil)
	for _, f := range api.ReportFormats {
		for path, file := range map[string]string{"/sweeps/a1/report.": "sweep-a1.", "/report.": "report."} {
			res, text := do(t, ts.URL, request{path: v1 + path + string(f) + map[string]string{"/report.": "?a=x&b=y"}[path]})
			require.Equal(t, http.StatusOK, res.StatusCode, text)
			assert.Equal(t, reports[f], text)
			assert.Equal(t, f.MediaType(), res.Header.Get("Content-Type"))
			assert.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
			policy, how := res.Header.Get("Content-Security-Policy"), "attachment"
			if f == api.ReportHTML {
				how = "inline"
				assert.Contains(t, policy, "default-src 'none'")
				assert.Contains(t, policy, "sandbox")
				assert.NotContains(t, policy, "script-src")
			}
			assert.Equal(t, how+"; filename="+file+string(f), res.Header.Get("Content-Disposition"))
			assert.Equal(t, "no-store", res.Header.Get("Cache-Control"))
		}
	}
}

// A report that fails is a problem and no file, whatever of it was written before; a file
// of seconds that fails after its beginning breaks off.
func TestReportsThatFail(t *testing.T) {
	b := &recorder{err: fmt.Errorf("%w: no sweep a1", api.ErrNotFound)}
	_, ts := start(t, b, nil)
	for _, path := range []string{"/sweeps/a1/report.html", "/report.html?a=x&b=y", "/sweeps/a1/seconds.csv"} {
		res, _ := do(t, ts.URL, request{path: v1 + path})
		assert.Equal(t, http.StatusNotFound, res.StatusCode)
		assert.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
		assert.Empty(t, res.Header.Get("Content-Disposition"))
	}
	b.csv, b.err = "second\n"+strings.Repeat("1\n", 10_000), errors.New("disk on fire")
	res, err := ts.Client().Get(ts.URL + v1 + "/sweeps/a1/seconds.csv")
	require.NoError(t, err)
	defer res.Body.Close()
	_, err = io.ReadAll(res.Body)
	require.Error(t, err)

	b.csv, b.err = "", nil
	res, text := do(t, ts.URL, request{path: v1 + "/sweeps/a1/seconds.csv"})
	require.Equal(t, http.StatusOK, res.StatusCode)
	assert.Equal(t, "text/csv; charset=utf-8", res.Header.Get("Content-Type"))
	assert.Equal(t, "attachment; filename=sweep-a1-seconds.csv", res.Header.Get("Content-Disposition"))
	assert.Empty(t, text)
}

// A report in a format that there is none of is no call.
func TestReportFormatsAreFew(t *testing.T) {
	_, ts := start(t, &recorder{}, nil)
	for _, path := range []string{"/sweeps/a1/report.pdf", "/sweeps/a1/report", "/report.pdf", "/sweeps/a1/rows"} {
		assert.Equal(t, http.StatusNotFound, refusal(t, ts.URL, request{path: v1 + path}).Status, path)
	}
}
