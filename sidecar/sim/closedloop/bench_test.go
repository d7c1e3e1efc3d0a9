package closedloop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

// Virtual seconds and virtual output tokens that a second of one core can simulate, of the
// recorded workload at sixty conversations a worker.
func BenchmarkLoop(b *testing.B) {
	for _, workers := range []int{1, 3, 10, 50, 200} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			const length = 360 * time.Second
			tokens := 0
			for b.Loop() {
				o := sim.DefaultOptions(sim.H200())
				o.Profile.Workers, o.Mode = workers, api.ModeKV
				w := closedloop.Recorded()
				w.Concurrency, w.StartRate = 60*workers, 3*float64(workers)
				l, err := closedloop.New(o, w)
				require.NoError(b, err)
				require.NoError(b, l.Run(length))
				for _, s := range l.Seconds() {
					tokens += s.Tokens
				}
			}
			b.ReportMetric(float64(b.N)*length.Seconds()/b.Elapsed().Seconds(), "virtual-s/s")
			b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
