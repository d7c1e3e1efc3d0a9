package httpd

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/inmem"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/booth/httpd/events"
)

// worker calls the port of the second worker.
type worker struct{ *booth }

// asEngine starts a cluster whose workers are engines that publish events.
func asEngine(t testing.TB, engine string, change func(*Options)) worker {
	return worker{open(t, func(o *Options) {
		o.Engine, o.Events = engine, &events.Format{}
		if change != nil {
			change(o)
		}
	})}
}

func (w worker) call(method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8082}
	recorder := httptest.NewRecorder()
	w.Worker(1).ServeHTTP(recorder, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local)))
	return recorder
}

// read calls a path that answers 200 with a document.
func (w worker) read(method, path, body string, v any) {
	w.t.Helper()
	answer := w.call(method, path, body)
	require.Equal(w.t, http.StatusOK, answer.Code, answer.Body)
	require.NoError(w.t, json.Unmarshal(answer.Body.Bytes(), v), answer.Body)
}

// A worker's port serves that worker alone, takes what routers add to a body, and names itself.
func TestWorkerServesAsAnEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := asEngine(t, "vllm", nil)
		for range 3 {
			body := inOne(ask("word", 10, ""))
			answer := w.call(http.MethodPost, "/v1/chat/completions", strings.Replace(body, "{", `{"no_stop_trim":false,`, 1))
			require.Equal(t, http.StatusOK, answer.Code, answer.Body)
			assert.Equal(t, "127.0.0.1:8082", answer.Header().Get(WorkerHeader))
			assert.NotContains(t, answer.Body.String(), "nvext")
		}
		metrics := page(w.Worker(1))
		assert.EqualValues(t, 3, metric(metrics, "vllm:request_success_total"))
		assert.EqualValues(t, 30, metric(metrics, "vllm:generation_tokens_total"))
		assert.Equal(t, metric(metrics, "vllm:prefix_cache_queries_total"), metric(metrics, "vllm:prompt_tokens_total"))
		assert.Contains(t, metrics, `num_gpu_blocks="11119"`)
		assert.Zero(t, metric(page(w.Worker(0)), "vllm:request_success_total"))
		for path, has := range map[string]string{
			"/server_info": `"served_model_name":"meta-llama/`, "/v1/models": `"owned_by":"vllm"`, "/version": `"version":`,
			"/health": "{}", "/load": `{"server_load":0}`, "/get_load": `{"load":0}`, "/v1/loads": `"num_running_reqs":0`,
			"/kv_event_sources": `"endpoint":`,
		} {
			answer := w.call(http.MethodGet, path, "")
			assert.Equal(t, http.StatusOK, answer.Code, path)
			assert.Contains(t, answer.Body.String(), has, path)
		}
		for _, path := range []string{"/sim/v1/state", "/flush_cache"} {
			assert.Equal(t, http.StatusNotFound, w.call(http.MethodGet, path, "").Code, path)
		}
		assert.JSONEq(t, `{"error":{"message":"Model not found","type":"NotFoundError","param":null,"code":404}}`,
			w.call(http.MethodPost, "/v1/completions", `{"model":"other","prompt":"word"}`).Body.String())
	})
}

