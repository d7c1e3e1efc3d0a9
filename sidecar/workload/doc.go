// Package workload keeps a number of multi-turn conversations in progress.
//
// It is a closed loop: a conversation that ends is replaced at once, and a turn
// is sent when the one before it has ended. New conversations start at a
// bounded rate, so that a jump of the concurrency does not become one burst of
// prefills; fewer conversations are reached by retiring them at their next turn
// boundary. Coordinated omission does not arise in a closed loop: there is no
// intended send time to be late for.
//
// What conversation k is like (its starter, its number of turns, the lengths of
// its answers) depends on the seed and k alone.
package workload
