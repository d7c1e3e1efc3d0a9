//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// Each mode has its address: turns go to that of the mode in force, no other one
// is asked, and one that is down is not switched to.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	kv, rr := startTarget(t), startTarget(t)
	p := start(t, kv.URL+"/v1", "--mode-driver=endpoints", "--mode-endpoints=kv="+kv.URL+",round_robin="+rr.URL, "--concurrency=4", "--start")
	p.until("turns under kv", p.serves(10))
	assert.Zero(t, rr.asked.Load())
	l := p.lane()
	assert.Equal(t, "endpoints", l.State.Driver)
	assert.Len(t, l.State.Modes, 2)
	assert.Equal(t, [2]string{kv.URL, kv.URL}, [2]string{l.Target.URL, l.Target.Endpoint})

	for _, to := range []struct {
		mode        api.Mode
		here, there *target
	}{{api.ModeRoundRobin, rr, kv}, {api.ModeKV, kv, rr}} {
		_, err := p.client.SetMode(t.Context(), "", api.ModeRequest{Mode: to.mode})
		require.NoError(t, err)
		p.until("it is switched", func() bool {
			l = p.lane()
			return l.State.Mode == to.mode && l.State.Running && l.State.ModeChange == nil
		})
		asked := to.there.asked.Load()
		p.until("turns", p.serves(10))
		l = p.lane()
		assert.Zero(t, l.Totals.Errors)
		assert.Equal(t, [2]string{kv.URL, to.here.URL}, [2]string{l.Target.URL, l.Target.Endpoint}, "the target stays what it was")
		assert.Equal(t, asked, to.there.asked.Load(), "nobody asks the other one")
	}

	rr.breaks(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "starting", http.StatusServiceUnavailable) })
	_, err := p.client.SetMode(t.Context(), "", api.ModeRequest{Mode: api.ModeRoundRobin})
	require.NoError(t, err)
	p.until("it is refused", func() bool { c := p.lane().State.ModeChange; return c != nil && c.Failed })
	assert.Contains(t, p.lane().State.ModeChange.Message, "still in KV-aware: "+rr.URL+", the address of Round-robin, cannot serve: the server failed (503)")
	p.until("turns go on", p.serves(10))
	assert.Zero(t, p.lane().Totals.Errors)
	p.endsWell()
}

// endUser is a server whose model asks, or fails.
func endUser(t *testing.T, fails *atomic.Bool) *httptest.Server {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case fails.Load():
			http.Error(w, `{"error":{"message":"wrong key `+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+`"}}`, http.StatusUnauthorized)
		case r.URL.Path == "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"llama-8b"}]}`)
		default:
			_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{
				"message": map[string]string{"role": "assistant", "content": fmt.Sprintf("What about number %d?", asked.Add(1))},
			}}})
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// A model asks the follow-ups; where it fails, the built-in questioner does, and
// status and metrics say how often and why. The key is in neither, nor in the log.
func TestFollowupModel(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	model, server := endUser(t, &fails), startTarget(t)
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("sk-very-secret\n"), 0o600))
	p := start(t, server.URL, "--followup-url="+model.URL+"/v1", "--followup-api-key-file="+key, "--turns-min=3", "--turns-max=3", "--concurrency=4", "--start")
	p.until("the model asks", func() bool { return p.lane().Followup.ByModel > 5 })
	l := p.lane()
	assert.Equal(t, api.FollowupStatus{
		Name: "model at " + model.URL, URL: model.URL, Model: "llama-8b", ByModel: l.Followup.ByModel, Asking: l.Followup.Asking,
		Fallbacks: map[api.FollowupCause]int64{},
	}, l.Followup)
	assert.Equal(t, l.Followup.Name, l.State.Shape.Followup)
	assert.Contains(t, p.turns(), "request_id")
	conversations := p.conversations()
	for _, c := range conversations {
		whole, err := p.client.Conversation(t.Context(), c.ID)
		require.NoError(t, err)
		for i, turn := range whole.Turns {
			assert.Equal(t, i > 0, strings.HasPrefix(turn.UserMessage, "What about number "), turn.UserMessage)
		}
	}

	fails.Store(true)
	p.until("it fails, and is left alone", func() bool {
		f := p.lane().Followup.Fallbacks
		return f[api.FollowupHTTP4xx] >= 3 && f[api.FollowupPaused] > 5
	})
	l = p.lane()
	assert.Contains(t, l.Followup.Problem, "wrong key (hidden)")
	assert.Contains(t, l.Followup.Problem, "followup.api_key_file")
	assert.Zero(t, l.Totals.Errors)
	assert.InDelta(t, l.Followup.ByModel, p.metric("loadgen_followup_total", "source", "model"), 0)
	assert.LessOrEqual(t, float64(l.Followup.Fallbacks[api.FollowupPaused]), p.metric("loadgen_followup_total", "cause", "paused"))
	assert.GreaterOrEqual(t, p.metric("loadgen_followup_total", "source", "built_in"), 8.)

	fails.Store(false)
	p.until("it asks again", func() bool {
		now := p.lane().Followup
		return now.Problem == "" && now.ByModel > l.Followup.ByModel
	})
	text, err := json.Marshal(p.status())
	require.NoError(t, err)
	assert.NotContains(t, string(text)+p.log.String(), "very-secret")
	p.endsWell()
}

