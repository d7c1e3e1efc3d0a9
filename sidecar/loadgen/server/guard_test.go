package server

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"kvbooth/sidecar/api"
)

const stop = `{"drain":true}`

// A name that the server does not know may be another site's, rebound to this
// address by its DNS: refused for every call, whatever else it brings.
func TestHost(t *testing.T) {
	for _, tt := range []struct {
		host, path string
		ok         bool
	}{
		{"localhost", v1 + "/status", true},
		{"localhost:1234", v1 + "/status", true}, // a forwarded port
		{"LocalHost.", v1 + "/status", true},
		{"127.0.0.1:8088", v1 + "/status", true},
		{"127.8.9.1", v1 + "/status", true},
		{"[::1]:8088", v1 + "/status", true},
		{"booth.example:443", v1 + "/status", true}, // configured
		{"Booth.Example", v1 + "/status", true},
		{"evil.example", v1 + "/status", false},
		{"evil.example:8088", v1 + "/status", false},
		{"localhost.evil.example", v1 + "/status", false},
		{"127.0.0.1.evil.example", v1 + "/status", false},
		{"10.1.2.3:8088", v1 + "/status", false},
		{"[::ffff:10.1.2.3]", v1 + "/status", false},
		{"evil.example", "/", false},
		{"evil.example", "/nothing", false},
		{"evil.example", v1 + "/stream", false},
		{"evil.example", v1 + "/openapi.yaml", false},
		// Kubelets and Prometheus call by address; a name is still no good.
		{"10.1.2.3:8088", "/healthz", true},
		{"10.1.2.3:8088", "/readyz", true},
		{"[fd00::1]:8088", "/metrics", true},
		{"evil.example", "/healthz", false},
		{"evil.example", "/metrics", false},
	} {
		t.Run(tt.host+tt.path, func(t *testing.T) {
			b := &recorder{}
			_, ts := start(t, b, func(o *Options) { o.Hosts = []string{"booth.example"} })
			res, text := do(t, ts.URL, request{path: tt.path, host: tt.host})
			if tt.ok {
				require.Equal(t, http.StatusOK, res.StatusCode, text)
				return
			}
			require.Equal(t, http.StatusMisdirectedRequest, res.StatusCode, text)
			require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
		})
	}
}

// A page of another site is refused, for reads too; the server's own is not.
func TestOrigin(t *testing.T) {
	_, ts := start(t, &recorder{}, func(o *Options) { o.Hosts = []string{"booth.example"} })
	for _, tt := range []struct {
		host, origin, proto string
		ok                  bool
	}{
		{"localhost:8088", "http://localhost:8088", "", true},
		{"booth.example", "http://booth.example", "", true},
		{"booth.example", "https://booth.example", "https", true}, // a proxy in front ends TLS
		{"booth.example", "https://booth.example", "", false},
		{"booth.example", "http://booth.example", "https", false},
		{"localhost:8088", "http://localhost:3000", "", false}, // another server on this machine
		{"localhost:8088", "http://localhost", "", false},
		{"localhost:8088", "http://127.0.0.1:8088", "", false},
		{"localhost:8088", "http://evil.example", "", false},
		{"localhost:8088", "http://localhost:8088.evil.example", "", false},
		{"localhost:8088", "http://evil@localhost:8088", "", false},
		{"localhost:8088", "http://localhost:8088/", "", false},
		{"localhost:8088", "null", "", false}, // a sandboxed frame or a file
		{"localhost:8088", "", "", false},
	} {
		for _, q := range []request{{path: v1 + "/status"}, {path: "/healthz"}, {path: "/"}, {method: "POST", path: v1 + "/workload/stop", body: stop}} {
			q.host, q.header = tt.host, map[string]string{"Origin": tt.origin, "X-Forwarded-Proto": tt.proto}
			res, text := do(t, ts.URL, q)
			want := map[bool]int{true: 200, false: 403}[tt.ok]
			require.Equal(t, want, res.StatusCode, "%+v %s: %s", tt, q.path, text)
		}
	}
}

