//go:build verify

package proof

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/test/montecarlo"
	"kvbooth/sidecar/test/virtual"
)

// Where many openings warm the caches slowly, kv's effect is too small when the initial conversations have ended. It is
// not after a run-in that the hit rate ends: the longer one of both modes in a block, for spans of another block.
func TestRunInRemovesBiasOfColdCaches(t *testing.T) {
	t.Parallel()
	const blocks, late = 32, 500.
	montecarlo.Run(t, "run-in", map[string]virtual.Setting{
		"60 conversations, 10 openings":   {Concurrency: 60},
		"60 conversations, 100 openings":  {Concurrency: 60, Openings: 100},
		"120 conversations, 100 openings": {Concurrency: 120, Openings: 100},
	}, func(t *testing.T, s virtual.Setting, r *montecarlo.Results) {
		var settings []virtual.Setting
		for i := range blocks {
			for _, mode := range []api.Mode{api.ModeRoundRobin, api.ModeKV} {
				s.Mode, s.Draws, s.System, s.Ramped = mode, uint64(i+1), uint64(i+10_000), true
				settings = append(settings, s)
			}
		}
		all := spans(t, 900, settings)
		var runIns []float64
		for i := range blocks {
			runIns = append(runIns, max(runIn(all[2*i]), runIn(all[2*i+1])))
		}
		c, counted := r.Cell("log effect of kv"), 3*latency(all[0], math.Inf(1))
		for i := range blocks {
			effect := func(name string, wait, least float64) {
				length := max(least, 2*wait)
				mean := func(of proof.Recording) float64 {
					return stat.Mean(ttft(of, of.CountedFrom+wait, of.CountedFrom+wait+length), nil)
				}
				c.Mean(name, math.Log(mean(all[2*i+1])/mean(all[2*i])))
			}
			wait := runIns[(i+1)%blocks]
			effect("truth", late, 900-late)
			effect("at once", 0, counted)
			effect("after the run-in", wait, counted)
			c.Mean("run-in in seconds", wait)
		}
		assert.InDelta(t, c.Average("truth"), c.Average("after the run-in"), 3*(c.Error("truth")+c.Error("after the run-in")))
	})
}

// runIn returns the measured run-in of a span.
func runIn(r proof.Recording) float64 {
	at := r.CountedFrom
	for round := latency(r, math.Inf(1)); proof.HitRateRises(r.Turns, at, round) && at < r.Until-300; at += round {
	}
	return at - r.CountedFrom
}
