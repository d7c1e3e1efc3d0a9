package study_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"
)

// A whole grid: seven levels in two modes with six seeds, on two goroutines.
func BenchmarkGrid(b *testing.B) {
	g := study.Grid{
		Cluster: sim.DefaultOptions(sim.H200()), Workload: closedloop.Recorded(),
		Levels: []int{60, 80, 100, 120, 140, 160, 180}, Modes: []api.Mode{api.ModeKV, api.ModeRoundRobin}, Seeds: []uint64{1, 2, 3, 4, 5, 6},
	}
	for b.Loop() {
		_, err := g.Run(context.Background(), 2, nil)
		require.NoError(b, err)
	}
}
