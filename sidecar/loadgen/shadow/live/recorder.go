package live

import (
	"encoding/binary"
	"sync"
	"time"
)

// Recorder records the events of turns in a process without an account, for the process that has
// it: see [Live.Receive]. It is safe for concurrent use.
type Recorder struct {
	mu       sync.Mutex
	spec     *BlockSpec // nil disables the recording
	events   []event
	followed int   // turns that have not ended
	numbered int64 // turns followed so far
	lost     int   // turns lost since the last report

	reporting sync.Mutex
	serial    int64               // serial number of the account of past
	past      map[string][]uint64 // blocks of the latest prompt of each conversation
}

// Report holds the events since the previous report. Reports must be received in order.
type Report struct {
	Serial int64     `json:"serial"` // serial number of the account
	Until  time.Time `json:"until"`  // all events up to this time were reported
	Lost   int       `json:"lost,omitempty"`
	Events []Event   `json:"events,omitempty"`
}

// Event is an event of a turn: its beginning, its end, or, with neither, its first token. With Over
// it is the end of a conversation.
type Event struct {
	At     int64   `json:"at"` // nanoseconds since 1970
	Turn   int64   `json:"turn,omitempty"`
	Begin  *Begin  `json:"begin,omitempty"`
	Worker uint64  `json:"worker,omitempty"` // reported with the first token; 0: unknown
	End    *Result `json:"end,omitempty"`
	Over   string  `json:"over,omitempty"` // the conversation
}

// Begin describes a turn that was routed.
type Begin struct {
	Sent                 // without its messages
	Delay  time.Duration `json:"delay,omitempty"` // time since it was sent
	Tokens int           `json:"tokens"`
	Bytes  int           `json:"bytes,omitempty"`
	// Kept is the number of leading blocks that equal those of the conversation's previous turn.
	// Blocks has the others, in eight bytes each.
	Kept   int    `json:"kept,omitempty"`
	Blocks []byte `json:"blocks,omitempty"`
}

// Use sets how prompts are cut from now on; nil disables the recording. With a spec for another
// account, turns in flight are dropped.
func (n *Recorder) Use(spec *BlockSpec) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.spec = spec
}

// Follow begins to follow a turn. It returns nil for a turn that is not followed.
func (n *Recorder) Follow(s Sent) *Turn {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.spec == nil {
		return nil
	}
	if n.followed >= maxFollowed {
		n.lost++
		return nil
	}
	n.followed++
	n.numbered++
	t := &Turn{sink: n, serial: n.spec.Serial, ids: n.spec.IDs, sent: time.Now(), Sent: s, number: n.numbered}
	if !t.ids {
		n.events = append(n.events, event{at: t.sent, kind: eventRouted, turn: t})
	}
	return t
}

// EndConversation records the end of a conversation.
func (n *Recorder) EndConversation(conversation string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.spec != nil {
		t := &Turn{serial: n.spec.Serial, Sent: Sent{Conversation: conversation}}
		n.events = append(n.events, event{at: time.Now(), kind: eventOver, turn: t})
	}
}

func (n *Recorder) record(e event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.at = time.Now() // with the lock held, so that events are in order
	if e.kind == eventEnded {
		n.followed--
	}
	if n.spec != nil && e.turn.serial == n.spec.Serial {
		n.events = append(n.events, e)
	}
}

// Take returns the report since the previous call; nil while the recording is disabled. Cutting
// prompts takes time; it does not block turns.
func (n *Recorder) Take() *Report {
	n.reporting.Lock()
	defer n.reporting.Unlock()
	n.mu.Lock()
	spec := n.spec
	events := n.events
	report := &Report{Until: time.Now(), Lost: n.lost}
	n.events = nil
	n.lost = 0
	n.mu.Unlock()
	if spec == nil {
		n.past = nil
		return nil
	}
	if n.past == nil || n.serial != spec.Serial {
		n.serial = spec.Serial
		n.past = map[string][]uint64{}
	}
	report.Serial = spec.Serial
	for i := range events {
		if e := &events[i]; e.turn.serial == spec.Serial {
			n.appendEvent(*spec, e, report)
		}
	}
	return report
}

// appendEvent adds an event to a report.
func (n *Recorder) appendEvent(spec BlockSpec, e *event, report *Report) {
	t := e.turn
	out := Event{At: e.at.UnixNano(), Turn: t.number}
	switch e.kind {
	case eventRouted:
		t.cut(spec, e.ids)
		before := n.past[t.Conversation]
		kept := 0
		for kept < min(len(before), len(t.blocks)) && before[kept] == t.blocks[kept] {
			kept++
		}
		n.past[t.Conversation] = t.blocks
		out.Begin = &Begin{
			Sent: t.Sent, Delay: e.at.Sub(t.sent), Tokens: t.tokens, Bytes: t.text,
			Kept: kept, Blocks: packed(t.blocks[kept:]),
		}
		t.begun = true
	case eventFirstToken:
		if !t.begun {
			report.Lost++ // the target reported no ids for this prompt
			return
		}
		out.Worker = e.worker
	case eventEnded:
		if !t.begun {
			return
		}
		out.End = &e.result
	case eventOver:
		if _, ok := n.past[t.Conversation]; !ok {
			return
		}
		delete(n.past, t.Conversation)
		out.Over = t.Conversation
	}
	report.Events = append(report.Events, out)
}

// Split divides a report into two that must be received in this order. first is nil for a report
// that cannot be divided.
func (t *Report) Split() (first, second *Report) {
	if t == nil || len(t.Events) < 2 {
		return nil, t
	}
	half := len(t.Events) / 2
	first, second = new(*t), new(*t)
	first.Events = t.Events[:half]
	first.Until = time.Unix(0, t.Events[half-1].At)
	second.Events = t.Events[half:]
	second.Lost = 0
	return first, second
}

func packed(blocks []uint64) []byte {
	data := make([]byte, 0, 8*len(blocks))
	for _, b := range blocks {
		data = binary.LittleEndian.AppendUint64(data, b)
	}
	return data
}

// unpacked appends packed blocks to a slice.
func unpacked(to []uint64, data []byte) []uint64 {
	for ; len(data) >= 8; data = data[8:] {
		to = append(to, binary.LittleEndian.Uint64(data))
	}
	return to
}
