// Package members kills members, the coordinator and their NATS server repeatedly, behind the build tag members. All
// are processes of their own, under load with the simulated cluster, which records the requests of each process. The
// test compares what was acknowledged with what is stored, and measures the duration of each recovery.
package members
