// Package live keeps a [shadow.Shadow] beside the turns of a lane while they run.
//
// Turns tell it what happens to them from their own goroutines, which only put a note into
// a queue; everything else is done by one goroutine, [Live.Run]. The queue is bounded by
// the turns in it: one that finds it full is not followed, and counted as lost.
//
// The account is a little behind: see [shadow.Feed].
package live
