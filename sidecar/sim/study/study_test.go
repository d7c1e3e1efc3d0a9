package study

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/arrival"
	"kvbooth/sidecar/sim/closedloop"
)

func grid(levels ...int) Grid {
	return Grid{
		Cluster: sim.DefaultOptions(sim.H200()), Workload: closedloop.Recorded(), Levels: api.LevelsOf(levels...),
		Modes: []api.Mode{api.ModeKV, api.ModeRoundRobin}, Seeds: []uint64{1, 2},
	}
}

func TestRunIndependentOfGoroutines(t *testing.T) {
	g := grid(20, 60)
	var counts []int
	points, err := g.Run(t.Context(), 2, func(_ Point, n int) { counts = append(counts, n) })
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8}, counts)
	again, err := g.Run(t.Context(), 1, nil)
	require.NoError(t, err)
	assert.Equal(t, again, points, "the points on one goroutine and on two")
	for i, at := range []struct {
		level int
		mode  api.Mode
	}{{20, api.ModeKV}, {20, api.ModeRoundRobin}, {60, api.ModeKV}, {60, api.ModeRoundRobin}} {
		p := points[i]
		assert.Equal(t, at.level, p.Level.Conversations())
		assert.Equal(t, at.mode, p.Mode)
		assert.Len(t, p.Runs, 2)
		low, high := p.Band(closedloop.Fields[0])
		mean := p.Mean()
		assert.LessOrEqual(t, low, mean.TTFT50)
		assert.GreaterOrEqual(t, high, mean.TTFT50)
		t.Logf("%v %s %+v", p.Level, p.Mode, mean)
	}
}

// TestLeadInMatchesSweep compares a level after a lead-in with the same level in a sweep and on a new cluster, where
// all conversations are in step.
func TestLeadInMatchesSweep(t *testing.T) {
	p95 := func(leadIn bool, levels ...int) float64 {
		g := grid(levels...)
		g.Modes, g.Sweep, g.LeadIn = []api.Mode{api.ModeKV}, true, leadIn
		points, err := g.Run(t.Context(), 2, nil)
		require.NoError(t, err)
		require.Equal(t, api.AtConversations(150), points[len(points)-1].Level)
		mean := points[len(points)-1].Mean()
		return mean.TTFT95
	}
	sweep, alone, led := p95(false, 40, 80, 120, 150), p95(false, 150), p95(true, 150)
	t.Logf("TTFT p95: %.2f s in a sweep, %.2f s alone, %.2f s behind a level", sweep, alone, led)
	assert.InEpsilon(t, sweep, led, .25)
	assert.Greater(t, alone, 1.5*led)
}

// Growth that is less than chance in each run is found in all of them together. Then no run has latencies.
func TestOverloadOfAllRunsTogether(t *testing.T) {
	found := 0
	runs := func(drift float64) Point {
		p := Point{Level: api.AtRate(1)}
		for seed := range uint64(6) {
			r := rand.New(rand.NewPCG(seed, 1))
			f, active := closedloop.Figures{TTFT50: 1}, 60.
			for range 360 {
				active += drift + r.NormFloat64()
				f.Active = append(f.Active, active)
			}
			if arrival.Grows(f.Active) {
				found++
			}
			p.Runs = append(p.Runs, f)
		}
		p.judge()
		return p
	}
	stable, growing := runs(0), runs(.11)
	assert.Less(t, found, 3, "of 12")
	assert.False(t, stable.Overloaded())
	assert.Equal(t, 1., stable.Runs[0].TTFT50)
	assert.True(t, growing.Overloaded())
	assert.True(t, math.IsNaN(growing.Runs[0].TTFT50))
}
