// Package store keeps conversations, turns, steps, baselines, events and settings
// in one SQLite file.
//
// Records of the workload are saved without waiting: they enter a bounded queue,
// and one goroutine commits them in batches, at most 200 ms after their arrival
// while the disk works. While it fails, the batch is retried with growing pauses,
// the queue fills, and turns that no longer fit are counted as lost. Changes by
// an operator (events, settings, baselines) are committed before the call returns.
//
// The file is in WAL mode with synchronous=FULL. A commit in WAL mode has been
// handed to the operating system, so that kill −9 loses nothing committed with
// either NORMAL or FULL. FULL also syncs the log at each commit, so that results
// survive a power failure. The price is at most ten syncs a second, in a goroutine
// that no measurement waits for.
//
// Reads have their own connections and see only what is committed.
package store
