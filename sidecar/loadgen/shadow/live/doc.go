// Package live maintains a [shadow.Shadow] for the turns of a lane while they run.
//
// Turns report their events from their own goroutines, which only add them to a queue. One
// goroutine, [Live.Run], does everything else. The queue is bounded by the number of turns in it:
// a turn that finds it full is not followed, and counts as lost.
//
// The account lags slightly: see [shadow.Sequencer].
package live
