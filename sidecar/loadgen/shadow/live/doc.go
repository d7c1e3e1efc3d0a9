// Package live keeps a [shadow.Shadow] beside the turns of a lane while they run.
//
// Turns tell it what happens to them from their own goroutines, which only put a note into
// a queue; everything else is done by one goroutine, [Live.Run]. The queue is bounded by
// the turns in it: one that finds it full is not followed, and counted as lost.
//
// Which worker got a turn is known at its first token at the earliest, while the router
// counted the turn there from the moment it chose. So the account is kept a little
// behind: events wait, in the order in which they happened, until it is known for the
// first of them where its turn went.
package live