// The ids of /render, /tokenize and of the events are the same, and an emptied cache is an event.
func TestEventsHaveTheIDsOfRender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := asEngine(t, "vllm", nil)
		replay := inmem.Listen()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- w.Events(1).ServeReplay(ctx, replay) }()
		defer func() {
			cancel()
			require.NoError(t, <-ended)
		}()

		var rendered struct {
			IDs []uint32 `json:"token_ids"`
		}
		var tokenized struct {
			Count  int
			Tokens []uint32
		}
		body := inOne(ask(strings.Repeat("one two three ", 200), 40, ""))
		w.read(http.MethodPost, "/v1/chat/completions/render", body, &rendered)
		w.read(http.MethodPost, "/tokenize", body, &tokenized)
		require.Equal(t, rendered.IDs, tokenized.Tokens)
		require.Len(t, rendered.IDs, tokenized.Count)
		var answer chunk
		w.read(http.MethodPost, "/v1/chat/completions", body, &answer)
		require.Equal(t, tokenized.Count, answer.Usage.Prompt)
		require.Equal(t, http.StatusOK, w.call(http.MethodPost, "/reset_prefix_cache", "").Code)
		w.read(http.MethodPost, "/v1/chat/completions", body, &answer)
		assert.Zero(t, answer.Usage.Details.Cached, "the cache was emptied")

		got := replayed(t, replay)
		const block = 32
		var ids []byte // of the prompt's full blocks, in MessagePack
		ids = binary.BigEndian.AppendUint32(append(ids, 0xdd), uint32(len(rendered.IDs)/block*block))
		for _, id := range rendered.IDs[:len(rendered.IDs)/block*block] {
			switch {
			case id < 1<<7:
				ids = append(ids, byte(id))
			case id < 1<<16:
				ids = binary.BigEndian.AppendUint16(append(ids, 0xcd), uint16(id))
			default:
				ids = binary.BigEndian.AppendUint32(append(ids, 0xce), id)
			}
		}
		assert.Equal(t, 2, bytes.Count(got, append([]byte("\xa9token_ids"), ids...)), "stored before and after")
		assert.Equal(t, 1, bytes.Count(got, []byte("AllBlocksCleared")))
	})
}

// replayed returns all messages that a worker has published.
func replayed(t *testing.T, l *inmem.Listener) []byte {
	t.Helper()
	conn, err := l.Dial(t.Context(), "", "")
	require.NoError(t, err)
	defer conn.Close()
	greeting := make([]byte, 64)
	_, err = io.ReadFull(conn, greeting)
	require.NoError(t, err)
	_, err = conn.Write(greeting)
	require.NoError(t, err)
	_, err = io.CopyN(io.Discard, conn, 43) // READY
	require.NoError(t, err)
	_, err = conn.Write([]byte("\x04\x06\x05READY" + "\x01\x00" + "\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00"))
	require.NoError(t, err)
	var got []byte
	for !bytes.Contains(got, bytes.Repeat([]byte{255}, 8)) {
		part := make([]byte, 1<<16)
		n, err := conn.Read(part)
		require.NoError(t, err)
		got = append(got, part[:n]...)
	}
	return got
}

func TestCompletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := asEngine(t, "vllm", nil)
		const head = `{"model":"meta-llama/Llama-3.1-70B-Instruct",`
		text := strings.Repeat("one two three ", 20)
		var tokenized struct{ Tokens []uint32 }
		w.read(http.MethodPost, "/tokenize", fmt.Sprintf(`{"prompt":%q}`, text), &tokenized)
		ids, err := json.Marshal(tokenized.Tokens)
		require.NoError(t, err)
		for i, prompt := range []string{
			fmt.Sprintf("%q", text), fmt.Sprintf("[%q]", text), string(ids), "[" + string(ids) + "]",
		} {
			var c struct {
				chunk
				Choices []struct {
					Text         string
					FinishReason string `json:"finish_reason"`
				}
			}
			w.read(http.MethodPost, "/v1/completions", head+`"prompt":`+prompt+`}`, &c)
			assert.Equal(t, "text_completion", c.Object)
			assert.Equal(t, len(tokenized.Tokens), c.Usage.Prompt)
			assert.Equal(t, defaultCompletion, c.Usage.Completion)
			assert.Equal(t, "length", c.Choices[0].FinishReason)
			assert.NotEmpty(t, c.Choices[0].Text)
			assert.Equal(t, i > 0, c.Usage.Details.Cached > 0, "equal tokens are cached")
		}
		const streamed = `,"max_tokens":9,"stream":true,"stream_options":{"include_usage":true}}`
		for path, want := range map[string]struct{ question, first, last string }{
			"/v1/completions": {`"prompt":"word"`, `"text":".+"`, `"text":".+","finish_reason":"length"`},
			"/v1/chat/completions": {
				`"messages":[{"role":"user","content":"word"}]`, `"content":"","role":"assistant"`,
				`"content":".+"},"finish_reason":"length"`,
			},
		} {
			all, err := readEvents(w.call(http.MethodPost, path, head+want.question+streamed).Body)
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(all), 4)
			assert.Regexp(t, want.first, all[0].data)
			assert.Regexp(t, want.last, all[len(all)-3].data)
			assert.Contains(t, all[len(all)-2].data, `"completion_tokens":9`)
		}
		for _, prompt := range []string{`""`, "[]", `["a","b"]`, "7", "null"} {
			assert.Equal(t, http.StatusBadRequest,
				w.call(http.MethodPost, "/v1/completions", head+`"prompt":`+prompt+`}`).Code, prompt)
		}
	})
}

