//go:build unix && !linux

package whatif

import "syscall"

// standBack makes this process the last that gets a core.
func standBack() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) }

// stepForward does nothing: nice processes get a share of the cores.
func stepForward(int) {}
