package virtual

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/sim"
)

// The IDs of an answer are the tokenizer's, alone and as a message of a prompt.
func TestAnswersAreEncodedByWords(t *testing.T) {
	c, err := New(Options{Mode: "kv", Seed: 1})
	require.NoError(t, err)
	for words := range 40 {
		text, ids := c.answer(words * words)
		assert.Len(t, strings.Fields(text), words*words)
		require.Equal(t, sim.Encode(text), append([]uint32{}, ids...), text)
		require.Equal(t, c.message(sim.Message{Role: "assistant", Content: text}), asMessage(ids), text)
	}
}
