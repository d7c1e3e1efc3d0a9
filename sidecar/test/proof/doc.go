// Package proof tests the statistics of trials with a system of known truth: the simulated cluster, in virtual time.
// Two equal routers are hardly ever called different, a true difference is found, and intervals cover the truth as
// often as stated. Its tests have the build tag verify, since they take minutes; BENCH=1 runs them at length.
package proof
