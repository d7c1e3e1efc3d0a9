// Package decide compares arms on blocks of spans: which arm is better, which may be the best, and how large the
// difference is. One method serves two arms and more. The package has no I/O, no clock and no goroutine, and its
// functions keep no state between calls.
//
// A trial runs whole blocks. [Order] returns the runs of a block from the seed. The caller measures each run, computes
// its values by [Sample], and appends a [Block]. [Decide] recomputes the decision from all blocks, so a trial that
// stores its blocks needs no other state:
//
//	plan := decide.Plan{Arms: 2, Metrics: metrics, Alpha: 0.05, Margin: 0.05, MaxSeconds: 3600}
//	decision := decide.Decide(plan, nil)
//	for !decision.Verdict.Over() {
//		runs := decide.Order(seed, decision.Left, len(blocks))
//		blocks = append(blocks, measure(runs))
//		decision = decide.Decide(plan, blocks)
//	}
//
// A run is repeated only for faults of the client or of the switch, never for those of the target: a failed turn is an
// observation. docs/statistics.md has the formulas with their sources and the error rates on simulated spans.
package decide