// While a request is in progress, its load shows and the cache is not emptied.
func TestSGLangInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := asEngine(t, "sglang", nil)
		answered := make(chan int)
		body := strings.Replace(inOne(ask("word", 900, "")), "{", `{"ignore_eos":true,`, 1)
		go func() { answered <- w.call(http.MethodPost, "/v1/chat/completions", body).Code }()
		wait.Advance(100 * time.Millisecond)
		var ranks []map[string]int
		w.read(http.MethodGet, "/get_load", "", &ranks)
		assert.Equal(t, 1, ranks[0]["num_reqs"])
		assert.Positive(t, ranks[0]["num_tokens"])
		var all struct{ Loads []map[string]float64 }
		w.read(http.MethodGet, "/v1/loads?include=core", "", &all)
		assert.EqualValues(t, 1, all.Loads[0]["num_running_reqs"])
		assert.Positive(t, all.Loads[0]["token_usage"])
		refused := w.call(http.MethodPost, "/flush_cache", "")
		assert.Equal(t, http.StatusBadRequest, refused.Code)
		assert.Contains(t, refused.Body.String(), `"object":"error"`)
		require.Equal(t, http.StatusOK, <-answered)
		assert.Equal(t, http.StatusOK, w.call(http.MethodGet, "/flush_cache", "").Code)
		assert.Equal(t, http.StatusNotFound, w.call(http.MethodGet, "/version", "").Code)
		metrics := page(w.Worker(1))
		assert.EqualValues(t, 900, metric(metrics, "sglang:generation_tokens_total"))
		assert.Zero(t, metric(metrics, "sglang:num_used_tokens"))
	})
}

// A lost worker aborts its connections, as a process that was killed, until it is back.
func TestLostWorkerAbortsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := asEngine(t, "vllm", func(o *Options) { o.Speed = 1 })
		aborted := make(chan any)
		call := func(method, path, body string) {
			defer func() { aborted <- recover() }()
			w.call(method, path, body)
		}
		go call(http.MethodPost, "/v1/chat/completions", ask("word", 900, ""))
		wait.Advance(time.Second)
		id := decimal(w.snapshot().Workers[1].ID)
		control := httptest.NewRequest(http.MethodPost, "/sim/v1/workers/"+id+"/lose", strings.NewReader(`{"seconds":5}`))
		control.Host = "127.0.0.1"
		control.Header.Set("Content-Type", "application/json")
		lost := httptest.NewRecorder()
		w.Control().ServeHTTP(lost, control)
		require.Equal(t, http.StatusOK, lost.Code, lost.Body)
		assert.Equal(t, http.ErrAbortHandler, <-aborted, "in the middle of a stream")
		go call(http.MethodGet, "/health", "")
		assert.Equal(t, http.ErrAbortHandler, <-aborted)
		wait.Advance(6 * time.Second)
		assert.Equal(t, http.StatusOK, w.call(http.MethodGet, "/health", "").Code)
	})
}

// The requests of a worker that fail depend on the seed and on their numbers at this worker.
func TestFaultsOfWorkersRepeatBySeed(t *testing.T) {
	faults := func(seed uint64) (all [2][]faultKind) {
		s := newServer(t, func(o *Options) {
			o.Cluster.Seed = seed
			o.Faults = Faults{HTTP500: .1, Stall: .1, Disconnect: .1}
		})
		for range 50 {
			s.faults.draw() // the frontend has a sequence of its own
			for i := range all {
				all[i] = append(all[i], s.workers[i].faults.draw().kind)
			}
		}
		return all
	}
	first := faults(1)
	assert.Equal(t, first, faults(1))
	assert.NotEqual(t, first, faults(2))
	assert.NotEqual(t, first[0], first[1])
}
