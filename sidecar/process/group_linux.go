package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup puts a child in its own process group. When this process ends, the child is killed, or stopped if it is a
// parent itself.
func ownGroup(parent bool) *syscall.SysProcAttr {
	parentDeathSignal := killSignal
	if parent {
		parentDeathSignal = stopSignal
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: parentDeathSignal}
}

// awaitEnd waits until a child has ended and leaves it unreaped, so that its pid and its group are not reused.
func awaitEnd(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
