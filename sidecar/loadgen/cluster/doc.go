// Package cluster reads the metrics of the serving cluster and switches it
// between routing modes.
//
// A [Watcher] reads raw samples once a second (every other second for a large
// cluster) from a [Source], keeps 60 s of every counter, and computes an
// [api.Cluster]. The source is Prometheus or the metrics pages themselves. Both
// go through the same computation, so a number means the same with either.
// Answers and numbers are bounded; the cluster's problem names what was left
// out. [Manual], [Pinned], [Simulated] and [Endpoints] are mode drivers.
//
// Worker ids are decimal strings outside this package. On the wire they are
// decimal or hexadecimal, depending on the process that wrote them, and a
// hexadecimal id may consist of digits alone. The metric therefore decides, not
// the value: see workerID.
package cluster
