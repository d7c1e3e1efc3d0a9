package sim

import "time"

// event is something that happens at a moment of virtual time.
type event struct {
	at     time.Duration
	serial uint64 // of two at one moment, the one that was made first comes first
	what   happening
}

// happening is what an event is about: a pointer, so that events are values without
// allocations of their own.
type happening interface{ happen() }

func (e *event) before(other *event) bool {
	return e.at < other.at || e.at == other.at && e.serial < other.serial
}

// clock holds virtual time and what is to come. Its zero value stands at zero.
type clock struct {
	now    time.Duration
	serial uint64
	queue  []event // a binary heap, the earliest first
}

// at lets something happen at a moment, now at the earliest.
func (c *clock) at(when time.Duration, what happening) {
	c.serial++
	e := event{at: max(when, c.now), serial: c.serial, what: what}
	c.queue = append(c.queue, e)
	i := len(c.queue) - 1
	for i > 0 && e.before(&c.queue[(i-1)/2]) {
		c.queue[i] = c.queue[(i-1)/2]
		i = (i - 1) / 2
	}
	c.queue[i] = e
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
		e := c.pop()
		c.now = e.at
		e.what.happen()
	}
	c.now = max(c.now, until)
}

// pop takes the earliest event.
func (c *clock) pop() event {
	first, n := c.queue[0], len(c.queue)-1
	e := c.queue[n]
	c.queue[n] = event{}
	c.queue = c.queue[:n]
	for i := 0; n > 0; {
		child := 2*i + 1
		if child+1 < n && c.queue[child+1].before(&c.queue[child]) {
			child++
		}
		if child >= n || e.before(&c.queue[child]) {
			c.queue[i] = e
			break
		}
		c.queue[i] = c.queue[child]
		i = child
	}
	return first
}

// milliseconds is a duration from a number of them.
func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
