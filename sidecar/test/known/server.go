// Package known is an OpenAI-compatible server whose token times are known, for
// measurements of how wrong the load generator is.
package known

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Timing is what a [Server] does with every request.
type Timing struct {
	First  time.Duration // from the request's last byte to the first token
	Spread time.Duration // that the first token is later by at most, differently in each turn
	Gap    time.Duration // between two tokens; each is a chunk, and max_tokens says how many
}

// Truth is what the server did, by its own clock, since the last reset.
type Truth struct {
	TTFT []float64 // seconds from the request's last byte to the write of the first token
	ITL  []float64 // seconds between two writes
}

// Server notes when it wrote each chunk, so that a client's figures can be held
// against what was really sent and not against what was meant to be. It is safe for
// concurrent use.
type Server struct {
	// Answer, where it is not nil, is asked for each completion, before the server
	// begins to answer; it answers itself and says so, or leaves that to the server.
	// It is set before [Server.Serve].
	Answer func(c net.Conn) (answered bool)

	// Dynamo makes it tell what a Dynamo tells: the worker with each chunk, the ids of the
	// prompt's tokens where they are asked for, and the size of its caches. It is set before
	// [Server.Serve].
	Dynamo bool

	timing Timing
	frames [][]byte // a role-only chunk, a token, the finish

	turn  atomic.Int64
	mu    sync.Mutex
	truth Truth
}

// New makes a server.
func New(t Timing) *Server {
	return &Server{timing: t, frames: [][]byte{
		chunk(`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`),
		chunk(`"choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]}`),
		chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`),
	}}
}

// chunk is one event of the stream as a chunk of the transfer, begun with what
// every event has.
func chunk(rest string) []byte {
	event := `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench",` + rest + "\n\n"
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(event), event)
}

// maxTokens is what the request allows, one token where it says nothing.
func maxTokens(body []byte) int {
	req := struct {
		MaxTokens int `json:"max_tokens"`
	}{MaxTokens: 1}
	if json.Unmarshal(body, &req) != nil {
		return 1
	}
	return req.MaxTokens
}

// Serve answers over the listener, which it closes, until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
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

func (s *Server) connection(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(io.LimitReader(req.Body, 16<<20))
		if err != nil {
			return
		}
		received := time.Now()
		switch req.URL.Path {
		case "/v1/chat/completions":
			if s.Answer != nil && s.Answer(c) {
				return
			}
			err = s.stream(c, received, body)
		case "/v1/models":
			err = reply(c, map[string]any{"object": "list", "data": []any{map[string]string{"id": "bench"}}})
		case "/metrics":
			err = s.metrics(c)
		case "/truth":
			err = reply(c, s.Take())
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

// workers are those that a Dynamo would have.
var workers = []string{"1001", "1002", "1003"}

// metrics are the few that the load generator's shadow needs.
func (s *Server) metrics(c net.Conn) error {
	if !s.Dynamo {
		_, err := io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		return err
	}
	body := "# TYPE dynamo_frontend_model_total_kv_blocks gauge\ndynamo_frontend_model_total_kv_blocks{model=\"bench\"} 11119\n" +
		"# TYPE dynamo_frontend_model_kv_cache_block_size gauge\ndynamo_frontend_model_kv_cache_block_size{model=\"bench\"} 32\n" +
		"# TYPE dynamo_frontend_worker_last_input_sequence_tokens gauge\n"
	for _, w := range workers {
		body += fmt.Sprintf("dynamo_frontend_worker_last_input_sequence_tokens{worker_id=%q} 3700\n", w)
	}
	_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// promptIDs is the event with the ids of a prompt, of which each stands for five bytes of the
// request, as a chunk of the transfer.
func promptIDs(body []byte) []byte {
	event := []byte("event: token_ids\n: \"[")
	for piece := range slices.Chunk(body, 5) {
		event = append(strconv.AppendUint(event, uint64(crc32.ChecksumIEEE(piece)%100_000), 10), ',')
	}
	event = append(event[:len(event)-1], "]\"\n\n"...)
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(event), event)
}

// stream writes one answer, each token at its due time, and notes when that was.
func (s *Server) stream(c net.Conn, received time.Time, body []byte) error {
	tokens, frames := maxTokens(body), s.frames
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	begin := append([]byte(head), frames[0]...)
	if s.Dynamo {
		worker := workers[s.turn.Add(1)%int64(len(workers))]
		frames = slices.Clone(frames)
		frames[1] = chunk(fmt.Sprintf(`"choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}],"nvext":{"worker_id":{"prefill_worker_id":%s,"decode_worker_id":%[1]s}}}`, worker))
		if bytes.Contains(body, []byte(`"token_ids"`)) {
			begin = append([]byte(head), promptIDs(body)...)
		}
	}
	if _, err := c.Write(begin); err != nil {
		return err
	}
	var mine Truth
	var last time.Duration
	first := s.timing.First
	if s.timing.Spread > 0 {
		first += rand.N(s.timing.Spread)
	}
	for i := range tokens {
		due := first + time.Duration(i)*s.timing.Gap
		time.Sleep(due - time.Since(received))
		at := time.Since(received)
		if _, err := c.Write(frames[1]); err != nil {
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
	usage := chunk(fmt.Sprintf(`"choices":[],"usage":{"prompt_tokens":3700,"completion_tokens":%d,"total_tokens":%d}}`, tokens, 3700+tokens))
	end := slices.Concat(frames[2], usage, []byte("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"))
	_, err := c.Write(end)
	return err
}

func (s *Server) note(t Truth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.truth.TTFT = append(s.truth.TTFT, t.TTFT...)
	s.truth.ITL = append(s.truth.ITL, t.ITL...)
}

// Take gives what was noted, and begins anew.
func (s *Server) Take() Truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.truth
	s.truth = Truth{}
	return t
}
