//go:build !unix

package process

import (
	"os"
	"syscall"
)

type signal = os.Signal

// There is no way to ask a process to end here, nor are there process groups.
var (
	stopSignal = os.Kill
	killSignal = os.Kill
)

func ownGroup(bool) *syscall.SysProcAttr { return nil }

func awaitEnd(int) bool { return false }

func signalGroup(pid int, s signal) {
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Signal(s)
	}
}
