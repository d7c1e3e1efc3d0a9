// Package proof decides from measured spans which of two routing modes is better. It contains only the statistics: no
// clock, no I/O, no goroutine. The caller runs the spans, adds their turns and reads the result.
//
//   - [Trial] compares two modes at one concurrency until a verdict is certain.
//   - [Sweep] measures several levels in several modes.
//   - [Capacity] finds the highest concurrency at which a mode meets the SLOs.
//   - [Compare] compares two results. [CompareSweep] compares the modes of a sweep.
//   - [Recording.Row] returns the figures of one span with intervals. [MeanRow] combines the figures of several spans.
//
// The comment of each statistical method cites its source. docs/statistics.md describes them together.
//
// All times are in seconds. Times within a span count from its beginning. The types are not safe for concurrent use.
// Equal input gives equal output.
package proof
