package httpd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/internal/inmem"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick is a speed at which answers of some hundred tokens take some 100 ms.
const quick = 50

// booth is a cluster that accepts connections.
type booth struct {
	*Server
	t      testing.TB
	url    string
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	client *http.Client
}

// newServer returns a cluster on the H200s.
func newServer(t testing.TB, change func(*Options)) *Server {
	t.Helper()
	o := Options{Cluster: sim.DefaultOptions(sim.H200()), Engine: "trtllm", Speed: quick}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// open starts a cluster in a synctest bubble.
func open(t testing.TB, change func(*Options)) *booth {
	t.Helper()
	s := newServer(t, change)
	listener := inmem.Listen()
	server := &http.Server{Handler: s.Frontend()}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // until it is closed
	}()
	transport := &http.Transport{MaxIdleConnsPerHost: 1000, DialContext: listener.Dial}
	t.Cleanup(func() {
		s.Close()
		transport.CloseIdleConnections()
		server.Close()
		<-served
		wait.Advance(time.Second) // the server waits so long before it closes connections that it has refused
	})
	client := &http.Client{Transport: transport}
	return &booth{Server: s, t: t, url: "http://127.0.0.1", dial: listener.Dial, client: client}
}

func (b *booth) do(method, path, body string, header ...string) *http.Response {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(body))
	require.NoError(b.t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := b.client.Do(req)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { res.Body.Close() })
	return res
}

// chat sends a chat request.
func (b *booth) chat(body string, header ...string) *http.Response {
	b.t.Helper()
	return b.do(http.MethodPost, "/v1/chat/completions", body, header...)
}

// document returns the answer to a chat request without a stream.
func (b *booth) document(body string) (c chunk) {
	b.t.Helper()
	status, text := b.call(http.MethodPost, "/v1/chat/completions", body)
	require.Equal(b.t, http.StatusOK, status, text)
	require.NoError(b.t, json.Unmarshal([]byte(text), &c), text)
	return c
}

// complete returns the answer to a chat request with a stream, which must be complete.
func (b *booth) complete(body string) answered {
	b.t.Helper()
	return complete(b.t, b.chat(body).Body)
}

// call returns status and body of a response.
func (b *booth) call(method, path, body string, header ...string) (int, string) {
	b.t.Helper()
	res := b.do(method, path, body, header...)
	text, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	return res.StatusCode, string(text)
}

// get reads a JSON document with status 200.
func (b *booth) get(path string, v any) {
	b.t.Helper()
	status, body := b.call(http.MethodGet, path, "")
	require.Equal(b.t, http.StatusOK, status, body)
	require.NoError(b.t, json.Unmarshal([]byte(body), v))
}

func (b *booth) state() (s state) {
	b.t.Helper()
	b.get("/sim/v1/state", &s)
	return s
}

// becomes waits for a state.
func (b *booth) becomes(what string, holds func(state) bool) {
	b.t.Helper()
	wait.Eventually(b.t, what, func() (any, bool) {
		s := b.state()
		return s, holds(s)
	})
}

// idle waits until nothing is in progress.
func (b *booth) idle(what string) {
	b.t.Helper()
	b.becomes(what, func(s state) bool { return s.Inflight == 0 })
}

// ready waits until the cluster is ready.
func (b *booth) ready(what string) {
	b.t.Helper()
	b.becomes(what, func(s state) bool { return s.Ready })
}

// counts waits until the frontend has counted so many requests, and returns its metrics.
func (b *booth) counts(requests int) (text string) {
	b.t.Helper()
	wait.Eventually(b.t, "the frontend counts the requests", func() (any, bool) {
		_, text = b.call(http.MethodGet, "/metrics", "")
		n := metric(text, "dynamo_frontend_requests_total")
		return n, n == float64(requests)
	})
	return text
}

// ask returns a streaming request with everything that the load generator requests.
func ask(text string, maxTokens int, more string) string {
	return fmt.Sprintf(`{"model":"meta-llama/Llama-3.1-70B-Instruct","messages":[{"role":"user","content":%q}],`+
		`"stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"max_tokens":%d,`+
		`"nvext":{"extra_fields":["worker_id","timing"]%s}}`, text, maxTokens, more)
}

// inOne converts a request by ask to one for a single document.
func inOne(ask string) string {
	return strings.Replace(ask, `"stream":true,"stream_options":{"include_usage":true},`, "", 1)
}

// event is one server-sent event.
type event struct{ name, comment, data string }

// readEvents reads a stream to its end. err is nil if the stream ended regularly.
func readEvents(r io.Reader) (all []event, err error) {
	lines := bufio.NewReader(r)
	var e event
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		switch line = strings.TrimSuffix(line, "\n"); {
		case line == "":
			all, e = append(all, e), event{}
		case strings.HasPrefix(line, ": "):
			e.comment = line[2:]
		case strings.HasPrefix(line, "event: "):
			e.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			e.data = line[6:]
		}
	}
}

// chunk has the members of a chunk that tests read.
type chunk struct {
	ID      string
	Object  string
	Choices []struct {
		Delta        struct{ Content, Role string }
		Message      struct{ Content, Role string } // of a single document
		FinishReason *string                        `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
	NVExt struct {
		Worker struct {
			Decode uint64 `json:"decode_worker_id"`
		} `json:"worker_id"`
		Timing *timing
	}
	Message string
	Type    string
	Code    int
}

// answered is a whole stream.
type answered struct {
	text     string
	contents int // chunks with text
	reason   string
	last     chunk // before [DONE]
	finish   chunk
	worker   uint64
}

// complete reads a stream that must be complete.
func complete(t testing.TB, r io.Reader) (a answered) {
	t.Helper()
	all, err := readEvents(r)
	require.NoError(t, err)
	require.NotEmpty(t, all)
	require.Equal(t, "[DONE]", all[len(all)-1].data)
	for _, e := range all[:len(all)-1] {
		if e.data == "" {
			continue
		}
		var c chunk
		require.NoError(t, json.Unmarshal([]byte(e.data), &c), e.data)
		a.last = c
		if len(c.Choices) == 0 {
			continue
		}
		a.worker = c.NVExt.Worker.Decode
		if text := c.Choices[0].Delta.Content; text != "" {
			a.text, a.contents = a.text+text, a.contents+1
		}
		if reason := c.Choices[0].FinishReason; reason != nil {
			a.reason, a.finish = *reason, c
		}
	}
	return a
}
