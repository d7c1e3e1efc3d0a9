// Package lane joins one target with its workload, window, step, mode and
// baseline. It has three parts, each the only owner of its data:
//
//   - [Lane] is the state machine of one target's runs: start, stop, settings of
//     the workload, mode, corpus, step. Nothing else changes run state.
//   - [Catalog] holds what the lanes share: the display's settings and the
//     baselines. Nothing else changes those.
//   - [View] builds the snapshot and the other documents that are shown. It
//     changes nothing: a snapshot is a function of lanes, catalog and measurements.
//
// Locks: a Lane's lock guards its run state. It is never held during a call of a
// workload, a driver or the store that could block. The step has its own lock,
// because the workload reports its numbers while holding its own lock. The
// Catalog's lock guards two values that are replaced as a whole. Its writers
// queue on a second lock, which is held until the store has committed.
package lane
