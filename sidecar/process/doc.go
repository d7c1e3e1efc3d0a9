// Package process starts, watches and ends processes on this machine ([Start]), and keeps
// them running ([Child]). It signals only processes that it started, and on Linux none of
// them outlives this process, however that ends.
package process
