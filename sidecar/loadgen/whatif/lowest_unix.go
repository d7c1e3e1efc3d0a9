//go:build unix && !linux

package whatif

import "syscall"

// standBack makes this process the last that gets a core.
func standBack() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) }
