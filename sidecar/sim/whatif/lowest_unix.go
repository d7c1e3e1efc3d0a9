//go:build unix && !linux

package whatif

import "syscall"

// lowerPriority gives this process the lowest priority.
func lowerPriority() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) }

// raisePriority does nothing: nice processes get a share of the cores.
func raisePriority(int) {}
