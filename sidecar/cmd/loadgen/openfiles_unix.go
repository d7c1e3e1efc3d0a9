//go:build unix

package main

import (
	"math"
	"syscall"
)

// openFileLimit returns the number of files that this process may open. The Go runtime has raised it to the system's
// maximum.
func openFileLimit() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int(min(l.Cur, math.MaxInt32))
}
