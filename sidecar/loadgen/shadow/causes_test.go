package shadow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Prompts of ten blocks and five tokens find, miss and lose blocks in ways that are known. What became of their tokens
// adds up.
func TestCausesAddUp(t *testing.T) {
	s := start(t, func(o *Options) { o.Capacity = 20 })
	at := time.Duration(0)
	send := func(text uint64, worker uint64, cached int) *Flight {
		at += time.Minute
		f := s.Begin(at, Request{Blocks: path(text, 4, 10), PromptTokens: 105, Worker: s.workers[worker]})
		s.First(at+time.Second, f)
		if cached >= 0 {
			s.End(at+2*time.Second, f, 5, cached)
		}
		return f
	}
	want := Causes{}
	expect := func(change Causes) {
		t.Helper()
		want = Causes{
			Requests: want.Requests + 1, PromptTokens: want.PromptTokens + 105, Found: want.Found + change.Found,
			New: want.New + change.New, Remainder: want.Remainder + 5, Elsewhere: want.Elsewhere + change.Elsewhere,
			Spilled: want.Spilled + change.Spilled, Evicted: want.Evicted + change.Evicted,
			Unexplained: want.Unexplained + change.Unexplained,
		}
		assert.Equal(t, want, s.causes)
		sum := s.causes
		assert.Equal(t, sum.PromptTokens,
			sum.Found+sum.New+sum.Remainder+sum.Elsewhere+sum.Spilled+sum.Evicted+sum.Unexplained)
	}
	send(1, 0, 0)
	expect(Causes{New: 100})
	send(2, 0, 40) // the common opening
	expect(Causes{New: 60, Found: 40})
	send(2, 1, 0) // on a worker that has nothing of it
	expect(Causes{Elsewhere: 100})
	send(2, 1, 90) // the engine found less than it held
	expect(Causes{Found: 90, Unexplained: 10})
	send(3, 0, 40) // the cache of 20 blocks has to evict three others for its seven
	expect(Causes{New: 60, Found: 40})
	send(1, 0, 70)
	expect(Causes{Found: 70, Evicted: 30})
	busy := send(4, 0, -1)
	send(3, 1, 40) // its other blocks are on a worker with a request in progress
	expect(Causes{Found: 40, Spilled: 60})
	s.End(at, busy, 5, 40)
}
