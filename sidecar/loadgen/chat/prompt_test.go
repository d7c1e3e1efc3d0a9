package chat

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// promptsIn reads pieces with a fresh reader and lists the ids of each event of theirs.
func promptsIn(most int, pieces ...string) (got [][]uint32, err error) {
	ids := promptIDs{most: most}
	r := sseReader{prompt: ids.read, event: func(name string, _ []byte) {
		if name == promptEvent {
			got = append(got, ids.take())
		}
	}}
	err = feed(&r, pieces...)
	return got, err
}

// The ids are read wherever the stream is cut, and nothing but a whole list of ids is.
func TestPromptIDs(t *testing.T) {
	for _, row := range []struct {
		name, in string
		want     [][]uint32
	}{
		{"as Dynamo sends it", "event: token_ids\n: \"[0,2,4294967295]\"\n\ndata: a\n\n", [][]uint32{{0, 2, 4294967295}}},
		{"in CRLF", "event: token_ids\r\n: \"[7,8]\"\r\n\r\n", [][]uint32{{7, 8}}},
		{"with blanks", "event: token_ids\n:[ 7, 8 ]\n\n", [][]uint32{{7, 8}}},
		{"two of them", "event: token_ids\n:[7]\n\nevent: token_ids\n:[8]\n\n", [][]uint32{{7}, {8}}},
		{"a comment of another event", "event: x\n:[7]\n\n:[7]\n\n", nil},
		{"an empty list", "event: token_ids\n:[]\n\n", [][]uint32{nil}},
		{"no list", "event: token_ids\n\n", [][]uint32{nil}},
		{"cut off", "event: token_ids\n:[1,2\n\n", [][]uint32{nil}},
		{"a negative id", "event: token_ids\n:[1,-2]\n\n", [][]uint32{nil}},
		{"an id of 33 bits", "event: token_ids\n:[4294967296]\n\n", [][]uint32{nil}},
		{"text", "event: token_ids\n: see below\n\n", [][]uint32{nil}},
		{"more than the prompt can have", "event: token_ids\n:[1,2,3,4,5,6]\n\n", [][]uint32{nil}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for i, pieces := range everyCut(row.in) {
				got, err := promptsIn(5, pieces...)
				require.NoError(t, err)
				require.Equal(t, row.want, got, "cut %d", i)
			}
		})
	}
}

// A long prompt's ids come before the first chunk behind them.
func TestPromptBeforeTheFirstChunk(t *testing.T) {
	var list strings.Builder
	want := make([]uint32, 7000)
	for i := range want {
		want[i] = uint32(i * 977 % 50000)
		fmt.Fprintf(&list, ",%d", want[i])
	}
	ids := "event: token_ids\n: \"[" + list.String()[1:] + "]\"\n\n"
	c := clientOf(t, serve(t, always(answerOf(ids, event("a"), event("b"), doneEvent))).url)
	var got []uint32
	chunks := 0
	long := []Message{{Role: "user", Text: strings.Repeat("x", 7000)}}
	r := c.Do(t.Context(), Request{
		Messages: long, MaxTokens: 9, OnChunk: func(int) { chunks++ },
		OnPrompt: func(ids []uint32) {
			if got = ids; chunks > 0 {
				t.Error("the ids came after a chunk")
			}
		},
	})
	if !r.OK() || r.Content != "ab" || !slices.Equal(got, want) {
		t.Errorf("%v, %q, %d ids", r.Err, r.Content, len(got))
	}
}
