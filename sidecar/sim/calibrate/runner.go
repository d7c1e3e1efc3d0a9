package calibrate

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"
)

// samples are the figures of rows and seeds, indexed [row][seed].
type samples [][]closedloop.Figures

// runner simulates rows.
type runner struct {
	seeds, goroutines int
	onProgress        func(Progress)
	total             int // runs so far
}

// run simulates all rows with each profile. The rows of one mode of a source form one sweep, from the lowest level to
// the highest on one cluster, as in the recorded runs. The sweeps run concurrently on r.goroutines goroutines.
func (r *runner) run(
	ctx context.Context, phase string, sources []source, cells []cell, profiles []sim.Profile,
) ([]samples, error) {
	p := Progress{Phase: phase, Runs: len(profiles) * len(cells) * r.seeds}
	r.total += p.Runs
	var mu sync.Mutex
	progress := func(study.Point, int) {
		mu.Lock()
		defer mu.Unlock()
		p.Done++
		if r.onProgress != nil {
			r.onProgress(p)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.goroutines)
	out := make([]samples, len(profiles))
	for i, profile := range profiles {
		out[i] = make(samples, len(cells))
		for k := range cells {
			out[i][k] = make([]closedloop.Figures, r.seeds)
		}
		for _, sweep := range sweeps(cells) {
			for seed := range r.seeds {
				group.Go(func() error {
					first := cells[sweep[0]]
					grid := study.Grid{
						Cluster: sources[first.source].options(profile), Workload: sources[first.source].workload,
						Modes: []api.Mode{first.row.Mode}, Seeds: []uint64{uint64(seed) + 1}, Sweep: true,
					}
					for _, k := range sweep {
						grid.Levels = append(grid.Levels, cells[k].row.Level)
					}
					points, err := grid.Run(ctx, 1, progress)
					if err != nil {
						return err
					}
					for level, k := range sweep {
						out[i][k][seed] = points[level].Runs[0]
					}
					return nil
				})
			}
		}
	}
	return out, group.Wait()
}

// sweeps returns, for each mode of each source, the indices of its rows in the order of their levels.
func sweeps(cells []cell) (list [][]int) {
	for k, c := range cells {
		i := slices.IndexFunc(list, func(s []int) bool {
			other := cells[s[0]]
			return other.source == c.source && other.row.Mode == c.row.Mode
		})
		if i < 0 {
			list = append(list, []int{k})
		} else {
			list[i] = append(list[i], k)
		}
	}
	for _, s := range list {
		slices.SortFunc(s, func(a, b int) int {
			return cells[a].row.Level.Compare(cells[b].row.Level)
		})
	}
	return list
}
