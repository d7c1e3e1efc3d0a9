package arrival

import "time"

// Constant begins a conversation at equal intervals, however many are in progress. It makes up for those that are late.
type Constant struct {
	interval time.Duration
	next     time.Duration
}

var _ Process = (*Constant)(nil)

// NewConstant returns a process with a rate per second, more than 0, whose first conversation begins at a moment.
func NewConstant(from time.Duration, rate float64) *Constant {
	return &Constant{interval: time.Duration(float64(time.Second) / rate), next: from}
}

// Next implements [Process].
func (c *Constant) Next(State) (at time.Duration, ok bool) { return c.next, true }

// Begin implements [Process].
func (c *Constant) Begin(State) { c.next += c.interval }

// Surplus implements [Process].
func (c *Constant) Surplus(State) bool { return false }

// Settled implements [Process]: the load is what it is set to from its beginning on.
func (c *Constant) Settled(State) bool { return true }
