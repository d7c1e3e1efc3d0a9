package calibrate

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"
)

// samples are the figures of some rows: [row][seed].
type samples [][]closedloop.Figures

// runner simulates rows.
type runner struct {
	seeds, goroutines int
	on                func(Progress)
	total             int // runs so far
}

// run simulates all rows with each profile: every seed of a row in one task, as many
// tasks at a time as there are goroutines.
func (r *runner) run(ctx context.Context, phase string, sources []source, cells []cell, profiles []sim.Profile) ([]samples, error) {
	out := make([]samples, len(profiles))
	p := Progress{Phase: phase, Runs: len(profiles) * len(cells) * r.seeds}
	r.total += p.Runs
	var mu sync.Mutex
	on := func(study.Point, int) {
		mu.Lock()
		defer mu.Unlock()
		p.Done++
		if r.on != nil {
			r.on(p)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.goroutines)
	for i, profile := range profiles {
		out[i] = make(samples, len(cells))
		for k, c := range cells {
			group.Go(func() error {
				grid := study.Grid{
					Cluster: sources[c.source].options(profile), Workload: sources[c.source].workload,
					Levels: []int{c.row.Concurrency}, Modes: []api.Mode{c.row.Mode}, Seeds: seedsOf(r.seeds),
				}
				points, err := grid.Run(ctx, 1, on)
				if err == nil {
					out[i][k] = points[0].Runs
				}
				return err
			})
		}
	}
	return out, group.Wait()
}

func seedsOf(n int) []uint64 {
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = uint64(i) + 1
	}
	return seeds
}
