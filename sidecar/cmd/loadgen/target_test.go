//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// target is a model server whose faults are switched on and off. It answers the questions of an end user's model too.
type target struct {
	*httptest.Server
	fault   atomic.Pointer[http.HandlerFunc] // answers every turn; nil: the target works
	words   atomic.Int64                     // content chunks of an answer
	cached  atomic.Int64                     // tokens of the 4,000 of a prompt
	gap     atomic.Int64                     // pause before each of them, in ns
	word    atomic.Pointer[string]           // their event
	asked   atomic.Int64                     // requests
	slow    atomic.Int64                     // delay of every second turn, in ns
	turns   atomic.Int64                     // requests but those of probes
	pinned  atomic.Int64                     // requests that name an instance
	inside  atomic.Int64                     // answers in progress
	failing atomic.Int64                     // turns of four that get 503
	first   atomic.Pointer[string]           // the first message of the latest conversation
}

// startTarget starts a target that answers fast.
func startTarget(t *testing.T) *target {
	s := new(target)
	word := oneWord
	s.word.Store(&word)
	s.words.Store(3)
	s.cached.Store(3000)
	s.gap.Store(int64(time.Millisecond))
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *target) breaks(f http.HandlerFunc) { s.fault.Store(&f) }

func (s *target) works() { s.fault.Store(nil) }

func (s *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // whole, so that the server detects when its client disconnects
	if err != nil {
		return
	}
	if fault := s.fault.Load(); fault != nil {
		(*fault)(w, r)
		return
	}
	s.serve(w, r, body)
}

func (s *target) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	switch r.URL.Path {
	case "/v1/models":
		fmt.Fprint(w, `{"data":[{"id":"llama"}]}`)
	case "/health":
		fmt.Fprint(w, `{"instances":[{"endpoint":"generate","instance_id":7},{"endpoint":"generate","instance_id":8}]}`)
	case "/v1/chat/completions":
		s.inside.Add(1)
		defer s.inside.Add(-1)
		s.complete(w, r, body)
	default:
		http.NotFound(w, r)
	}
}

func (s *target) complete(w http.ResponseWriter, r *http.Request, body []byte) {
	if s.asked.Add(1)%4 < s.failing.Load() {
		refuse(http.StatusServiceUnavailable, "no workers")(w, r)
		return
	}
	var request struct {
		Messages  []struct{ Content string }
		MaxTokens int `json:"max_tokens"`
		NVExt     struct {
			Instance json.Number `json:"backend_instance_id"`
		} `json:"nvext"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if request.MaxTokens > 1 && s.turns.Add(1)%2 == 0 && !stays(r, time.Duration(s.slow.Load())) {
		return
	}
	if request.NVExt.Instance != "" {
		s.pinned.Add(1)
	}
	if len(request.Messages) == 1 && request.MaxTokens > 1 { // no probe
		s.first.Store(&request.Messages[0].Content)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send(w, `{"choices":[{"delta":{"role":"assistant"}}]}`)
	words := s.words.Load()
	for range words {
		if !stays(r, time.Duration(s.gap.Load())) {
			return
		}
		send(w, *s.word.Load())
	}
	send(w, fmt.Sprintf(`{"choices":[],"nvext":{"worker_id":{"decode_worker_id":7}},`+
		`"usage":{"prompt_tokens":4000,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`,
		words, s.cached.Load()))
	send(w, "[DONE]")
}

const oneWord = `{"choices":[{"delta":{"content":"word "}}]}`

func send(w http.ResponseWriter, event string) {
	fmt.Fprintf(w, "data: %s\n\n", event)
	_ = http.NewResponseController(w).Flush()
}

// stays reports whether the client is still connected after d.
func stays(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// refuse answers with a status and a message in the form of OpenAI's servers.
func refuse(status int, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":%q}}`, message)
	}
}

// hangUp ends the connection without an answer.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = c.Close()
	}
}
