// Package proof decides from measured spans which of two routing modes is better. It
// contains only the statistics: no clock, no I/O, no goroutine. The caller runs the spans,
// adds their turns and reads the result.
//
//   - [Trial] compares two modes at one concurrency, in turns, until that is decided.
//   - [Sweep] measures levels in modes.
//   - [Compare] compares two results, and [CompareSweep] the modes of a sweep.
//   - [Recording.Row] gives the figures of one span with intervals, [MeanRow] those of several.
//
// Every method is named with its source where it stands, and in docs/statistics.md.
//
// Times are in seconds, those of a span since its beginning. Nothing here is safe for
// concurrent use, and equal input gives equal output.
package proof
