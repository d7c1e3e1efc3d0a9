package traffic

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/trace"
)

func replay(t *testing.T, loops bool, lines ...string) *Replay {
	t.Helper()
	reader, err := trace.NewReader(strings.NewReader(strings.Join(lines, "\n")), trace.Options{Strict: true})
	require.NoError(t, err)
	r, err := NewReplay(reader, loops)
	require.NoError(t, err)
	return r
}

// prompts returns the prompts of a conversation's turns, where no answer is sent back.
func prompts(c Conversation) (all [][]Message) {
	var before []Message
	for _, turn := range c.Turns {
		before = turn.Prompt(before, Message{})
		all = append(all, before)
	}
	return all
}

// A trace of block hashes: times, lengths and shared prompts are those of its lines, while a turn holds only what it
// adds. A repetition has other prompts, which share as much.
func TestReplayOfBlocks(t *testing.T) {
	r := replay(t, true,
		`{"timestamp": 0, "session_id": "a", "input_length": 1100, "output_length": 5, "hash_ids": [1, 2]}`,
		`{"timestamp": 1000, "session_id": "b", "input_length": 600, "output_length": 6, "hash_ids": [1]}`,
		`{"timestamp": 3000, "session_id": "a", "input_length": 1700, "output_length": 7, "hash_ids": [1, 2, 3]}`)
	require.Equal(t, 2, r.Conversations())
	assert.InDelta(t, 1, r.Rate(), 1e-9)
	assert.InDelta(t, (512+1024)/3400., *r.HitRatio(), 1e-9)
	a, _ := r.Conversation(0)
	require.Len(t, a.Turns, 2)
	assert.Equal(t, Turn{
		Whole: true, Keep: 2, Think: -1, At: 3 * time.Second, MaxTokens: 7, Exact: true, Messages: a.Turns[1].Messages,
	}, a.Turns[1])
	assert.Len(t, a.Turns[1].Messages[0].Segments, 2, "what it adds")
	sent := prompts(a)
	first, second := sent[0][0].Segments, sent[1][0].Segments
	assert.Equal(t, []Segment{{1, 512}, {2, 512}, {3, 76}}, first, "the rest begins the block that follows")
	assert.Equal(t, []Segment{{1, 512}, {2, 512}, {3, 512}}, second[:3])
	assert.Equal(t, 1700, Tokens(second))
	b, _ := r.Conversation(1)
	assert.Equal(t, time.Second, b.At)
	again, ok := r.Conversation(3)
	require.True(t, ok)
	assert.Equal(t, 3*time.Second, again.At)
	fresh, _ := r.Conversation(2)
	shared := fresh.Turns[0].Messages[0].Segments[0]
	assert.Equal(t, shared, again.Turns[0].Messages[0].Segments[0])
	assert.NotEqual(t, first[0].ID, shared.ID)
}

// Delays and texts, and the end of a trace that does not loop.
func TestReplayOfSessions(t *testing.T) {
	for name, row := range map[string]struct {
		lines []string
		want  Conversation
	}{
		"delays": {
			[]string{
				`{"timestamp": 7, "session_id": "a", "input_length": 10, "output_length": 0}`,
				`{"delay": 250, "session_id": "a", "input_length": 20, "output_length": 3}`,
			},
			Conversation{Turns: []Turn{
				{Think: -1, MaxTokens: 1},
				{Whole: true, Think: 250 * time.Millisecond, MaxTokens: 3, Exact: true},
			}},
		},
		"texts": {
			[]string{`{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"},
				{"role": "assistant", "content": "x"}, {"role": "user", "content": "v"}]}`},
			Conversation{At: -1, Turns: []Turn{
				{Think: -1, Messages: []Message{{Role: "system", Text: "s"}, {Role: "user", Text: "u"}}},
				{Think: -1, Messages: []Message{{Role: "user", Text: "v"}}},
			}},
		},
	} {
		r := replay(t, false, strings.ReplaceAll(strings.Join(row.lines, "\n"), "\n\t", ""))
		c, ok := r.Conversation(0)
		require.True(t, ok, name)
		for i := range row.want.Turns {
			if row.want.Turns[i].Messages == nil {
				row.want.Turns[i].Messages = c.Turns[i].Messages
			}
		}
		assert.Equal(t, row.want, c, name)
		_, ok = r.Conversation(1)
		assert.False(t, ok, name)
		assert.Zero(t, r.Rate(), name)
	}
}
