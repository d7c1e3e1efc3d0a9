// Package store keeps what must not be lost in one SQLite file: conversations,
// turns, steps, baselines, events and settings.
//
// What the workload produces is handed over without waiting: it enters a
// bounded queue, and one goroutine commits it in batches, at most 200 ms after
// it arrived on a disk that works. While the disk does not, the batch is tried
// again with growing pauses, the queue fills, and turns that no longer fit are
// counted as lost. What an operator changes (events, settings, baselines) is
// committed before the call returns.
//
// The file is in WAL mode with synchronous=FULL. A commit in WAL mode has been
// handed to the operating system, so that kill −9 loses nothing committed with
// either NORMAL or FULL. FULL also syncs the log at each commit: then a booth
// whose plug is pulled keeps its results, too. The price is at most ten syncs a
// second in a goroutine that nothing waits for.
//
// Reads have connections of their own and see what is committed, and only that.
package store
