// Package compare holds the same seeded conversations against the simulated cluster
// and against a real NVIDIA Dynamo with mock workers, and prints what came of it side
// by side, beside the recorded results. Its test has the build tag compare.
//
// Both clusters are made from the same profile. What the router decides is bounded:
// hit rate and the share of turns that return to their worker must agree. Timing is
// not, since the mock workers know less of a GPU than the simulation does; the
// recorded results are the truth for it.
package compare
