// Package known is an OpenAI-compatible server with known token times, to measure the load generator's errors.
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

// Timing is the timing of a [Server]'s answers.
type Timing struct {
	First  time.Duration // from the request's last byte to the first token
	Spread time.Duration // largest additional delay of the first token, which differs between turns
	Gap    time.Duration // between two tokens, each a chunk; max_tokens sets their number
}

// Truth has the actual times since the last reset, by the server's clock.
type Truth struct {
	TTFT []float64 // seconds from the request's last byte to the write of the first token
	ITL  []float64 // seconds between two writes
}

// Server records when it wrote each chunk, so that a client's figures can be compared with the actual times instead
// of the intended ones. It is safe for concurrent use.
type Server struct {
	// Answer is called for each completion before the server begins to answer, unless it is nil. If it has answered
	// itself, it returns true. It must be set before [Server.Serve].
	Answer func(c net.Conn) (answered bool)

	// Dynamo adds what a Dynamo reports: the worker with each chunk, the IDs of the prompt's tokens on request, and
	// the size of its caches. It must be set before [Server.Serve].
	Dynamo bool

	timing Timing
	frames [][]byte // a role-only chunk, a token, the finish

	turn  atomic.Int64
	mu    sync.Mutex
	truth Truth
}

// New returns a server that is not listening yet.
func New(t Timing) *Server {
	return &Server{timing: t, frames: [][]byte{
		chunk(`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`),
		chunk(`"choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]}`),
		chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`),
	}}
}

// chunk returns one event of the stream, with the fields that every event has, as a chunk of the transfer encoding.
func chunk(rest string) []byte {
	event := `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench",` +
		rest + "\n\n"
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(event), event)
}

// maxTokens returns the request's max_tokens, one if it is missing.
func maxTokens(body []byte) int {
	req := struct {
		MaxTokens int `json:"max_tokens"`
	}{MaxTokens: 1}
	if json.Unmarshal(body, &req) != nil {
		return 1
	}
	return req.MaxTokens
}

// Serve answers requests of the listener until ctx ends. It closes the listener.
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
	_, err = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body)
	return err
}

// workers are the instance IDs of a Dynamo's workers.
var workers = []string{"1001", "1002", "1003"}

// metrics writes the metrics that the load generator's shadow needs.
func (s *Server) metrics(c net.Conn) error {
	if !s.Dynamo {
		_, err := io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		return err
	}
	body := "# TYPE dynamo_frontend_model_total_kv_blocks " +
		"gauge\ndynamo_frontend_model_total_kv_blocks{model=\"bench\"} 11119\n" +
		"# TYPE dynamo_frontend_model_kv_cache_block_size " +
		"gauge\ndynamo_frontend_model_kv_cache_block_size{model=\"bench\"} 32\n" +
		"# TYPE dynamo_frontend_worker_last_input_sequence_tokens gauge\n"
	for _, w := range workers {
		body += fmt.Sprintf("dynamo_frontend_worker_last_input_sequence_tokens{worker_id=%q} 3700\n", w)
	}
	_, err := fmt.Fprintf(c,
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// promptIDs returns the event with a prompt's token IDs, each of which stands for five bytes of the request, as a
// chunk of the transfer encoding.
func promptIDs(body []byte) []byte {
	event := []byte("event: token_ids\n: \"[")
	for piece := range slices.Chunk(body, 5) {
		event = append(strconv.AppendUint(event, uint64(crc32.ChecksumIEEE(piece)%100_000), 10), ',')
	}
	event = append(event[:len(event)-1], "]\"\n\n"...)
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(event), event)
}

// stream writes one answer with each token at its due time, and records the actual times.
func (s *Server) stream(c net.Conn, received time.Time, body []byte) error {
	tokens, frames := maxTokens(body), s.frames
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	begin := append([]byte(head), frames[0]...)
	if s.Dynamo {
		worker := workers[s.turn.Add(1)%int64(len(workers))]
		frames = slices.Clone(frames)
		frames[1] = chunk(fmt.Sprintf(
			`"choices":[{"index":0,"delta":{"content":" `+
				`token"},"finish_reason":null}],"nvext":{"worker_id":{"prefill_worker_id":%s,"decode_worker_id":%[1]s}}}`,
			worker))
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
	usage := chunk(fmt.Sprintf(`"choices":[],"usage":{"prompt_tokens":3700,"completion_tokens":%d,"total_tokens":%d}}`,
		tokens, 3700+tokens))
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

// Take returns the times recorded since the last call, and resets them. An answer is included once its last token is
// written. The slices are nil if there are none. GET /truth calls it, too.
func (s *Server) Take() Truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.truth
	s.truth = Truth{}
	return t
}
