// Package lane joins one target with its workload, window, step, mode and
// baseline. It has three parts, each the only owner of what it says:
//
//   - [Lane] is the state machine of one target's runs: start, stop, settings of
//     the workload, mode, corpus, step. Nothing else changes run state.
//   - [Catalogue] holds what the lanes share: the display's settings and the
//     baselines. Nothing else changes those.
//   - [View] makes the snapshot and what else is shown. It changes nothing: a
//     snapshot is a function of what lanes, catalogue and measurements say.
//
// Locks: a Lane's lock guards its run state and is never held while a workload,
// a driver or the store is called and could wait. The step has a lock of its
// own, because the workload reports its numbers while holding its lock. The
// Catalogue's lock guards two values that are replaced as a whole; its writers
// queue on another one, which is held over the way to the store.
package lane
