package live

import (
	"iter"
	"math"

	"kvbooth/sidecar/sim"
)

// cut cuts a turn's prompt into blocks: of token ids, or else of text.
func (a *account) cut(t *Turn, ids []uint32) {
	if a.ids {
		t.blocks = blocksOfIDs(a.size.tokens, ids)
		t.tokens = len(ids)
	} else {
		t.blocks, t.tokens, t.text = blocksOfText(a.size.tokens, a.ratio, t.Messages)
	}
	a.rules.routed(t, a.size.tokens)
	t.Messages = nil
}

// blocksOfIDs returns the hashes of a prompt's full blocks.
func blocksOfIDs(blockTokens int, ids []uint32) []uint64 {
	hashes := make([]uint64, 0, len(ids)/blockTokens)
	for _, h := range sim.HashBlocks(blockTokens, ids) {
		hashes = append(hashes, uint64(h))
	}
	return hashes
}

// afterRole stands for the text that a chat template inserts between a role and its message.
const afterRole = "\x00\x01\x02\n"

// beforeAnswer precedes an answer in the prompt of the next turn.
const beforeAnswer = "assistant" + afterRole

// blocksOfText returns the hashes of a prompt's blocks of text, each as long as a block's tokens
// on average, with the approximate number of tokens and the number of bytes.
//
// Compared with tokens, a shared prefix is also found to the block, but the borders of blocks
// differ, and the text that a chat template inserts between messages is assumed to be the role
// and four bytes.
func blocksOfText(
	blockTokens int, bytesPerToken float64, messages iter.Seq2[string, string],
) (hashes []uint64, tokens, bytes int) {
	size := max(1, int(math.Round(bytesPerToken*float64(blockTokens))))
	hash := uint64(0)
	filled := 0
	// Eight bytes at a time would be faster. A prompt of 30 kB takes about 30 µs this way, on the
	// goroutine of the shadow.
	add := func(text string) {
		for i := range len(text) {
			hash = (hash ^ uint64(text[i])) * 0x100000001b3 // FNV-1a
			if filled++; filled == size {
				hash = sim.Mix(hash + 0x9e3779b97f4a7c15)
				hashes = append(hashes, hash)
				filled = 0
			}
		}
		bytes += len(text)
	}
	for role, text := range messages {
		add(role)
		add(afterRole)
		add(text)
	}
	return hashes, max(1, int(float64(bytes)/bytesPerToken)), bytes
}

// perToken measures the average bytes of text per token, from the usage of ended turns.
type perToken struct {
	bytes, tokens float64
	turns         int
}

const (
	usualRatio   = 4.5 // bytes per token of English text, used for the first turns
	enoughRatios = 20  // turns after which the measured ratio is used
)

func (r *perToken) add(bytes, tokens int) {
	if bytes <= 0 || tokens <= 0 {
		return
	}
	r.bytes += float64(bytes)
	r.tokens += float64(tokens)
	r.turns++
}

// inUse returns the ratio for a new account. An account keeps its ratio, since its caches hold blocks of that size.
func (r *perToken) inUse() float64 {
	if r.turns < enoughRatios {
		return usualRatio
	}
	return r.bytes / r.tokens
}
