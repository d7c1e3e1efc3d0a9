package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// parsed feeds a fresh response until it fails and collects its body.
func parsed(pieces ...[]byte) (r *response, body string, err error) {
	var b strings.Builder
	r = new(response)
	r.body = func(p []byte) error { b.Write(p); return nil }
	for _, p := range pieces {
		if err = r.feed(p); err != nil {
			break
		}
	}
	return r, b.String(), err
}

// verdict writes down what a response came to.
func verdict(r *response, body string, err error) string {
	return fmt.Sprintf("%d %q done=%v keep=%v stream=%v failed=%v", r.status, body, r.done, r.keep && err == nil, r.stream, err != nil)
}

func TestFraming(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\n"
	const chunkedHead = head + "Transfer-Encoding: chunked\r\n\r\n"
	huge := strings.Repeat("x", maxHead)
	for _, row := range []struct {
		name, in, want string
	}{
		{"chunked", chunkedHead + "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", `200 "hello!" done=true keep=true stream=true failed=false`},
		{"hexadecimal sizes, upper and lower", chunkedHead + "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", `200 "01234567890123456789" done=true keep=true stream=true failed=false`},
		{"extensions and trailers", chunkedHead + "5;a=b;c=\"d\"\r\nhello\r\n0;last\r\nX-Sum: 1\r\nY: 2\r\n\r\n", `200 "hello" done=true keep=true stream=true failed=false`},
		{"bare LF in the framing", chunkedHead + "5\nhello\n0\n\n", `200 "hello" done=true keep=true stream=true failed=false`},
		{"chunked, not ended", chunkedHead + "5\r\nhello\r\n", `200 "hello" done=false keep=true stream=true failed=false`},
		{"trailers not ended", chunkedHead + "0\r\nX: y\r\n", `200 "" done=false keep=true stream=true failed=false`},
		{"bytes after the last chunk", chunkedHead + "1\r\na\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n", `200 "a" done=true keep=false stream=true failed=false`},
		{"a negative size", chunkedHead + "-5\r\nhello\r\n", `200 "" done=false keep=false stream=true failed=true`},
		{"a size over 63 bits", chunkedHead + "8000000000000000\r\nhello\r\n", `200 "" done=false keep=false stream=true failed=true`},
		{"a size that is no number", chunkedHead + "hello\r\n", `200 "" done=false keep=false stream=true failed=true`},
		{"no size", chunkedHead + ";x\r\n", `200 "" done=false keep=false stream=true failed=true`},
		{"a chunk longer than its size", chunkedHead + "2\r\nhello\r\n0\r\n\r\n", `200 "he" done=false keep=false stream=true failed=true`},
		{"an endless size line", chunkedHead + "5;" + huge, `200 "" done=false keep=false stream=true failed=true`},
		{"by length", head + "Content-Length: 5\r\n\r\nhello", `200 "hello" done=true keep=true stream=true failed=false`},
		{"by length, not ended", head + "Content-Length: 9\r\n\r\nhello", `200 "hello" done=false keep=true stream=true failed=false`},
		{"by length, bytes after the end", head + "Content-Length: 2\r\n\r\nhello", `200 "he" done=true keep=false stream=true failed=false`},
		{"an empty body", head + "Content-Length: 0\r\n\r\n", `200 "" done=true keep=true stream=true failed=false`},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", `204 "" done=true keep=true stream=false failed=false`},
		{"a negative length", head + "Content-Length: -1\r\n\r\nhello", `0 "" done=false keep=false stream=false failed=true`},
		{"two lengths", head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nhello", `0 "" done=false keep=false stream=false failed=true`},
		{"an unknown transfer coding", head + "Transfer-Encoding: gzip\r\n\r\nhello", `0 "" done=false keep=false stream=false failed=true`},
		{"until the connection ends", head + "\r\nhello", `200 "hello" done=false keep=false stream=true failed=false`},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhello", `200 "hello" done=false keep=false stream=true failed=false`},
		{"the server will close", head + "Connection: close\r\nContent-Length: 5\r\n\r\nhello", `200 "hello" done=true keep=false stream=true failed=false`},
		{"100 Continue comes first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + head + "Content-Length: 1\r\n\r\na", `200 "a" done=true keep=true stream=true failed=false`},
		{"100 Continue alone", "HTTP/1.1 100 Continue\r\n\r\n", `0 "" done=false keep=false stream=false failed=false`},
		{"an event stream", head + "Content-Type: text/event-stream; charset=utf-8\r\nContent-Length: 0\r\n\r\n", `200 "" done=true keep=true stream=true failed=false`},
		{"a page", head + "Content-Type: text/html\r\nContent-Length: 0\r\n\r\n", `200 "" done=true keep=true stream=false failed=false`},
		{"an error is no stream", "HTTP/1.1 500 Oh\r\nContent-Type: text/event-stream\r\nContent-Length: 1\r\n\r\na", `500 "a" done=true keep=true stream=false failed=false`},
		{"a head that goes on for ever", head + "X: " + huge, `0 "" done=false keep=false stream=false failed=true`},
		{"another protocol", "SSH-2.0-OpenSSH_9.6\r\n", `0 "" done=false keep=false stream=false failed=true`},
		{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", `0 "" done=false keep=false stream=false failed=true`},
		{"a TLS alert", "\x15\x03\x01\x00\x02\x02\x46", `0 "" done=false keep=false stream=false failed=true`},
		{"a broken status line", "HTTP/1.1 abc\r\n\r\n", `0 "" done=false keep=false stream=false failed=true`},
		{"a broken header", head + "no colon\r\n\r\n", `0 "" done=false keep=false stream=false failed=true`},
		{"not yet a head", "HTT", `0 "" done=false keep=false stream=false failed=false`},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := []byte(row.in)
			if got := verdict(parsed(in)); got != row.want {
				t.Fatalf("got  %s\nwant %s", got, row.want)
			}
			for i := range min(len(in), 300) { // heads and framing may be split anywhere
				if got := verdict(parsed(in[:i], in[i:])); got != row.want {
					t.Fatalf("cut at %d: got %s", i, got)
				}
			}
			if got := verdict(parsed(singles(in)...)); got != row.want {
				t.Fatalf("byte by byte: got %s", got)
			}
		})
	}
}

func TestFramingErrorsSayWhatIsWrong(t *testing.T) {
	for in, want := range map[string]error{
		streamHead + "x\r\n":                       errFraming,
		"HTTP/1.1 2" + strings.Repeat("0", 70<<10): errHeadTooLong,
		"SMTP":               errNotHTTP,
		"HTTP/1.1 x\r\n\r\n": errNotHTTP,
	} {
		if _, _, err := parsed([]byte(in)); !errors.Is(err, want) {
			t.Errorf("%.20q: got %v, want %v", in, err, want)
		}
	}
}

// Only a body that says nothing of its length may end with the connection.
func TestEndOfConnection(t *testing.T) {
	for _, row := range []struct {
		in    string
		whole bool
	}{
		{"", false},
		{"HTTP/1.1 200 OK\r\n", false},
		{"HTTP/1.1 200 OK\r\n\r\nhello", true},
		{withLength(200, "", "hello"), true},
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", false},
		{streamHead + framed("hello"), false},
		{streamHead + framed("hello") + lastChunk, true},
	} {
		r, _, err := parsed([]byte(row.in))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.eof(); (err == nil) != row.whole || r.keep {
			t.Errorf("%q: got %v, keep %v", row.in, err, r.keep)
		}
	}
}

// FuzzResponse: what a response comes to does not depend on how it is cut.
func FuzzResponse(f *testing.F) {
	for _, s := range []string{
		answerOf(event("a"), doneEvent), withLength(429, "Retry-After: 1\r\n", "{}"), "HTTP/1.0 200 OK\r\n\r\nx",
		"HTTP/1.1 100 Continue\r\n\r\n" + streamHead + "3;e\r\nabc\r\n0\r\nT: 1\r\n\r\nmore", streamHead + "-1\r\n",
	} {
		f.Add([]byte(s), uint16(20))
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		if len(in) > maxHead/2 {
			t.Skip() // the limits count pieces
		}
		want := verdict(parsed(in))
		i := int(cut) % (len(in) + 1)
		for _, pieces := range [][][]byte{{in[:i], in[i:]}, singles(in), slices.Collect(slices.Chunk(in, 7))} {
			if got := verdict(parsed(pieces...)); got != want {
				t.Fatalf("cut at %d: got %s\nwant %s", i, got, want)
			}
		}
	})
}
