package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

const stop = `{"drain":true}`

// An unknown name may be another site's, rebound to this address by its DNS. Every route refuses it. Only probes and
// scrapes may use an IP address.
func TestUnknownHostIsRefused(t *testing.T) {
	b := &recorder{}
	s := newServer(t, b, func(o *Options) { o.Hosts = []string{"booth.example"} })
	for host, want := range map[string]int{
		"localhost":              200,
		"localhost:1234":         200, // a forwarded port
		"LocalHost.":             200,
		"127.0.0.1:8088":         200,
		"127.8.9.1":              200,
		"[::1]:8088":             200,
		"booth.example:443":      200, // configured
		"Booth.Example":          200,
		"evil.example":           421,
		"evil.example:8088":      421,
		"localhost.evil.example": 421,
		"127.0.0.1.evil.example": 421,
		"10.1.2.3:8088":          421,
		"[::ffff:10.1.2.3]":      421,
	} {
		res, text := do(t, s, request{path: v1 + "/status", host: host})
		require.Equal(t, want, res.StatusCode, "%s: %s", host, text)
	}
	for _, q := range withPage(s) {
		q.host = "evil.example"
		require.Equal(t, http.StatusMisdirectedRequest, refusal(t, s, q.request).Status, q.pattern)
		for _, q.host = range []string{"10.1.2.3:8088", "[fd00::1]:8088"} {
			res, _ := do(t, s, q.request)
			byAddress := q.access == probe || q.access == scrape
			require.Equal(t, !byAddress, res.StatusCode == http.StatusMisdirectedRequest, "%s at %s", q.pattern, q.host)
		}
	}
	require.Empty(t, b.calls)
}

// withPage returns every route, the page and a path that does not exist.
func withPage(s *Server) []routeCall {
	return append(everyRoute(s),
		routeCall{route{pattern: "the page", access: public}, request{path: "/"}},
		routeCall{route{pattern: "nothing", access: public}, request{path: v1 + "/nothing"}})
}

// A page of another site is refused by every route. The server's own page is not.
func TestForeignOriginIsRefused(t *testing.T) {
	b := &recorder{}
	s := newServer(t, b, func(o *Options) { o.Hosts = []string{"booth.example"} })
	for _, q := range withPage(s) {
		q.header = map[string]string{"Origin": "http://evil.example"}
		require.Equal(t, http.StatusForbidden, refusal(t, s, q.request).Status, q.pattern)
	}
	require.Empty(t, b.calls)
	for _, tt := range []struct {
		host, origin, proto string
		status              int
	}{
		{"localhost:8088", "http://localhost:8088", "", 200},
		{"booth.example", "http://booth.example", "", 200},
		{"booth.example", "https://booth.example", "https", 200}, // a proxy in front ends TLS
		{"booth.example", "https://booth.example", "", 403},
		{"booth.example", "http://booth.example", "https", 403},
		{"localhost:8088", "http://localhost:3000", "", 403}, // another server on this machine
		{"localhost:8088", "http://localhost", "", 403},
		{"localhost:8088", "http://127.0.0.1:8088", "", 403},
		{"localhost:8088", "http://localhost:8088.evil.example", "", 403},
		{"localhost:8088", "http://evil@localhost:8088", "", 403},
		{"localhost:8088", "http://localhost:8088/", "", 403},
		{"localhost:8088", "null", "", 403}, // a sandboxed frame or a file
		{"localhost:8088", "", "", 403},
	} {
		q := post("/workload/stop", stop, map[string]string{"Origin": tt.origin, "X-Forwarded-Proto": tt.proto})
		q.host = tt.host
		answer(t, s, tt.status, q)
	}
}

// Without the token every route refuses, except health, metrics without a token of their own, and the exchange of the
// token. The page's files require none.
func TestEveryRouteRequiresTheToken(t *testing.T) {
	b := &recorder{}
	s := newServer(t, b, withToken)
	s.failures.SetLimit(rate.Inf) // its own test covers the limit
	for _, q := range everyRoute(s) {
		open := q.access == probe || q.access == scrape || q.access == public
		for _, q.header = range []map[string]string{
			nil, bearer(""), bearer("wrong"), bearer(token + "x"),
			{"Authorization": token},
			{"Authorization": "Basic " + token},
			cookie("wrong"), cookie(token),
		} {
			res, text := do(t, s, q.request)
			require.Equal(t, !open, res.StatusCode == http.StatusUnauthorized, "%s %v: %s", q.pattern, q.header, text)
			if !open {
				require.Equal(t, "Bearer", res.Header.Get("WWW-Authenticate"))
			}
		}
	}
	require.Empty(t, b.calls)
	for _, q := range []request{
		{path: v1 + "/status", header: bearer(token)},
		{path: v1 + "/status", header: map[string]string{"Authorization": "bearer  " + token}},
		{path: "/"},
	} {
		answer(t, s, http.StatusOK, q)
	}
}

