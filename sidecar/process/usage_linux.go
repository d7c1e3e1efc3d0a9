package process

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// CPUTime returns the processor time that a child and the running processes of its group have taken, and that of its
// children which have ended.
func (p *Process) CPUTime() (time.Duration, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, fmt.Errorf("processor time of %s: %w", p.name, err)
	}
	const second = 100 // ticks, on every Linux that Go knows
	ticks := 0
	for _, one := range all {
		stat, err := one.Stat()
		if err != nil || stat.PGRP != p.PID() {
			continue // it has ended, or is another's
		}
		ticks += int(stat.UTime) + int(stat.STime)
		if stat.PID == p.PID() {
			ticks += stat.CUTime + stat.CSTime
		}
	}
	return time.Duration(ticks) * time.Second / second, nil
}

// CheckMemory returns an error if this machine has less available memory than a number of megabytes.
func CheckMemory(megabytes int) error {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return fmt.Errorf("available memory: %w", err)
	}
	m, err := fs.Meminfo()
	if err != nil || m.MemAvailableBytes == nil {
		return fmt.Errorf("available memory is not known: %w", err)
	}
	if free := int(*m.MemAvailableBytes >> 20); free < megabytes {
		return fmt.Errorf("%d MB of memory are available, and %d MB are needed", free, megabytes)
	}
	return nil
}
