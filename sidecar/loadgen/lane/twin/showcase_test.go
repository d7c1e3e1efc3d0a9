package twin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
)

// While an answer arrives, its text and its TTFT are shown. At its end the other figures come from the same time
// stamps.
func TestShowcaseShowsTheAnswerAsItArrives(t *testing.T) {
	more := make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for text := range more {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", text)
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":2,`+
			`"prompt_tokens_details":{"cached_tokens":16}}}`+"\n\ndata: [DONE]\n\n")
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
	wait.Eventually(t, "the first word", func() (any, bool) { return s.view().A, s.view().A.Text == "one" })
	v := s.view().A
	assert.True(t, v.Sent)
	assert.False(t, v.Done)
	require.NotNil(t, v.TTFT)
	assert.Nil(t, v.Latency)
	assert.Empty(t, s.view().B.Text)
	ttft := *v.TTFT
	more <- " two"
	close(more)
	wait.Receive(t, "the end", ended)
	v = s.view().A
	assert.Equal(t, api.ShowcaseSide{
		Sent: true, Done: true, Text: "one two", TTFT: v.TTFT, Latency: v.Latency,
		PromptTokens: new(20), CachedTokens: new(16),
	}, v)
	assert.InDelta(t, ttft, *v.TTFT, 1e-9)
	assert.Greater(t, *v.Latency, ttft)
}

// The round names the lane that was first, and its lead. It names none if a lane failed.
func TestRoundNamesTheFirstLane(t *testing.T) {
	side := func(ttft float64) api.ShowcaseSide { return api.ShowcaseSide{TTFT: &ttft} }
	failed := side(.5)
	failed.Error = "it broke"
	for _, row := range []struct {
		a, b api.ShowcaseSide
		want string
		lead float64
	}{
		{side(.5), side(.3), api.TwinLane, .2},
		{side(.5), side(.9), api.DefaultLane, .4},
		{failed, side(.9), "", 0},
	} {
		r := judge(2, &api.Showcase{A: row.a, B: row.b})
		assert.Equal(t, row.want, r.First)
		if row.want == "" {
			assert.Nil(t, r.Lead)
			continue
		}
		assert.InDelta(t, row.lead, *r.Lead, 1e-9)
	}
}

// The end of a long answer is shown, in whole characters.
func TestLongAnswersAreCut(t *testing.T) {
	assert.Equal(t, "short", tail("short"))
	long := tail(strings.Repeat("ä", maxShown))
	assert.LessOrEqual(t, len(long), maxShown+len("…"))
	assert.True(t, strings.HasPrefix(long, "…ä"))
	assert.Empty(t, strings.Trim(long, "…ä"))
}
