package workload

import (
	"time"

	"kvbooth/sidecar/api"
)

// Underway is the number of turns under way at a moment.
type Underway struct {
	Turns    int
	Awaiting api.Awaiting // turns that still wait for their first token
}

// Underway counts the turns under way.
func (w *Workload) Underway(now time.Time) (u Underway) {
	for _, t := range w.turns() {
		u.Turns++
		sent, _, waiting := t.Live.First()
		if !waiting || sent.IsZero() {
			continue
		}
		u.Awaiting.N++
		u.Awaiting.OldestSeconds = max(u.Awaiting.OldestSeconds, now.Sub(sent).Seconds())
	}
	return u
}

// LiveTurn returns the turn under way of the conversation with the id; nil if there is none.
func (w *Workload) LiveTurn(conversation string) *api.LiveTurn {
	for _, t := range w.turns() {
		if t.Conversation == conversation {
			return t.live()
		}
	}
	return nil
}

// live returns the part of the turn that has arrived.
func (t *LiveTurn) live() *api.LiveTurn {
	live := &api.LiveTurn{
		Number: t.Number, Started: t.Began, UserMessage: t.UserMessage, AssistantMessage: t.Live.Text(),
		Worker: t.Live.Worker(),
	}
	if _, ttft, waiting := t.Live.First(); !waiting {
		live.TTFT = new(ttft.Seconds())
	}
	return live
}

// turns returns the turns under way.
func (w *Workload) turns() []*LiveTurn {
	var all []*LiveTurn
	for _, c := range w.Conversations() {
		if t := c.Turn(); t != nil {
			all = append(all, t)
		}
	}
	return all
}

// Uniform reports whether every conversation in progress was drawn from the settings and the corpus
// in force.
func (w *Workload) Uniform() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.active {
		if c.Shape != w.shape {
			return false
		}
	}
	return true
}
