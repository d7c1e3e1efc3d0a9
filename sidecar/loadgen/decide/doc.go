// Package decide compares arms on blocks of spans: which arm is better, which may be the best, and how large the
// difference is. One method serves two arms and more. The package has no I/O, no clock and no goroutine, and its
// functions keep nothing between calls.
//
// A trial runs whole blocks. [Order] gives the runs of a block from the seed. The caller measures each run, takes its
// values by [Sample], and appends a [Block]. [Decide] computes everything again from the blocks so far, so a trial
// that stores its blocks needs no other state:
//
//	plan := decide.Plan{Arms: 2, Metrics: metrics, Alpha: .05, Margin: .05, MaxSeconds: 3600}
//	decision := decide.Decide(plan, nil)
//	for !decision.Verdict.Over() {
//		runs := decide.Order(seed, decision.Left, len(blocks))
//		blocks = append(blocks, measure(runs))
//		decision = decide.Decide(plan, blocks)
//	}
//
// A run is repeated for faults of the client or of the switch alone, never for what the target did: a failed turn is an
// observation. docs/statistics.md has the formulas with their sources and the error rates on simulated spans.
package decide
