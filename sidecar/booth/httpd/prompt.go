package httpd

import (
	"container/list"
	"crypto/sha256"
	"strings"
	"sync"

	"kvbooth/sidecar/sim"
)

// maxKeptTokens bounds the token ids that prompts keeps, 4 bytes each: enough for some thousand conversations.
const maxKeptTokens = 4 << 20

// entryTokens is the overhead of an entry besides its ids, in tokens.
const entryTokens = 64

// prompts encodes conversations as token ids. Every turn resends its whole history, so prompts caches the ids of the
// most recently used messages. It is safe for concurrent use.
//
// The ids of a conversation are the concatenated ids of its messages, because in the chat template each message begins
// with a special token, across which tokens do not merge.
type prompts struct {
	opening []uint32 // beginning of the answer, behind the last message

	mu     sync.Mutex
	byText map[digest]*list.Element // elements hold *encoded
	recent *list.List               // most recently used first
	tokens int
	limit  int
}

type digest [sha256.Size]byte

type encoded struct {
	key digest
	ids []uint32
}

func newPrompts(limit int) *prompts {
	return &prompts{
		opening: sim.Encode(sim.RenderChat(nil)), byText: map[digest]*list.Element{}, recent: list.New(), limit: limit,
	}
}

// encode returns the ids of [sim.RenderChat] of the messages, in parts, and their number. The parts are shared and
// must not be changed.
func (p *prompts) encode(messages []sim.Message) (parts [][]uint32, total int) {
	for _, m := range messages {
		ids := p.message(m)
		parts, total = append(parts, ids), total+len(ids)
	}
	return append(parts, p.opening), total + len(p.opening)
}

// message returns the ids of one message.
func (p *prompts) message(m sim.Message) []uint32 {
	text := strings.TrimSuffix(sim.RenderChat([]sim.Message{m}), sim.RenderChat(nil))
	key := digest(sha256.Sum256([]byte(text)))
	if ids, ok := p.find(key); ok {
		return ids
	}
	ids := sim.Encode(text)
	p.keep(&encoded{key: key, ids: append(make([]uint32, 0, len(ids)), ids...)})
	return ids
}

func (p *prompts) find(key digest) (ids []uint32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byText[key]
	if !ok {
		return nil, false
	}
	p.recent.MoveToFront(e)
	return e.Value.(*encoded).ids, true
}

func (p *prompts) keep(m *encoded) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.byText[m.key]; ok {
		return // a concurrent request has added the message
	}
	p.byText[m.key] = p.recent.PushFront(m)
	p.tokens += m.cost()
	for p.tokens > p.limit {
		oldest := p.recent.Remove(p.recent.Back()).(*encoded)
		delete(p.byText, oldest.key)
		p.tokens -= oldest.cost()
	}
}

func (m *encoded) cost() int { return len(m.ids) + entryTokens }
