package members

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/lane"
)

// tally reports each turn of a run to the lane once, so that the lane counts what the store has. A turn
// comes with a report, which alone has its inter-token latencies, and on its way to the store. Where the
// report never comes, because its member was killed or the server has deleted it, the row counts. It is safe
// for concurrent use.
type tally struct {
	turn func(lane.RemoteTurn)

	mu sync.Mutex
	// recounts says that reports to a coordinator before this one are still being read.
	recounts bool
	// counted and before are the turns that were reported to the lane lately: each is emptied after
	// countedKept, by turns, since a turn is on its way twice for seconds.
	counted, before map[turnKey]struct{}
	swapped         time.Time
	waiting         map[turnKey]unreported
}

// turnKey names a turn of a run.
type turnKey struct {
	conversation string
	number       int
}

func keyOf(t *api.Turn) turnKey { return turnKey{t.Conversation, t.Number} }

// unreported is a turn that no report has brought yet.
type unreported struct {
	member string
	turn   lane.RemoteTurn
}

const countedKept = time.Minute

// newTally returns one whose counts go to turn. With recounts it waits for [tally.recounted].
func newTally(turn func(lane.RemoteTurn), recounts bool) *tally {
	return &tally{
		turn: turn, recounts: recounts, swapped: time.Now(),
		counted: map[turnKey]struct{}{}, before: map[turnKey]struct{}{}, waiting: map[turnKey]unreported{},
	}
}

// count counts a turn unless it is counted.
func (t *tally) count(turn lane.RemoteTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countLocked(turn)
}

func (t *tally) countLocked(turn lane.RemoteTurn) {
	key := keyOf(&turn.Row)
	delete(t.waiting, key)
	if !t.has(key) {
		t.counted[key] = struct{}{}
		t.turn(turn)
	}
}

func (t *tally) has(key turnKey) bool {
	_, now := t.counted[key]
	_, before := t.before[key]
	return now || before
}

// stored notes a turn that a member has handed over for the store.
func (t *tally) stored(member string, h *handed) {
	turn := rowOnly(&h.Turn, h.Conversation.Number, h.Shape)
	t.mu.Lock()
	defer t.mu.Unlock()
	if key := keyOf(&h.Turn); !t.has(key) {
		t.waiting[key] = unreported{member, turn}
	}
}

// settle counts the turns of members that report no more.
func (t *tally) settle(now time.Time, reports func(member string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.recounts {
		return
	}
	for _, w := range t.waiting {
		if !reports(w.member) {
			t.countLocked(w.turn)
		}
	}
	if now.Sub(t.swapped) > countedKept {
		t.counted, t.before, t.swapped = map[turnKey]struct{}{}, t.counted, now
	}
}

// recounted ends the time in which reports to a coordinator before this one are read.
func (t *tally) recounted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recounts, t.swapped = false, time.Now()
}

// rowOnly is a turn of which only the row is known.
func rowOnly(t *api.Turn, number int64, shape int) lane.RemoteTurn {
	one := measured{Row: *t, Number: number, Shape: shape}
	one.Row.UserMessage, one.Row.AssistantMessage = "", ""
	return one.turn()
}

// numberOf is the number of a conversation, which ends its id.
func numberOf(conversation string) int64 {
	number, _ := strconv.ParseInt(conversation[strings.LastIndexByte(conversation, '-')+1:], 10, 64)
	return number
}
