package sim

import "time"

// event is an action at a moment of virtual time.
type event struct {
	at     time.Duration
	serial uint64 // orders events of one moment: the lower serial, which was scheduled first, runs first
	action action
}

// action is the effect of an event. Pointers implement it, so that events are values without allocations.
type action interface{ run() }

func (e *event) before(other *event) bool {
	return e.at < other.at || e.at == other.at && e.serial < other.serial
}

// clock holds the virtual time and the pending events. Its zero value is at time zero, without events.
type clock struct {
	now    time.Duration
	serial uint64
	queue  []event // a binary heap, the earliest first
}

// schedule adds an event at a moment, now at the earliest.
func (c *clock) schedule(when time.Duration, a action) {
	c.serial++
	e := event{at: max(when, c.now), serial: c.serial, action: a}
	c.queue = append(c.queue, e)
	i := len(c.queue) - 1
	for i > 0 && e.before(&c.queue[(i-1)/2]) {
		c.queue[i] = c.queue[(i-1)/2]
		i = (i - 1) / 2
	}
	c.queue[i] = e
}

// next returns the moment of the next event; false if there is none.
func (c *clock) next() (time.Duration, bool) {
	if len(c.queue) == 0 {
		return 0, false
	}
	return c.queue[0].at, true
}

// advance runs all events up to a moment and sets the clock to it.
func (c *clock) advance(until time.Duration) {
	for len(c.queue) > 0 && c.queue[0].at <= until {
		e := c.pop()
		c.now = e.at
		e.action.run()
	}
	c.now = max(c.now, until)
}

// pop removes and returns the earliest event.
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

// milliseconds converts a number of milliseconds to a duration.
func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
