package lane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// server is a model server that streams. What it does may change while it runs.
type server struct {
	*httptest.Server
	t testing.TB

	mu    sync.Mutex
	nvext bool                      // it knows Dynamo's extension; else it answers 400 to it
	words int                       // content chunks of an answer
	gap   time.Duration             // before each of them
	fault func(http.ResponseWriter) // answers in its place; nil: nothing does
	next  chan struct{}             // each chunk after the first waits for leave; nil: none does
	seen  []request
	stuck int // answers that wait for leave
}

// request is one turn as the server saw it, probes left out.
type request struct {
	id, first string // X-Request-Id; the first message
	maxTokens int
}

func newServer(t testing.TB) *server {
	s := &server{t: t, words: 3, gap: time.Millisecond, nvext: true}
	s.Server = httptest.NewUnstartedServer(s)
	return s
}

func startServer(t testing.TB) *server {
	s := newServer(t)
	s.Start()
	return s
}

// set changes what the server does.
func (s *server) set(change func(*server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// holds makes every answer wait for leave after its first word.
func (s *server) holds() {
	s.set(func(s *server) {
		if s.next == nil {
			s.next = make(chan struct{})
		}
	})
}

// flows ends that, for answers that begin from now on.
func (s *server) flows() { s.set(func(s *server) { s.next = nil }) }

// fails makes every chat completion get a status with a message.
func (s *server) fails(status int, message string) {
	s.set(func(s *server) {
		s.fault = func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":%q}}`, message)
		}
	})
}

// recovers ends every fault.
func (s *server) recovers() { s.set(func(s *server) { s.fault = nil }) }

// requests are those of turns, so far.
func (s *server) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// held says how many answers have sent a word and wait with the next.
func (s *server) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stuck
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		fmt.Fprint(w, `{"data":[{"id":"test-model"}]}`)
		return
	}
	var body struct {
		Messages  []struct{ Content string }
		MaxTokens int             `json:"max_tokens"`
		NVExt     json.RawMessage `json:"nvext"`
	}
	switch err := json.NewDecoder(r.Body).Decode(&body); {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF): // cancelled while it was sent
		return
	case err != nil:
		s.t.Errorf("the request is no JSON: %v", err)
		return
	}
	req := request{id: r.Header.Get("X-Request-Id"), first: body.Messages[0].Content, maxTokens: body.MaxTokens}
	a := s.answer(req)
	switch {
	case a.fault != nil:
		a.fault(w)
	case body.NVExt != nil && !a.nvext:
		http.Error(w, `{"error":{"message":"unknown field nvext"}}`, http.StatusBadRequest)
	default:
		a.stream(w, r, body.NVExt != nil)
	}
}

// answer is how one request is answered.
type answer struct {
	request
	server *server
	nvext  bool
	words  int
	gap    time.Duration
	fault  func(http.ResponseWriter)
	next   chan struct{}
}

func (s *server) answer(req request) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := answer{request: req, server: s, nvext: s.nvext, words: s.words, gap: s.gap, fault: s.fault, next: s.next}
	if req.id == "kvbooth-probe" {
		a.words, a.gap, a.next = 1, 0, nil
	} else {
		s.seen = append(s.seen, req)
	}
	return a
}

func (a *answer) stream(w http.ResponseWriter, r *http.Request, nvext bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(format string, args ...any) {
		fmt.Fprintf(w, "data: "+format+"\n\n", args...)
		w.(http.Flusher).Flush()
	}
	for i := range a.words {
		if !a.wait(r, i) {
			return
		}
		send(`{"choices":[{"delta":{"content":"word%d "}}]}`, i)
	}
	prompt := len(a.first) / 4
	extra := ""
	if nvext {
		extra = `,"nvext":{"worker_id":{"decode_worker_id":16549284283275536882},"timing":{"ttft_ms":1.5}}`
	}
	send(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}%s}`,
		2*prompt, a.words, prompt, extra)
	send("[DONE]")
}

// wait waits for a word's time, or for leave to send it; false says that the
// client has gone.
func (a *answer) wait(r *http.Request, word int) bool {
	timer := time.NewTimer(a.gap)
	defer timer.Stop()
	due, leave := timer.C, a.next
	if word == 0 {
		leave = nil
	} else if leave != nil {
		due = nil
		a.server.set(func(s *server) { s.stuck++ })
		defer a.server.set(func(s *server) { s.stuck-- })
	}
	select {
	case <-due:
	case <-leave:
	case <-r.Context().Done():
		return false
	}
	return true
}

// run is the part of the request's id that names the span from start to stop.
func (r *request) run() string { return runOf(r.id[:strings.LastIndex(r.id, "-")]) }

// runOf is that part of a conversation's id.
func runOf(conversation string) string { return conversation[:strings.LastIndex(conversation, "-")] }
