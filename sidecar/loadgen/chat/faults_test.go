package chat

import (
	"bytes"
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
	"time"

	openai "github.com/sashabaranov/go-openai"

	"kvbooth/sidecar/api"
)

// closedPort is an address where nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// sendHuge sends a request that no socket's buffers can hold.
func sendHuge(ctx context.Context, c *Client) Result {
	history := []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: strings.Repeat("x", 16<<20)}}
	return c.Do(ctx, Request{Messages: history})
}

// pinging writes something without meaning until the client hangs up.
func pinging(c call) bool {
	for {
		if _, err := io.WriteString(c.conn, framed(": ping\n\n")); err != nil {
			return false
		}
		time.Sleep(2 * time.Millisecond)
	}
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
	const soon = 100 * time.Millisecond
	unlimited := func(*Options) {}
	for _, row := range []struct {
		name   string
		limits func(*Options)
		answer func(call) bool
		class  api.ErrorClass
		status int
		says   []string
	}{
		{"401", unlimited, always(withLength(401, "", `{"error":{"message":"bad key"}}`)), api.ErrorHTTP4xx, 401, []string{"bad key", "LOADGEN_TARGET_API_KEY"}},
		{"403", unlimited, always(withLength(403, "", "")), api.ErrorHTTP4xx, 403, []string{"rejects the API key (403)", "target.api_key_file"}},
		{"404", unlimited, always(withLength(404, "", `{"message":"Model not found","type":"Not Found","code":404}`)), api.ErrorHTTP4xx, 404, []string{"Model not found", `"m"`, "target.model", "target.url"}},
		{"400", unlimited, always(withLength(400, "", `{"error":"max_tokens is too large"}`)), api.ErrorHTTP4xx, 400, []string{"rejected the request (400)", "max_tokens is too large"}},
		{"429", unlimited, always(withLength(429, "Retry-After: 7\r\n", "slow down")), api.ErrorRateLimited, 429, []string{"retry after 7s", "slow down", "target_rps"}},
		{"429 without a word", unlimited, always(withLength(429, "", "")), api.ErrorRateLimited, 429, []string{"(429);", "lower concurrency"}},
		{"503 with JSON", unlimited, always(withLength(503, "Content-Type: application/json\r\n", `{"error":{"message":"no workers","type":"unavailable"}}`)), api.ErrorHTTP5xx, 503, []string{"failed (503): no workers", "server's log"}},
		{"500 that is never finished", firstToken(soon), func(c call) bool {
			c.write("HTTP/1.1 500 Oh\r\nContent-Length: 99\r\n\r\nout of memory")
			return c.hold()
		}, api.ErrorHTTP5xx, 500, []string{"out of memory"}},
		{"a redirect is not followed", unlimited, always(withLength(302, "Location: /elsewhere\r\n", "")), api.ErrorMalformed, 302, []string{"answered 302", "target.url"}},
		{"a page", unlimited, always(withLength(200, "Content-Type: text/html\r\n", "<html>Welcome to nginx!</html>")), api.ErrorMalformed, 200, []string{"did not stream", "text/html", "nginx"}},
		{"a whole answer instead of a stream", unlimited, always(withLength(200, "Content-Type: application/json\r\n", `{"choices":[{"message":{"content":"hi"}}]}`)), api.ErrorMalformed, 200, []string{"did not stream", "application/json"}},
		{"an error instead of a stream", unlimited, always(withLength(200, "Content-Type: application/json\r\n", `{"error":{"message":"no workers"}}`)), api.ErrorStream, 200, []string{"no workers"}},
		{"an error inside the stream", unlimited, always(answerOf(event("a"), `data: {"message":"worker died","type":"internal","code":500}`+"\n\n")), api.ErrorStream, 200, []string{"inside its answer", "worker died"}},
		{"garbage instead of HTTP", unlimited, always("220 mail.example ESMTP\r\n"), api.ErrorMalformed, 0, []string{"not HTTP/1.1", "target.url"}},
		{"garbage instead of chunks", unlimited, always(streamHead + "garbage\r\n"), api.ErrorMalformed, 0, []string{"framing", "target.url"}},
		{"garbage instead of events", unlimited, always(answerOf("lorem ipsum\n\n")), api.ErrorMalformed, 200, []string{"not a stream of events", "lorem ipsum"}},
		{"garbage instead of JSON", unlimited, always(answerOf("data: lorem ipsum\n\n")), api.ErrorMalformed, 200, []string{"lorem ipsum", "target.url"}},
		{"garbage for ever", unlimited, flooding("", "garbage"), api.ErrorMalformed, 0, []string{"not HTTP/1.1"}},
		{"an error page without end", unlimited, flooding("HTTP/1.1 500 Oh\r\n\r\n", "why "), api.ErrorHTTP5xx, 500, []string{"why why"}},
		{"an event without end", unlimited, flooding(closingHead+"data: ", "x"), api.ErrorMalformed, 0, []string{"longer than 1 MiB", "target.url"}},
		{"[DONE] alone", unlimited, always(answerOf(": hi\n\n", doneEvent)), api.ErrorMalformed, 200, []string{"is empty", "server's log"}},
		{"content without end", unlimited, flooding(closingHead, event("a")), api.ErrorOverrun, 200, []string{"more than 80 chunks or tokens", "max_tokens was 20", "check its settings"}},
		{"tokens told without end", unlimited, always(answerOf(event("a"), told("b", 81))), api.ErrorOverrun, 200, []string{"more than 80 chunks or tokens"}},
		{"text without end", unlimited, flooding(closingHead, event(strings.Repeat("x", 300<<10))), api.ErrorOverrun, 200, []string{"more than 8 MiB", "max_tokens"}},
		{"empty deltas without end", unlimited, flooding(closingHead, roleOnly), api.ErrorOverrun, 200, []string{"more than 80 chunks or tokens"}},
		{"an answer that does not end", turn(soon), func(c call) bool { c.write(streamHead + framed(event("a"))); return pinging(c) }, api.ErrorOverrun, 0, []string{"had not ended after 100ms", "target.turn_timeout"}},
		{"comments as fast as they can", firstToken(soon), flooding(closingHead, ": ping\n"), api.ErrorTimeout, 0, []string{"no first token within 100ms"}},
		{"accepts and says nothing", firstToken(soon), call.hold, api.ErrorTimeout, 0, []string{"no first token within 100ms", "target.first_token_timeout"}},
		{"a role, then silence", firstToken(soon), func(c call) bool { c.write(streamHead + framed(roleOnly)); return c.hold() }, api.ErrorTimeout, 0, []string{"no first token within 100ms"}},
		{"comments for ever", firstToken(soon), func(c call) bool { c.write(streamHead); return pinging(c) }, api.ErrorTimeout, 0, []string{"no first token"}},
		{"stalls in mid-answer", stall(soon), func(c call) bool { c.write(streamHead + framed(roleOnly, event("a"))); return c.hold() }, api.ErrorStall, 0, []string{"silent for 100ms", "target.stall_timeout"}},
		{"comments for ever in mid-answer", stall(soon), func(c call) bool { c.write(streamHead + framed(event("a"))); return pinging(c) }, api.ErrorStall, 0, []string{"silent for 100ms"}},
		{"closes without an answer", unlimited, func(call) bool { return false }, api.ErrorConnect, 0, []string{"did not answer", "server's log"}},
		{"closes within the head", unlimited, func(c call) bool { c.write("HTTP/1.1 200 OK\r\nCont"); return false }, api.ErrorConnect, 0, []string{"did not answer"}},
		{"closes in mid-answer", unlimited, func(c call) bool { c.write(streamHead + framed(event("a"))); return false }, api.ErrorTruncated, 200, []string{"before its end", "proxy"}},
		{"ends the answer too early", unlimited, always(answerOf(event("a"))), api.ErrorTruncated, 200, []string{"without [DONE]"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, row.answer)
			r := clientOf(t, s.url, row.limits).Do(t.Context(), Request{ID: "c-1", Messages: hello(), MaxTokens: 20})
			wantError(t, r.Err, row.class, row.says...)
			if r.Cancelled || r.OK() || r.Err != nil && r.Err.Status != row.status {
				t.Errorf("got %s; want status %d", outcome(r), row.status)
			}
			if n := s.requests.Load(); n != 1 {
				t.Errorf("sent %d times", n)
			}
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
	before := heap()
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
	eventually(t, "they hold 64 MiB at most", func() bool { return heap() < before+maxUnfinished+8<<20 }) // while one grows, twice its own
	cancel()
	for range streams - 1 {
		if r := <-results; !r.Cancelled {
			wantError(t, r.Err, api.ErrorMalformed, "64 MiB")
		}
	}
	if n := unfinished.Load(); n != 0 {
		t.Errorf("%d bytes are never given back", n)
	}
}

func TestRetryAfter(t *testing.T) {
	for _, row := range []struct {
		value    string
		from, to time.Duration
	}{
		{"7", 7 * time.Second, 7 * time.Second},
		{"0.5", 500 * time.Millisecond, 500 * time.Millisecond},
		{time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 59 * time.Minute, time.Hour},
		{time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0, 0},
		{"-3", 0, 0},
		{"soon", 0, 0},
		{"NaN", 0, 0},
		{"Inf", 0, 0},
		{"1e9", 0, 0},
		{"", 0, 0},
	} {
		r, _ := replay(t, Request{}, io.EOF, withLength(429, "Retry-After: "+row.value+"\r\n", ""))
		if r.Err == nil || r.Err.RetryAfter < row.from || r.Err.RetryAfter > row.to {
			t.Errorf("%q: got %s", row.value, outcome(r))
		}
	}
}

func TestNoConnection(t *testing.T) {
	for _, row := range []struct {
		name, url string
		says      []string
	}{
		{"nobody listens", closedPort(t), []string{"connection refused", "is the server running", "target.url"}},
		{"no such host", "http://kvbooth.invalid:8000", []string{"kvbooth.invalid:8000", "target."}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := clientOf(t, row.url, func(o *Options) { o.ConnectTimeout = 2 * time.Second })
			_, models := c.Models(t.Context())
			r := c.Do(t.Context(), Request{Messages: hello()})
			for _, err := range []*Error{r.Err, models} {
				wantError(t, err, api.ErrorConnect, row.says...)
				if err != nil && err.Status != 0 {
					t.Errorf("status %d", err.Status)
				}
			}
		})
	}
}

// The cause of a failed connection is told in words, not in Go's.
func TestConnectErrors(t *testing.T) {
	for _, row := range []struct {
		err  error
		says string
	}{
		{&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}, "its name cannot be resolved (no such host); check the host name in target.url"},
		{&net.DNSError{Err: "i/o timeout", Name: "x", IsTimeout: true}, "its name cannot be resolved (i/o timeout); check the host name in target.url"},
		{context.DeadlineExceeded, "no answer in time; check the network, or raise target.connect_timeout"},
		{os.ErrDeadlineExceeded, "no answer in time; check the network, or raise target.connect_timeout"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EMFILE)}, "too many open files; raise the limit with ulimit -n"},
		{errCut, "connection reset by peer; check target.url"},
	} {
		if e := connectError("host:1", row.err); e.Class != api.ErrorConnect || e.Message != "cannot connect to host:1: "+row.says {
			t.Errorf("got %q, want %q", e, row.says)
		}
	}
}

