package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup puts a child in a process group of its own and has it killed when this
// process ends, or asked to end if it is a parent itself.
func ownGroup(parent bool) *syscall.SysProcAttr {
	death := killSignal
	if parent {
		death = stopSignal
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: death}
}

// awaitEnd waits until a child has ended and leaves it unreaped, so that its pid
// and its group still belong to it.
func awaitEnd(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
