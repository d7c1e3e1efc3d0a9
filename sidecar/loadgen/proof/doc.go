// Package proof decides from measured spans which of two routing modes is better. It contains only the statistics: no
// clock, no I/O, no goroutine. The caller runs the spans, adds their turns and reads the result.
//
//   - [Trial] compares two modes at one concurrency until a verdict is certain.
//   - [Sweep] measures several levels in several modes.
//   - [Capacity] finds the highest concurrency at which a mode meets the SLOs.
//   - [Compare] compares two results. [CompareSweep] compares the modes of a sweep.
//   - [Recording.Row] returns the figures of one span with intervals. [MeanRow] combines the figures of several spans.
//
// A trial looks after its second block at the earliest, unless earlier trials show how spans scatter: a single pair of
// spans cannot be distinguished from a restart. A search for capacity says *cannot be determined* where its interval
// reaches from nothing to no limit: p95 then changes too little with load, next to its scatter. Two lanes begin
// conversations in the order of their numbers, which are the time that they have in common, however far they drift
// apart; a batch of [Pairs] counts once a round after it has begun, when its conversations have ended.
//
// The comment of each statistical method cites its source. docs/statistics.md describes them together.
//
// All times are in seconds. Times within a span count from its beginning. The types are not safe for concurrent use.
// Equal input gives equal output.
package proof
