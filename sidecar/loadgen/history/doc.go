// Package history finds what changed between the runs of a history. It has no clock and no I/O.
package history
