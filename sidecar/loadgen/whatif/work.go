package whatif

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim/closedloop"
	"kvbooth/sidecar/sim/study"
)

// Work is the process that computes one simulation, after it has given itself the
// lowest priority: it reads the job from in, writes the points to out as they come, and
// returns its exit code. When in ends, whoever asked has gone, and it stops.
func Work(in io.Reader, out io.Writer) int {
	standBack()
	return work(in, out)
}

// work is [Work] at whatever priority the process has.
func work(in io.Reader, out io.Writer) int {
	told, lines := json.NewDecoder(in), json.NewEncoder(out)
	var j job
	if err := told.Decode(&j); err != nil {
		_ = lines.Encode(report{Error: "the simulation's process got no valid request: " + err.Error()})
		return 1
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel(errAlone)
	}()
	var wg sync.WaitGroup
	wg.Go(func() { watchMemory(ctx, j.Memory, cancel) })
	err := compute(ctx, &j.Grid, lines)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	wg.Wait()
	if err != nil {
		_ = lines.Encode(report{Error: err.Error()}) // where nobody reads it, nobody misses it
		return 1
	}
	return 0
}

// compute writes the points as they come, and the end.
func compute(ctx context.Context, g *study.Grid, lines *json.Encoder) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	points, err := g.Run(ctx, runtime.GOMAXPROCS(0), func(p study.Point, _ int) {
		if err := lines.Encode(report{Point: new(pointOf(p))}); err != nil {
			cancel(err)
		}
	})
	if err != nil {
		return err
	}
	return lines.Encode(report{End: &conclusion{study.Reasons(points)}})
}

// watchMemory gives up when so many bytes of the heap are in use.
func watchMemory(ctx context.Context, most int64, giveUp context.CancelCauseFunc) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	used := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if metrics.Read(used); used[0].Value.Uint64() > uint64(most) {
			giveUp(fmt.Errorf("it needs more than the %d MiB that a simulation may use: reduce the levels, the number of workers, or the length of the conversations", most>>20))
			return
		}
	}
}

// figures are those that the API tells of a run.
var figures = []struct {
	of func(*closedloop.Figures) *float64
	to func(*api.SimulationFigures) **api.SimulationFigure
}{
	{func(f *closedloop.Figures) *float64 { return &f.TTFT50 }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.TTFTP50 }},
	{func(f *closedloop.Figures) *float64 { return &f.TTFT95 }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.TTFTP95 }},
	{func(f *closedloop.Figures) *float64 { return &f.TPOT50 }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.TPOTP50 }},
	{func(f *closedloop.Figures) *float64 { return &f.TokensPerSecond }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.TokensPerSecond }},
	{func(f *closedloop.Figures) *float64 { return &f.RequestsPerSecond }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.RequestsPerSecond }},
	{func(f *closedloop.Figures) *float64 { return &f.Hit }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.HitRatio }},
	{func(f *closedloop.Figures) *float64 { return &f.Waiting }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.Queue }},
	{func(f *closedloop.Figures) *float64 { return &f.LargestQueue }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.LargestQueueSeconds }},
	{func(f *closedloop.Figures) *float64 { return &f.Spread }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.InflightSpread }},
	{func(f *closedloop.Figures) *float64 { return &f.Skew }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.InflightSkew }},
	{func(f *closedloop.Figures) *float64 { return &f.Herding }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.HerdingShare }},
	{func(f *closedloop.Figures) *float64 { return &f.Twice }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.PrefilledTwiceShare }},
	{func(f *closedloop.Figures) *float64 { return &f.Queued }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.QueuedSeconds }},
	{func(f *closedloop.Figures) *float64 { return &f.Prefill }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.PrefillSeconds }},
	{func(f *closedloop.Figures) *float64 { return &f.Decode }, func(f *api.SimulationFigures) **api.SimulationFigure { return &f.DecodeSeconds }},
}

// pointOf is a point as the API tells it.
func pointOf(p study.Point) api.SimulationPoint {
	out := api.SimulationPoint{Concurrency: p.Concurrency, Mode: p.Mode, Seeds: len(p.Runs), Basis: api.BasisSimulated}
	for _, f := range figures {
		*f.to(&out.Figures) = overSeeds(p.Runs, f.of)
	}
	return out
}

// overSeeds is nil where no run has the figure.
func overSeeds(runs []closedloop.Figures, of func(*closedloop.Figures) *float64) *api.SimulationFigure {
	out, n := api.SimulationFigure{Low: math.Inf(1), High: math.Inf(-1)}, 0.
	for i := range runs {
		v := *of(&runs[i])
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		n++
		out.Mean += (v - out.Mean) / n
		out.Low, out.High = min(out.Low, v), max(out.High, v)
	}
	if n == 0 {
		return nil
	}
	out.Mean = min(max(out.Mean, out.Low), out.High) // which rounding may miss
	return &out
}
