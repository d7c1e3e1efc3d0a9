//go:build !unix

package selfcheck

import (
	"runtime/metrics"
	"time"
)

// cpuTime returns the runtime's estimate of the CPU time that the process has used so far.
func cpuTime() time.Duration {
	s := []metrics.Sample{{Name: "/cpu/classes/user:cpu-seconds"}}
	metrics.Read(s)
	return time.Duration(s[0].Value.Float64() * float64(time.Second))
}
