// Package study runs a workload on a simulated cluster at many levels, in several
// modes and with many seeds, as many at a time as there are cores to spend, and says
// what came of each: a table like the recorded ones, with a band over the seeds.
package study

import (
	"context"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

// Grid is what is computed: each level in each mode with each seed is one run, on a
// cluster with cold caches.
type Grid struct {
	Cluster  sim.Options         // but mode and seed
	Workload closedloop.Workload // but concurrency and seed
	Levels   []int               // concurrencies
	Modes    []api.Mode
	Seeds    []uint64 // of draws and cluster alike
}

// Point is what came of one level in one mode so far.
type Point struct {
	Concurrency int
	Mode        api.Mode
	Runs        []closedloop.Figures // one for each seed that has been computed
}

// Mean is the mean over the seeds.
func (p *Point) Mean() closedloop.Figures { return closedloop.Mean(p.Runs) }

// Band is, for one of [closedloop.Fields], the least and the largest value over the
// seeds; NaN where no run has one.
func (p *Point) Band(field func(*closedloop.Figures) *float64) (low, high float64) {
	low, high = math.NaN(), math.NaN()
	for i := range p.Runs {
		v := *field(&p.Runs[i])
		if math.IsNaN(low) || v < low {
			low = v
		}
		if math.IsNaN(high) || v > high {
			high = v
		}
	}
	return low, high
}

// Runs is how many there are.
func (g *Grid) Runs() int { return len(g.Levels) * len(g.Modes) * len(g.Seeds) }

// Run computes the grid on so many goroutines at a time. After each run it calls on
// with the point that has grown and the number of runs done, one call at a time; all
// seeds' first runs come first, so that the curves are there soon. The points are in
// the order of levels, then modes. When ctx ends it stops within a virtual second's
// computation and gives its error. Equal grids give equal points.
func (g *Grid) Run(ctx context.Context, goroutines int, on func(Point, int)) ([]Point, error) {
	points := make([]Point, 0, len(g.Levels)*len(g.Modes))
	for _, level := range g.Levels {
		for _, mode := range g.Modes {
			points = append(points, Point{Concurrency: level, Mode: mode, Runs: make([]closedloop.Figures, 0, len(g.Seeds))})
		}
	}
	type done struct {
		point, seed int
		figures     closedloop.Figures
	}
	results := make(chan done)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(goroutines + 1) // and the one that starts them
	group.Go(func() error {
		for seed := range g.Seeds {
			for point := range points {
				group.Go(func() error {
					f, err := g.one(ctx, points[point].Concurrency, points[point].Mode, g.Seeds[seed])
					if err == nil {
						results <- done{point, seed, f}
					}
					return err
				})
			}
		}
		return nil
	})
	finished := make(chan error, 1)
	go func() { finished <- group.Wait(); close(results) }()
	bySeed := make([]map[int]closedloop.Figures, len(points))
	count := 0
	for r := range results {
		count++
		p := &points[r.point]
		if bySeed[r.point] == nil {
			bySeed[r.point] = map[int]closedloop.Figures{}
		}
		bySeed[r.point][r.seed] = r.figures
		p.Runs = p.Runs[:0:0]
		for seed := range g.Seeds {
			if f, ok := bySeed[r.point][seed]; ok {
				p.Runs = append(p.Runs, f)
			}
		}
		if on != nil {
			on(Point{p.Concurrency, p.Mode, slices.Clone(p.Runs)}, count)
		}
	}
	return points, <-finished
}

// one is a run of one level, read as the recorded results were.
func (g *Grid) one(ctx context.Context, level int, mode api.Mode, seed uint64) (closedloop.Figures, error) {
	o, w := g.Cluster, g.Workload
	o.Mode, o.Seed, w.Concurrency, w.Seed = mode, seed, level, seed
	l, err := closedloop.New(o, w)
	if err != nil {
		return closedloop.Figures{}, err
	}
	for at := time.Second; at <= closedloop.Length; at += time.Second {
		if err := ctx.Err(); err != nil {
			return closedloop.Figures{}, err
		}
		if err := l.Run(at); err != nil {
			return closedloop.Figures{}, err
		}
	}
	return l.Recorded(0), nil
}