// A request larger than all buffers, to a server that does not read: a time-out, not a hang.
func TestServerDoesNotRead(t *testing.T) {
	t.Parallel()
	s := serveRaw(t, func(s *server, _ net.Conn) { <-s.gone })
	r := sendHuge(t.Context(), clientOf(t, s.url, firstToken(300*time.Millisecond)))
	wantError(t, r.Err, api.ErrorTimeout)
}

// A server that closes while the request is still being written is heard if it
// has said why, and is unreachable if it has not.
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
		if n := s.accepts.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
	}
}

// The connection's end is seen at once, even if it comes with the last bytes:
// waiting for the stall's limit would give it the wrong class, late.
func TestEndRightBehindTheBytes(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c call) bool { c.write(streamHead + framed(event("a"))); return false })
	c := clientOf(t, s.url)
	for range 100 {
		wantError(t, c.Do(t.Context(), Request{Messages: hello()}).Err, api.ErrorTruncated)
	}
}

// A reset right behind the bytes is seen soon, long before the stall's limit.
func TestResetRightBehindTheBytes(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c call) bool {
		_ = c.conn.(*net.TCPConn).SetLinger(0) // closing resets
		c.write(streamHead + framed(event("a")))
		return false
	})
	c := clientOf(t, s.url)
	results := make(chan Result)
	const n = 20
	for range n {
		go func() { results <- c.Do(context.Background(), Request{Messages: hello()}) }()
	}
	for range n {
		if r := <-results; r.Err == nil || (r.Err.Class != api.ErrorTruncated && r.Err.Class != api.ErrorConnect) {
			t.Errorf("got %s", outcome(r))
		}
	}
}

