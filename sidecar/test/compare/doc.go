// Package compare holds three things against one another on one workload: the core of
// the simulated cluster, which runs in virtual time (package closedloop); the same core
// live, over HTTP, under the load generator's own workload and client; and a real NVIDIA
// Dynamo with mock workers. It prints what came of it side by side, beside the recorded
// results.
//
// Live and core are compared in the suite at a small size, and at that of the demo behind
// the build tag compare, in a bubble of virtual time both. The real Dynamo, behind the
// same tag, takes wall time and wants a quiet machine: one that lacks CPU is late with
// its tokens and so routes otherwise. Both sides are made from the same profile there.
// What the router decides is bounded: hit rate, the share of turns that return to their
// worker, and how unevenly requests are spread. Timing is not, since the mock workers know
// less of a GPU than the simulation does; the recorded results are the truth for it.
package compare
