package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/sidecar/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Package server tests the calls themselves with the real server. These tests use other servers.
func serve(t *testing.T, h http.HandlerFunc) (*api.Client, string) {
	t.Helper()
	ts := httptest.NewServer(h)
	t.Cleanup(ts.Close)
	c, err := api.NewClient(ts.Client(), ts.URL, "a-token")
	require.NoError(t, err)
	return c, ts.URL
}

// An invalid base URL is refused, and not repeated, because it may contain a password.
func TestNewClientRefuses(t *testing.T) {
	for _, base := range []string{
		"", "localhost:8088", "ftp://localhost", "http://", "http://user:s3cret@localhost",
		"http://localhost?token=s3cret", "http://localhost#s3cret", "http://s3cret%zz",
	} {
		_, err := api.NewClient(nil, base, "")
		var field *api.FieldError
		require.ErrorAs(t, err, &field, base)
		require.Equal(t, "url", field.Field)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

// The base URL may have a path, as behind a proxy, with or without a slash. Token and login are sent in headers, and
// only where they are set.
func TestBasePathAndHeaders(t *testing.T) {
	var url string
	var seen http.Header
	c, base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		url, seen = r.URL.String(), r.Header
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	})
	for _, suffix := range []string{"", "/", "/booth", "/booth/"} {
		bare, err := api.NewClient(nil, base+suffix, "")
		require.NoError(t, err)
		_, err = bare.Settings(t.Context())
		require.NoError(t, err)
		require.Equal(t, strings.TrimSuffix(suffix, "/")+"/api/v1/settings", url)
		require.Empty(t, seen.Values("Authorization"))
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for login, client := range map[string]*api.Client{"admin": c.As("admin"), "": c} { // As changes a copy
		require.NoError(t, client.Ready(t.Context()))
		require.Equal(t, "/readyz", url)
		require.Equal(t, "Bearer a-token", seen.Get("Authorization"))
		require.Equal(t, login, seen.Get(api.UserHeader))
	}
}

// The error of an answer that is not a load generator's names that, and keeps the status. A redirect is one: its target
// would receive the token.
func TestForeignAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, contentType, body string
		status                  int
		is                      error
		text                    string
	}{
		{"a redirect", "text/html", "", 307, nil, `redirects to "/elsewhere"; redirects are not followed`},
		{"a proxy without its server", "text/html", "<h1>Bad Gateway</h1>", 502, nil, "check the URL"},
		{"a proxy that is full", "text/html", "<h1>", 503, api.ErrUnavailable, "503 Service Unavailable"},
		{"another server", "text/plain", "404", 404, api.ErrNotFound, "check the URL"},
		{"another server that likes every path", "text/html", "<html>", 200, nil, `answered with "text/html"`},
		{"an older version", "application/json", `{"lanes":"main"}`, 200, nil, "not what this version"},
		{"half an answer", "application/json", `{"lanes":`, 200, nil, "not what this version"},
		{"half a problem", "application/problem+json", `{"status":409`, 409, api.ErrConflict, "409 Conflict"},
		{"a problem without words", "application/problem+json", `{"title":"Teapot"}`, 418, nil, "Teapot (418)"},
		{"a problem that contradicts its status", "application/problem+json", `{"status":200,"detail":"gone"}`, 404, api.ErrNotFound, "gone"},
	} {
		c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, api.Prefix+"/status", r.URL.Path, "a redirect was followed")
			w.Header().Set("Content-Type", tt.contentType)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		})
		_, err := c.Status(t.Context())
		require.ErrorContains(t, err, tt.text, tt.name)
		if tt.status != http.StatusOK {
			var p *api.ProblemError
			require.ErrorAs(t, err, &p, tt.name)
			require.Equal(t, tt.status, p.Status, tt.name)
		}
		for _, sentinel := range []error{api.ErrNotFound, api.ErrConflict, api.ErrUnavailable} {
			require.Equal(t, errors.Is(tt.is, sentinel), errors.Is(err, sentinel), tt.name)
		}
	}
}