// A bucket is listed, refreshed, lost and back, while turns go on; other texts
// begin another step.
func TestCorpusInABucket(t *testing.T) {
	t.Parallel()
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("texts"))
	put := func(id string) {
		var text strings.Builder
		for i := range 370 {
			fmt.Fprintf(&text, "Sentence %d about %s says what it says. ", i, id)
		}
		line, err := json.Marshal(map[string]string{"id": id, "topic": "About " + id, "text": text.String()})
		require.NoError(t, err)
		_, err = backend.PutObject("texts", id+".jsonl", map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}, strings.NewReader(string(line)), int64(len(line)), nil)
		require.NoError(t, err)
	}
	var away atomic.Bool
	s3 := gofakes3.New(backend).Server()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s3.ServeHTTP(w, r)
	}))
	defer service.Close()
	put("one")
	server := startTarget(t)
	p := start(t, server.URL, "--corpus-s3-endpoint="+service.URL, "--corpus-s3-bucket=texts", "--corpus-refresh=1s", "--concurrency=2", "--start")
	p.until("turns", p.serves(5))
	l := p.lane()
	assert.Equal(t, 1, l.Corpus.Starters)
	assert.Equal(t, "s3://texts/", l.Corpus.Source)
	assert.Equal(t, l.Corpus.Name, l.State.Shape.Corpus)
	first, step := l.Corpus.Name, l.State.Step.ID

	put("two")
	p.until("two texts", func() bool { l = p.lane(); return l.Corpus.Starters == 2 })
	assert.NotEqual(t, first, l.Corpus.Name)
	assert.Equal(t, step+1, l.State.Step.ID, "other texts are another workload")
	assert.True(t, l.State.Running)
	p.until("conversations on it", func() bool { return strings.Contains(fmt.Sprint(p.conversations()), "About two") })
	events, err := p.client.Events(t.Context(), "", 1)
	require.NoError(t, err)
	assert.Equal(t, "corpus "+l.Corpus.Name+": 2 starters", events.Events[0].Text)

	away.Store(true)
	p.until("it is lost", func() bool { l = p.lane(); return l.Corpus.Problem != "" })
	ok := l.Totals.OK
	p.until("turns go on", p.serves(ok+5))
	assert.Equal(t, 2, p.lane().Corpus.Starters)
	away.Store(false)
	put("three")
	p.until("it is back", func() bool { l = p.lane(); return l.Corpus.Problem == "" && l.Corpus.Starters == 3 })
	assert.Zero(t, l.Totals.Errors)
	p.endsWell()
}

// A folder that cannot be used is found at the start.
func TestNoCorpus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, _, stderr := finish(t, command(t, "--target-url=http://127.0.0.1:9", "--corpus-dir="+dir, "--listen=127.0.0.1:0", "--data-dir="+t.TempDir()))
	assert.Equal(t, badInput, code)
	assert.Contains(t, stderr, "loadgen: the corpus "+dir+" cannot be read: it has no .jsonl, .json, .md or .txt file\n")
}
