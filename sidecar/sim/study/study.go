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

// Grid is what is computed: each level in each mode with each seed is one run. Each has
// a cluster of its own, with cold caches, unless Sweep is set.
type Grid struct {
	Cluster  sim.Options         // but mode and seed
	Workload closedloop.Workload // but concurrency and seed
	Levels   []int               // concurrencies
	Modes    []api.Mode
	Seeds    []uint64 // of draws and cluster alike

	// Sweep takes the levels in their order on one cluster for each mode and seed, as
	// the recorded sweeps did: a level finds the caches warm and the conversations of
	// the level before in all their turns. On clusters of their own all conversations
	// begin at once and go on in step for minutes: at 160 under kv on the H200s, the
	// bursts of that alone take TTFT p95 from 0.7 s to 2.6 s, which nobody recorded.
	Sweep bool
	// LeadIn takes two thirds of the first level for as long as a level before it, on the
	// same cluster, and does not read that: so that the first level, too, finds caches warm
	// and conversations in all their turns. Without it, that level begins as a cluster does.
	LeadIn bool
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
			for _, run := range g.runs() {
				group.Go(func() error {
					return g.run(ctx, run, g.Seeds[seed], func(point int, f closedloop.Figures) {
						results <- done{point, seed, f}
					})
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

// point is what stands behind a number: points are in the order of levels, then modes.
func (g *Grid) point(number int) (concurrency int, mode api.Mode) {
	return g.Levels[number/len(g.Modes)], g.Modes[number%len(g.Modes)]
}

// runs are the numbers of the points that share a cluster, for each cluster of a seed,
// in the order of the points.
func (g *Grid) runs() [][]int {
	var runs [][]int
	for level := range g.Levels {
		for mode := range g.Modes {
			point := level*len(g.Modes) + mode
			if g.Sweep && level > 0 {
				runs[mode] = append(runs[mode], point)
			} else {
				runs = append(runs, []int{point})
			}
		}
	}
	return runs
}

// run takes points of one mode, by their numbers, one after the other on one cluster, and reads each as
// the recorded results were.
func (g *Grid) run(ctx context.Context, numbers []int, seed uint64, on func(int, closedloop.Figures)) error {
	o, w := g.Cluster, g.Workload
	o.Seed, w.Seed = seed, seed
	w.Concurrency, o.Mode = g.point(numbers[0])
	if g.LeadIn {
		w.Concurrency = (2*w.Concurrency + 2) / 3
	}
	l, err := closedloop.New(o, w)
	if err != nil {
		return err
	}
	if g.LeadIn {
		if err := level(ctx, l); err != nil {
			return err
		}
	}
	for _, number := range numbers {
		from := l.Cluster.Now()
		concurrency, _ := g.point(number)
		l.SetConcurrency(concurrency)
		if err := level(ctx, l); err != nil {
			return err
		}
		on(number, l.Recorded(from))
	}
	return nil
}

// level lets a loop run for as long as a level takes, unless ctx ends.
func level(ctx context.Context, l *closedloop.Loop) error {
	for end := l.Cluster.Now() + closedloop.Length; l.Cluster.Now() < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.Run(l.Cluster.Now() + time.Second); err != nil {
			return err
		}
	}
	return nil
}
