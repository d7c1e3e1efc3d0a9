// Package workload keeps a number of multi-turn conversations in progress.
//
// It is a closed loop: a conversation that ends is replaced at once, and a turn is
// sent when the previous turn has ended. New conversations start at a bounded rate,
// so that a jump of the concurrency does not become one burst of prefills. When the
// concurrency is lowered, conversations are retired at their next turn boundary.
// Coordinated omission does not arise in a closed loop: there is no intended send
// time to be late for.
//
// The next question is generated from the end of an answer on, during the think
// time, and before the turn is queued for sending. No figure of a turn contains the
// time that this takes.
//
// The properties of conversation k (its starter, its number of turns, the lengths of
// its answers) depend only on the seed, k and the corpus.
package workload
