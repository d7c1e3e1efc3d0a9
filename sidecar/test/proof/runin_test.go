//go:build verify

package proof

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/stat"

	"kvbooth/internal/figure"
	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
)

// Where many openings warm the caches slowly, kv's effect is too small when the initial conversations have ended. It is
// not after a run-in that the hit rate ends: the longer one of both modes in a block, for spans of another block.
func TestRunInRemovesBiasOfColdCaches(t *testing.T) {
	t.Parallel()
	const blocks, late = 32, 500.
	for _, s := range []setting{{concurrency: 60}, {concurrency: 60, openings: 100}, {concurrency: 120, openings: 100}} {
		var settings []setting
		for i := range blocks {
			for _, mode := range []api.Mode{api.ModeRoundRobin, api.ModeKV} {
				s.mode, s.draws, s.system = mode, uint64(i+1), uint64(i+10_000)
				settings = append(settings, s)
			}
		}
		all := spans(t, 900, settings)
		var runIns []float64
		for i := range blocks {
			runIns = append(runIns, max(runIn(all[2*i]), runIn(all[2*i+1])))
		}
		effect := func(wait func(block int) float64, least float64) (mean, se float64) {
			var of []float64
			for i := range blocks {
				length := max(least, 2*wait(i))
				of = append(of, math.Log(ttft(all[2*i+1], wait(i), length)/ttft(all[2*i], wait(i), length)))
			}
			return stat.Mean(of, nil), stat.StdDev(of, nil) / math.Sqrt(blocks)
		}
		counted := 3 * latency(all[0], math.Inf(1))
		truth, se := effect(func(int) float64 { return late }, 900-late)
		before, seBefore := effect(func(int) float64 { return 0 }, counted)
		after, seAfter := effect(func(block int) float64 { return runIns[(block+1)%blocks] }, counted)
		figure.Report(t, "%d conversations, %d openings, %d blocks: log effect of kv %.3f ± %.3f, at once %.3f ± %.3f, "+
			"after run-ins of %.0f s (mean) %.3f ± %.3f", s.concurrency, max(10, s.openings), blocks, truth, se, before,
			seBefore, stat.Mean(runIns, nil), after, seAfter)
		assert.InDelta(t, truth, after, 3*(se+seAfter))
	}
}

// runIn returns the measured run-in of a span.
func runIn(r proof.Recording) float64 {
	at := r.CountedFrom
	for round := latency(r, math.Inf(1)); proof.HitRateRises(r.Turns, at, round) && at < r.Until-300; at += round {
	}
	return at - r.CountedFrom
}

// ttft returns the mean TTFT of a span from so many seconds after its warm-up on, for so long.
func ttft(r proof.Recording, wait, length float64) float64 {
	var all []float64
	for i := range r.Turns {
		if at := r.Turns[i].FirstToken() - r.CountedFrom; wait <= at && at < wait+length {
			all = append(all, r.Turns[i].TTFT)
		}
	}
	return stat.Mean(all, nil)
}
