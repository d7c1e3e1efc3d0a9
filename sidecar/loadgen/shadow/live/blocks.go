package live

import (
	"iter"
	"math"

	"kvbooth/sidecar/sim"
)

// Cut is how prompts are cut into blocks for an account.
type Cut struct {
	Serial int64   `json:"serial"`          // of the account
	Tokens int     `json:"tokens"`          // of a block
	IDs    bool    `json:"ids,omitempty"`   // the ids of prompts' tokens are cut; else their texts
	Ratio  float64 `json:"ratio,omitempty"` // bytes of text that stand for a token
}

// Cut is how prompts are cut at the moment; nil: nothing is followed.
func (l *Live) Cut() *Cut {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.account == nil {
		return nil
	}
	return new(l.account.cut())
}

func (a *account) cut() Cut {
	return Cut{Serial: a.serial, Tokens: a.size.tokens, IDs: a.ids, Ratio: a.ratio}
}

// cut cuts the turn's prompt.
func (t *Turn) cut(c Cut, ids []uint32) {
	if c.IDs {
		t.blocks, t.tokens = blocksOfIDs(c.Tokens, ids), len(ids)
	} else {
		t.blocks, t.tokens, t.text = blocksOfText(c.Tokens, c.Ratio, t.Messages)
	}
	t.Messages = nil
}

// blocksOfIDs are the hashes of a prompt's full blocks.
func blocksOfIDs(blockTokens int, ids []uint32) []uint64 {
	hashes := make([]uint64, 0, len(ids)/blockTokens)
	for _, h := range sim.HashBlocks(blockTokens, ids) {
		hashes = append(hashes, uint64(h))
	}
	return hashes
}

// behindRole stands for what a chat template puts between a role and its text.
const behindRole = "\x00\x01\x02\n"

// answering is what stands before an answer in the prompt of the next turn.
const answering = "assistant" + behindRole

// blocksOfText are the hashes of blocks of a prompt's text that are as long as a block's
// tokens are on average, with about how many tokens the prompt has, and how many bytes.
//
// What that costs: a prefix that two prompts share is found to the block, as with tokens,
// but a block's border lies elsewhere, and what a chat template puts between messages
// is taken as the role and four bytes.
func blocksOfText(blockTokens int, bytesPerToken float64, messages iter.Seq2[string, string]) (hashes []uint64, tokens, bytes int) {
	size := max(1, int(math.Round(bytesPerToken*float64(blockTokens))))
	hash, filled := uint64(0), 0
	// Eight bytes at a time would be faster; a prompt of 30 kB takes some 30 µs like this,
	// on the shadow's own goroutine.
	add := func(text string) {
		for i := range len(text) {
			hash = (hash ^ uint64(text[i])) * 0x100000001b3 // FNV-1a
			if filled++; filled == size {
				hash = sim.Mix(hash + 0x9e3779b97f4a7c15)
				hashes, filled = append(hashes, hash), 0
			}
		}
		bytes += len(text)
	}
	for role, text := range messages {
		add(role)
		add(behindRole)
		add(text)
	}
	return hashes, max(1, int(float64(bytes)/bytesPerToken)), bytes
}

// perToken is how many bytes of text a token has on average, as usage tells of the turns
// that have ended.
type perToken struct {
	bytes, tokens float64
	turns         int
}

const (
	usualRatio   = 4.5 // of English text, until turns have told
	enoughRatios = 20  // turns
	closeRatio   = .05 // of one to another
)

func (r *perToken) add(bytes, tokens int) {
	if bytes <= 0 || tokens <= 0 {
		return
	}
	r.bytes, r.tokens, r.turns = r.bytes+float64(bytes), r.tokens+float64(tokens), r.turns+1
}

// inUse is the ratio for a new account.
func (r *perToken) inUse() float64 {
	if r.turns < enoughRatios {
		return usualRatio
	}
	return r.bytes / r.tokens
}

// differs says whether an account with another ratio is worth giving up.
func (r *perToken) differs(from float64) bool {
	return math.Abs(r.inUse()/from-1) > closeRatio
}