// Without the token nothing but health, metrics that have no token of their own, the
// page's files and the exchange of the token is to be had.
func TestToken(t *testing.T) {
	s, ts := start(t, &recorder{}, withToken)
	s.failures.SetLimit(rate.Inf) // what it does is another test's
	for _, rt := range s.routes() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		for _, header := range []map[string]string{nil, bearer(""), bearer("wrong"), bearer(token + "x"), {"Authorization": token}, {"Authorization": "Basic " + token}, {"Cookie": cookieName + "=wrong"}, {"Cookie": cookieName + "=" + token}} {
			res, _ := do(t, ts.URL, request{method: method, path: path, body: stop, header: header})
			if rt.access == probe || rt.access == scrape || rt.access == public {
				require.NotEqual(t, http.StatusUnauthorized, res.StatusCode, rt.pattern) // session: 422, no token in its body
				continue
			}
			require.Equal(t, http.StatusUnauthorized, res.StatusCode, "%s %v", rt.pattern, header)
			require.Equal(t, "Bearer", res.Header.Get("WWW-Authenticate"))
		}
	}
	for _, header := range []map[string]string{bearer(token), {"Authorization": "bearer  " + token}} {
		res, _ := do(t, ts.URL, request{path: v1 + "/status", header: header})
		require.Equal(t, http.StatusOK, res.StatusCode)
	}
	res, _ := do(t, ts.URL, request{path: "/"})
	require.Equal(t, http.StatusOK, res.StatusCode)
}

// The metrics' token, as Prometheus sends it, opens the metrics and nothing else. What
// opens everything opens them, too; a public page does not.
func TestMetricsToken(t *testing.T) {
	const own = "a-token-for-the-metrics"
	metrics := func(header map[string]string) request {
		return request{path: "/metrics", host: "10.1.2.3:8088", header: header}
	}
	for name, change := range map[string]func(*Options){
		"beside a token":          func(o *Options) { o.Token = token },
		"beside a public page":    func(o *Options) { o.Token, o.PublicPage = token, true },
		"where there is no other": func(*Options) {},
	} {
		t.Run(name, func(t *testing.T) {
			s, ts := start(t, &recorder{}, func(o *Options) {
				o.MetricsToken = own
				change(o)
			})
			for _, header := range []map[string]string{nil, bearer(""), bearer("wrong"), {"Authorization": own}, {"Authorization": "Basic " + own}, {"Cookie": cookieName + "=" + own}} {
				require.Equal(t, http.StatusUnauthorized, refusal(t, ts.URL, metrics(header)).Status, "%v", header)
			}
			require.Equal(t, http.StatusUnauthorized, refusal(t, ts.URL, request{path: "/metrics?token=" + own}).Status)
			res, text := do(t, ts.URL, metrics(bearer(own)))
			require.Equal(t, http.StatusOK, res.StatusCode)
			require.Equal(t, "up 1\n", text)
			res, _ = do(t, ts.URL, request{path: "/healthz"})
			require.Equal(t, http.StatusOK, res.StatusCode)
			if s.opts.Token == "" {
				return
			}
			res, _ = do(t, ts.URL, metrics(bearer(token)))
			require.Equal(t, http.StatusOK, res.StatusCode)
			c := session(t, ts, nil)
			res, _ = do(t, ts.URL, request{path: "/metrics", header: map[string]string{"Cookie": c.Name + "=" + c.Value}})
			require.Equal(t, http.StatusOK, res.StatusCode)
			s.failures.SetLimit(rate.Inf) // what it does is another test's
			for _, rt := range s.routes() {
				if method, path, _ := strings.Cut(rt.pattern, " "); rt.access == read || rt.access == write {
					require.Equal(t, http.StatusUnauthorized, refusal(t, ts.URL, request{method: method, path: path, body: stop, header: bearer(own)}).Status, rt.pattern)
				}
			}
		})
	}
}

// A token in a URL, where logs would keep it, opens nothing, and is refused even
// beside one in the header. It is not repeated.
func TestTokenInURL(t *testing.T) {
	_, ts := start(t, &recorder{}, withToken)
	for _, name := range []string{"token", "access_token"} {
		path := v1 + "/status?" + name + "=" + token
		require.Equal(t, http.StatusUnauthorized, refusal(t, ts.URL, request{path: path}).Status)
		p := refusal(t, ts.URL, request{path: path, header: bearer(token)})
		require.Equal(t, http.StatusUnprocessableEntity, p.Status)
		require.NotContains(t, fmt.Sprint(p), token)
	}
}

