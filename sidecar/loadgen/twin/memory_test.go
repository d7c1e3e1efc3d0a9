//go:build !race

package twin

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// talk holds conversations on one lane: each slot has one, whose turns end one after the other.
type talk struct {
	next  int64
	slots []struct {
		conversation int64
		turn, of     int
	}
}

// end ends the turn of a slot, and says which one that was.
func (l *talk) end(slot int) (conversation int64, number int) {
	s := &l.slots[slot]
	if s.turn == s.of {
		s.conversation, s.turn, s.of = l.next, 0, 3+int(l.next%3)
		l.next++
	}
	s.turn++
	return s.conversation, s.turn
}

// What is kept of the turns of two lanes at 1,000 conversations and the usual cap of 25 turns a
// second is bounded: it grows with the hour that figures reach back, to less than 4 MiB, and no more
// after that, though one conversation in fifty fails on one lane and its turns wait in vain.
func TestMemoryIsBounded(t *testing.T) {
	const conversations, perSecond = 1000, 25
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	before := heap()
	var m matcher
	m.begin(setting{concurrency: conversations})
	var lanes [2]talk
	for i := range lanes {
		lanes[i].slots = make([]struct {
			conversation int64
			turn, of     int
		}, conversations)
	}
	grown := map[int]float64{}
	for second := range 120 * 60 {
		at := noon.Add(time.Duration(second) * time.Second)
		for i := range perSecond {
			for side := range lanes {
				k, number := lanes[side].end((second*perSecond + i) % conversations)
				if side == 0 || k%50 != 0 {
					m.add(side, turn(k, number, at.Add(time.Duration(20*side)*time.Second)))
				}
			}
		}
		if minute := second/60 + 1; second%60 == 59 && minute%20 == 0 {
			_ = m.pairs.Differences()
			grown[minute] = heap() - before
			t.Logf("after %d minutes: %.1f MiB, %d pairs, %d turns without a counterpart", minute, grown[minute], m.pairs.N(), m.left())
		}
	}
	assert.Greater(t, m.pairs.N(), 80_000, "an hour of it")
	assert.Less(t, grown[60], 4.)
	assert.Less(t, grown[120], grown[80]+.5)
	runtime.KeepAlive(&m)
}
