package chat

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/sidecar/api"
)

// TestMain gives all tests a proxy in their environment. It must not be used for what goes to a loopback address.
func TestMain(m *testing.M) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, event("through the proxy to "+r.URL.Host), doneEvent)
	}))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY"} {
		os.Setenv(name, proxy.URL)
	}
	os.Setenv("NO_PROXY", "kvbooth.invalid,script")
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

const (
	streamHead  = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	closingHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
	lastChunk   = "0\r\n\r\n"
	roleOnly    = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	doneEvent   = "data: [DONE]\n\n"
)

// event is a chunk of a chat completion that carries text.
func event(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return `data: {"choices":[{"index":0,"delta":{"content":` + string(quoted) + "}}]}\n\n"
}

// counted is such a chunk with the tokens of the answer so far.
func counted(text string, completion int) string {
	return fmt.Sprintf(`data: {"choices":[{"delta":{"content":%q}}],"usage":{"prompt_tokens":9,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":4}}}`+"\n\n", text, completion)
}

// framed puts each piece of a body into an HTTP chunk of its own.
func framed(pieces ...string) string {
	var b strings.Builder
	for _, p := range pieces {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(p), p)
	}
	return b.String()
}

// answerOf is a whole streamed response with these events.
func answerOf(events ...string) string { return streamHead + framed(events...) + lastChunk }

var oneToken = answerOf(event("a"), doneEvent)

// withLength is a whole response with a Content-Length; status is its code and
// headers are full lines.
func withLength(status int, headers, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d %s\r\n%sContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), headers,
		len(body), body)
}

// dynamoEvents is a stream as a real Dynamo sent it.
func dynamoEvents(t testing.TB) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/stream.txt")
	require.NoError(t, err)
	events := strings.SplitAfter(string(b), "\n\n")
	return events[:len(events)-1] // nothing stands behind the last one
}

// script is a connection that gives out prepared pieces, one a read, once something
// was written, and then its end; a nil end is silence.
type script struct {
	net.Conn
	pieces []string
	end    error
	wrote  chan struct{}
	closed chan struct{}
	asked  sync.Once
	gone   sync.Once
}

func (s *script) Read(p []byte) (int, error) {
	select {
	case <-s.wrote:
	case <-s.closed:
		return 0, net.ErrClosed
	}
	for len(s.pieces) > 0 {
		n := copy(p, s.pieces[0])
		if s.pieces[0] = s.pieces[0][n:]; s.pieces[0] == "" {
			s.pieces = s.pieces[1:]
		}
		if n > 0 {
			return n, nil
		}
	}
	if s.end == nil {
		<-s.closed
	}
	return 0, s.end
}

func (s *script) Write(p []byte) (int, error) {
	s.asked.Do(func() { close(s.wrote) })
	return len(p), nil
}

func (s *script) Close() error {
	s.gone.Do(func() { close(s.closed) })
	return nil
}

// over makes a client whose every connection comes from dial.
func over(t testing.TB, o Options, dial func() net.Conn) *Client {
	t.Helper()
	if o.URL == "" {
		o.URL = "http://script"
	}
	o.Dial = func(context.Context, string, string) (net.Conn, error) { return dial(), nil }
	c, err := New(o)
	require.NoError(t, err)
	return c
}

// replay runs one request over a scripted connection. kept says whether the
// connection was kept for the next one.
func replay(t testing.TB, req Request, end error, pieces ...string) (r Result, kept bool) {
	t.Helper()
	never := Settings{FirstTokenTimeout: time.Hour, StallTimeout: time.Hour, ConnectTimeout: time.Hour}
	c := over(t, Options{Model: "m", Settings: never},
		func() net.Conn {
			return &script{pieces: slices.Clone(pieces), end: end, wrote: make(chan struct{}), closed: make(chan struct{})}
		})
	defer c.Close()
	ctx := httptrace.WithClientTrace(context.Background(),
		&httptrace.ClientTrace{PutIdleConn: func(err error) { kept = err == nil }})
	return c.Do(ctx, req), kept
}

