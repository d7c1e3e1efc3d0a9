package live

import (
	"encoding/binary"
	"sync"
	"time"
)

// Notes are kept of turns in a process that has no account, for the one that has: see
// [Live.Hear]. They are safe for concurrent use.
type Notes struct {
	mu       sync.Mutex
	cut      *Cut // nil: nobody wants to know
	events   []event
	followed int   // turns that have not ended
	numbered int64 // turns, ever
	lost     int   // since they were told last

	telling sync.Mutex
	serial  int64               // of the account that past belongs to
	past    map[string][]uint64 // blocks of the latest prompt of each conversation
}

// Told is what there is to tell since it was told last. What is told is to be heard in this
// order.
type Told struct {
	Serial int64     `json:"serial"` // of the account
	Until  time.Time `json:"until"`  // everything up to here has been told
	Lost   int       `json:"lost,omitempty"`
	Events []Event   `json:"events,omitempty"`
}

// Event is something that happened to a turn: its beginning, its end, or with neither its first
// token. Of a conversation it is the end.
type Event struct {
	At     int64   `json:"at"` // nanoseconds since 1970
	Turn   int64   `json:"turn,omitempty"`
	Begin  *Begin  `json:"begin,omitempty"`
	Worker uint64  `json:"worker,omitempty"` // with the first token; 0 where nobody told
	End    *Result `json:"end,omitempty"`
	Over   string  `json:"over,omitempty"` // the conversation
}

// Begin is a turn that a router has chosen a worker for.
type Begin struct {
	ID           string        `json:"id"`
	Conversation string        `json:"conversation"`
	Last         bool          `json:"last,omitempty"`
	Instance     uint64        `json:"instance,omitempty"`
	Concurrency  int           `json:"concurrency"`
	Delay        time.Duration `json:"delay,omitempty"` // since it was sent
	Tokens       int           `json:"tokens"`
	Bytes        int           `json:"bytes,omitempty"`
	// Kept is with how many blocks of the conversation's turn before the prompt begins; those
	// behind them are told, in eight bytes each.
	Kept   int    `json:"kept,omitempty"`
	Blocks []byte `json:"blocks,omitempty"`
}

// Use says how prompts are to be cut from now on; nil: nobody wants to know any more. Turns in
// flight are not told of any more where it is for another account.
func (n *Notes) Use(c *Cut) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = c
}

// Follow hears of a turn; nil where it is not followed.
func (n *Notes) Follow(s Sent) *Turn {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut == nil {
		return nil
	}
	if n.followed >= mostFollowed {
		n.lost++
		return nil
	}
	n.followed++
	n.numbered++
	t := &Turn{to: n, serial: n.cut.Serial, ids: n.cut.IDs, sent: time.Now(), Sent: s, number: n.numbered}
	if !t.ids {
		n.events = append(n.events, event{at: t.sent, kind: routed, turn: t})
	}
	return t
}

// Over hears of the end of a conversation.
func (n *Notes) Over(conversation string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut != nil {
		t := &Turn{serial: n.cut.Serial, Sent: Sent{Conversation: conversation}}
		n.events = append(n.events, event{at: time.Now(), kind: over, turn: t})
	}
}

func (n *Notes) note(e event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.at = time.Now() // with the lock held, so that nothing is told later that happened before
	if e.kind == ended {
		n.followed--
	}
	if n.cut != nil && e.turn.serial == n.cut.Serial {
		n.events = append(n.events, e)
	}
}

// Take gives what there is to tell; nil: nobody wants to know. It takes its time, so that turns need
// not wait until their prompts have been cut.
func (n *Notes) Take() *Told {
	n.telling.Lock()
	defer n.telling.Unlock()
	n.mu.Lock()
	now, cut, events, lost := time.Now(), n.cut, n.events, n.lost
	n.events, n.lost = nil, 0
	n.mu.Unlock()
	if cut == nil {
		n.past = nil
		return nil
	}
	if n.past == nil || n.serial != cut.Serial {
		n.serial, n.past = cut.Serial, map[string][]uint64{}
	}
	told := &Told{Serial: cut.Serial, Until: now, Lost: lost}
	for i := range events {
		if e := &events[i]; e.turn.serial == cut.Serial {
			n.appendEvent(*cut, e, told)
		}
	}
	return told
}

// appendEvent adds an event to what is told.
func (n *Notes) appendEvent(cut Cut, e *event, told *Told) {
	t, out := e.turn, Event{At: e.at.UnixNano(), Turn: e.turn.number}
	switch e.kind {
	case routed:
		t.cut(cut, e.ids)
		before, kept := n.past[t.Conversation], 0
		for kept < min(len(before), len(t.blocks)) && before[kept] == t.blocks[kept] {
			kept++
		}
		n.past[t.Conversation] = t.blocks
		out.Begin = &Begin{
			ID: t.ID, Conversation: t.Conversation, Last: t.Last, Instance: t.Instance, Concurrency: t.Concurrency,
			Delay: e.at.Sub(t.sent), Tokens: t.tokens, Bytes: t.text, Kept: kept, Blocks: packed(t.blocks[kept:]),
		}
		t.begun = true
	case begun:
		if !t.begun {
			told.Lost++ // the target told no ids of this prompt
			return
		}
		out.Worker = e.worker
	case ended:
		if !t.begun {
			return
		}
		out.End = &e.result
	case over:
		if _, ok := n.past[t.Conversation]; !ok {
			return
		}
		delete(n.past, t.Conversation)
		out.Over = t.Conversation
	}
	told.Events = append(told.Events, out)
}

// Halves are two that tell the same, in this order; the first is nil where there is nothing to
// divide.
func (t *Told) Halves() (first, second *Told) {
	if t == nil || len(t.Events) < 2 {
		return nil, t
	}
	half := len(t.Events) / 2
	first, second = new(*t), new(*t)
	first.Events, second.Events, second.Lost = t.Events[:half], t.Events[half:], 0
	first.Until = time.Unix(0, t.Events[half-1].At)
	return first, second
}

func packed(blocks []uint64) []byte {
	data := make([]byte, 0, 8*len(blocks))
	for _, b := range blocks {
		data = binary.LittleEndian.AppendUint64(data, b)
	}
	return data
}

// unpacked appends packed blocks.
func unpacked(to []uint64, data []byte) []uint64 {
	for ; len(data) >= 8; data = data[8:] {
		to = append(to, binary.LittleEndian.Uint64(data))
	}
	return to
}
