// Package stats computes figures from ended turns: the window of the last 60 s with its
// percentiles, the rate of output tokens, totals, and the Prometheus metrics.
//
// Percentiles of TTFT, TPOT and latency are exact, from the samples. Inter-token latencies
// are too many for that. They are counted in log-linear buckets, one set a second, whose
// percentiles are at most 0.4 % off. Snapshot and scrape use the same structures, so that
// they agree.
//
// A turn belongs to the step in which it ends, once the last turn from before the step settled has ended. Which turns
// are left out does not depend on their length: turns that had to begin and end within a step were 3 to 7 % too short
// in its first minute on the simulated cluster, those that count by their end are as long as all, within 1 %. A first
// token counts at its own time, so that a TTFT waits for the end of no answer.
//
// All times are seconds, all ratios 0 to 1. Types are safe for concurrent use unless their
// comment says otherwise.
package stats