// An id that would change the path of the call is not found, without a call.
func TestOddIDs(t *testing.T) {
	c, _ := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("called") })
	ctx := t.Context()
	for name, call := range map[string]func(id string) error{
		"conversation": func(id string) error { return second(c.Conversation(ctx, id)) },
		"baseline":     func(id string) error { return second(c.Baseline(ctx, id)) },
		"starter":      func(id string) error { return second(c.Starter(ctx, "main", id)) },
		"sweep":        func(id string) error { return second(c.Sweep(ctx, id)) },
		"patch":        func(id string) error { return second(c.PatchSweep(ctx, id, api.SweepPatch{})) },
		"delete":       func(id string) error { return second(c.DeleteSweep(ctx, id)) },
		"make":         func(id string) error { return second(c.SweepBaseline(ctx, id, api.SweepBaselineRequest{})) },
		"seconds":      func(id string) error { return c.SweepSeconds(ctx, io.Discard, id) },
		"report":       func(id string) error { return c.SweepReport(ctx, io.Discard, id, api.ReportTSV) },
	} {
		for _, id := range []string{"", ".", ".."} {
			require.ErrorIs(t, call(id), api.ErrNotFound, "%s %q", name, id)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A file of another type than the requested one is an error: a proxy's page would be saved as the file.
func TestDownloadsAreOfTheirType(t *testing.T) {
	c, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "please log in")
	})
	var out strings.Builder
	for name, download := range map[string]func() error{
		"turns":   func() error { return c.TurnsCSV(t.Context(), &out, "", 0) },
		"seconds": func() error { return c.SweepSeconds(t.Context(), &out, "7") },
		"report":  func() error { return c.SweepReport(t.Context(), &out, "7", api.ReportMarkdown) },
		"compare": func() error {
			return c.Report(t.Context(), &out, api.ReportSide{Baseline: "a"}, api.ReportSide{Baseline: "b"}, api.ReportHTML)
		},
	} {
		require.ErrorContains(t, download(), `answered with "text/plain"`, name)
	}
	require.Empty(t, out.String())
}

// Forward returns the report of its path, and no other page.
func TestForwardReports(t *testing.T) {
	c, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", api.ReportHTML.MediaType())
	})
	for path, fine := range map[string]bool{
		"/sweeps/7/report.html": true, "/report.html": true,
		"/sweeps/7/report.md": false, "/sweeps": false, "/report.htm": false,
	} {
		call, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		require.NoError(t, err)
		res, err := c.Forward(call, http.NoBody)
		require.Equal(t, fine, err == nil, path)
		if err == nil {
			require.NoError(t, res.Body.Close())
		}
	}
}

// A truncated download is an error.
func TestTurnsBreakOff(t *testing.T) {
	c, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		_, _ = io.WriteString(w, "id\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	var table strings.Builder
	require.Error(t, c.TurnsCSV(t.Context(), &table, "", 0))
	require.Equal(t, "id\n", table.String())
}

// upgrade serves a sidecar whose stream is do.
func upgrade(t *testing.T, do func(*websocket.Conn)) *api.Client {
	c, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		do(conn)
	})
	return c
}

// A lost stream ends with one error, whatever the cause.
func TestStreamLost(t *testing.T) {
	for name, end := range map[string]struct {
		kind int
		text []byte
	}{
		"closed":   {}, // the connection, without a message
		"garbage":  {websocket.TextMessage, []byte("{")},
		"farewell": {websocket.CloseMessage, websocket.FormatCloseMessage(1001, "")},
		"flood":    {websocket.TextMessage, make([]byte, 9<<20)},
	} {
		client := upgrade(t, func(c *websocket.Conn) {
			_ = c.WriteJSON(api.Snapshot{})
			_ = c.WriteMessage(end.kind, end.text) // fails where the kind is none
		})
		var good int
		var errs []error
		for _, err := range client.Stream(t.Context()) {
			if err == nil {
				good++
				continue
			}
			errs = append(errs, err)
		}
		require.Equal(t, 1, good, name)
		require.Len(t, errs, 1, name)
		require.ErrorIs(t, errs[0], api.ErrUnavailable, name)
	}
}

// The context ends a silent stream. Otherwise it is reported as lost, so that no stale value is shown as a live one.
// Pings do not count as snapshots.
func TestStreamSilence(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	end := cancel
	c := upgrade(t, func(c *websocket.Conn) {
		_ = c.WriteMessage(websocket.PingMessage, nil)
		end()
		_, _, _ = c.NextReader() // until the client disconnects
	})
	for _, err := range c.Stream(ctx) {
		require.ErrorIs(t, err, context.Canceled)
	}
	end = func() {}
	c.SetSilence(20 * time.Millisecond)
	for _, err := range c.Stream(t.Context()) {
		require.ErrorIs(t, err, api.ErrUnavailable)
	}
}
