// Package sweeps runs trials, sweeps of levels and capacity searches as the load generator
// does: lane, runner and store are the real ones, and the cluster is the model of one, in virtual
// time. Behind the build tag booth, it does so with the real programs, and kills one of them.
package sweeps
