package twin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// While an answer comes, its text, its TTFT and its worker can be read; at its end, all else
// from the same time stamps.
func TestAnswerGrows(t *testing.T) {
	more := make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for text := range more {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}],\"nvext\":{\"worker_id\":{\"prefill_worker_id\":7,\"decode_worker_id\":7}}}\n\n", text)
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":16}}}\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()
	client, err := chat.New(chat.Options{URL: server.URL, Model: "m"})
	require.NoError(t, err)
	defer client.Close()
	s := &showcase{live: [2]*chat.Live{{}, {}}, doc: api.Showcase{State: api.ShowcaseRunning}}
	assert.False(t, s.view().A.Sent)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r := client.Do(t.Context(), chat.Request{Live: s.live[0], MaxTokens: 10})
		s.answered(0, &r)
	}()
	more <- "one"
	require.Eventually(t, func() bool { return s.view().A.Text == "one" }, 30*time.Second, time.Millisecond)
	v := s.view().A
	assert.True(t, v.Sent)
	assert.False(t, v.Done)
	require.NotNil(t, v.TTFT)
	assert.Nil(t, v.Latency)
	assert.Empty(t, s.view().B.Text)
	ttft := *v.TTFT
	more <- " two"
	close(more)
	<-ended
	v = s.view().A
	assert.True(t, v.Done)
	assert.Equal(t, "one two", v.Text)
	assert.InDelta(t, ttft, *v.TTFT, 1e-9)
	assert.Greater(t, *v.Latency, ttft)
	assert.Equal(t, 20, *v.PromptTokens)
	assert.Equal(t, 16, *v.CachedTokens)
	assert.Empty(t, v.Error)
}

// Who was first, and by how much; nobody where one of them failed.
func TestWhoWasFirst(t *testing.T) {
	s := api.Showcase{A: api.ShowcaseSide{TTFT: new(.5)}, B: api.ShowcaseSide{TTFT: new(.3)}}
	r := judge(2, &s)
	assert.Equal(t, api.TwinLane, r.First)
	assert.InDelta(t, .2, *r.Lead, 1e-9)
	s.B.TTFT = new(.9)
	r = judge(2, &s)
	assert.Equal(t, api.DefaultLane, r.First)
	assert.InDelta(t, .4, *r.Lead, 1e-9)
	s.A.Error = "it broke"
	r = judge(2, &s)
	assert.Empty(t, r.First)
	assert.Nil(t, r.Lead)
}

// However long an answer is, a bounded part of it is shown, whole characters all.
func TestLongAnswersAreCut(t *testing.T) {
	assert.Equal(t, "short", tail("short"))
	long := tail(strings.Repeat("ä", maxShown))
	assert.LessOrEqual(t, len(long), maxShown+len("…"))
	assert.True(t, strings.HasPrefix(long, "…ä"))
	assert.Empty(t, strings.Trim(long, "…ä"))
}
