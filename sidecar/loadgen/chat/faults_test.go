package chat

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	await "kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

// closedPort returns an address without a listener.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return "http://" + l.Addr().String()
}

// sendHuge sends a request that no socket's buffers can hold.
func sendHuge(ctx context.Context, c *Client) Result {
	history := []Message{{Role: RoleUser, Text: strings.Repeat("x", 16<<20)}}
	return c.Do(ctx, Request{Messages: history})
}

// flooding writes what as fast as the client takes it.
func flooding(head, what string) func(call) bool {
	return func(c call) bool {
		c.write(head)
		what := []byte(strings.Repeat(what, 1+(1<<20)/len(what)))
		for {
			if _, err := c.conn.Write(what); err != nil {
				return false
			}
		}
	}
}

// Every fault has its class, and a message that says what to do.
func TestFaults(t *testing.T) {
	responds := func(status int, headers, body string) func(call) bool {
		return always(withLength(status, headers, body))
	}
	notFound := responds(404, "", `{"message":"Model not found","type":"Not Found","code":404}`)
	page := responds(200, "Content-Type: text/html\r\n", "<html>Welcome to nginx!</html>")
	closes := func(c call) bool { c.write("HTTP/1.1 200 OK\r\nCont"); return false }
	limited := responds(429, "Retry-After: 7\r\n", "slow down")
	long := strings.Repeat("x", 300<<10)
	const tooMany = "|max_tokens was 20|check its settings"
	zipped := new(strings.Builder)
	zip := gzip.NewWriter(zipped)
	_, _ = zip.Write([]byte(`{"error":{"message":"bad key"}}`))
	_ = zip.Close()
	zipHead := strings.Replace(closingHead, "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n", 1)
	answered := responds(200, "Content-Type: application/json\r\n", `{"choices":[{"message":{"content":"hi"}}]}`)
	refused := responds(200, "Content-Type: application/json\r\n", `{"error":{"message":"no workers"}}`)
	tooLong := responds(400, "", `{"error":"max_tokens is too large"}`)
	for _, row := range []struct {
		name   string
		answer func(call) bool
		class  api.ErrorClass
		status int
		says   string // parts of the message
	}{
		{"401", responds(401, "", `{"error":{"message":"bad key"}}`), api.ErrorHTTP4xx, 401, "refused access (401): bad key; check the API key (LOADGEN_TARGET_API_KEY"},
		{"403", responds(403, "", ""), api.ErrorHTTP4xx, 403, "refused access (403); check|target.api_key_file"},
		{"403 of a gateway", responds(403, "", `{"error":{"message":"header X-Team is missing"}}`), api.ErrorHTTP4xx, 403, "the server refused access (403): header X-Team is missing; check|and target.headers"},
		{"404", notFound, api.ErrorHTTP4xx, 404, `no model "m" (404)|Model not found|set target.model`},
		{"404 of a model's name", responds(404, "", "m: try pulling it first"), api.ErrorHTTP4xx, 404, `no model "m" (404)`},
		{"404 of a path", responds(404, "", `{"detail":"Not Found"}`), api.ErrorHTTP4xx, 404, `404 at /v1/chat/completions: Not Found; check the path of target.url, and that it serves the model "m"`},
		{"404 of models", responds(404, "", "Cannot POST /models"), api.ErrorHTTP4xx, 404, "404 at /v1/chat/completions"},
		{"405", responds(405, "", ""), api.ErrorHTTP4xx, 405, "405 at /v1/chat/completions; check the path of target.url"},
		{"400", tooLong, api.ErrorHTTP4xx, 400, "rejected the request (400)|max_tokens is too large"},
		{"429", limited, api.ErrorRateLimited, 429, "retry after 7s|slow down|target_rps"},
		{"529", responds(529, "", `{"message":"all workers are busy","type":"Overloaded","code":529}`), api.ErrorBusy, 529, "all workers are busy|lower concurrency|--active-prefill-tokens-threshold"},
		{"429 without a word", responds(429, "", ""), api.ErrorRateLimited, 429, "(429);|lower concurrency"},
		{"a redirect", responds(302, "Location: /elsewhere\r\n", ""), api.ErrorMalformed, 302, "answered 302|target.url"},
		{"a page", page, api.ErrorMalformed, 200, "did not stream|text/html|nginx"},
		{"a whole answer instead of a stream", answered, api.ErrorMalformed, 200, "did not stream|application/json"},
		{"an error instead of a stream", refused, api.ErrorStream, 200, "no workers"},
		{"garbage instead of HTTP", always("220 mail.example ESMTP\r\n"), api.ErrorMalformed, 0, "not HTTP/1.1|target.url"},
		{"garbage instead of chunks", always(streamHead + "garbage\r\n"), api.ErrorMalformed, 0, "framing|target.url"},
		{"garbage for ever", flooding("", "garbage"), api.ErrorMalformed, 0, "not HTTP/1.1"},
		{"an error page without end", flooding("HTTP/1.1 500 Oh\r\n\r\n", "why "), api.ErrorHTTP5xx, 500, "why why"},
		{"an event without end", flooding(closingHead+"data: ", "x"), api.ErrorMalformed, 0, "longer than 1 MiB|target.url"},
		{
			"content without end", flooding(closingHead, event("a")), api.ErrorOverrun, 200,
			"more than 320 chunks" + tooMany,
		},
		{
			"tokens counted without end", always(answerOf(event("a"), counted("b", 81))), api.ErrorOverrun, 200,
			"more than 80 tokens" + tooMany,
		},
		{"endless text", flooding(closingHead, event(long)), api.ErrorOverrun, 200, "more than 64 KiB of text|max_tokens"},
		{
			"empty deltas without end", flooding(closingHead, roleOnly), api.ErrorOverrun, 200,
			"more than 65536 chunks without text",
		},
		{
			"401 with gzip", responds(401, "Content-Encoding: gzip\r\n", zipped.String()), api.ErrorHTTP4xx, 401,
			"(401): bad key;",
		},
		{
			"a coding that is unknown", always(strings.Replace(zipHead, "gzip", "br", 1)), api.ErrorMalformed, 0,
			"content coding br, which the request does not ask for; turn compression off",
		},
		{
			"broken gzip", func(c call) bool { c.write(zipHead + strings.Repeat("no gzip ", 9)); return false },
			api.ErrorMalformed, 0, "gzip coding is broken",
		},
		{"closes within the head", closes, api.ErrorConnect, 0, "did not answer|server's log"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, row.answer)
			r := clientOf(t, s.url).Do(t.Context(), Request{ID: "c-1", Messages: hello(), MaxTokens: 20})
			wantError(t, r.Err, row.class, strings.Split(row.says, "|")...)
			if r.Cancelled || r.OK() || r.Err != nil && r.Err.Status != row.status {
				t.Errorf("got %s; want status %d", outcome(r), row.status)
			}
			assert.EqualValues(t, 1, s.requests.Load())
		})
	}
}

