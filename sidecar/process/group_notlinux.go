//go:build unix && !linux

package process

import "syscall"

func ownGroup(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitEnd returns false, because this system cannot wait without reaping.
func awaitEnd(int) bool { return false }
