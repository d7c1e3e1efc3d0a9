package plugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/corpus"
	"kvbooth/sidecar/loadgen/lane"
	"kvbooth/sidecar/loadgen/server"
	"kvbooth/sidecar/loadgen/store"
	"kvbooth/sidecar/loadgen/whatif"
	"kvbooth/sidecar/loadgen/workload"
)

// newTarget is a model server whose answers are three words.
func newTarget(t testing.TB) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"a-model","object":"model"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		event := func(v any) {
			text, _ := json.Marshal(v)
			fmt.Fprintf(w, "data: %s\n\n", text)
			w.(http.Flusher).Flush()
		}
		choice := func(delta map[string]any, reason any) map[string]any {
			return map[string]any{"id": "1", "object": "chat.completion.chunk", "model": "a-model", "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": reason}}}
		}
		for range 3 {
			event(choice(map[string]any{"content": "word "}, nil))
		}
		event(choice(map[string]any{}, "stop"))
		event(map[string]any{
			"id": "1", "object": "chat.completion.chunk", "model": "a-model", "choices": []any{},
			"usage": map[string]any{"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103, "prompt_tokens_details": map[string]any{"cached_tokens": 70}},
		})
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	ts := httptest.NewServer(mux)
	t.Cleanup(ts.Close)
	return ts
}

// startGenerator serves a load generator until the test ends, and gives its URL.
func startGenerator(t testing.TB, token string) string {
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	kept, err := store.Open(ctx, store.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	client, err := chat.New(chat.Options{URL: newTarget(t).URL})
	require.NoError(t, err)
	catalogue, err := lane.NewCatalogue(ctx, lane.Process{
		Version: "1.2.3", Store: kept, Log: log,
		Health: func(time.Time) api.ClientHealth { return api.ClientHealth{Verdict: api.VerdictFine} },
	}, api.Settings{SLO: api.SLO{TTFT: .6, TPOT: .06}, Slider: api.Slider{Min: 60, Max: 180, Increment: 10}, MaxConcurrency: 180, Vendor: api.VendorNeutral})
	require.NoError(t, err)
	articles, err := corpus.Builtin()
	require.NoError(t, err)
	kv := api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}
	lane.New(ctx, catalogue, lane.Options{
		Name: api.DefaultLane, Client: client, Corpus: articles, Questioner: corpus.BuiltinQuestioner{},
		Settings: workload.Settings{Concurrency: 2, Turns: api.Range{Min: 3, Max: 5}, MaxTokens: 16, StartRate: 10, ThinkTime: 20 * time.Millisecond},
		Driver:   cluster.NewManual([]api.ModeState{kv}), Mode: kv,
		Cluster: func() api.Cluster { return api.Cluster{Problem: "Prometheus is not there: start it"} },
	})
	view := lane.NewView(catalogue)
	srv, err := server.New(server.Options{
		Backend: server.Parts{View: view, Catalogue: catalogue, Records: kept, Desk: whatif.New(whatif.Options{})},
		Token:   token, Metrics: http.NotFoundHandler(), ParseCSV: baseline.ReadCSV, ParseJSON: baseline.ReadJSON, Log: log,
	})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() { view.Run(ctx) })
	wg.Go(func() { _ = srv.Serve(ctx, l) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		client.Close()
		require.NoError(t, kept.Close())
	})
	return "http://" + l.Addr().String()
}
