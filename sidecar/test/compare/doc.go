// Package compare compares three things on one workload: the core of the simulated cluster in virtual time (package
// closedloop); the same core over HTTP, with the load generator's own workload and client; and a real NVIDIA Dynamo
// with mock workers. It prints their figures beside the recorded results.
//
// A small comparison of live and core is part of the suite; that of the demo's size needs the build tag compare. Both
// run in virtual time. The comparison with a real Dynamo, behind the same tag, takes wall time and an idle machine:
// without enough CPU, Dynamo's tokens are late, and it routes otherwise. Both of its sides use the same profile.
// Figures of the router's decisions have bounds: hit rate, the share of turns that return to their worker, and how
// unevenly requests are spread. Timing has none, since the mock workers model less of a GPU than the simulation does;
// the recorded results are the reference for it.
package compare