// A caller's end of patience is neither a success nor an error.
func TestCancelled(t *testing.T) {
	check := func(t *testing.T, r Result, content string) {
		t.Helper()
		if !r.Cancelled || r.Err != nil || r.OK() || r.Content != content {
			t.Errorf("got %s", outcome(r))
		}
	}
	t.Run("before it was sent", func(t *testing.T) {
		s := serve(t, call.hold)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		check(t, clientOf(t, s.url).Do(ctx, Request{Messages: hello()}), "")
		if s.requests.Load() != 0 {
			t.Error("it was sent")
		}
	})
	t.Run("while waiting", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, func(c call) bool { cancel(); return c.hold() })
		check(t, clientOf(t, s.url).Do(ctx, Request{Messages: hello()}), "")
	})
	t.Run("in mid-stream", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, func(c call) bool { c.write(streamHead + framed(event("a"))); return c.hold() })
		check(t, clientOf(t, s.url).Do(ctx, Request{Messages: hello(), OnChunk: func(int) { cancel() }}), "a")
	})
	t.Run("in a flood", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, flooding(closingHead+event("a"), ": ping\n"))
		check(t, clientOf(t, s.url).Do(ctx, Request{Messages: hello(), OnChunk: func(int) { cancel() }}), "a")
	})
	t.Run("while writing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := serveRaw(t, func(s *server, _ net.Conn) { cancel(); <-s.gone })
		check(t, sendHuge(ctx, clientOf(t, s.url)), "")
	})
	t.Run("after a kept connection broke: not sent again", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, func(c call) bool {
			if c.nth == 1 {
				c.write(oneToken)
				return true
			}
			cancel()
			return c.hold()
		})
		c := clientOf(t, s.url)
		do(t, c)
		check(t, c.Do(ctx, Request{Messages: hello()}), "")
		if n := s.requests.Load(); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("after [DONE] it is whole", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, func(c call) bool { c.write(streamHead + framed(event("a")+doneEvent)); return c.hold() })
		r := clientOf(t, s.url).Do(ctx, Request{Messages: hello(), OnChunk: func(int) { cancel() }})
		if !r.OK() || r.Content != "a" {
			t.Errorf("got %s", outcome(r))
		}
	})
}
