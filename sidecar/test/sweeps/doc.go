// Package sweeps runs trials, sweeps of levels and capacity searches with the real lane, runner and store of the load
// generator, and the model of a cluster in virtual time. Behind the build tag booth, it runs them with the real
// programs, and kills one of them.
package sweeps
