package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/inmem"
	"kvbooth/internal/wait"
	"kvbooth/sidecar/loadgen/chat"
)

// fleet is three engines behind a router.
type fleet struct {
	mu     sync.Mutex
	seen   [3]map[string]bool // prompts, by engine
	placed map[string]int     // engines of prompts or sessions, as the router remembers them
	turn   int
	policy func(f *fleet, prompt, session string) (engine int)
}

// next is the next engine in turn of which nothing is to be found: a policy that meets nothing even by chance.
func (f *fleet) next(prompt, session string) int {
	for {
		f.turn++
		i := f.turn % len(f.seen)
		if at, ok := f.placed[session]; !f.seen[i][prompt] && (!ok || at != i) {
			f.placed[session] = i
			return i
		}
	}
}

// remembered is the engine that a key went to before.
func (f *fleet) remembered(key, prompt, session string) int {
	i, ok := f.placed[key]
	if !ok {
		i = f.next(prompt, session)
		f.placed[key] = i
	}
	return i
}

func (f *fleet) caching(prompt, session string) int {
	for i := range f.seen {
		if f.seen[i][prompt] {
			return i
		}
	}
	return f.next(prompt, session)
}

// take returns the engine of a request, and how many tokens of its prompt were cached there.
func (f *fleet) take(engine int, prompt, session string) (i, cached int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i = engine; i < 0 {
		i = f.policy(f, prompt, session)
	}
	if f.seen[i][prompt] {
		cached = 9
	}
	f.seen[i][prompt] = true
	return i, cached
}

// serve answers as an engine, or with −1 as the router.
func (f *fleet) serve(engine int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" {
			fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
			return
		}
		var q struct{ Messages []struct{ Content string } }
		if json.NewDecoder(r.Body).Decode(&q) != nil || len(q.Messages) == 0 {
			http.Error(w, "no messages", http.StatusBadRequest)
			return
		}
		if engine < 0 {
			wait.Advance(2 * time.Millisecond)
		}
		i, cached := f.take(engine, q.Messages[0].Content, r.Header.Get("X-Session-ID"))
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Worker", fmt.Sprintf("engine-%d:80", i))
		for range 3 {
			wait.Advance(5 * time.Millisecond)
			fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"word "}}]}`+"\n\n")
			w.(http.Flusher).Flush()
		}
		fmt.Fprintf(w, "data: %s\n\ndata: %s\n\ndata: [DONE]\n\n", `{"choices":[{"delta":{},"finish_reason":"length"}]}`,
			fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3,`+
				`"prompt_tokens_details":{"cached_tokens":%d}}}`, cached))
	})
}

// probed probes a router with a policy. Without names, its answers do not name the worker.
func probed(t *testing.T, names bool, policy func(f *fleet, prompt, session string) int) (r Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{placed: map[string]int{}, policy: policy}
		listeners := map[string]*inmem.Listener{}
		for host, engine := range map[string]int{"router": -1, "engine-0": 0, "engine-1": 1, "engine-2": 2} {
			l, server := inmem.Listen(), &http.Server{Handler: f.serve(engine)}
			listeners[host+":80"] = l
			if engine >= 0 {
				f.seen[engine] = map[string]bool{}
			}
			go func() { _ = server.Serve(l) }()
			defer server.Close()
		}
		o := chat.Options{
			URL: "http://router:80", Settings: Settings, Session: chat.Session{Kind: chat.SessionHeader, Name: "X-Session-Id"},
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				return listeners[address].Dial(ctx, network, address)
			},
		}
		if names {
			o.WorkerHeaders = []string{"X-Worker"}
		}
		var err error
		r, err = Run(t.Context(), Options{Chat: o, Engines: []string{
			"http://engine-0:80", "http://engine-1:80", "http://engine-2:80",
		}})
		require.NoError(t, err)
	})
	return r
}

// A probe says what a router goes by, also where its answers name no worker.
func TestProbe(t *testing.T) {
	policies := map[string]struct {
		policy                     func(f *fleet, prompt, session string) int
		affinity, sessions, events Verdict
	}{
		"what it has routed": {
			func(f *fleet, p, s string) int { return f.remembered(p, p, s) }, Yes, No, No,
		},
		"events":   {(*fleet).caching, Yes, No, Yes},
		"sessions": {func(f *fleet, p, s string) int { return f.remembered("session "+s, p, s) }, No, Yes, No},
		"nothing":  {(*fleet).next, No, No, No},
	}
	for name, want := range policies {
		for _, names := range []bool{true, false} {
			r := probed(t, names, want.policy)
			found := map[string]Verdict{}
			for _, f := range r.Findings() {
				found[f.Property] = f.Verdict
			}
			assert.Equal(t, Yes, found["streams"], name)
			assert.Equal(t, want.events, found["events"], name)
			assert.InDelta(t, 2e-3, r.Added.Median.Seconds(), 1e-4, name)
			if !names {
				assert.Equal(t, want.affinity == Yes, found["affinity"] == Yes, name)
				assert.NotContains(t, found, "sessions", name)
				continue
			}
			assert.Equal(t, want.affinity, found["affinity"], name)
			assert.Equal(t, want.sessions, found["sessions"], name)
			assert.Equal(t, 3, r.Workers, name)
		}
	}
	one := probed(t, true, func(*fleet, string, string) int { return 0 })
	assert.Equal(t, Unclear, one.Affinity().Verdict, "one worker")
	count := 0
	uneven := probed(t, true, func(f *fleet, p, _ string) int {
		if _, ok := f.placed[p]; !ok { // four of five prompts go to the first engine
			f.placed[p] = max(0, count%5-3)
			count++
		}
		return f.placed[p]
	})
	assert.Equal(t, Yes, uneven.Affinity().Verdict, "most prompts at one worker: %+v", uneven)
	assert.Equal(t, 20, uneven.Repeats.Of)
	blind := probed(t, true, func(f *fleet, _, _ string) int {
		count++
		return max(0, count%9-7)
	})
	assert.Equal(t, No, blind.Affinity().Verdict, "nearly all prompts at one worker: %+v", blind)
}

// The ranks are those of tables of the sign test.
func TestSignRank(t *testing.T) {
	for n, rank := range map[int]int{6: 0, 10: 1, 20: 5, 40: 13} {
		assert.Equal(t, rank, signRank(n), n)
	}
}
