//go:build unix

package process

import "syscall"

type signal = syscall.Signal

const (
	stopSignal = syscall.SIGTERM
	killSignal = syscall.SIGKILL
)

// signalGroup signals a process group. A group that has ended is not an error.
func signalGroup(pid int, s signal) { _ = syscall.Kill(-pid, s) }
