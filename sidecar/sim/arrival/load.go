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
}

// Process returns the process of the load from now on. The process of before goes on where it is of the same kind.
// begun is the number of conversations so far.
func (l Load) Process(now time.Duration, before Process, begun int64) Process {
	if l.Level.Kind == api.Rate {
		if o, ok := before.(*Open); ok && o.schedule == l.Schedule {
			o.Set(now, l.Level.Value)
			return o
		}
		return NewOpen(now, begun, l.Level.Value, l.Schedule)
	}
	if c, ok := before.(*ClosedLoop); ok {
		c.Set(now, l.Level.Conversations(), l.StartRate)
		return c
	}
	return NewClosedLoop(l.Level.Conversations(), l.StartRate)
}
