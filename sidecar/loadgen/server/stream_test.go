package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

const patience = 10 * time.Second

func wsURL(base string) string { return "ws" + strings.TrimPrefix(base, "http") + v1 + "/stream" }

// dial opens a stream that the test's end closes.
func dial(t *testing.T, base string, header http.Header) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	conn, res, err := websocket.DefaultDialer.Dial(wsURL(base), header)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	}
	return conn, res, err
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, patience, time.Millisecond, what)
}

// A stream opens to whom a read is open, and to no page of another site.
func TestStreamGuard(t *testing.T) {
	_, ts := start(t, &recorder{}, withToken)
	_, publicTS := start(t, &recorder{}, func(o *Options) { o.Token, o.PublicPage = token, true })
	cookie := session(t, ts, nil)
	for _, tt := range []struct {
		name   string
		base   string
		header map[string]string
		status int
	}{
		{"the plugin", ts.URL, bearer(token), 101},
		{"the page", ts.URL, map[string]string{"Cookie": cookieName + "=" + cookie.Value, "Origin": ts.URL}, 101},
		{"the public page", publicTS.URL, map[string]string{"Origin": publicTS.URL}, 101},
		{"nobody", ts.URL, nil, 401},
		{"a wrong token", ts.URL, bearer("wrong"), 401},
		{"a wrong token at the public page", publicTS.URL, bearer("wrong"), 401},
		{"a wrong cookie", ts.URL, map[string]string{"Cookie": cookieName + "=wrong"}, 401},
		{"another site with the cookie", ts.URL, map[string]string{"Cookie": cookieName + "=" + cookie.Value, "Origin": "http://evil.example"}, 403},
		{"another site at the public page", publicTS.URL, map[string]string{"Origin": "http://evil.example"}, 403},
		{"a rebound name", publicTS.URL, map[string]string{"Host": "evil.example"}, 421},
	} {
		header := http.Header{}
		for k, v := range tt.header {
			header.Set(k, v)
		}
		_, res, err := dial(t, tt.base, header)
		require.Equal(t, tt.status, res.StatusCode, tt.name)
		require.Equal(t, tt.status != 101, err != nil, tt.name)
		if err != nil {
			require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"), tt.name)
		}
	}
}

// What is no handshake is answered as every error is.
func TestStreamWithoutUpgrade(t *testing.T) {
	_, ts := start(t, &recorder{}, nil)
	p := refusal(t, ts.URL, request{path: v1 + "/stream"})
	require.Equal(t, http.StatusBadRequest, p.Status)
	require.Contains(t, p.Detail, "websocket")
}

// A reader that reads gets every frame. One that does not loses some, gets the
// newest in the end, and keeps nobody waiting.
func TestSlowReader(t *testing.T) {
	b := &recorder{}
	_, ts := start(t, b, nil)
	fast, _, err := dial(t, ts.URL, nil)
	require.NoError(t, err)
	slow, _, err := dial(t, ts.URL, nil)
	require.NoError(t, err)
	require.NoError(t, slow.NetConn().(*net.TCPConn).SetReadBuffer(64<<10)) // or the kernel might keep all
	_, _, err = fast.ReadMessage()                                          // what is sent at once
	require.NoError(t, err)
	eventually(t, "both streams", func() bool { return b.subscribers() == 2 })

	const frames = 24
	padding := strings.Repeat(" ", 1<<20)
	for i := range frames {
		b.publish(fmt.Appendf(nil, "%d%s", i, padding))
		_, got, err := fast.ReadMessage()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), strings.TrimSpace(string(got)), "the fast reader gets them all")
	}

	_, _, err = slow.ReadMessage()
	require.NoError(t, err)
	got := []string{}
	for len(got) == 0 || got[len(got)-1] != fmt.Sprint(frames-1) {
		_, text, err := slow.ReadMessage()
		require.NoError(t, err)
		got = append(got, strings.TrimSpace(string(text)))
	}
	require.Less(t, len(got), frames, "the slow reader lost some")
}

// A client that goes, however it goes, leaves nothing behind.
func TestStreamEndsWithItsClient(t *testing.T) {
	for name, leave := range map[string]func(*websocket.Conn) error{
		"closes": func(c *websocket.Conn) error {
			return c.WriteControl(websocket.CloseMessage, nil, time.Now().Add(patience))
		},
		"vanishes": func(c *websocket.Conn) error { return c.NetConn().Close() },
		"sends too much": func(c *websocket.Conn) error {
			return c.WriteMessage(websocket.TextMessage, make([]byte, maxMessage+1))
		},
	} {
		b := &recorder{}
		_, ts := start(t, b, nil)
		conn, _, err := dial(t, ts.URL, nil)
		require.NoError(t, err)
		eventually(t, name, func() bool { return b.subscribers() == 1 })
		require.NoError(t, leave(conn), name)
		eventually(t, name, func() bool { return b.subscribers() == 0 })
	}
}

