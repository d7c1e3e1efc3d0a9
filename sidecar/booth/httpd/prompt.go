package httpd

import (
	"container/list"
	"crypto/sha256"
	"strings"
	"sync"

	"kvbooth/sidecar/sim"
)

// maxKeptTokens bounds the token ids that prompts keeps, 4 bytes each: those of some
// thousand conversations.
const maxKeptTokens = 4 << 20

// entryTokens is what an entry costs beside its ids, in tokens.
const entryTokens = 64

// prompts gives the token ids of conversations. Every turn resends its whole
// history, so it keeps the ids of single messages, the last used ones. It is safe
// for concurrent use.
//
// That a conversation's ids are those of its messages, one after the other, is due
// to the chat template: each message begins with a special token, across which
// nothing is merged.
type prompts struct {
	opening []uint32 // of the answer, behind the last message

	mu     sync.Mutex
	byText map[digest]*list.Element // of *encoded
	recent *list.List               // the last used one in front
	tokens int
	limit  int
}

type digest [sha256.Size]byte

// encoded is one message.
type encoded struct {
	key digest
	ids []uint32
}

func newPrompts(limit int) *prompts {
	return &prompts{opening: sim.Encode(sim.RenderChat(nil)), byText: map[digest]*list.Element{}, recent: list.New(), limit: limit}
}

// encode gives the ids of [sim.RenderChat] of the messages in parts, which are
// shared and must not be changed, and their number.
func (p *prompts) encode(messages []sim.Message) (parts [][]uint32, total int) {
	for _, m := range messages {
		ids := p.message(m)
		parts, total = append(parts, ids), total+len(ids)
	}
	return append(parts, p.opening), total + len(p.opening)
}

// message gives the ids of one message.
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
		return // another request was faster
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
