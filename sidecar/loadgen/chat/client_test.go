package chat

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kvbooth/sidecar/api"
)

func TestParseURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:8000":       "http://127.0.0.1:8000/v1",
		"http://127.0.0.1:8000/":      "http://127.0.0.1:8000/v1",
		"http://127.0.0.1:8000/v1":    "http://127.0.0.1:8000/v1",
		"http://127.0.0.1:8000/v1/":   "http://127.0.0.1:8000/v1",
		"https://gateway/llama/v1":    "https://gateway/llama/v1",
		"https://gateway/llama":       "https://gateway/llama/v1",
		"http://[::1]:8000":           "http://[::1]:8000/v1",
		"":                            "",
		"127.0.0.1:8000":              "",
		"localhost":                   "",
		"ftp://host":                  "",
		"unix:///socket":              "",
		"http://":                     "",
		"http://:8000":                "",
		"http://host:0":               "",
		"http://host:70000":           "",
		"http://host:port":            "",
		"http://user:password@host":   "",
		"http://host/v1?key=1":        "",
		"http://host/v1?":             "",
		"http://host/v1#x":            "",
		"http://host/\r\nX-Evil: 1":   "",
		"http://ho st":                "",
		"http://host/a b/v1":          "http://host/a%20b/v1",
		"http://host/%0d%0aX-Evil/v1": "http://host/%0d%0aX-Evil/v1",
	} {
		u, err := ParseURL(in)
		var field *api.FieldError
		switch {
		case want == "" && !(errors.As(err, &field) && field.Field == "target.url" && field.Value == fmt.Sprintf("%q", in) && strings.Contains(field.Allowed, "http://")):
			t.Errorf("%q: got %v, %v; want a field error", in, u, err)
		case want != "" && (err != nil || u.String() != want):
			t.Errorf("%q: got %v, %v; want %s", in, u, err, want)
		}
	}
}

func TestNew(t *testing.T) {
	var field *api.FieldError
	if _, err := New(Options{URL: "nowhere"}); !errors.As(err, &field) {
		t.Errorf("a bad URL: got %v", err)
	}
	if _, err := New(Options{URL: "https://host", CA: []byte("no PEM")}); !errors.As(err, &field) || field.Field != "target.ca_file" {
		t.Errorf("a bad CA: got %v", err)
	}
	c := clientOf(t, "http://host:8000/v1")
	if c.Root() != "http://host:8000" || c.Model() != "m" || len(c.Extensions()) != 0 {
		t.Errorf("root %s, model %s, extensions %v", c.Root(), c.Model(), c.Extensions())
	}
}

// What stands on the wire.
func TestRequest(t *testing.T) {
	s, got := recorded(t)
	c := clientOf(t, s.url, func(o *Options) { o.Model, o.APIKey = "llama", "secret" })
	c.ext.set(map[string]bool{ExtStreamOptions: true, ExtNVExt: true})
	r := c.Do(t.Context(), Request{ID: "42-3", Messages: hello(), MaxTokens: 830, Instance: "16549284283275536882"})
	if !r.OK() {
		t.Fatal(outcome(r))
	}
	in := <-got
	want := `{"model":"llama","messages":[{"role":"user","content":"Hello."}],"max_tokens":830,"stream":true,"stream_options":{"include_usage":true},` +
		`"nvext":{"extra_fields":["worker_id","timing"],"backend_instance_id":16549284283275536882}}`
	if strings.TrimSpace(string(in.body)) != want {
		t.Errorf("body\n%s\nwant\n%s", in.body, want)
	}
	if in.req.Method != "POST" || in.req.URL.Path != "/v1/chat/completions" || "http://"+in.req.Host != s.url {
		t.Errorf("%s %s at %s", in.req.Method, in.req.URL, in.req.Host)
	}
	for header, want := range map[string]string{
		"X-Request-Id": "42-3", "Authorization": "Bearer secret", "Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": "",
	} {
		if v := in.req.Header.Get(header); v != want {
			t.Errorf("%s: %q, want %q", header, v, want)
		}
	}
}

