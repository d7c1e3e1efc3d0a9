//go:build !unix

package process

import (
	"os"
	"syscall"
)

type signal = os.Signal

// This system has no stop signal and no process groups.
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
