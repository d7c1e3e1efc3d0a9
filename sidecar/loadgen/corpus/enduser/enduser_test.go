package enduser

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	openai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/corpus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const answer = "The block manager keeps physical blocks in a free list."

// follow returns one question of q.
func follow(ctx context.Context, q *Questioner, asked ...string) string {
	return q.Follow(ctx, rand.New(rand.NewPCG(1, 2)), "Memory", asked, answer)
}

// builtin returns the question of the built-in questioner.
func builtin(t *testing.T, asked ...string) string {
	return corpus.BuiltinQuestioner{}.Follow(t.Context(), rand.New(rand.NewPCG(1, 2)), "Memory", asked, answer)
}

// writeAnswer writes the answer of a chat completion.
func writeAnswer(w http.ResponseWriter, text string) {
	message := map[string]string{"role": "assistant", "content": text}
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": message}}})
}

func start(t *testing.T, o Options, h http.HandlerFunc) *Questioner {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o.URL = server.URL
	q, err := New(o)
	require.NoError(t, err)
	t.Cleanup(q.Close)
	return q
}

// The model is the server's first, the key is sent, and the answer is the question.
func TestModelAsks(t *testing.T) {
	var got openai.ChatCompletionRequest
	var lists atomic.Int64
	q := start(t, Options{APIKey: "sk-secret"}, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer sk-secret", r.Header.Get("Authorization"))
		switch r.Method + " " + r.URL.Path {
		case "GET /v1/models":
			lists.Add(1)
			fmt.Fprint(w, `{"data":[{"id":"llama-3.1-8b"},{"id":"other"}]}`)
		case "POST /v1/chat/completions":
			assert.NoError(t, json.NewDecoder(r.Body).Decode(&got))
			writeAnswer(w, `Question: "Who owns the free list?"`)
		}
	})
	for range 2 {
		assert.Equal(t, "Who owns the free list?", follow(t.Context(), q, "Explain it."))
	}
	assert.EqualValues(t, 1, lists.Load())
	assert.Equal(t, openai.ChatCompletionRequest{
		Model: "llama-3.1-8b", Messages: prompt("Memory", []string{"Explain it."}, answer),
		MaxTokens: maxTokens, //nolint:staticcheck // the field that Questioner.once sets
	}, got)
	assert.Equal(t, api.FollowupStatus{
		Name: "model at " + q.root, URL: q.root, Model: "llama-3.1-8b", ByModel: 2, Fallbacks: map[api.FollowupCause]int64{},
	}, q.Report())
	assert.Equal(t, corpus.BuiltinQuestioner{}.Open(rand.New(rand.NewPCG(1, 2)), "X"),
		q.Open(rand.New(rand.NewPCG(1, 2)), "X"))
}

// Reasoning models have another field for the limit.
func TestReasoningModelLimit(t *testing.T) {
	q := start(t, Options{Model: "o3-mini"}, func(w http.ResponseWriter, r *http.Request) {
		var got openai.ChatCompletionRequest
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&got))
		assert.Equal(t, maxThought, got.MaxCompletionTokens)
		writeAnswer(w, "Why?")
	})
	assert.Equal(t, "Why?", follow(t.Context(), q))
}

// Each failure of the server gives a question of the built-in questioner, counted by its cause.
func TestFallsBack(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); fmt.Fprint(w, body) }
	}
	text := func(said string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { writeAnswer(w, said) }
	}
	breaks := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for _, tt := range []struct {
		name     string
		answers  http.HandlerFunc
		cause    api.FollowupCause
		problem  string
		attempts int64
	}{
		{"a wrong key", status(401, `{"error":{"message":"wrong key sk-secret"}}`), api.FollowupHTTP4xx, "followup.api_key_file", 1},
		{"a wrong model", status(404, `{"message":"no such model","type":"x","code":404}`), api.FollowupHTTP4xx, "followup.model", 1},
		{"a rate limit", status(429, `{"error":{"message":"slow down"}}`), api.FollowupRateLimited, "slow down", 3},
		{"a broken server", status(503, "<html>"), api.FollowupHTTP5xx, "503", 3},
		{"a redirect", status(302, ""), api.FollowupMalformed, "", 3},
		{"another program", status(200, "<html>"), api.FollowupMalformed, "followup.url", 3},
		{"no choices", status(200, `{"choices":[]}`), api.FollowupEmpty, "no text", 3},
		{"an empty answer", text(" \n"), api.FollowupEmpty, "no text", 3},
		{"no question", text("I cannot ask."), api.FollowupMalformed, "not a question: I cannot ask.", 3},
		{"a question that was asked", text("who OWNS the free list?"), api.FollowupRepeated, "", 1},
		{"a broken connection", breaks, api.FollowupConnect, "EOF", 3},
		{"a little that unpacks to much", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(bytes.Repeat([]byte(" "), 4*maxBody))
			_ = z.Close()
		}, api.FollowupMalformed, "EOF", 3},
		{"an endless answer", status(200, `{"choices":"`+strings.Repeat("a", 2*maxBody)), api.FollowupMalformed, "followup.url", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var attempts atomic.Int64
			var log bytes.Buffer
			o := Options{Model: "m", APIKey: "sk-secret", Timeout: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil))}
			q := start(t, o, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				attempts.Add(1)
				tt.answers(w, r)
			})
			assert.Equal(t, builtin(t, "Who owns the free list?"), follow(t.Context(), q, "Who owns the free list?"))
			s := q.Report()
			assert.Contains(t, s.Problem, tt.problem)
			assert.NotContains(t, s.Problem+log.String(), "sk-secret")
			assert.Equal(t, tt.attempts, attempts.Load())
			want := api.FollowupStatus{Name: "model m", URL: q.root, Model: "m", Problem: s.Problem}
			want.Fallbacks = map[api.FollowupCause]int64{tt.cause: 1}
			assert.Equal(t, want, s)
		})
	}
}