// What is not asked for is not sent: a server may refuse what it does not know.
func TestPlainRequest(t *testing.T) {
	s, got := recorded(t)
	c := clientOf(t, s.url)
	c.Do(t.Context(), Request{Messages: hello(), Instance: "7"})
	in := <-got
	if want := `{"model":"m","messages":[{"role":"user","content":"Hello."}],"stream":true}`; strings.TrimSpace(string(in.body)) != want {
		t.Errorf("body\n%s\nwant\n%s", in.body, want)
	}
	for _, header := range []string{"X-Request-Id", "Authorization"} {
		if _, ok := in.req.Header[header]; ok {
			t.Errorf("%s was sent", header)
		}
	}
}

// Nothing that comes from outside can end a header's line.
func TestHeaderInjection(t *testing.T) {
	s, got := recorded(t)
	evil := "a\r\nX-Evil: 1\n\r\n\r\nGET / HTTP/1.1\r\n"
	c := clientOf(t, s.url, func(o *Options) { o.APIKey = evil })
	if r := c.Do(t.Context(), Request{ID: evil, Messages: hello()}); !r.OK() {
		t.Fatal(outcome(r))
	}
	in := <-got
	if in.req.Header.Get("X-Evil") != "" || !strings.HasPrefix(in.req.Header.Get("X-Request-Id"), "aX-Evil") || s.requests.Load() != 1 {
		t.Errorf("%d requests with headers %v", s.requests.Load(), in.req.Header)
	}
}

func TestBadInstance(t *testing.T) {
	c := clientOf(t, "http://host")
	c.ext.set(map[string]bool{ExtNVExt: true})
	r := c.Do(t.Context(), Request{Instance: `1,"x":2`})
	wantError(t, r.Err, api.ErrorMalformed, "cannot write the request")
}

// Requests share a connection. The response's end may come behind [DONE], in a read of its own.
func TestReusedAfterALateEnd(t *testing.T) {
	seen := make(chan struct{}, 1)
	s := serve(t, func(c call) bool {
		c.write(streamHead + framed(event("a")))
		<-seen
		c.write(framed(doneEvent))
		c.write(lastChunk)
		return true
	})
	c := clientOf(t, s.url)
	for range 3 {
		if r := c.Do(t.Context(), Request{Messages: hello(), OnChunk: func(int) { seen <- struct{}{} }}); !r.OK() {
			t.Fatal(outcome(r))
		}
	}
	if n := s.accepts.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Kept connections are closed in time, or by Close, after which the client is still usable.
func TestIdleConnectionsAreClosed(t *testing.T) {
	closed := make(chan struct{}, 3)
	s := serve(t, func(c call) bool {
		c.write(oneToken)
		c.hold()
		closed <- struct{}{}
		return false
	})
	do(t, clientOf(t, s.url, func(o *Options) { o.IdleTimeout = 50 * time.Millisecond }))
	<-closed
	c := clientOf(t, s.url)
	for range 2 {
		do(t, c)
		c.Close()
		<-closed
	}
}

// parallel sends n requests at once, so that n connections are kept afterwards.
// The server reports each on arrived and answers after release.
func parallel(t *testing.T, c *Client, n int, arrived <-chan struct{}, release chan<- struct{}) {
	t.Helper()
	results := make(chan Result)
	for range n {
		go func() { results <- c.Do(context.Background(), Request{Messages: hello()}) }()
	}
	for range n {
		<-arrived
	}
	close(release)
	for range n {
		if r := <-results; !r.OK() {
			t.Fatal(outcome(r))
		}
	}
}

// A server closes kept connections; it may do so just when a request comes. That
// is no fault of the target's: the request goes out again, over a new connection.
func TestKeptConnectionsThatTheServerClosed(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(c call) bool {
		switch {
		case c.nth > 1: // closes as soon as a second request has come
			return false
		case c.req.Header.Get("X-Request-Id") == "":
			arrived <- struct{}{}
			<-release
		}
		c.write(oneToken)
		return true
	})
	c := clientOf(t, s.url)
	parallel(t, c, 3, arrived, release)
	r := c.Do(t.Context(), Request{ID: "x", Messages: hello()})
	if !r.OK() || len(r.Chunks) != 1 || !r.Resent {
		t.Fatalf("resent %v: got %s", r.Resent, outcome(r))
	}
	if s.accepts.Load() != 4 || s.requests.Load() != 5 {
		t.Errorf("%d connections, %d requests; want the fifth to go over a new, fourth connection", s.accepts.Load(), s.requests.Load())
	}
}