// The public page reads without a token, and changes nothing. A wrong token is
// told, not ignored.
func TestPublicPage(t *testing.T) {
	s, ts := start(t, &recorder{}, func(o *Options) { o.Token, o.PublicPage = token, true })
	for _, rt := range s.routes() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		if path == v1+"/stream" {
			continue // has tests of its own
		}
		if strings.HasPrefix(path, v1+"/report.") {
			path += "?a=x&b=y" // which it cannot do without
		}
		res, text := do(t, ts.URL, request{method: method, path: path, body: stop})
		switch rt.access {
		case read:
			require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", rt.pattern, text)
		case write:
			require.Equal(t, http.StatusUnauthorized, res.StatusCode, rt.pattern)
		}
	}
	require.Equal(t, http.StatusUnauthorized, refusal(t, ts.URL, request{path: v1 + "/status", header: bearer("wrong")}).Status)
}

// session exchanges the token for a cookie.
func session(t *testing.T, ts *httptest.Server, header map[string]string) *http.Cookie {
	t.Helper()
	res, text := do(t, ts.URL, request{method: "POST", path: v1 + "/session", body: `{"token":"` + token + `"}`, header: header})
	require.Equal(t, http.StatusNoContent, res.StatusCode, text)
	require.Len(t, res.Cookies(), 1)
	return res.Cookies()[0]
}

// The cookie opens what the token opens, for a day at the booth, and no script
// or other site gets hold of it.
func TestSession(t *testing.T) {
	b := &recorder{}
	s, ts := start(t, b, withToken)
	now := time.Now()
	s.now = func() time.Time { return now }

	c := session(t, ts, nil)
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.Equal(t, "/", c.Path)
	require.False(t, c.Secure)
	require.NotContains(t, c.Value, token)
	require.True(t, session(t, ts, map[string]string{"X-Forwarded-Proto": "https"}).Secure)

	with := map[string]string{"Cookie": c.Name + "=" + c.Value, api.UserHeader: "admin"}
	q := request{method: "POST", path: v1 + "/workload/stop", body: stop, header: with}
	res, text := do(t, ts.URL, q)
	require.Equal(t, http.StatusOK, res.StatusCode, text)
	require.Equal(t, "page", b.last().by, "a page cannot speak for a login")

	now = now.Add(sessionLife - time.Second)
	res, _ = do(t, ts.URL, q)
	require.Equal(t, http.StatusOK, res.StatusCode)
	now = now.Add(time.Second)
	require.Equal(t, http.StatusUnauthorized, refusal(t, ts.URL, q).Status)
}

// What a page may offer: everything where no token is configured; else nothing,
// or what a public page shows, until the token was exchanged, and until the
// session is ended.
func TestReadSession(t *testing.T) {
	read := func(url string, header map[string]string) api.Session {
		res, text := do(t, url, request{path: v1 + "/session", header: header})
		require.Equal(t, http.StatusOK, res.StatusCode, text)
		var s api.Session
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		return s
	}
	_, open := start(t, &recorder{}, nil)
	require.Equal(t, api.Session{CanRead: true, CanWrite: true}, read(open.URL, nil))

	for _, public := range []bool{false, true} {
		_, ts := start(t, &recorder{}, func(o *Options) { o.Token, o.PublicPage = token, public })
		none := api.Session{TokenRequired: true, CanRead: public}
		require.Equal(t, none, read(ts.URL, nil))
		require.Equal(t, none, read(ts.URL, map[string]string{"Cookie": cookieName + "=wrong"}))

		c := session(t, ts, nil)
		with := map[string]string{"Cookie": c.Name + "=" + c.Value}
		require.Equal(t, api.Session{TokenRequired: true, Authenticated: true, CanRead: true, CanWrite: true}, read(ts.URL, with))

		for range 2 { // who has no session any more may end it again
			res, text := do(t, ts.URL, request{method: "DELETE", path: v1 + "/session", header: with})
			require.Equal(t, http.StatusNoContent, res.StatusCode, text)
			require.Len(t, res.Cookies(), 1)
			require.Negative(t, res.Cookies()[0].MaxAge)
			require.Empty(t, res.Cookies()[0].Value)
		}
		require.Equal(t, none, read(ts.URL, with))
		q := request{method: "POST", path: v1 + "/workload/stop", body: stop, header: with}
		require.Equal(t, http.StatusUnauthorized, refusal(t, ts.URL, q).Status)
	}
}

// Where there is no token there is nothing to exchange.
func TestSessionWithoutToken(t *testing.T) {
	_, ts := start(t, &recorder{}, nil)
	p := refusal(t, ts.URL, request{method: "POST", path: v1 + "/session", body: `{"token":"x"}`})
	require.Equal(t, http.StatusConflict, p.Status)
}