// The metrics' token, as Prometheus sends it, opens the metrics and nothing else. The server's token opens them, too; a
// public page does not.
func TestMetricsToken(t *testing.T) {
	const own = "a-token-for-the-metrics"
	for name, change := range map[string]func(*Options){
		"with a token": withToken, "with a public page": publicPage, "alone": func(*Options) {},
	} {
		b := &recorder{}
		s := newServer(t, b, func(o *Options) {
			o.MetricsToken = own
			change(o)
		})
		s.failures.SetLimit(rate.Inf)
		metrics := request{path: "/metrics", host: "10.1.2.3:8088"}
		for _, metrics.header = range []map[string]string{
			nil, bearer(""), bearer("wrong"), {"Authorization": own}, {"Authorization": "Basic " + own}, cookie(own),
		} {
			require.Equal(t, http.StatusUnauthorized, refusal(t, s, metrics).Status, "%s %v", name, metrics.header)
		}
		require.Equal(t, http.StatusUnauthorized, refusal(t, s, request{path: "/metrics?token=" + own}).Status, name)
		right := []map[string]string{bearer(own)}
		if s.opts.Token != "" {
			right = append(right, bearer(token), cookie(signIn(t, s, nil).Value))
			for _, q := range everyRoute(s) {
				if q.header = bearer(own); q.access == read || q.access == write {
					require.Equal(t, http.StatusUnauthorized, refusal(t, s, q.request).Status, q.pattern)
				}
			}
			require.Empty(t, b.calls)
		}
		for _, header := range right {
			_, text := answer(t, s, http.StatusOK, request{path: "/metrics", header: header})
			require.Equal(t, "up 1\n", text)
		}
	}
}

// A token in a URL, where logs would keep it, opens nothing. It is refused even beside one in the header, and is not
// repeated.
func TestTokenInURL(t *testing.T) {
	s := newServer(t, &recorder{}, withToken)
	for _, name := range []string{"token", "access_token"} {
		path := v1 + "/status?" + name + "=" + token
		require.Equal(t, http.StatusUnauthorized, refusal(t, s, request{path: path}).Status)
		p := refusal(t, s, request{path: path, header: bearer(token)})
		require.Equal(t, http.StatusUnprocessableEntity, p.Status)
		require.NotContains(t, fmt.Sprint(p), token)
	}
}

// The public page allows reads without a token, and no changes. A wrong token is refused nevertheless.
func TestPublicPageReadsAlone(t *testing.T) {
	s := newServer(t, &recorder{}, publicPage)
	for _, q := range everyRoute(s) {
		if strings.HasPrefix(q.path, v1+"/report.") {
			q.path += "?a=x&b=y" // its required parameters
		}
		res, text := do(t, s, q.request)
		switch {
		case q.path == v1+"/stream":
			require.Equal(t, http.StatusBadRequest, res.StatusCode, "no handshake")
		case q.access == read:
			require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", q.pattern, text)
		case q.access == write:
			require.Equal(t, http.StatusUnauthorized, res.StatusCode, q.pattern)
		}
		if q.header = bearer("wrong"); q.access == read || q.access == write {
			require.GreaterOrEqual(t, refusal(t, s, q.request).Status, 401, q.pattern)
		}
	}
}

// exchange is the request that exchanges the token for a cookie.
func exchange(header map[string]string) request {
	return post("/session", `{"token":"`+token+`"}`, header)
}

// signIn exchanges the token for a cookie.
func signIn(t *testing.T, s *Server, header map[string]string) *http.Cookie {
	t.Helper()
	res, _ := answer(t, s, http.StatusNoContent, exchange(header))
	require.Len(t, res.Cookies(), 1)
	return res.Cookies()[0]
}

// The cookie opens what the token opens, for 12 hours, and no script or other site can read it.
func TestSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &recorder{}
		s := newServer(t, b, withToken)
		c := signIn(t, s, nil)
		require.Equal(t, cookieName+"="+c.Value+"; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict", c.String())
		require.NotContains(t, c.Value, token)
		require.True(t, signIn(t, s, map[string]string{"X-Forwarded-Proto": "https"}).Secure)

		header := cookie(c.Value)
		header[api.UserHeader] = "admin"
		q := post("/workload/stop", stop, header)
		wait.Advance(sessionLife - time.Second)
		answer(t, s, http.StatusOK, q)
		require.Equal(t, "page", b.last().by, "a page cannot speak for a login")
		wait.Advance(time.Second)
		synctest.Wait()
		require.Equal(t, http.StatusUnauthorized, refusal(t, s, q).Status)
	})
}

