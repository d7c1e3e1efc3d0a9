// Package live maintains a [shadow.Shadow] for the turns of a lane while they run.
//
// Turns report their events from their own goroutines, which only add them to a queue. One
// goroutine, [Live.Run], does everything else. The queue is bounded by the number of turns in it:
// a turn that finds it full is not followed, and counts as lost.
//
// Other processes record the events of their turns with a [Recorder], and send a [Report] with the
// blocks of the prompts once a second. Their events wait until all processes have reported the same
// time, and are then processed in order. The account lags by about two seconds more.
//
// The account lags slightly: see [shadow.Sequencer].
package live