// What a client says is thrown away, and keeps the stream open.
func TestStreamTakesNoMessages(t *testing.T) {
	b := &recorder{}
	_, ts := start(t, b, nil)
	conn, _, err := dial(t, ts.URL, nil)
	require.NoError(t, err)
	require.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte(`{"concurrency":1000}`)))
	for range 2 {
		eventually(t, "a subscriber", func() bool { return b.subscribers() == 1 })
		_, _, err = conn.ReadMessage()
		require.NoError(t, err)
		b.publish([]byte(`{}`))
	}
	require.Empty(t, b.last().name)
}

// The backend's end is the streams' end.
func TestStreamEndsWithBackend(t *testing.T) {
	b := &recorder{}
	_, ts := start(t, b, nil)
	conn, _, err := dial(t, ts.URL, nil)
	require.NoError(t, err)
	eventually(t, "a subscriber", func() bool { return b.subscribers() == 1 })
	b.mu.Lock()
	for c := range b.subs {
		close(c)
	}
	b.mu.Unlock()
	_, _, err = conn.ReadMessage()
	require.NoError(t, err)
	_, _, err = conn.ReadMessage()
	require.True(t, websocket.IsCloseError(err, websocket.CloseGoingAway), "%v", err)
}

// Nobody gets more streams than a share, readers without the token leave some to
// those who have it, and nobody gets more than there are. Who is refused is told
// which limit it is, and what to do. A stream that ends makes room.
func TestStreamsAreBounded(t *testing.T) {
	s, ts := start(t, &recorder{}, func(o *Options) { o.Token, o.PublicPage = token, true })
	cookie := session(t, ts, nil)
	of := func(addr string, header ...string) reader {
		r := httptest.NewRequest("GET", v1+"/stream", nil)
		r.RemoteAddr = addr
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return s.reader(r)
	}
	var open []reader
	fill := func(who reader, n int, why string) {
		t.Helper()
		for range n {
			require.NoError(t, s.streams.begin(who))
			open = append(open, who)
		}
		var r *refused
		require.ErrorAs(t, s.streams.begin(who), &r)
		require.Equal(t, http.StatusServiceUnavailable, r.status)
		require.Equal(t, "5", r.header.Get("Retry-After"))
		require.Contains(t, r.detail, why)
	}
	const ofOne = "16 streams are open from this address or session, which is its limit; close one"
	fill(of("192.0.2.1:1"), maxOfOne, ofOne)
	fill(of("192.0.2.1:2", "Authorization", "Basic "+token), 0, ofOne)
	fill(of("[2001:db8::1]:1"), maxOfOne, ofOne)
	fill(of("[2001:db8::2]:1"), 0, ofOne) // the same network
	fill(of("127.0.0.1:1"), maxOfMany, "128 streams are open from this address")
	const kept = "192 streams are open, and the remaining ones are reserved for callers with the token; close one, or send the token"
	fill(of("192.0.2.2:1"), maxOfOne, ofOne)
	fill(of("192.0.2.3:1"), maxReaders-maxOfMany-3*maxOfOne, kept)
	fill(of("192.0.2.1:1", "Cookie", cookieName+"="+cookie.Value), maxOfOne, ofOne)
	fill(of("192.0.2.1:1", "Authorization", "Bearer "+token), maxStreams-maxReaders-maxOfOne, "256 streams are open, which is the limit; close one")
	_, res, err := dial(t, ts.URL, http.Header{"Authorization": {"Bearer " + token}})
	require.ErrorIs(t, err, websocket.ErrBadHandshake)
	require.Contains(t, readProblem(t, res).Detail, "256 streams")

	end := func() {
		for _, who := range open {
			s.streams.done(who)
		}
		open = nil
		require.Empty(t, s.streams.of)
	}
	end()
	fill(of("192.0.2.1:1", "Authorization", "Bearer "+token), maxOfMany, "128 streams are open from this address or session, which is its limit; close one")
	other := of("192.0.2.2:1", "Authorization", "Bearer "+token)
	require.NoError(t, s.streams.begin(other))
	open = append(open, other)
	end()
	_, _, err = dial(t, ts.URL, nil)
	require.NoError(t, err)
}