// A session allows everything where no token is configured. Otherwise it allows nothing, or the reads of a public page,
// until the token is exchanged, and again after the session is ended.
func TestReadSession(t *testing.T) {
	read := func(s *Server, header map[string]string) (v api.Session) {
		_, text := answer(t, s, http.StatusOK, request{path: v1 + "/session", header: header})
		require.NoError(t, json.Unmarshal([]byte(text), &v))
		return v
	}
	open := newServer(t, &recorder{}, nil)
	require.Equal(t, api.Session{CanRead: true, CanWrite: true}, read(open, nil))
	require.Equal(t, http.StatusConflict, refusal(t, open, exchange(nil)).Status, "there is nothing to exchange")

	for _, public := range []bool{false, true} {
		s := newServer(t, &recorder{}, func(o *Options) { o.Token, o.PublicPage = token, public })
		none := api.Session{TokenRequired: true, CanRead: public}
		require.Equal(t, none, read(s, nil))
		require.Equal(t, none, read(s, cookie("wrong")))
		with := cookie(signIn(t, s, nil).Value)
		require.Equal(t, api.Session{TokenRequired: true, Authenticated: true, CanRead: true, CanWrite: true}, read(s, with))

		for range 2 { // a session that has ended may be ended again
			res, _ := answer(t, s, http.StatusNoContent, request{method: "DELETE", path: v1 + "/session", header: with})
			require.Len(t, res.Cookies(), 1)
			require.Negative(t, res.Cookies()[0].MaxAge)
			require.Empty(t, res.Cookies()[0].Value)
		}
		require.Equal(t, none, read(s, with))
		require.Equal(t, http.StatusUnauthorized, refusal(t, s, post("/workload/stop", stop, with)).Status)
	}
}

// Memory holds a bounded number of sessions: the newest.
func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, &recorder{}, withToken)
		status := func(id string) int {
			res, _ := do(t, s, request{path: v1 + "/status", header: cookie(id)})
			return res.StatusCode
		}
		first := s.sessions.begin()
		for range maxSessions - 1 {
			s.sessions.begin()
		}
		require.Equal(t, http.StatusOK, status(first))
		last := s.sessions.begin()
		require.Len(t, s.sessions.open, maxSessions)
		require.Equal(t, http.StatusUnauthorized, status(first))
		require.Equal(t, http.StatusOK, status(last))

		wait.Advance(sessionLife)
		synctest.Wait()
		s.sessions.begin()
		require.Len(t, s.sessions.open, 1, "those that ended make room")
	})
}

// Guesses are limited together, whatever the number of addresses, in the header and at the exchange alike. They do not
// lock out a caller with the token: not from the same address, not from a new one, and not at the exchange.
func TestGuessesAreLimited(t *testing.T) {
	s := newServer(t, &recorder{}, withToken)
	with := cookie(signIn(t, s, nil).Value)
	now := time.Now()
	s.now = func() time.Time { return now }
	guess := func(i int) *http.Response {
		q := request{path: v1 + "/status", header: bearer("wrong"), from: "192.0.2.1:1"}
		if i%2 != 0 {
			q = post("/session", `{"token":"wrong"}`, nil)
			q.from = fmt.Sprintf("[2001:db8:%x::1]:1", i)
		}
		res, _ := do(t, s, q)
		return res
	}
	for i := range failureBurst {
		require.Equal(t, http.StatusUnauthorized, guess(i).StatusCode)
	}
	for i := range 2 {
		res := guess(i)
		require.Equal(t, http.StatusTooManyRequests, res.StatusCode)
		require.Equal(t, "7", res.Header.Get("Retry-After"))
	}
	long := request{path: v1 + "/status", header: bearer(strings.Repeat("x", api.MaxToken+1))}
	require.Equal(t, http.StatusTooManyRequests, refusal(t, s, long).Status)
	for _, from := range []string{"192.0.2.1:2", "[2001:db8:1::1]:2", "[2001:db8:ffff::1]:1", "198.51.100.7:1"} {
		for _, header := range []map[string]string{bearer(token), with} {
			answer(t, s, http.StatusOK, request{path: v1 + "/status", header: header, from: from})
		}
		right := exchange(nil)
		right.from = from
		answer(t, s, http.StatusNoContent, right)
	}
	now = now.Add(7 * time.Second)
	require.Equal(t, http.StatusUnauthorized, guess(0).StatusCode)
}

