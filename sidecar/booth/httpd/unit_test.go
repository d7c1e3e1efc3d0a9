package httpd

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/internal/wait"
	"kvbooth/sidecar/sim"
)

func TestPromptIDsMatchWholeConversation(t *testing.T) {
	p := newPrompts(1 << 20)
	for _, messages := range [][]sim.Message{
		{},
		{{Role: "user", Content: "Explain."}},
		{
			{Role: "system", Content: ""},
			{Role: "user", Content: " \n leading and trailing \n\n"},
			{Role: "assistant", Content: "\n"},
			{Role: "user", Content: "é😀"},
		},
		{
			{Role: "user", Content: "<|im_end|>\n<|im_start|>assistant\n"},
			{Role: "user", Content: "half <|im_"},
			{Role: "assistant", Content: "end|> <|endoftext|>"},
		},
	} {
		for range 2 { // the second time from the cache
			parts, total := p.encode(messages)
			var ids []uint32
			for _, part := range parts {
				ids = append(ids, part...)
			}
			require.Equal(t, sim.Encode(sim.RenderChat(messages)), ids)
			require.Equal(t, len(ids), total)
		}
	}
}

func TestPromptsKeepRecentMessagesWithinLimit(t *testing.T) {
	message := func(i int) sim.Message { return sim.Message{Role: "user", Content: strings.Repeat("a ", i+1)} }
	p := newPrompts(5 * (entryTokens + 20))
	for i := range 10 {
		p.message(message(0)) // the most recently used one
		p.message(message(i))
		require.LessOrEqual(t, p.tokens, p.limit)
	}
	kept := len(p.byText)
	assert.Equal(t, kept, p.recent.Len())
	assert.GreaterOrEqual(t, kept, 4)
	before := p.tokens
	p.message(message(0))
	assert.Equal(t, before, p.tokens, "the message is still cached")
	p.message(sim.Message{Role: "user", Content: strings.Repeat("much too long ", 1000)})
	assert.Zero(t, p.tokens, "a message above the limit evicts all others and is not kept")
}

func TestDetokenizerWithAnyChunks(t *testing.T) {
	const text = "naïve 世界 😀👩🏽‍🚀 e\u0301 \"quoted\"\n"
	ids := sim.Encode(text)
	for size := 1; size <= 4; size++ {
		var d detokenizer
		var whole, buffer []byte
		for i := 0; i < len(ids); i += size {
			buffer = d.next(buffer, ids[i:min(i+size, len(ids))])
			require.True(t, utf8.Valid(buffer))
			whole = append(whole, buffer...)
		}
		require.Equal(t, text, string(whole))
	}
	var d detokenizer
	require.Empty(t, d.next(nil, sim.Encode("<|im_end|>")), "a special token has no text")
	require.Empty(t, d.next(nil, sim.Encode("😀")[:1]), "part of a character")
	require.Equal(t, 3, completeCharacters([]byte("abc\xf0\x9f")))
	require.Equal(t, 2, completeCharacters([]byte("\x80\x80")), "no start of a character")
}

func TestAppendStringIsValidJSON(t *testing.T) {
	for _, text := range []string{"", "plain", "\"\\/\n\r\t\b\x00\x1f\x7f", "é世😀\u2028", "\xff broken \xe4\xb8"} {
		var back string
		require.NoError(t, json.Unmarshal(appendString(nil, []byte(text)), &back))
		want := strings.ToValidUTF8(strings.ReplaceAll(text, "\xff", "\uFFFD"), "\uFFFD")
		require.Equal(t, want, strings.ReplaceAll(back, "\uFFFD\uFFFD", "\uFFFD"))
	}
}

// times records the times of a request's chunks on both clocks.
type times struct {
	began         time.Time
	virtual, wall []time.Duration
	finished      bool
}

func (*times) Routed(*sim.Decision)    {}
func (*times) FirstToken(sim.Report)   {}
func (o *times) Finished(r sim.Report) { o.finished = r.Err == nil }
func (o *times) Tokens(at time.Duration, _ int) {
	o.virtual, o.wall = append(o.virtual, at), append(o.wall, time.Since(o.began))
}

func submit(t *testing.T, p *pacer) *times {
	o := &times{began: p.began}
	p.do(func(c *sim.Cluster) {
		_, err := c.Submit(sim.NewRequest("r", make([]uint32, 100), make([]uint32, 50), 50, 32), o)
		require.NoError(t, err)
	})
	return o
}

// TestPacerFollowsWallClock checks that chunks come at their virtual times, and that the pacer is idle between events.
func TestPacerFollowsWallClock(t *testing.T) {
	for _, speed := range []float64{1, 7, 1000} {
		synctest.Test(t, func(t *testing.T) {
			cluster, err := sim.New(sim.DefaultOptions(sim.H200()))
			require.NoError(t, err)
			p := newPacer(cluster, speed)
			done := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer close(done)
				p.run(ctx)
			}()
			synctest.Wait()
			require.EqualValues(t, math.MaxInt64, p.planned, "idle")
			wait.Advance(time.Minute)
			o := submit(t, p)
			wait.Advance(time.Minute)
			synctest.Wait()
			require.True(t, o.finished)
			for i, at := range o.virtual {
				require.InDelta(t, float64(at)/speed, float64(o.wall[i]), 1000, "nanoseconds")
			}
			require.EqualValues(t, math.MaxInt64, p.planned, "idle again")
			cancel()
			<-done
		})
	}
}

// TestPacerCatchesUpAfterDelay checks that chunks of a delayed process are late on the wall clock, but not in virtual
// time.
func TestPacerCatchesUpAfterDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, err := sim.New(sim.DefaultOptions(sim.H200()))
		require.NoError(t, err)
		p := newPacer(cluster, 2)
		o := submit(t, p)
		wait.Advance(time.Hour)
		p.step()
		require.True(t, o.finished)
		require.Equal(t, 2*time.Hour, cluster.Now())
		require.Less(t, o.virtual[0], time.Second)
		require.Equal(t, time.Hour, o.wall[0])
	})
}
