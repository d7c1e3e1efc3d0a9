// Package arrival decides when conversations begin, for the live load and for simulated ones.
package arrival

import "time"

// State is the state of a load at a moment.
type State struct {
	Now    time.Duration // since any fixed moment; it does not decrease
	Active int           // conversations in progress
	Oldest int64         // number, from 0 in the order of arrival, of the oldest in progress; without one, of the next
}

// Process decides when the next conversation begins, and how many may be in progress. Each kind of load is one, in a
// file of its own. A Process is not safe for concurrent use.
type Process interface {
	// Next returns the earliest moment at which a conversation may begin. It may have passed. ok is false while none may
	// begin before the number of those in progress changes, or the process is set anew.
	Next(s State) (at time.Duration, ok bool)
	// Begin records that a conversation begins at s.Now, when Next allows it. It returns when it was to begin: its
	// latencies count from then.
	Begin(s State) (intended time.Duration)
	// Surplus reports whether a conversation ends before its next turn, since too many are in progress.
	Surplus(s State) bool
	// Waits reports whether conversations wait for others to end, and for a server that fails. If not, they come whatever
	// the server does.
	Waits() bool
	// Settled reports whether the load is what the process is set to.
	Settled(s State) bool
}