// Servers that never end their events cannot fill the memory, and harm no other's stream.
func TestUnfinishedEvents(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, held := heap(), unfinished.Load()
	half := bytes.Repeat([]byte("x"), 400<<10)
	unended := slices.Concat([]byte(closingHead+"data: "), half, half[:200<<10], []byte("\ndata: "), half) // 1000 KiB
	s := serve(t, func(c call) bool { _, _ = c.conn.Write(unended); return c.hold() })
	c, fine := clientOf(t, s.url), clientOf(t, serve(t, always(oneToken)).url)

	const streams = 60
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results := make(chan Result, streams)
	for range streams {
		go func() { results <- c.Do(ctx, Request{Messages: hello()}) }()
	}
	wantError(t, (<-results).Err, api.ErrorMalformed, "unfinished events of all streams", "64 MiB")
	do(t, fine)
	await.Eventually(t, "they hold 64 MiB at most", func() (any, bool) {
		n := heap()
		return n, n < before+maxUnfinished+8<<20 // while one grows, twice its own
	})
	cancel()
	for range streams - 1 {
		if r := <-results; !r.Cancelled {
			wantError(t, r.Err, api.ErrorMalformed, "64 MiB")
		}
	}
	assert.EqualValues(t, 0, unfinished.Load()-held)
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
		for value, want := range map[string]time.Duration{
			"7": 7 * time.Second, "0.5": 500 * time.Millisecond, from(time.Hour): time.Hour, from(-time.Hour): 0,
			"-3": 0, "soon": 0, "NaN": 0, "Inf": 0, "1e9": 0, "": 0,
		} {
			assert.Equal(t, want, retryAfter(http.Header{"Retry-After": {value}}), value)
		}
		for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
			assert.Equal(t, 1500*time.Millisecond, retryAfter(http.Header{name: {"1500"}, "Retry-After": {"2"}}), name)
			assert.Equal(t, 2*time.Second, retryAfter(http.Header{name: {"soon"}, "Retry-After": {"2"}}), name)
		}
	})
}

func TestNoConnection(t *testing.T) {
	for _, row := range []struct {
		name, url string
		says      []string
	}{
		{"no listener", closedPort(t), []string{"connection refused", "is the server running", "target.url"}},
		{"no such host", "http://kvbooth.invalid:8000", []string{"kvbooth.invalid:8000", "target."}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, row.url, func(o *Options) { o.ConnectTimeout = 2 * time.Second })
			_, models := c.Models(t.Context())
			r := c.Do(t.Context(), Request{Messages: hello()})
			for _, err := range []*Error{r.Err, models} {
				wantError(t, err, api.ErrorConnect, row.says...)
				assert.True(t, err == nil || err.Status == 0, "status of %+v", err)
			}
		})
	}
}

