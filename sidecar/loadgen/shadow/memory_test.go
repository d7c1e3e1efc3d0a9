package shadow

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The memory of a shadow is bounded by the caches, not by the requests: once caches and decisions are full, four times
// as many requests use no more memory. No data of a conversation is kept after its last turn.
func TestMemoryIsBounded(t *testing.T) {
	s := start(t, func(o *Options) { o.Capacity, o.Answers = 400, AnswersInferred })
	var flights []*Flight
	at, n := time.Duration(0), 0
	send := func(requests int) uint64 {
		for range requests {
			n++
			at += 20 * time.Millisecond
			r := Request{
				ID: fmt.Sprint("turn ", n), Blocks: path(uint64(n), 10, 20+n%7), PromptTokens: 10 * (20 + n%7),
				Conversation: uint64(n/4) + 1, Last: n%4 == 3, Worker: s.workers[n%2],
			}
			flights = append(flights, s.Begin(at, r))
			if len(flights) > 10 {
				s.First(at, flights[5])
				s.End(at, flights[0], 25, 100)
				flights = append([]*Flight(nil), flights[1:]...)
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	full := send(4_000)
	later := send(12_000)
	t.Logf("%d KiB, then %d KiB", full>>10, later>>10)
	assert.Less(t, float64(later), 1.2*float64(full)+float64(1<<20))
	const begun = 4 // conversations that the last ten requests belong to, and one more
	assert.LessOrEqual(t, len(s.pasts.new), begun, "conversations remembered for their answers")
	for _, w := range s.worlds {
		assert.LessOrEqual(t, len(w.homes.new), begun, "conversations with a sticky worker under policy %s", w.policy.Name)
	}
	assert.EqualValues(t, 16_000-10-5, s.account.Requests, "ten are in progress, and five ended without a token")
}
