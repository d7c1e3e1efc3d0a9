// Package proof holds the statistics of trials against a system whose truth is known: the
// simulated cluster, in virtual time. Two equal routers must hardly ever differ, a true
// difference must be told, and intervals must hold the truth as often as they say. Its
// tests have the build tag verify, since they take minutes; BENCH=1 runs them at length.
package proof
