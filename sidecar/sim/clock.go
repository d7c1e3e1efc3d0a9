package sim

import (
	"container/heap"
	"time"
)

// event is something that happens at a moment of virtual time.
type event struct {
	at     time.Duration
	serial uint64 // of two at one moment, the one that was made first comes first
	run    func()
}

// clock holds virtual time and what is to come. Its zero value stands at zero.
type clock struct {
	now    time.Duration
	serial uint64
	queue  eventQueue
}

// at lets something happen at a moment, now at the earliest.
func (c *clock) at(when time.Duration, run func()) {
	c.serial++
	heap.Push(&c.queue, event{at: max(when, c.now), serial: c.serial, run: run})
}

// next is the moment of the next event; false without one.
func (c *clock) next() (time.Duration, bool) {
	if len(c.queue) == 0 {
		return 0, false
	}
	return c.queue[0].at, true
}

// advance runs all events up to a moment, which is the present one afterwards.
func (c *clock) advance(until time.Duration) {
	for len(c.queue) > 0 && c.queue[0].at <= until {
		e := heap.Pop(&c.queue).(event)
		c.now = e.at
		e.run()
	}
	c.now = max(c.now, until)
}

// eventQueue is a [heap.Interface].
type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].serial < q[j].serial
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(e any)   { *q = append(*q, e.(event)) }
func (q *eventQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = event{}
	*q = (*q)[:last]
	return e
}

// milliseconds is a duration from a number of them.
func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
