package chat

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A text of any pieces is whole while it grows and afterwards, and has no more spare memory than a block.
func TestTextInBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, longest := range []int{3, 2000, 300_000} {
		var grown text
		want := ""
		assert.Empty(t, grown.String())
		for range 40 {
			piece := strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(longest+1))
			grown.add(piece)
			want += piece
			require.True(t, want == grown.String() && grown.n == len(want))
			spare := 0
			for _, b := range grown.blocks {
				spare += cap(b) - len(b)
			}
			require.LessOrEqual(t, spare, max(leastBlock, min(len(want), mostBlock)))
		}
		grown.join()
		require.True(t, want == grown.whole && want == grown.String() && grown.blocks == nil)
	}
}

// A long history is encoded as package json would encode it at once, wherever its pieces end.
func TestLongTextsInRequests(t *testing.T) {
	c := clientOf(t, "http://script", func(o *Options) {
		o.Fields = map[string]any{ExtStreamOptions: map[string]any{"messages": []int{}}}
	})
	for shift := range 5 {
		history := []Message{{Role: "user", Text: strings.Repeat("x", shift)}}
		for _, text := range []string{"€", "😀", "\n\"<\u2028", "\xff\x80", "\x80", "word "} {
			history[0].Text += strings.Repeat(text, 4000)
		}
		history = append(history, Message{Role: "assistant", Text: history[0].Text})
		p, err := c.newPayload(Request{Messages: history}, map[string]bool{ExtStreamOptions: true})
		require.NoError(t, err)
		body := p.buf
		var got struct {
			Messages      []struct{ Role, Content string }
			StreamOptions map[string]any `json:"stream_options"`
		}
		require.NoError(t, json.Unmarshal(body.Bytes(), &got))
		require.Len(t, got.Messages, 2)
		for i := range got.Messages {
			assert.Equal(t, history[i].Role, got.Messages[i].Role)
			var whole jsonText
			require.NoError(t, whole.encode(history[i].Text))
			assert.True(t, bytes.Contains(body.Bytes(), bytes.TrimSpace(whole.Bytes())))
		}
		assert.Len(t, got.StreamOptions, 2)
	}
}

// Nothing keeps an answer in memory after its end: not the timer of its timeouts, and not the pool of connections.
func TestNothingIsKeptOfAnAnswer(t *testing.T) {
	t.Parallel()
	for i := range 200 { // the runtime keeps stopped timers among others until they are due
		defer time.AfterFunc(time.Duration(1+i)*time.Second, func() {}).Stop()
	}
	calls := 0
	s := serve(t, func(c call) bool {
		calls++
		if calls > 1 {
			c.write(streamHead + framed(event("a"), "data: x\n\n"))
			return false
		}
		c.write(oneToken)
		return true
	})
	c := clientOf(t, s.url)
	ask := func() (weak.Pointer[Live], Result) {
		live := new(Live)
		return weak.Make(live), c.Do(t.Context(), Request{Messages: hello(), Live: live})
	}
	first, r := ask()
	require.True(t, r.OK(), outcome(r))
	second, r := ask()
	require.False(t, r.OK() || r.Resent, "it fails on the connection of the first")
	runtime.GC()
	runtime.GC()
	assert.Nil(t, first.Value(), "the first answer")
	assert.Nil(t, second.Value(), "the second answer")
}
