package arrival

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// starts runs a process until a moment, looking at it with a granularity, and returns the moments of the beginnings.
func starts(p Process, from, until, granularity time.Duration, active func(n int) int) (all []time.Duration) {
	for now := from; now < until; {
		s := State{Now: now, Active: active(len(all))}
		if at, ok := p.Next(s); ok && at <= now {
			p.Begin(s)
			all = append(all, now)
			continue
		}
		now += granularity
	}
	return all
}

func held(n int) int { return n }
func none(int) int   { return 0 }

// A closed loop fills up at its rate and then stays, with any granularity of its clock. It is settled at its number.
func TestClosedLoop(t *testing.T) {
	l := NewClosedLoop(5, 2)
	all := starts(l, 0, time.Minute, 10*time.Millisecond, held)
	assert.Equal(t, []time.Duration{0, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 2 * time.Second}, all)
	assert.True(t, l.Settled(State{Active: 5}))
	assert.False(t, l.Settled(State{Active: 4}))
	assert.False(t, l.Surplus(State{Active: 5}))
	assert.True(t, l.Surplus(State{Active: 6}))
	for _, rate := range []float64{1, 50, 1000} {
		n := len(starts(NewClosedLoop(1e6, rate), 0, 10*time.Second, 3*time.Millisecond, none))
		assert.InDelta(t, 10*rate, float64(n), max(2, .14*10*rate), "%v conversations/s", rate)
	}
	assert.Len(t, starts(NewClosedLoop(1000, 0), 0, time.Millisecond, time.Millisecond, held), 1000, "without a rate")
}

// A pause in which none was missing is not made up for.
func TestClosedLoopAfterAPause(t *testing.T) {
	l := NewClosedLoop(1e6, 10)
	l.Begin(State{Now: 0})
	assert.Len(t, starts(l, time.Hour, time.Hour+time.Second, time.Millisecond, none), 10)
}

// Another rate applies to the wait in progress.
func TestClosedLoopSetAnew(t *testing.T) {
	l := NewClosedLoop(10, .1)
	l.Begin(State{Now: 0})
	l.Set(5*time.Second, 10, 1) // half of the interval is left
	at, ok := l.Next(State{})
	assert.Equal(t, 5500*time.Millisecond, at)
	assert.True(t, ok)
	l.Set(5*time.Second, 0, 0)
	at, ok = l.Next(State{})
	assert.Equal(t, 5*time.Second, at, "without a limit, at once")
	assert.False(t, ok, "none is missing")
}

// A constant rate goes on whatever is in progress, and makes up for what was late.
func TestConstant(t *testing.T) {
	c := NewConstant(time.Second, 4)
	assert.Len(t, starts(c, 0, 11*time.Second, 70*time.Millisecond, held), 40)
	assert.True(t, c.Settled(State{Active: 1000}))
	assert.False(t, c.Surplus(State{Active: 1000}))
	late := starts(c, 13*time.Second, 13*time.Second+time.Nanosecond, time.Millisecond, held)
	assert.Len(t, late, 9)
}
