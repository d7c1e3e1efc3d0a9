//go:build unix && !linux

package process

import "syscall"

func ownGroup(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitEnd cannot wait without reaping here.
func awaitEnd(int) bool { return false }
