// Package lane joins one target with its workload, window, step, mode and
// baseline. It is the only place where run state changes, and the only one
// where a snapshot is made. A [Hub] holds the lanes of a process with what they
// share: settings, store, baselines, the client's verdict.
//
// Locks: a Lane's lock guards its run state and is never held while a workload,
// a driver or the store is called and could wait. The step has a lock of its
// own, because the workload reports its numbers while holding its lock.
package lane