// A failed connection has a message of its own for each cause.
func TestConnectErrors(t *testing.T) {
	const name, late = "; check the host name in target.url", "no answer in time; check the network, or raise " +
		"target.connect_timeout"
	for _, row := range []struct {
		err  error
		says string
	}{
		{&net.DNSError{Err: "no such host", IsNotFound: true}, "its name cannot be resolved (no such host)" + name},
		{&net.DNSError{Err: "i/o timeout", IsTimeout: true}, "its name cannot be resolved (i/o timeout)" + name},
		{context.DeadlineExceeded, late},
		{os.ErrDeadlineExceeded, late},
		{
			&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EMFILE)},
			"too many open files; raise the limit with ulimit -n",
		},
		{errCut, "connection reset by peer; check target.url"},
	} {
		e := connectError("host:1", row.err)
		assert.Equal(t, &Error{Class: api.ErrorConnect, Unreached: true, Message: "cannot connect to host:1: " + row.says}, e)
	}
}

// A server that closes while the request is being written gives the error of its answer, or a connection error without
// one.
func TestServerClosesWhileWriting(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		says, want string
		class      api.ErrorClass
	}{
		{"", "did not answer", api.ErrorConnect},
		{withLength(413, "", "prompt too long"), "prompt too long", api.ErrorHTTP4xx},
	} {
		s := serveRaw(t, func(_ *server, conn net.Conn) {
			_, _ = io.ReadFull(conn, make([]byte, 1000))
			_, _ = io.WriteString(conn, row.says)
		})
		c := clientOf(t, s.url)
		wantError(t, sendHuge(t.Context(), c).Err, row.class, row.want)
		assert.EqualValues(t, 1, s.accepts.Load())
	}
}

// The connection's end is seen at once, even if it comes with the last bytes: waiting for the stall's limit would give
// it the wrong class. After a reset, what had come may be lost.
func TestEndRightBehindTheBytes(t *testing.T) {
	for _, classes := range [][]api.ErrorClass{{api.ErrorTruncated}, {api.ErrorTruncated, api.ErrorConnect}} {
		s := serve(t, func(c call) bool {
			if len(classes) > 1 {
				_ = c.conn.(*net.TCPConn).SetLinger(0) // closing resets
			}
			c.write(streamHead + framed(event("a")))
			return false
		})
		c := clientOf(t, s.url)
		for range 50 {
			r := c.Do(t.Context(), Request{Messages: hello()})
			assert.True(t, r.Err != nil && slices.Contains(classes, r.Err.Class), outcome(r))
		}
	}
}

// A request whose context ends is neither a success nor an error. What had come is kept.
func TestCancelled(t *testing.T) {
	begin := streamHead + framed(event("a"))
	for _, row := range []struct {
		name    string
		answer  func(c call, cancel func()) bool
		content string
		whole   bool
	}{
		{"while waiting", func(c call, cancel func()) bool { cancel(); return c.hold() }, "", false},
		{"in mid-stream", func(c call, _ func()) bool { c.write(begin); return c.hold() }, "a", false},
		{"in a flood", func(c call, _ func()) bool { return flooding(closingHead+event("a"), ": ping\n")(c) }, "a", false},
		{"after [DONE]", func(c call, _ func()) bool {
			c.write(streamHead + framed(event("a")+doneEvent))
			return c.hold()
		}, "a", true},
		{"on a kept connection", func(c call, cancel func()) bool {
			if c.req.Header.Get("X-Request-Id") == "" {
				return always(oneToken)(c)
			}
			cancel()
			return false
		}, "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := serve(t, func(c call) bool { return row.answer(c, cancel) })
			c, sent := clientOf(t, s.url), int32(1)
			if row.name == "on a kept connection" {
				do(t, c)
				sent = 2
			}
			r := c.Do(ctx, Request{ID: "x", Messages: hello(), OnChunk: func(int) { cancel() }})
			if r.OK() != row.whole || r.Cancelled == row.whole || r.Err != nil || r.Content != row.content {
				t.Errorf("got %s", outcome(r))
			}
			assert.EqualValues(t, sent, s.requests.Load())
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := serveRaw(t, func(s *server, _ net.Conn) { cancel(); <-s.gone })
	for range 2 { // while writing, and before it is sent
		r := sendHuge(ctx, clientOf(t, s.url))
		assert.True(t, r.Cancelled && r.Err == nil, outcome(r))
	}
}

func TestMissingModelIsThatOfTheRequest(t *testing.T) {
	s := serve(t, always(withLength(404, "", `{"message":"Model not found"}`)))
	r := clientOf(t, s.url).Do(t.Context(), Request{ID: "c-1", Model: "adapter", Messages: hello(), MaxTokens: 20})
	wantError(t, r.Err, api.ErrorHTTP4xx, `no model "adapter" (404)`)
}
