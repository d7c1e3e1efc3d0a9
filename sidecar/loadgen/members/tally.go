package members

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"kvbooth/sidecar/loadgen/workload"
)

// tally passes each turn of a run to the lane once, so that the lane counts the turns that the
// store has. A turn arrives with a report, which alone has its inter-token latencies, and on its
// way to the store. If the report never arrives, because its member was killed or the server has
// deleted it, the stored row counts. It is safe for concurrent use.
type tally struct {
	turn func(*workload.Turn)

	mu sync.Mutex
	// recounts is true while reports to an earlier coordinator are being read.
	recounts bool
	// counted and before are the turns that were passed to the lane recently. A set is dropped after
	// one to two countedKept. The two copies of a turn arrive within seconds.
	counted, before map[turnKey]struct{}
	swapped         time.Time
	waiting         map[turnKey]unreported
}

// turnKey names a turn of a run.
type turnKey struct {
	conversation string
	number       int
}

// keyOf returns the key of a turn.
func keyOf(t *workload.Turn) turnKey { return turnKey{t.Conversation, t.Number} }

// unreported is a turn that no report has contained yet.
type unreported struct {
	member string
	turn   workload.Turn
}

const countedKept = time.Minute

// newTally returns a tally that passes turns to turn. With recounts, settle does nothing before
// [tally.recounted].
func newTally(turn func(*workload.Turn), recounts bool) *tally {
	return &tally{
		turn: turn, recounts: recounts, swapped: time.Now(),
		counted: map[turnKey]struct{}{}, before: map[turnKey]struct{}{}, waiting: map[turnKey]unreported{},
	}
}

// count counts a turn unless it is counted already.
func (t *tally) count(turn *workload.Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countLocked(turn)
}

func (t *tally) countLocked(turn *workload.Turn) {
	key := keyOf(turn)
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

// stored records a turn that a member has delivered to the store.
func (t *tally) stored(member string, h *handedTurn) {
	turn := withoutTexts(h.Turn)
	t.mu.Lock()
	defer t.mu.Unlock()
	if key := keyOf(&turn); !t.has(key) {
		t.waiting[key] = unreported{member, turn}
	}
}

// settle counts the unreported turns of members that send no more reports.
func (t *tally) settle(now time.Time, reports func(member string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.recounts {
		return
	}
	for _, w := range t.waiting {
		if !reports(w.member) {
			t.countLocked(&w.turn)
		}
	}
	if now.Sub(t.swapped) > countedKept {
		t.counted, t.before, t.swapped = map[turnKey]struct{}{}, t.counted, now
	}
}

// recounted ends the time in which reports to an earlier coordinator are read.
func (t *tally) recounted() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recounts, t.swapped = false, time.Now()
}

// withoutTexts returns a turn without its texts.
func withoutTexts(t workload.Turn) workload.Turn {
	t.UserMessage, t.AssistantMessage = "", ""
	return t
}

// numberOf returns the number of a conversation, which is the end of its id.
func numberOf(conversation string) int64 {
	number, _ := strconv.ParseInt(conversation[strings.LastIndexByte(conversation, '-')+1:], 10, 64)
	return number
}
