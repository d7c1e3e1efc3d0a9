package chat

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	await "kvbooth/internal/wait"
	"kvbooth/sidecar/api"
)

func TestNew(t *testing.T) {
	for field, o := range map[string]Options{
		"target.url":     {URL: "nowhere"},
		"target.ca_file": {URL: "https://host", Access: Access{CA: []byte("no PEM")}},
	} {
		var bad *api.FieldError
		_, err := New(o)
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, field, bad.Field)
	}
	c := clientOf(t, "http://host:8000/v1")
	assert.Equal(t, []string{"http://host:8000", "m"}, []string{c.Root(), c.Model()})
	assert.Empty(t, c.Extensions())
}

// What stands on the wire. What is not asked for is not sent: a server may refuse what it does not know.
func TestRequest(t *testing.T) {
	s, got := recorded(t)
	c := clientOf(t, s.url+"/models/x?api-version=2024", func(o *Options) {
		o.Model, o.APIKey, o.Headers = "llama", "secret", map[string]string{"X-Tenant": "a", "Api-Key": "b"}
		o.Fields, o.MinTokens = map[string]any{"temperature": 0, "extra": map[string]any{"a": []int{1}}}, 1000
		o.Priority = "-5"
	})
	c.ext.set(map[string]bool{ExtStreamOptions: true, ExtNVExt: true}, 1)
	history := append(hello(), Message{Role: RoleAssistant}, Message{Role: "tool", Text: "x"})
	r := c.Do(t.Context(), Request{ID: "42-3", Messages: history, MaxTokens: 830, Instance: "16549284283275536882"})
	require.True(t, r.OK(), outcome(r))
	in := <-got
	want := `{"model":"llama","max_tokens":830,"stream":true,"stream_options":{"include_usage":true},` +
		`"messages":[{"role":"user","content":"Hello."},{"role":"assistant","content":""},` +
		`{"role":"tool","content":"x","tool_call_id":"call00002"}],"min_tokens":830,` +
		`"nvext":{"extra_fields":["worker_id","timing"],"backend_instance_id":16549284283275536882,` +
		`"agent_hints":{"priority":-5}},"extra":{"a":[1]},"temperature":0}`
	assert.Equal(t, want, strings.TrimSpace(string(in.body)))
	assert.Equal(t, "POST /models/x/chat/completions?api-version=2024", in.req.Method+" "+in.req.URL.String())
	assert.Equal(t, s.url, "http://"+in.req.Host)
	for header, want := range map[string]string{
		"X-Request-Id": "42-3", "Authorization": "Bearer secret", "Content-Type": "application/json", "X-Tenant": "a",
		"Api-Key": "b", "Accept": "text/event-stream", "Accept-Encoding": "",
	} {
		assert.Equal(t, want, in.req.Header.Get(header), header)
	}

	clientOf(t, s.url).Do(t.Context(), Request{Messages: hello(), Instance: "7"})
	in = <-got
	want = `{"model":"m","stream":true,"messages":[{"role":"user","content":"Hello."}]}`
	assert.Equal(t, want, strings.TrimSpace(string(in.body)))
	assert.NotContains(t, in.req.Header, "X-Request-Id")
	assert.NotContains(t, in.req.Header, "Authorization")
}

// Nothing that comes from outside can end a header's line.
func TestHeaderInjection(t *testing.T) {
	s, got := recorded(t)
	evil := "a\r\nX-Evil: 1\n\r\n\r\nGET / HTTP/1.1\r\n"
	c := clientOf(t, s.url, func(o *Options) { o.APIKey = evil })
	if r := c.Do(t.Context(), Request{ID: evil, Messages: hello()}); !r.OK() {
		t.Fatal(outcome(r))
	}
	in := <-got
	if in.req.Header.Get("X-Evil") != "" || !strings.HasPrefix(in.req.Header.Get("X-Request-Id"),
		"aX-Evil") || s.requests.Load() != 1 {
		t.Errorf("%d requests with headers %v", s.requests.Load(), in.req.Header)
	}
}

func TestBadInstance(t *testing.T) {
	c := clientOf(t, "http://host")
	c.ext.set(map[string]bool{ExtNVExt: true}, 1)
	r := c.Do(t.Context(), Request{Instance: `1,"x":2`})
	wantError(t, r.Err, api.ErrorMalformed, "cannot write the request")
}

// Kept connections are closed in time, or by Close, after which the client is still usable.
func TestIdleConnectionsAreClosed(t *testing.T) {
	closed := make(chan struct{}, 3)
	s := serve(t, func(c call) bool {
		c.write(oneToken)
		c.hold()
		closed <- struct{}{}
		return false
	})
	do(t, clientOf(t, s.url, func(o *Options) { o.IdleTimeout = 50 * time.Millisecond }))
	<-closed
	c := clientOf(t, s.url)
	for range 2 {
		do(t, c)
		c.Close()
		<-closed
	}
}

// parallel sends n requests at once, so that n connections are kept afterwards.
// The server reports each on arrived and answers after release.
func parallel(t *testing.T, c *Client, n int, arrived <-chan struct{}, release chan<- struct{}) {
	t.Helper()
	results := make(chan Result)
	for range n {
		go func() { results <- c.Do(context.Background(), Request{Messages: hello()}) }()
	}
	for range n {
		<-arrived
	}
	close(release)
	for range n {
		if r := <-results; !r.OK() {
			t.Fatal(outcome(r))
		}
	}
}

