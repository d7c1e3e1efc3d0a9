// Package whatif answers what-if questions with the simulated cluster, beside a
// measurement that it must not slow.
//
// A simulation is computed in a child process of the same program, so that the
// measurement shares neither scheduler nor garbage collector nor heap with it. The
// child runs at the lowest priority that the system has ([Work] sets it), on so many
// cores, in so much memory, and is the first that the kernel ends when memory is
// short. The parent kills it when the simulation is cancelled or nobody follows it any
// more; where the parent itself is gone, the child's standard input ends, and so does
// the child.
package whatif
