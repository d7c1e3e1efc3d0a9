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