// outcome writes down all of a result that does not depend on the clock.
func outcome(r Result) string {
	var tokens []int32
	for _, c := range r.Chunks {
		tokens = append(tokens, c.Tokens)
	}
	usage, failure := "none", "none"
	if r.Usage != nil {
		usage = fmt.Sprintf("%+v", *r.Usage)
	}
	if r.Err != nil {
		failure = fmt.Sprintf("%+v", *r.Err)
	}
	return fmt.Sprintf("content %q tokens %v finish %q usage %s worker %s timing %+v cancelled %v error %s",
		r.Content, tokens, r.FinishReason, usage, r.Worker, r.Timing, r.Cancelled, failure)
}

// server is a loopback server whose answers the test writes byte by byte.
type server struct {
	url      string
	accepts  atomic.Int32
	requests atomic.Int32
	gone     <-chan struct{} // closed when the test ends
}

// call is one request as it came.
type call struct {
	conn net.Conn
	req  *http.Request
	body []byte
	nth  int // request of its connection, from 1
}

func (c call) write(s string) { _, _ = io.WriteString(c.conn, s) }

// hold waits until the client gives the connection up.
func (c call) hold() bool {
	_, _ = io.Copy(io.Discard, c.conn)
	return false
}

// serveRaw hands every connection to handle and closes it afterwards, and when the test ends.
func serveRaw(t testing.TB, handle func(s *server, conn net.Conn)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{url: "http://" + l.Addr().String(), gone: ctx.Done()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.accepts.Add(1)
			wg.Go(func() {
				defer context.AfterFunc(ctx, func() { conn.Close() })()
				defer conn.Close()
				handle(s, conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		cancel()
		wg.Wait()
	})
	return s
}

// serve answers requests with answer, which says whether the connection stays open.
func serve(t testing.TB, answer func(c call) (keep bool)) *server {
	t.Helper()
	return serveRaw(t, func(s *server, conn net.Conn) { s.converse(conn, answer) })
}

func (s *server) converse(conn net.Conn, answer func(c call) bool) {
	in := bufio.NewReader(conn)
	for nth := 1; ; nth++ {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		s.requests.Add(1)
		if !answer(call{conn, req, body, nth}) {
			return
		}
	}
}

// recorded answers every request with one token, and gives out what came.
func recorded(t testing.TB) (*server, <-chan call) {
	t.Helper()
	got := make(chan call, 1)
	return serve(t, func(c call) bool { got <- c; return always(oneToken)(c) }), got
}

// always answers every request with the same bytes and keeps the connection.
func always(response string) func(call) bool {
	return func(c call) bool {
		c.write(response)
		return true
	}
}

// clientOf makes a client with limits that no test should reach, unless changed.
func clientOf(t testing.TB, url string, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{
		URL: url, Model: "m", IdleTimeout: 20 * time.Second, Settings: Settings{
			ConnectTimeout: 20 * time.Second, FirstTokenTimeout: 20 * time.Second, StallTimeout: 20 * time.Second,
		},
	}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func hello() []Message {
	return []Message{{Role: RoleUser, Text: "Hello."}}
}

// do sends one small request that must come back whole.
func do(t testing.TB, c *Client) Result {
	t.Helper()
	r := c.Do(context.Background(), Request{Messages: hello()})
	require.True(t, r.OK(), outcome(r))
	return r
}

// wantError checks a request's fault: its class, and what its message says.
func wantError(t testing.TB, e *Error, class api.ErrorClass, says ...string) {
	t.Helper()
	if e == nil || e.Class != class {
		t.Errorf("got %+v, want an error of class %s", e, class)
		return
	}
	for _, words := range says {
		assert.Contains(t, e.Message, words)
	}
}

var errCut = errors.New("connection reset by peer")
