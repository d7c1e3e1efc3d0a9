// Package live keeps a [shadow.Shadow] beside the turns of a lane while they run.
//
// Turns tell it what happens to them from their own goroutines, which only put a note into
// a queue; everything else is done by one goroutine, [Live.Run]. The queue is bounded by
// the turns in it: one that finds it full is not followed, and counted as lost.
//
// Turns of other processes are told by these once a second, from their [Notes], with the blocks of
// their prompts. They wait in the account until all have told of the same time, so that they come in
// the order in which they happened: it is about two seconds more behind.
//
// The account is a little behind: see [shadow.Sequencer].
package live