// A server closes kept connections; it may do so just when a request comes. That
// is no fault of the target's: the request goes out again, over a new connection.
func TestKeptConnectionsThatTheServerClosed(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(c call) bool {
		switch {
		case c.nth > 1: // closes as soon as a second request has come
			return false
		case c.req.Header.Get("X-Request-Id") == "":
			arrived <- struct{}{}
			<-release
		}
		c.write(oneToken)
		return true
	})
	c := clientOf(t, s.url)
	parallel(t, c, 3, arrived, release)
	r := c.Do(t.Context(), Request{ID: "x", Messages: hello()})
	if !r.OK() || len(r.Chunks) != 1 || !r.Resent {
		t.Fatalf("resent %v: got %s", r.Resent, outcome(r))
	}
	assert.Equal(t, []int32{4, 5}, []int32{s.accepts.Load(), s.requests.Load()}, "the fifth over a new connection")
}

// Without an answer it is sent again, once. What has been answered, if only by a byte, is not: the server works on it.
func TestSentAgainOnce(t *testing.T) {
	for _, said := range []string{
		"", "H", "HTTP/1.1 100 Continue\r\n\r\n", streamHead, streamHead + framed(event("a")),
	} {
		var n atomic.Int32
		s := serve(t, func(c call) bool {
			if n.Add(1) == 1 {
				return always(oneToken)(c)
			}
			c.write(said)
			return false
		})
		c := clientOf(t, s.url)
		do(t, c)
		r, requests := c.Do(t.Context(), Request{Messages: hello()}), int32(2)
		if said == "" {
			wantError(t, r.Err, api.ErrorConnect)
			requests = 3
		}
		if r.Err == nil || r.Resent != (said == "") || n.Load() != requests {
			t.Errorf("after %q: %d requests: %s", said, n.Load(), outcome(r))
		}
	}
}

// A kept connection that the server closed is not used.
func TestClosedConnectionIsNotReused(t *testing.T) {
	s := serve(t, func(c call) bool { c.write(oneToken); return false })
	c := clientOf(t, s.url)
	kept := c.kept.(*pool)
	for range 3 {
		assert.False(t, do(t, c).Resent, "sent over a closed connection")
		await.Eventually(t, "the end of the connection", func() (any, bool) { return nil, !silent(kept.idle[0].socket) })
	}
	assert.EqualValues(t, 3, s.requests.Load())
}

// Live can be read while the stream writes it.
func TestLive(t *testing.T) {
	next := make(chan struct{})
	words := []string{"one ", "two ", "three"}
	s := serve(t, func(c call) bool {
		c.write(streamHead + framed(roleOnly))
		for _, w := range words {
			<-next
			c.write(framed(`data: {"choices":[{"delta":{"content":"` + w + `"}}],"nvext":{"worker_id":{"decode_worker_id":18446744073709551615}}}` + "\n\n"))
		}
		<-next
		c.write(framed(doneEvent) + lastChunk)
		return true
	})
	var live Live
	sent, _, waiting := live.First()
	assert.True(t, sent.IsZero() && waiting, "an unused Live is empty")
	result := make(chan Result)
	c := clientOf(t, s.url)
	go func() { result <- c.Do(context.Background(), Request{Messages: hello(), Live: &live}) }()
	await.Eventually(t, "it is sent", func() (any, bool) {
		sent, _, _ := live.First()
		return sent, !sent.IsZero()
	})
	_, _, waiting = live.First()
	assert.True(t, waiting && live.Worker() == "" && live.Text() == "", "nothing is there before the first token")
	for i := range words {
		next <- struct{}{}
		want := strings.Join(words[:i+1], "")
		await.Eventually(t, want, func() (any, bool) { return live.Text(), live.Text() == want })
	}
	sent, ttft, waiting := live.First()
	close(next)
	r := <-result
	const last = "18446744073709551615"
	if got, _ := r.TTFT(); !r.OK() || waiting || ttft != got || !sent.Equal(r.Sent) || live.Worker() != last ||
		r.Worker != last || r.Content != "one two three" {
		t.Errorf("live %v %v %v %s; %s", sent, ttft, waiting, live.Worker(), outcome(r))
	}
}

// Of turns that another process sends, only complete answers take memory, as of those that this one sends.
func TestAnswersSentElsewhereTakeMemory(t *testing.T) {
	r := Result{Content: "0123456789", Cancelled: true}
	c, err := New(Options{URL: "http://x", Send: func(_ context.Context, url, _ string, _ Request) Result {
		assert.Equal(t, "http://x/v1", url)
		return r
	}})
	require.NoError(t, err)
	req := Request{Texts: NewTextBudget(int64(TextMemory(15)))}
	for range 3 {
		require.Nil(t, c.Do(t.Context(), req).Err, "a cancelled answer")
	}
	r.Cancelled = false
	require.Nil(t, c.Do(t.Context(), req).Err, "one answer fits")
	second := c.Do(t.Context(), req)
	require.NotNil(t, second.Err)
	assert.Equal(t, api.ErrorOverrun, second.Err.Class)
	assert.Empty(t, second.Content)
}
