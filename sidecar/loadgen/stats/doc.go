// Package stats computes figures from ended turns: the window of the last 60 s with its
// percentiles, the rate of output tokens, totals, and the Prometheus metrics.
//
// Percentiles of TTFT, TPOT and latency are exact, from the samples. Inter-token latencies
// are too many for that. They are counted in log-linear buckets, one set a second, whose
// percentiles are at most 0.4 % off. Snapshot and scrape use the same structures, so that
// they agree.
//
// All times are seconds, all ratios 0 to 1. Types are safe for concurrent use unless their
// comment says otherwise.
package stats
