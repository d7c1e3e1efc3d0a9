// Package workload holds multi-turn conversations with a target. A load of package
// arrival decides when they begin.
//
// At a number of conversations, one that ends is replaced at once. New ones start at a
// bounded rate, so that a higher number does not become one burst of prefills. When
// the number is lowered, conversations are retired at their next turn boundary. At a
// rate, they begin at the moments of a schedule, from which their latencies count.
//
// The next question is generated from the end of an answer on, during the think
// time, and before the turn is queued for sending. No figure of a turn contains the
// time that this takes.
//
// The properties of conversation k (its starter, its number of turns, the lengths of
// its answers) depend only on the seed, k and the corpus.
package workload
