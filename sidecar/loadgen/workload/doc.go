// Package workload keeps a number of multi-turn conversations in progress.
//
// It is a closed loop: a conversation that ends is replaced at once, and a turn
// is sent when the one before it has ended. New conversations start at a
// bounded rate, so that a jump of the concurrency does not become one burst of
// prefills; fewer conversations are reached by retiring them at their next turn
// boundary. Coordinated omission does not arise in a closed loop: there is no
// intended send time to be late for.
//
// A user thinks of the next question while nothing waits for it: from the end of an
// answer on, together with the think time, and before the turn takes its place among
// those to be sent. However long that takes, no figure of a turn contains it.
//
// What conversation k is like (its starter, its number of turns, the lengths of
// its answers) depends on the seed, k and the corpus alone.
package workload
