// Package sweep runs trials, sweeps of levels and capacity searches on a lane: it takes
// the lane, runs the spans that the statistics of package proof ask for, one after the
// other, and keeps what they showed, so that a sweep goes on with its next unfinished
// span whatever happened to the process.
//
//   - [Desk] holds the sweeps of a load generator: one runs at a time.
//   - A span is a run of the workload of its own: a switch to its mode with cold caches,
//     a start with its seed, a warm-up, a count, a stop. It counts once all its turns
//     are on the disk.
package sweep
