package closedloop_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

// What six minutes of the recorded workload under kv cost, by scale: virtual seconds and virtual
// output tokens that a second simulates, on one core besides what the garbage collector takes,
// and the memory that the process has had so far at most. -bench Loop/conversations=12000 tells it for that
// scale alone; -benchtime 1x is enough there.
func BenchmarkLoop(b *testing.B) {
	for _, scale := range []struct{ conversations, workers int }{{60, 3}, {180, 3}, {600, 10}, {3000, 50}, {12_000, 200}} {
		b.Run(fmt.Sprintf("conversations=%d/workers=%d", scale.conversations, scale.workers), func(b *testing.B) {
			tokens := 0
			for b.Loop() {
				o, w := sim.DefaultOptions(sim.H200()), closedloop.Recorded()
				o.Profile.Workers, w.Concurrency = scale.workers, scale.conversations
				w.StartRate = 10 * float64(scale.workers) / 3 // as recorded, for a worker
				l, err := closedloop.New(o, w)
				require.NoError(b, err)
				require.NoError(b, l.Run(closedloop.Length))
				for _, s := range l.Seconds() {
					tokens += s.Tokens
				}
			}
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			b.ReportMetric(float64(b.N)*closedloop.Length.Seconds()/b.Elapsed().Seconds(), "virtual-s/s")
			b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
			b.ReportMetric(float64(memory.Sys)/(1<<20), "MiB")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/run")
			b.ReportMetric(0, "ns/op")
		})
	}
}
