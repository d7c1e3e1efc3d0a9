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

// Messages encoded one by one give the ids of the whole conversation.
func TestPromptIDs(t *testing.T) {
	p := newPrompts(1 << 20)
	for _, messages := range [][]sim.Message{
		{},
		{{Role: "user", Content: "Explain."}},
		{{Role: "system", Content: ""}, {Role: "user", Content: " \n leading and trailing \n\n"}, {Role: "assistant", Content: "\n"}, {Role: "user", Content: "é😀"}},
		{{Role: "user", Content: "<|im_end|>\n<|im_start|>assistant\n"}, {Role: "user", Content: "half <|im_"}, {Role: "assistant", Content: "end|> <|endoftext|>"}},
	} {
		for range 2 { // from the cache too
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

// What is kept stays within the limit, and the last used messages stay.
func TestPromptsForget(t *testing.T) {
	message := func(i int) sim.Message { return sim.Message{Role: "user", Content: strings.Repeat("a ", i+1)} }
	p := newPrompts(5 * (entryTokens + 20))
	for i := range 10 {
		p.message(message(0)) // used again and again
		p.message(message(i))
		require.LessOrEqual(t, p.tokens, p.limit)
	}
	kept := len(p.byText)
	assert.Equal(t, kept, p.recent.Len())
	assert.GreaterOrEqual(t, kept, 4)
	before := p.tokens
	p.message(message(0))
	assert.Equal(t, before, p.tokens, "it was still there")
	p.message(sim.Message{Role: "user", Content: strings.Repeat("much too long ", 1000)})
	assert.Zero(t, p.tokens, "nothing fits beside it, and it does not either")
}

// Whatever the chunks, their text is valid and together it is the whole text.
func TestDetokenizer(t *testing.T) {
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
	require.Equal(t, 2, completeCharacters([]byte("\x80\x80")), "no beginning of a character")
}

func TestAppendString(t *testing.T) {
	for _, text := range []string{"", "plain", "\"\\/\n\r\t\b\x00\x1f\x7f", "é世😀\u2028", "\xff broken \xe4\xb8"} {
		var back string
		require.NoError(t, json.Unmarshal(appendString(nil, []byte(text)), &back))
		require.Equal(t, strings.ToValidUTF8(strings.ReplaceAll(text, "\xff", "\uFFFD"), "\uFFFD"), strings.ReplaceAll(back, "\uFFFD\uFFFD", "\uFFFD"))
	}
}

// times notes when a request's chunks came, on both clocks.
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

// Chunks come when virtual time says, and nothing runs while nothing happens.
func TestClock(t *testing.T) {
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

// A process that was held up is late with its chunks; virtual time is not.
func TestClockCatchesUp(t *testing.T) {
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
