// Package whatif answers what-if questions with the simulated cluster, without slowing a
// measurement that runs at the same time.
//
// A simulation is computed in a child process of the same program, so that it shares neither
// scheduler nor garbage collector nor heap with the measurement. The child runs at the lowest
// priority of the system ([Work] sets it), with a limit on cores and memory, and is the first
// process that the kernel ends when memory is short. The parent kills it when the simulation is
// canceled or has no follower. If the parent exits, the child's standard input ends, and the
// child exits.
package whatif