// The events name the login for which a trusted caller acts.
func TestBy(t *testing.T) {
	for _, tt := range []struct{ name, token, login, origin, from, by string }{
		{"the plugin", token, "gräfin@example.com", "", "", "gräfin@example.com"},
		{"a script", token, "", "", "", "api"},
		{"this machine", "", "admin", "", "", "admin"},
		{"a script on this machine", "", "", "", "", "api"},
		{"the page on this machine", "", "", "http://localhost", "", "page"},
		{"another machine, without a token", "", "admin", "", "192.0.2.1:1234", "api"},
	} {
		b := &recorder{}
		s := newServer(t, b, func(o *Options) { o.Token = tt.token })
		q := post("/workload/stop", stop, bearer(tt.token))
		q.from = tt.from
		for name, value := range map[string]string{api.UserHeader: tt.login, "Origin": tt.origin} {
			if value != "" {
				q.header[name] = value
			}
		}
		answer(t, s, http.StatusOK, q)
		require.Equal(t, tt.by, b.last().by, tt.name)
	}
}

// A login that would spoil a log or a screen is refused with its field.
func TestOddLogin(t *testing.T) {
	for _, login := range []string{strings.Repeat("x", api.MaxLogin+1), "a\tb", "\xff\xfe", "a\u202eb"} {
		b := &recorder{}
		p := refusal(t, newServer(t, b, nil), post("/workload/stop", stop, map[string]string{api.UserHeader: login}))
		require.Equal(t, http.StatusUnprocessableEntity, p.Status)
		require.Equal(t, api.UserHeader, p.Field)
		require.Empty(t, b.calls)
	}
}

// Without a token the server listens only on loopback addresses.
func TestCheckListen(t *testing.T) {
	for addr, tokens := range map[string][]string{ // with which it is allowed
		"127.0.0.1:8088": {"", token},
		"localhost:8088": {"", token},
		"[::1]:0":        {"", token},
		"127.8.8.8:8088": {"", token},

		"[::ffff:127.0.0.1]:8088": {"", token},
		"[fe80::1%eth0]:8088":     {token},

		":8088":              {token},
		"0.0.0.0:8088":       {token},
		"[::]:8088":          {token},
		"192.0.2.1:8088":     {token},
		"booth.example:8088": {token},
		"8088":               nil,
		"127.0.0.1:80808":    nil,
		"":                   nil,
	} {
		for _, with := range []string{"", token} {
			err := CheckListen(addr, with)
			var field *api.FieldError
			require.Equal(t, !slices.Contains(tokens, with), errors.As(err, &field), "%s %q: %v", addr, with, err)
			require.True(t, err == nil || field.Field == "listen", err)
		}
	}
}

// Invalid options are refused before the server starts. A token is never repeated.
func TestBadOptions(t *testing.T) {
	for _, tt := range []struct{ field, value string }{
		{"token", "two words"},
		{"token", "schlüssel"},
		{"token", strings.Repeat("x", api.MaxToken+1)},
		{"metrics_token", "two words"},
		{"hosts", "http://booth.example"},
		{"hosts", "booth.example/x"},
		{"hosts", ""},
	} {
		opts := options(&recorder{})
		switch tt.field {
		case "token":
			opts.Token = tt.value
		case "metrics_token":
			opts.MetricsToken = tt.value
		default:
			opts.Hosts = []string{tt.value}
		}
		_, err := New(opts)
		var field *api.FieldError
		require.ErrorAs(t, err, &field)
		require.Equal(t, tt.field, field.Field)
		require.True(t, tt.field == "hosts" || !strings.Contains(err.Error(), tt.value))
	}
	_, err := New(Options{Backend: &recorder{}})
	require.Error(t, err)
}

// Every answer restricts what a browser may do with it, and no cache keeps an answer of the API.
func TestSecurityHeaders(t *testing.T) {
	s := newServer(t, &recorder{csv: "id\n"}, withToken)
	for _, q := range withPage(s) {
		q.header = bearer(token)
		res, _ := do(t, s, q.request)
		require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"), q.pattern)
		if !strings.HasSuffix(q.path, "report.html") { // it has its own policy
			require.Contains(t, res.Header.Get("Content-Security-Policy"), "default-src 'self'", q.pattern)
			require.Contains(t, res.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'", q.pattern)
		}
		require.Empty(t, res.Header.Get("Access-Control-Allow-Origin"))
		if q.handle != nil {
			require.Equal(t, "no-store", res.Header.Get("Cache-Control"), q.pattern)
		}
	}
}
