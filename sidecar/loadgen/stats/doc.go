// Package stats turns ended turns into figures: the window of the last 60 s with
// its percentiles, the rate of output tokens, totals, and the Prometheus metrics.
//
// TTFT, TPOT and latency percentiles are exact, from the samples. Inter-token
// latencies are too many for that; they go into log-linear buckets, one set a
// second, whose percentiles are at most 0.4 % off. The snapshot and the scrape
// read the same structures, so that they agree.
//
// All times are seconds, all ratios 0 to 1. Everything here is safe for
// concurrent use unless it says otherwise.
package stats