func TestSentAgainOnce(t *testing.T) {
	first := true
	s := serve(t, func(c call) bool {
		if first {
			first = false
			c.write(oneToken)
			return true
		}
		return false
	})
	c := clientOf(t, s.url)
	do(t, c)
	r := c.Do(t.Context(), Request{Messages: hello()})
	wantError(t, r.Err, api.ErrorConnect)
	if !r.Resent || s.requests.Load() != 3 {
		t.Errorf("%d requests: %s", s.requests.Load(), outcome(r))
	}
}

// What has been answered, if only by a byte, is not sent again: the server works on it.
func TestNotSentAgain(t *testing.T) {
	for _, said := range []string{"H", "HTTP/1.1 100 Continue\r\n\r\n", streamHead, streamHead + framed(event("a"))} {
		s := serve(t, func(c call) bool {
			if c.nth == 1 {
				c.write(oneToken)
				return true
			}
			c.write(said)
			return false
		})
		c := clientOf(t, s.url)
		do(t, c)
		if r := c.Do(t.Context(), Request{Messages: hello()}); r.Err == nil || r.Resent || s.requests.Load() != 2 {
			t.Errorf("after %q: %d requests: %s", said, s.requests.Load(), outcome(r))
		}
	}
}

// A kept connection that is known to be closed is not even tried.
func TestDeadConnectionIsNotTried(t *testing.T) {
	s := serve(t, func(c call) bool { c.write(oneToken); return false })
	c := clientOf(t, s.url)
	kept := c.kept.(*pool)
	for range 3 {
		if r := do(t, c); r.Resent {
			t.Error("a closed connection was tried")
		}
		eventually(t, "the end of the connection", func() bool { return !silent(kept.idle[0].socket) })
	}
	if s.requests.Load() != 3 {
		t.Errorf("%d requests", s.requests.Load())
	}
}

// Live can be read while the stream writes it.
func TestLive(t *testing.T) {
	next := make(chan struct{})
	words := []string{"one ", "two ", "three"}
	s := serve(t, func(c call) bool {
		c.write(streamHead + framed(roleOnly))
		for _, w := range words {
			<-next
			c.write(framed(`data: {"choices":[{"delta":{"content":"` + w + `"}}],"nvext":{"worker_id":{"decode_worker_id":18446744073709551615}}}` + "\n\n"))
		}
		<-next
		c.write(framed(doneEvent) + lastChunk)
		return true
	})
	var live Live
	if sent, _, waiting := live.First(); !sent.IsZero() || !waiting {
		t.Error("an unused Live is not empty")
	}
	result := make(chan Result)
	c := clientOf(t, s.url)
	go func() { result <- c.Do(context.Background(), Request{Messages: hello(), Live: &live}) }()
	eventually(t, "it is sent", func() bool { sent, _, _ := live.First(); return !sent.IsZero() })
	if _, _, waiting := live.First(); !waiting || live.Worker() != 0 || live.Text() != "" {
		t.Error("something is there before the first token")
	}
	for i := range words {
		next <- struct{}{}
		want := strings.Join(words[:i+1], "")
		eventually(t, want, func() bool { return live.Text() == want })
	}
	sent, ttft, waiting := live.First()
	close(next)
	r := <-result
	if got, _ := r.TTFT(); !r.OK() || waiting || ttft != got || !sent.Equal(r.Sent) || live.Worker() != 1<<64-1 || r.Worker != 1<<64-1 || r.Content != "one two three" {
		t.Errorf("live %v %v %v %d; %s", sent, ttft, waiting, live.Worker(), outcome(r))
	}
}

