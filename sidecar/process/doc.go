// Package process starts, supervises and ends processes on this machine ([Start], [Child]). It signals only processes
// that it started. On Linux, none of them outlives this process, not even after a crash. [Run] is different: what its
// program leaves running goes on.
package process
