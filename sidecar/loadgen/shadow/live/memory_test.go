//go:build !race

package live

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// held is a conversation in progress.
type held struct {
	number, turn, of int
	ids              []uint32 // of the turns so far
	cached           int      // tokens that its worker has of them
	under            *Turn
}

// next sends the next turn, of the next conversation where this one is over: an opening that a
// tenth of them share, then questions and answers of their own.
func (h *held) next(s *rig, numbers *int) {
	if h.turn == h.of {
		*h = held{number: *numbers, of: 3 + *numbers%3, ids: h.ids[:0], under: nil}
		*numbers++
		for i := range 3500 {
			h.ids = append(h.ids, uint32(h.number%10<<20|i))
		}
	}
	h.turn++
	h.under = s.Follow(Sent{ID: fmt.Sprintf("%d-%d", h.number, h.turn), Conversation: strconv.Itoa(h.number), Concurrency: 1000, Messages: words("user", "")})
	h.under.Routed(slices.Clone(h.ids))
}

// end ends the turn under way with an answer, and a question after it.
func (h *held) end(answer int) {
	h.under.Ended(Result{OK: true, Worker: h.worker(), PromptTokens: len(h.ids), OutputTokens: answer, CachedTokens: h.cached, Bytes: 4 * answer})
	h.cached = len(h.ids) + answer
	for i := range answer + 40 {
		h.ids = append(h.ids, uint32(1<<31|h.number<<14|h.turn<<11|i))
	}
}

func (h *held) worker() uint64 { return uint64(11 * (1 + h.number%3)) }

// What the shadow of a lane keeps at 1,000 conversations is bounded by the workers' caches under all
// policies: once these are full, little more is kept for an hour, which is what is remembered of so
// many of the latest conversations. Blocks are eight times as long as an
// H200's, of the same caches, since hashing and comparing short ones takes the test minutes.
func TestMemoryIsBounded(t *testing.T) {
	const conversations, perSecond, blockTokens = 1000, 10, 256
	on(t, func(s *rig) {
		s.set(func(s *rig) {
			s.cluster.BlockTokens, s.cluster.CacheBlocks = new(float64(blockTokens)), new(float64(11119*32/blockTokens))
			s.cluster.Workers = append(s.cluster.Workers, api.Worker{ID: "33", Name: "pod-2"})
		})
		pass(2 * time.Second)
		heap := func() float64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return float64(m.HeapAlloc) / (1 << 20)
		}
		all, numbers := make([]held, conversations), 0
		for i := range all {
			all[i].ids = make([]uint32, 0, 9000)
		}
		grown := map[int]float64{}
		before := heap()
		var sent []*held // a second ago
		for second := range 60 * 60 {
			for _, h := range sent {
				h.under.FirstToken(h.worker())
			}
			sent = sent[:0]
			for i := range perSecond {
				h := &all[(second*perSecond+i)%conversations]
				if h.under != nil {
					h.end(700 + h.number%260)
				}
				h.next(s, &numbers)
				sent = append(sent, h)
			}
			pass(time.Second)
			if minute := second/60 + 1; second%60 == 59 && minute%20 == 0 {
				grown[minute] = heap() - before
				t.Logf("after %d minutes: %.1f MiB", minute, grown[minute])
			}
		}
		now := s.shadow()
		require.Empty(t, now.Message)
		assert.Zero(t, now.Lost)
		assert.InDelta(t, 60*perSecond, now.Requests, perSecond)
		assert.Less(t, grown[20], 64.)
		assert.Less(t, grown[40], grown[20]+4)
		assert.Less(t, grown[60], grown[20]+4)
	})
}
