//go:build unix

package main

import (
	"math"
	"syscall"
)

// openFileLimit is how many files this process may open. The Go runtime has raised
// it as far as the system lets it.
func openFileLimit() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int(min(l.Cur, math.MaxInt32))
}
