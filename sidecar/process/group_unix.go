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

// detachedGroup returns the attributes of a process in a group of its own, which may leave processes running.
func detachedGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