// However many sessions begin, memory holds a bounded number: the newest.
func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	now := time.Now()
	first := s.begin(now)
	for i := range maxSessions {
		s.begin(now.Add(time.Duration(i+1) * time.Millisecond))
	}
	last := s.begin(now.Add(time.Minute))
	require.Len(t, s.ends, maxSessions)
	require.False(t, s.valid(first, now.Add(time.Minute)))
	require.True(t, s.valid(last, now.Add(time.Minute)))

	s.begin(now.Add(sessionLife + time.Hour))
	require.Len(t, s.ends, 1, "those that ended make room")
}

// from sends a call as if from an address.
func from(s *Server, addr, method, path, body string, header map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.RemoteAddr = addr
	r.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// Guesses are slowed down together, however many addresses they come from, in the
// header and at the exchange alike.
func TestGuessing(t *testing.T) {
	s, _ := start(t, &recorder{}, withToken)
	now := time.Now()
	s.now = func() time.Time { return now }
	guess := func(i int) *httptest.ResponseRecorder {
		if i%2 == 0 {
			return from(s, "192.0.2.1:1", "GET", v1+"/status", "", bearer("wrong"))
		}
		return from(s, fmt.Sprintf("[2001:db8:%x::1]:1", i), "POST", v1+"/session", `{"token":"wrong"}`, nil)
	}
	for i := range failureBurst {
		require.Equal(t, http.StatusUnauthorized, guess(i).Code)
	}
	for i := range 2 {
		w := guess(i)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "7", w.Header().Get("Retry-After"))
	}
	require.Equal(t, http.StatusTooManyRequests, from(s, "192.0.2.1:1", "GET", v1+"/status", "", bearer(strings.Repeat("x", api.MaxToken+1))).Code)
	now = now.Add(7 * time.Second)
	require.Equal(t, http.StatusUnauthorized, guess(0).Code)
}

// Nobody's guesses lock out who knows the token: not from the same address, not
// from one that was never seen, not at the exchange, and not from a stream.
func TestGuessesLockNobodyOut(t *testing.T) {
	s, ts := start(t, &recorder{}, withToken)
	cookie := session(t, ts, nil)
	for range 100 {
		from(s, "192.0.2.1:1", "GET", v1+"/status", "", bearer("wrong"))
		res, _ := do(t, ts.URL, request{path: v1 + "/status", header: bearer("wrong")})
		require.GreaterOrEqual(t, res.StatusCode, 400)
	}
	for i := range 1100 {
		from(s, fmt.Sprintf("[2001:db8:0:%x::1]:1", i), "POST", v1+"/session", `{"token":"wrong"}`, nil)
	}
	for _, addr := range []string{"192.0.2.1:2", "[2001:db8:0:1::1]:2", "[2001:db8:1::1]:1", "198.51.100.7:1"} {
		require.Equal(t, http.StatusOK, from(s, addr, "GET", v1+"/status", "", bearer(token)).Code, addr)
		require.Equal(t, http.StatusNoContent, from(s, addr, "POST", v1+"/session", `{"token":"`+token+`"}`, nil).Code, addr)
		require.Equal(t, http.StatusOK, from(s, addr, "GET", v1+"/status", "", map[string]string{"Cookie": cookie.Name + "=" + cookie.Value}).Code, addr)
	}
	_, _, err := dial(t, ts.URL, http.Header{"Authorization": {"Bearer " + token}})
	require.NoError(t, err)
}

// Who is named in the events: the login that a trusted caller speaks for.
func TestBy(t *testing.T) {
	for _, tt := range []struct {
		name   string
		token  string
		header map[string]string
		by     string
	}{
		{"the plugin", token, bearer(token, api.UserHeader, "admin"), "admin"},
		{"a login beyond ASCII", token, bearer(token, api.UserHeader, "gräfin@example.com"), "gräfin@example.com"},
		{"a script", token, bearer(token), "api"},
		{"this machine", "", map[string]string{api.UserHeader: "admin"}, "admin"},
		{"a script on this machine", "", nil, "api"},
		{"the page on this machine", "", map[string]string{"Origin": "own"}, "page"},
	} {
		b := &recorder{}
		_, ts := start(t, b, func(o *Options) { o.Token = tt.token })
		if tt.header["Origin"] != "" {
			tt.header["Origin"] = ts.URL
		}
		res, text := do(t, ts.URL, request{method: "POST", path: v1 + "/workload/stop", body: stop, header: tt.header})
		require.Equal(t, http.StatusOK, res.StatusCode, text)
		require.Equal(t, tt.by, b.last().by, tt.name)
	}
}

