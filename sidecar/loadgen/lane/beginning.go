package lane

import (
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/stats"
	"kvbooth/sidecar/loadgen/workload"
)

// mostFirstTurns limits the first turns of conversations that are kept of a run.
const mostFirstTurns = 1000

// beginning finds out what the caches held at the beginning of a run. It is safe for concurrent use.
type beginning struct {
	mu    sync.Mutex
	began time.Time
	turns []stats.FirstTurn
	found *api.Caches // of turns and the length of an opening
	of    [2]int      // their number and that length
}

func (b *beginning) reset(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began, b.turns, b.found, b.of = now, nil, nil, [2]int{}
}

// add takes in an ended turn. opening returns the number of a conversation's opening.
func (b *beginning) add(t *workload.Turn, opening func(workload.Draw) int64) {
	if t.Number != 1 {
		return
	}
	number := opening(t.Draw)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.turns) < mostFirstTurns && !t.Started.Before(b.began) {
		b.turns = append(b.turns, stats.NewFirstTurn(&t.Turn, number, b.began))
	}
}

// caches returns what the caches held, nil if that is unknown. tokens is the length of an opening, 0 if it has no set
// length.
func (b *beginning) caches(tokens int) *api.Caches {
	b.mu.Lock()
	defer b.mu.Unlock()
	if of := [2]int{len(b.turns), tokens}; of != b.of {
		b.found, b.of = stats.CachesOf(b.turns, tokens), of
	}
	return b.found
}
