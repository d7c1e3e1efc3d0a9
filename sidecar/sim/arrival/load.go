package arrival

import (
	"time"

	"kvbooth/sidecar/api"
)

// Load is what a load is set to.
type Load struct {
	Level     api.Level
	StartRate float64  // of a number of conversations: most that begin in a second; 0: no limit
	Schedule  Schedule // of a rate

	// Over is the time in which a rate changes evenly from From per second to the level; 0: it has it at once.
	From float64
	Over time.Duration

	Times Times   // at a rate, the moments in place of a schedule; nil: there are none
	Speed float64 // multiple of the speed of Times
}

// Process returns the process of the load from now on. The process of before goes on where it is of the same kind.
// begun is the number of conversations so far.
func (l Load) Process(now time.Duration, before Process, begun int64) Process {
	if l.Level.Kind == api.Rate && l.Times != nil {
		if t, ok := before.(*Trace); ok {
			t.Set(now, l.Speed)
			return t
		}
		return NewTrace(now, begun, l.Speed, l.Times)
	}
	if l.Level.Kind == api.Rate {
		rate := Ramp{l.From, l.Level.Value, l.Over}
		if o, ok := before.(*Open); ok && o.schedule == l.Schedule {
			o.Set(now, rate)
			return o
		}
		return NewOpen(now, begun, rate, l.Schedule)
	}
	if c, ok := before.(*ClosedLoop); ok {
		c.Set(now, l.Level.Conversations(), l.StartRate)
		return c
	}
	return NewClosedLoop(l.Level.Conversations(), l.StartRate)
}
