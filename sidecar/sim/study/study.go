// Package study runs a workload on a simulated cluster at many levels, in several modes and with many seeds, on
// several goroutines. The results form a table like the recorded ones, with a range over the seeds.
package study

import (
	"context"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/arrival"
	"kvbooth/sidecar/sim/closedloop"
)

// Grid is a set of runs: each level in each mode with each seed. Each run has its own cluster with cold caches, unless
// Sweep is set.
type Grid struct {
	Cluster  sim.Options         // without mode and seed
	Workload closedloop.Workload // without level and seed
	Levels   []api.Level
	Modes    []api.Mode
	Seeds    []uint64 // for the draws and the cluster

	// Sweep runs the levels in their order on one cluster for each mode and seed, like the recorded sweeps: a level
	// starts with warm caches and with the conversations of the previous level in all their turns. On separate
	// clusters, all conversations begin at once and stay in step for minutes: at 160 under kv on the H200s, these
	// bursts alone raise TTFT p95 from 0.7 s to 2.6 s, which was never recorded.
	Sweep bool
	// LeadIn runs two thirds of the first level for the duration of a level, on the same cluster and without
	// evaluation, so that the first level also starts with warm caches and conversations in all their turns.
	LeadIn bool
}

// Point is the result of one level in one mode so far.
type Point struct {
	Level api.Level
	Mode  api.Mode
	Runs  []closedloop.Figures // one for each completed seed
}

// Mean returns the means over the seeds.
func (p *Point) Mean() closedloop.Figures { return closedloop.Mean(p.Runs) }

// Overloaded reports whether the queue grows without end: in at least half of the runs, or in all of them together.
// Latencies then would say how long the simulation took, so they are NaN.
func (p *Point) Overloaded() bool {
	mean := p.Mean()
	return mean.Overloaded >= .5
}

// judge decides whether the point is overloaded, and removes its latencies if it is. A sum of random walks is a random
// walk, so that [arrival.Grows] applies to the runs together, in which it finds slower growth than in a single one.
func (p *Point) judge() {
	var together []float64
	for i := range p.Runs {
		if together == nil {
			together = make([]float64, len(p.Runs[i].Active))
		}
		for second, n := range p.Runs[i].Active {
			together[second] += n
		}
	}
	if !arrival.Grows(together) && !p.Overloaded() {
		return
	}
	for i := range p.Runs {
		f := &p.Runs[i]
		f.Overloaded = 1
		for _, v := range []*float64{
			&f.TTFTMean, &f.TTFT50, &f.TTFT95, &f.TPOT50, &f.TPOT95, &f.Latency50, &f.Latency95,
		} {
			*v = math.NaN()
		}
	}
}

// Band returns the smallest and the largest value of one of [closedloop.Fields] over the seeds; NaN if no run has a
// value.
func (p *Point) Band(field closedloop.Field) (low, high float64) {
	low, high = math.NaN(), math.NaN()
	for i := range p.Runs {
		v := *field.Of(&p.Runs[i])
		if math.IsNaN(low) || v < low {
			low = v
		}
		if math.IsNaN(high) || v > high {
			high = v
		}
	}
	return low, high
}

// Runs returns the number of runs.
func (g *Grid) Runs() int { return len(g.Levels) * len(g.Modes) * len(g.Seeds) }

// Run computes the grid on the given number of goroutines. After each run it calls onPoint, if not nil, with the
// updated point and the number of completed runs; calls are not concurrent. The first seed of all points comes first,
// so that complete curves are available soon. The points are in the order of levels, then modes. When ctx ends, Run
// stops within the computation of a virtual second and returns the error of ctx. Equal grids give equal points.
func (g *Grid) Run(ctx context.Context, goroutines int, onPoint func(Point, int)) ([]Point, error) {
	points := make([]Point, 0, len(g.Levels)*len(g.Modes))
	for _, level := range g.Levels {
		for _, mode := range g.Modes {
			runs := make([]closedloop.Figures, 0, len(g.Seeds))
			points = append(points, Point{Level: level, Mode: mode, Runs: runs})
		}
	}
	type done struct {
		point, seed int
		figures     closedloop.Figures
	}
	results := make(chan done)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(goroutines + 1) // one more for the goroutine that starts the others
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
	go func() {
		finished <- group.Wait()
		close(results)
	}()
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
		p.judge()
		if onPoint != nil {
			onPoint(Point{p.Level, p.Mode, slices.Clone(p.Runs)}, count)
		}
	}
	return points, <-finished
}

// point returns level and mode of a point by its index. Points are in the order of levels, then modes.
func (g *Grid) point(number int) (level api.Level, mode api.Mode) {
	return g.Levels[number/len(g.Modes)], g.Modes[number%len(g.Modes)]
}

// runs returns, for each cluster of a seed, the indices of the points that share it, in the order of the points.
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

// run computes points of one mode, given by their indices, in sequence on one cluster. It evaluates each as the
// recorded results were evaluated.
func (g *Grid) run(
	ctx context.Context, indices []int, seed uint64, onFigures func(int, closedloop.Figures),
) error {
	o, w := g.Cluster, g.Workload
	o.Seed, w.Seed = seed, seed
	first, mode := g.point(indices[0])
	w.Level, o.Mode = first, mode
	if g.LeadIn {
		w.Level = leadIn(first)
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
	for _, index := range indices {
		at, _ := g.point(index)
		l.SetLevel(at)
		if at.Kind == api.Rate {
			if err := settle(ctx, l); err != nil {
				return err
			}
		}
		from := l.Cluster.Now()
		if err := level(ctx, l); err != nil {
			return err
		}
		onFigures(index, l.Recorded(from))
	}
	return nil
}

// leadIn returns the level of a lead-in to a level.
func leadIn(to api.Level) api.Level {
	value := 2 * to.Value / 3
	if to.Kind == api.Conversations {
		value = math.Ceil(value)
	}
	return to.With(value)
}

// longestSettling limits the time that a load gets to settle. Without a limit, long pauses could take days.
const longestSettling = time.Hour

// settle runs a loop until its load has settled, as a load generator does before a span counts. The recorded levels
// have a fixed warm-up instead.
func settle(ctx context.Context, l *closedloop.Loop) error {
	return runWhile(ctx, l, longestSettling, func() bool { return !l.Settled() })
}

// level runs a loop for the duration of a level.
func level(ctx context.Context, l *closedloop.Loop) error {
	return runWhile(ctx, l, closedloop.LevelDuration, func() bool { return true })
}

// runWhile runs a loop by seconds, as long as goesOn returns true, at most for a time, and unless ctx ends.
func runWhile(ctx context.Context, l *closedloop.Loop, most time.Duration, goesOn func() bool) error {
	for end := l.Cluster.Now() + most; l.Cluster.Now() < end && goesOn(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.Run(l.Cluster.Now() + time.Second); err != nil {
			return err
		}
	}
	return nil
}