// tlsServer answers over TLS.
func tlsServer(t *testing.T, handler http.HandlerFunc) (s *httptest.Server, ca []byte) {
	t.Helper()
	s = httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func TestTLS(t *testing.T) {
	t.Parallel()
	addresses := map[string]bool{}
	s, ca := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		addresses[r.RemoteAddr] = true
		if r.URL.Path == "/v1/models" {
			_, _ = io.WriteString(w, `{"data":[{"id":"llama"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range dynamoEvents(t) {
			_, _ = io.WriteString(w, e)
			_ = http.NewResponseController(w).Flush()
		}
	})
	trusting := clientOf(t, s.URL, func(o *Options) { o.CA = ca })
	for range 3 {
		if r := do(t, trusting); r.Content != "roughputsweeprove" || len(r.Chunks) != 3 {
			t.Errorf("got %s", outcome(r))
		}
	}
	if len(addresses) != 1 {
		t.Errorf("%d connections", len(addresses))
	}
	if models, err := trusting.Models(t.Context()); err != nil || len(models) != 1 || models[0] != "llama" {
		t.Errorf("models %v, %v", models, err)
	}
	_, stranger := selfSigned(t)
	for _, c := range []*Client{clientOf(t, s.URL), clientOf(t, s.URL, func(o *Options) { o.CA = stranger })} {
		r := c.Do(t.Context(), Request{Messages: hello()})
		_, models := c.Models(t.Context())
		for _, err := range []*Error{r.Err, models} {
			wantError(t, err, api.ErrorConnect, "unknown authority; give the authority's certificate as target.ca_file")
		}
	}
}

// The protocol in target.url is the wrong one.
func TestTLSMismatch(t *testing.T) {
	s, ca := tlsServer(t, func(http.ResponseWriter, *http.Request) {})
	r := clientOf(t, strings.Replace(s.URL, "https", "http", 1)).Do(t.Context(), Request{Messages: hello()})
	wantError(t, r.Err, api.ErrorHTTP4xx, "HTTP request to an HTTPS server")
	plain := serveRaw(t, func(_ *server, c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") })
	r = clientOf(t, strings.Replace(plain.url, "http", "https", 1), func(o *Options) { o.CA = ca }).Do(t.Context(), Request{Messages: hello()})
	wantError(t, r.Err, api.ErrorConnect, "use http:// in target.url")
}

// Over TLS, too, limits hold and giving up is quick, though the server reads nothing.
func TestTLSFaults(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	s, ca := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Request-Id") == "stall" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, event("a"))
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	limit := 300 * time.Millisecond
	trust := func(o *Options) { o.CA = ca }
	r := clientOf(t, s.URL, trust, stall(limit)).Do(t.Context(), Request{ID: "stall", Messages: hello()})
	wantError(t, r.Err, api.ErrorStall)
	if r.Content != "a" {
		t.Errorf("stall: got %s", outcome(r))
	}
	r = sendHuge(t.Context(), clientOf(t, s.URL, trust, firstToken(limit)))
	wantError(t, r.Err, api.ErrorTimeout)
}

// An authority that the handshake does not reach in time is a failed connection.
func TestHandshakeTimesOut(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(s *server, _ net.Conn) { <-s.gone })
	c := clientOf(t, strings.Replace(s.url, "http", "https", 1), func(o *Options) { o.ConnectTimeout = 100 * time.Millisecond })
	r := c.Do(t.Context(), Request{Messages: hello()})
	wantError(t, r.Err, api.ErrorConnect, "target.connect_timeout")
}

// selfSigned makes a certificate that only it itself vouches for; change, if given,
// changes it first.
func selfSigned(t *testing.T, change ...func(*x509.Certificate)) (cert tls.Certificate, inPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"script"}, NotAfter: time.Now().Add(time.Hour)}
	for _, f := range change {
		f(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
