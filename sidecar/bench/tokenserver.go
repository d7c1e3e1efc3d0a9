//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// timing is what the token server does with every request.
type timing struct {
	First  time.Duration // from the request's last byte to the first token
	Gap    time.Duration // between two tokens
	Tokens int           // of one answer, one a chunk
}

// truth is what the server did, by its own clock, since the last reset.
type truth struct {
	TTFT []float64 // seconds from the request's last byte to the write of the first token
	ITL  []float64 // seconds between two writes
}

// tokenServer is an OpenAI-compatible server whose token times are known: it
// notes when it wrote each chunk, so that a client's figures can be held
// against what was really sent and not against what was meant to be.
type tokenServer struct {
	timing timing
	frames [][]byte // a role-only chunk, a token, the finish, the usage

	mu    sync.Mutex
	truth truth
}

func newTokenServer(t timing) *tokenServer {
	chunk := func(body string) []byte {
		event := "data: " + body + "\n\n"
		return fmt.Appendf(nil, "%x\r\n%s\r\n", len(event), event)
	}
	head := `{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench",`
	return &tokenServer{timing: t, frames: [][]byte{
		chunk(head + `"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`),
		chunk(head + `"choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]}`),
		chunk(head + `"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`),
		chunk(head + fmt.Sprintf(`"choices":[],"usage":{"prompt_tokens":3700,"completion_tokens":%d,"total_tokens":%d}}`, t.Tokens, 3700+t.Tokens)),
	}}
}

// serve answers until ctx ends.
func (s *tokenServer) serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		if err != nil {
			return ctx.Err()
		}
		go s.connection(c)
	}
}

func (s *tokenServer) connection(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		switch req.URL.Path {
		case "/v1/chat/completions":
			err = s.stream(c, time.Now())
		case "/v1/models":
			err = reply(c, map[string]any{"object": "list", "data": []any{map[string]string{"id": "bench"}}})
		case "/truth":
			err = reply(c, s.take())
		default:
			_, err = io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		}
		if err != nil {
			return
		}
	}
}

func reply(c net.Conn, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// stream writes one answer, each token at its due time, and notes when that was.
func (s *tokenServer) stream(c net.Conn, received time.Time) error {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	if _, err := c.Write(append([]byte(head), s.frames[0]...)); err != nil {
		return err
	}
	var mine truth
	var last time.Duration
	for i := range s.timing.Tokens {
		due := s.timing.First + time.Duration(i)*s.timing.Gap
		time.Sleep(due - time.Since(received))
		at := time.Since(received)
		if _, err := c.Write(s.frames[1]); err != nil {
			return err
		}
		if i == 0 {
			mine.TTFT = append(mine.TTFT, at.Seconds())
		} else {
			mine.ITL = append(mine.ITL, (at - last).Seconds())
		}
		last = at
	}
	s.note(mine)
	end := slices.Concat(s.frames[2], s.frames[3], []byte("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"))
	_, err := c.Write(end)
	return err
}

func (s *tokenServer) note(t truth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.truth.TTFT = append(s.truth.TTFT, t.TTFT...)
	s.truth.ITL = append(s.truth.ITL, t.ITL...)
}

// take gives what was noted, and begins anew.
func (s *tokenServer) take() truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.truth
	s.truth = truth{}
	return t
}
