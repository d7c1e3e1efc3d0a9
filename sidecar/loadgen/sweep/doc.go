// Package sweep runs trials, sweeps of levels and capacity searches on a lane. It takes the lane, runs
// the spans that the statistics of package proof require, and stores their results, so that a sweep
// continues with its next unfinished span after any end of the process.
//
//   - [Desk] holds the sweeps of a load generator. One runs at a time.
//   - A span is one run of the workload: a switch to its mode with cold caches, a start with its seed,
//     a warm-up, a counted part, a stop. It counts once all its turns are on the disk.
package sweep
