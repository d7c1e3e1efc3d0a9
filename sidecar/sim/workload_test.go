package sim

import (
	"slices"
	"time"
)

// text is a part of a conversation. Texts with different ids have no common tokens.
type text struct {
	id     uint64
	tokens int
}

// textRequest returns the request for an answer to a prompt. The hash of a block covers the text that the block ends
// in, the position in it, and all texts before.
func textRequest(blockTokens int, prompt []text, answer text) Request {
	q := Request{OutputTokens: answer.tokens, Reason: FinishLength}
	hash, total := uint64(0), 0
	for i, part := range append(slices.Clone(prompt), answer) {
		if i == len(prompt) {
			q.PromptTokens = total
		}
		hash = Mix(hash ^ part.id)
		for end := (total/blockTokens + 1) * blockTokens; end <= total+part.tokens; end += blockTokens {
			q.Blocks = append(q.Blocks, BlockHash(Mix(hash+uint64(end))))
		}
		total += part.tokens
	}
	return q
}

func inMilliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