// serve runs Serve on a free port; end ends it and gives what it returned.
func serve(t *testing.T, b Backend, change ...func(*Options)) (base string, end func() error) {
	t.Helper()
	opts := options(b)
	for _, c := range change {
		c(&opts)
	}
	s, err := New(opts)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(cancel)
	return "http://" + l.Addr().String(), func() error {
		cancel()
		select {
		case err := <-served:
			return err
		case <-time.After(2 * shutdownTimeout):
			return errors.New("it still serves")
		}
	}
}

// The end of Serve ends streams with a word of farewell, and takes no new calls.
func TestServeEndsStreams(t *testing.T) {
	b := &recorder{}
	base, end := serve(t, b)
	conn, _, err := dial(t, base, nil)
	require.NoError(t, err)
	_, _, err = conn.ReadMessage()
	require.NoError(t, err)
	require.NoError(t, end())
	require.Zero(t, b.subscribers(), "Serve waits for its streams")
	_, _, err = conn.ReadMessage()
	require.True(t, websocket.IsCloseError(err, websocket.CloseGoingAway), "%v", err)
	_, _, err = dial(t, base, nil)
	require.Error(t, err)
}

// slowBackend finds its lane when it is let go.
type slowBackend struct {
	recorder
	entered, let chan struct{}
}

func (b *slowBackend) Lane(name string) (Lane, error) {
	close(b.entered)
	<-b.let
	return b.recorder.Lane(name)
}

// A call in progress gets its answer though the server ends.
func TestServeFinishesCalls(t *testing.T) {
	b := &slowBackend{entered: make(chan struct{}), let: make(chan struct{})}
	base, end := serve(t, b)
	status := make(chan int)
	go func() {
		res, _ := do(t, base, request{method: "POST", path: v1 + "/workload/stop", body: stop})
		status <- res.StatusCode
	}()
	<-b.entered
	ended := make(chan error)
	go func() { ended <- end() }()
	eventually(t, "the listener closed", func() bool {
		c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	close(b.let)
	require.Equal(t, http.StatusOK, <-status)
	require.NoError(t, <-ended)
}

// A listener that fails is Serve's error.
func TestServeFails(t *testing.T) {
	s, err := New(options(&recorder{}))
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, s.Serve(t.Context(), l), net.ErrClosed)
}

// The page's files are served as they are; without any, / says where things are.
func TestPage(t *testing.T) {
	_, ts := start(t, &recorder{}, nil)
	res, text := do(t, ts.URL, request{path: "/"})
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Contains(t, text, v1)
	require.Contains(t, text, "/metrics")
	require.Contains(t, text, "go tool mage build")
	res, _ = do(t, ts.URL, request{path: "/index.html"})
	require.Equal(t, http.StatusNotFound, res.StatusCode)

	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "page of "+r.URL.Path) })
	_, ts = start(t, &recorder{}, func(o *Options) { o.Page, o.Token = page, token })
	for _, path := range []string{"/", "/guide", "/assets/page.js"} { // the page itself needs no token
		res, text := do(t, ts.URL, request{path: path})
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Equal(t, "page of "+path, text)
	}
	require.Equal(t, http.StatusNotFound, refusal(t, ts.URL, request{path: v1 + "/nothing"}).Status)
}

// The client's stream ends when its context or its user does, and says when it
// was lost.
func TestClientStream(t *testing.T) {
	b := &recorder{}
	_, ts := start(t, b, withToken)
	client, err := api.NewClient(nil, ts.URL, token)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	n := 0
	for _, err := range client.Stream(ctx) {
		if last = err; err == nil {
			n++
			cancel()
		}
	}
	require.Equal(t, 1, n)
	require.ErrorIs(t, last, context.Canceled)
	eventually(t, "the stream closed", func() bool { return b.subscribers() == 0 })

	wrong, err := api.NewClient(nil, ts.URL, "wrong")
	require.NoError(t, err)
	for _, err := range wrong.Stream(t.Context()) {
		var p *api.ProblemError
		require.ErrorAs(t, err, &p)
		require.Equal(t, http.StatusUnauthorized, p.Status)
		require.EqualError(t, err, "the token is wrong")
	}
}

// A call that ends because its caller went is nobody's fault.
func TestCallerGone(t *testing.T) {
	b := &recorder{err: context.Canceled}
	s, _ := start(t, b, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost"+v1+"/events", nil)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	text, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	require.Empty(t, text)
}