// A login from elsewhere is not believed where no token tells who may say it.
func TestByOfOthers(t *testing.T) {
	b := &recorder{}
	s, _ := start(t, b, nil)
	r := httptest.NewRequest("POST", "http://localhost"+v1+"/workload/stop", strings.NewReader(stop))
	r.RemoteAddr = "192.0.2.1:1234"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(api.UserHeader, "admin")
	s.ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, "api", b.last().by)
}

// A login that would spoil a log or a screen is refused by name.
func TestOddLogin(t *testing.T) {
	for _, login := range []string{strings.Repeat("x", api.MaxLogin+1), "a\tb", "\xff\xfe", "a\u202eb"} {
		b := &recorder{}
		_, ts := start(t, b, nil)
		p := refusal(t, ts.URL, request{method: "POST", path: v1 + "/workload/stop", body: stop, header: map[string]string{api.UserHeader: login}})
		require.Equal(t, http.StatusUnprocessableEntity, p.Status)
		require.Equal(t, api.UserHeader, p.Field)
		require.Empty(t, b.last().name)
	}
}

// Without a token only this machine is listened to.
func TestCheckListen(t *testing.T) {
	for _, tt := range []struct {
		addr, token string
		ok          bool
	}{
		{"127.0.0.1:8088", "", true},
		{"localhost:8088", "", true},
		{"[::1]:0", "", true},
		{":8088", "", false},
		{"0.0.0.0:8088", "", false},
		{"[::]:8088", "", false},
		{"192.0.2.1:8088", "", false},
		{"booth.example:8088", "", false},
		{":8088", token, true},
		{"booth.example:8088", token, true},
		{"8088", token, false},
		{"127.0.0.1:80808", token, false},
		{"", "", false},
	} {
		err := CheckListen(tt.addr, tt.token)
		if tt.ok {
			require.NoError(t, err, tt.addr)
			continue
		}
		var field *api.FieldError
		require.ErrorAs(t, err, &field, tt.addr)
		require.Equal(t, "listen", field.Field)
	}
}

// What cannot work is refused before it serves; a token is never repeated.
func TestBadOptions(t *testing.T) {
	for _, tt := range []struct {
		field  string
		change func(*Options)
	}{
		{"token", func(o *Options) { o.Token = "two words" }},
		{"token", func(o *Options) { o.Token = "schlüssel" }},
		{"token", func(o *Options) { o.Token = strings.Repeat("x", api.MaxToken+1) }},
		{"metrics_token", func(o *Options) { o.MetricsToken = "two words" }},
		{"hosts", func(o *Options) { o.Hosts = []string{"http://booth.example"} }},
		{"hosts", func(o *Options) { o.Hosts = []string{"booth.example/x"} }},
		{"hosts", func(o *Options) { o.Hosts = []string{""} }},
	} {
		opts := options(&recorder{})
		tt.change(&opts)
		_, err := New(opts)
		var field *api.FieldError
		require.ErrorAs(t, err, &field)
		require.Equal(t, tt.field, field.Field)
		if opts.Token != "" {
			require.NotContains(t, err.Error(), opts.Token)
		}
		if opts.MetricsToken != "" {
			require.NotContains(t, err.Error(), opts.MetricsToken)
		}
	}
	_, err := New(Options{Backend: &recorder{}})
	require.Error(t, err)
}

// Every answer keeps the browser from doing more with it than it should.
func TestSecurityHeaders(t *testing.T) {
	_, ts := start(t, &recorder{}, withToken)
	for _, path := range []string{"/", v1 + "/status", v1 + "/nothing", "/healthz", "/metrics"} {
		res, _ := do(t, ts.URL, request{path: path, header: bearer(token)})
		require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"), path)
		require.Contains(t, res.Header.Get("Content-Security-Policy"), "default-src 'self'")
		require.Contains(t, res.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.Empty(t, res.Header.Get("Access-Control-Allow-Origin"))
	}
	res, _ := do(t, ts.URL, request{path: v1 + "/status", header: bearer(token)})
	require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
}

// TLS of the server's own makes the origin https.
func TestOriginOverTLS(t *testing.T) {
	r := httptest.NewRequest("GET", "https://localhost:8088/", nil)
	r.TLS = &tls.ConnectionState{}
	r.Header.Set("Origin", "https://localhost:8088")
	require.True(t, api.OwnOrigin(r))
	r.Header.Set("Origin", "http://localhost:8088")
	require.False(t, api.OwnOrigin(r))
}