// The address may be taken over by a server with another model.
func TestModelChanges(t *testing.T) {
	var served atomic.Value
	served.Store("one")
	q := start(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			fmt.Fprintf(w, `{"data":[{"id":%q}]}`, served.Load())
			return
		}
		var req openai.ChatCompletionRequest
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&req))
		if req.Model != served.Load() {
			http.Error(w, "unknown model", http.StatusNotFound)
			return
		}
		writeAnswer(w, "Who owns it?")
	})
	assert.Equal(t, "Who owns it?", follow(t.Context(), q))
	served.Store("two")
	assert.Equal(t, builtin(t), follow(t.Context(), q))
	assert.Equal(t, "Who owns it?", follow(t.Context(), q))
	s := q.Report()
	assert.Equal(t, "two", s.Model)
	assert.Empty(t, s.Problem, "the model asks again")
}

func TestCustomCertificateAuthority(t *testing.T) {
	answers := func(w http.ResponseWriter, _ *http.Request) { writeAnswer(w, "Why?") }
	server := httptest.NewTLSServer(http.HandlerFunc(answers))
	defer server.Close()
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, row := range map[string]struct {
		ca   []byte
		want string
	}{"known": {ca, "Why?"}, "unknown": {nil, builtin(t)}} {
		q, err := New(Options{URL: server.URL, Model: "m", Access: chat.Access{CA: row.ca}})
		require.NoError(t, err)
		assert.Equal(t, row.want, follow(t.Context(), q), name)
		q.Close()
	}
	for field, o := range map[string]Options{
		"followup.url":     {URL: "ftp://x"},
		"followup.ca_file": {URL: server.URL, Access: chat.Access{CA: []byte("no PEM")}},
	} {
		var bad *api.FieldError
		_, err := New(o)
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, field, bad.Field)
	}
}

// fakeServer is a server in virtual time.
type fakeServer struct {
	takes time.Duration
	err   error
	asked []time.Time
}

func (d *fakeServer) RoundTrip(req *http.Request) (*http.Response, error) {
	d.asked = append(d.asked, time.Now())
	select {
	case <-time.After(d.takes):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	rec := httptest.NewRecorder()
	writeAnswer(rec, "Who owns it?")
	return rec.Result(), d.err
}

// withServer runs a test in virtual time with a questioner on a fake server.
func withServer(t *testing.T, d *fakeServer, run func(t *testing.T, q *Questioner)) {
	synctest.Test(t, func(t *testing.T) {
		q, err := New(Options{URL: "http://enduser", Model: "m"})
		require.NoError(t, err)
		q.client = q.newClient("http://enduser/v1", d)
		run(t, q)
	})
}

// Retries have growing pauses, within one time limit.
func TestRetries(t *testing.T) {
	d := &fakeServer{err: syscall.ECONNREFUSED}
	withServer(t, d, func(t *testing.T, q *Questioner) {
		begun := time.Now()
		follow(t.Context(), q)
		require.Len(t, d.asked, 3)
		assert.Equal(t, firstPause, d.asked[1].Sub(d.asked[0]))
		assert.Equal(t, 2*firstPause, d.asked[2].Sub(d.asked[1]))
		assert.Equal(t, 3*firstPause, time.Since(begun))

		d.takes, d.err, begun = 4*time.Second, errors.New("reset"), time.Now()
		follow(t.Context(), q)
		assert.Equal(t, defaultTimeout, time.Since(begun))
		want := map[api.FollowupCause]int64{api.FollowupConnect: 1, api.FollowupTimeout: 1}
		assert.EqualValues(t, want, q.Report().Fallbacks)
	})
}

// A server that hangs delays the first few questions, and then only occasional trials. After it recovers, the model
// asks again.
func TestBreakerPausesHangingServer(t *testing.T) {
	d := &fakeServer{takes: time.Hour}
	withServer(t, d, func(t *testing.T, q *Questioner) {
		for range tolerated {
			begun := time.Now()
			follow(t.Context(), q)
			assert.Equal(t, defaultTimeout, time.Since(begun))
		}
		delayed := 0
		for range 600 { // ten minutes
			begun := time.Now()
			follow(t.Context(), q)
			if time.Since(begun) > 0 {
				delayed++
			}
			wait.Advance(time.Second)
		}
		s := q.Report()
		assert.InDelta(t, 22, delayed, 4, "breaks grow to 30 s")
		assert.EqualValues(t, 600-delayed, s.Fallbacks[api.FollowupPaused])
		assert.EqualValues(t, tolerated+delayed, s.Fallbacks[api.FollowupTimeout])
		assert.Contains(t, s.Problem, "no question within 10s (followup.timeout)")

		wait.Advance(mostBreak)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		follow(ctx, q) // the trial request is abandoned, so that another one is admitted
		d.takes = time.Millisecond
		for range 10 {
			assert.Equal(t, "Who owns it?", follow(t.Context(), q))
		}
		assert.Empty(t, q.Report().Problem)
	})
}

// An abandoned question returns at once, and counts as no failure.
func TestAbandonedQuestion(t *testing.T) {
	withServer(t, &fakeServer{takes: time.Hour}, func(t *testing.T, q *Questioner) {
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(500*time.Millisecond, func() { assert.Equal(t, 1, q.Report().Asking) })
		assert.Equal(t, builtin(t), follow(ctx, q))
		assert.Equal(t, time.Second, time.Since(begun))
		none := map[api.FollowupCause]int64{}
		assert.Equal(t, api.FollowupStatus{Name: "model m", URL: "http://enduser", Model: "m", Fallbacks: none}, q.Report())
	})
}
