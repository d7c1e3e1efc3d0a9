//go:build !linux

package process

import (
	"errors"
	"time"
)

// CPUTime returns an error: only Linux reports the processor time of a group.
func (p *Process) CPUTime() (time.Duration, error) {
	return 0, errors.New("the processor time of a program is read on Linux only")
}

// CheckMemory does nothing: this system's free memory is not read.
func CheckMemory(int) error { return nil }
