// Package cluster knows what the serving cluster says of itself, and brings it
// from one routing mode to another.
//
// A [Watcher] reads raw samples once a second (of a large cluster, every other
// second) from a [Source], Prometheus or the metrics pages themselves, keeps 60 s of every counter, and computes an
// [api.Cluster]. Both sources go through the same computation, so that a number
// means the same with either. What is read and kept has bounds, and so has each
// number; what is left out is said in the cluster's problem. [Manual], [Pinned]
// and [Simulated] are mode drivers.
//
// Worker ids are decimal strings everywhere outside this package. On the wire
// they are decimal or hexadecimal, depending on who wrote them, and a
// hexadecimal id may happen to consist of digits alone. So the metric decides,
// never the look of the value: see workerID.
package cluster
