//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// target is a model server: a small Dynamo whose faults are switched on and off.
type target struct {
	*httptest.Server
	fault  atomic.Pointer[http.HandlerFunc] // answers in its place; nil: nothing does
	words  atomic.Int64                     // content chunks of an answer
	gap    atomic.Int64                     // ns in front of each of them
	word   atomic.Pointer[string]           // the event of each of them
	asked  atomic.Int64                     // requests for an answer or for the models
	pinned atomic.Int64                     // requests for an answer from a certain instance
	inside atomic.Int64                     // answers under way
}

// newTarget makes one that answers fast, and is not started yet.
func newTarget(t *testing.T) *target {
	s := new(target)
	word := oneWord
	s.word.Store(&word)
	s.words.Store(3)
	s.gap.Store(int64(time.Millisecond))
	s.Server = httptest.NewUnstartedServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func startTarget(t *testing.T) *target {
	s := newTarget(t)
	s.Start()
	return s
}

func (s *target) breaks(f http.HandlerFunc) { s.fault.Store(&f) }

func (s *target) works() { s.fault.Store(nil) }

func (s *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/v1/models":
		s.asked.Add(1)
		fmt.Fprint(w, `{"data":[{"id":"llama"}]}`)
	case "/health":
		fmt.Fprint(w, `{"instances":[{"endpoint":"generate","instance_id":7},{"endpoint":"generate","instance_id":8}]}`)
	case "/v1/chat/completions":
		s.asked.Add(1)
		s.inside.Add(1)
		defer s.inside.Add(-1)
		s.complete(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *target) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // whole, so that the server sees when its client goes
	if err != nil {
		return
	}
	if fault := s.fault.Load(); fault != nil {
		(*fault)(w, r)
		return
	}
	var request struct {
		NVExt struct {
			Instance json.Number `json:"backend_instance_id"`
		} `json:"nvext"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if request.NVExt.Instance != "" {
		s.pinned.Add(1)
	}
	s.stream(w, r)
}

// stream answers word by word.
func (s *target) stream(w http.ResponseWriter, r *http.Request) {
	begin(w)
	words := s.words.Load()
	for range words {
		if !wait(r, time.Duration(s.gap.Load())) {
			return
		}
		send(w, *s.word.Load())
	}
	send(w, fmt.Sprintf(`{"choices":[],"nvext":{"worker_id":{"decode_worker_id":7}},`+
		`"usage":{"prompt_tokens":4000,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":3000}}}`, words))
	send(w, "[DONE]")
}

const oneWord = `{"choices":[{"delta":{"content":"word "}}]}`

func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	send(w, `{"choices":[{"delta":{"role":"assistant"}}]}`)
}

func send(w http.ResponseWriter, event string) {
	fmt.Fprintf(w, "data: %s\n\n", event)
	_ = http.NewResponseController(w).Flush()
}

// wait says whether the client is still there after d.
func wait(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// hijack answers with bytes that need not be HTTP, and ends the connection, with
// a reset where there are none.
func hijack(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		if tcp, ok := c.(*net.TCPConn); ok && text == "" {
			_ = tcp.SetLinger(0)
		}
		_, _ = io.WriteString(c, text)
	}
}

// heldPort is a port of loopback where nobody listens and which nobody else can
// take, until listen.
type heldPort struct {
	t    *testing.T
	file *os.File
	port int
}

func holdPort(t *testing.T) *heldPort {
	t.Helper()
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	file := os.NewFile(uintptr(fd), "held port")
	t.Cleanup(func() { _ = file.Close() })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	return &heldPort{t: t, file: file, port: name.(*syscall.SockaddrInet4).Port}
}

func (h *heldPort) address() string { return fmt.Sprintf("127.0.0.1:%d", h.port) }

// listen opens the port.
func (h *heldPort) listen() net.Listener {
	h.t.Helper()
	require.NoError(h.t, syscall.Listen(int(h.file.Fd()), 128))
	l, err := net.FileListener(h.file)
	require.NoError(h.t, err)
	return l
}
