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
	"kvbooth/sidecar/sim/traffic"
)

// Opener opens the trace of a specification, which the options of the [Desk] contain.
type Opener func(spec json.RawMessage) (*traffic.Timed, error)

// Work is the process that computes one simulation. It sets the lowest priority, reads the job
// from in, writes points to out as they come, and returns the exit code. It stops when in ends,
// since the parent has then exited.
func Work(in io.Reader, out io.Writer, open Opener) int {
	lowerPriority()
	return work(in, out, open)
}

// work is [Work] without the change of priority.
func work(in io.Reader, out io.Writer, open Opener) int {
	input, lines := json.NewDecoder(in), json.NewEncoder(out)
	var j job
	if err := input.Decode(&j); err != nil {
		_ = lines.Encode(report{Error: "the simulation's process got no valid request: " + err.Error()})
		return 1
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel(errUnfollowed)
	}()
	var wg sync.WaitGroup
	wg.Go(func() { watchMemory(ctx, j.Memory, cancel) })
	var err error
	if j.Trace != nil {
		j.Grid.Workload.Timed, err = open(j.Trace)
	}
	if err == nil {
		err = compute(ctx, &j.Grid, lines)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	wg.Wait()
	if err != nil {
		_ = lines.Encode(report{Error: err.Error()}) // fails if the parent has exited
		return 1
	}
	return 0
}

// compute writes points as they come, and then the end.
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

// watchMemory cancels the computation when more than limit bytes of the heap are in use.
func watchMemory(ctx context.Context, limit int64, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	used := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if metrics.Read(used); used[0].Value.Uint64() > uint64(limit) {
			cancel(fmt.Errorf("it needs more than the %d MiB that a simulation may use: reduce the levels, the number of "+
				"workers, or the length of the conversations", limit>>20))
			return
		}
	}
}

// pointOf converts a point to that of the API.
func pointOf(p study.Point) api.SimulationPoint {
	mean := func(f closedloop.Field) *api.SimulationFigure { return overSeeds(p.Runs, f) }
	var dropped *api.SimulationFigure
	if p.Level.Kind == api.Rate {
		dropped = mean(closedloop.Dropped)
	}
	return api.SimulationPoint{
		Level: p.Level, Mode: p.Mode, Seeds: len(p.Runs), Basis: api.BasisSimulated,
		Figures: api.SimulationFigures{
			TTFTP50:             mean(closedloop.TTFT50),
			TTFTP95:             mean(closedloop.TTFT95),
			TPOTP50:             mean(closedloop.TPOT50),
			TokensPerSecond:     mean(closedloop.Tokens),
			RequestsPerSecond:   mean(closedloop.Requests),
			HitRatio:            mean(closedloop.Hit),
			Queue:               mean(closedloop.Waiting),
			LargestQueueSeconds: mean(closedloop.LargestQueue),
			InflightSpread:      mean(closedloop.Spread),
			InflightSkew:        mean(closedloop.Skew),
			HerdingShare:        mean(closedloop.Herding),
			PrefilledTwiceShare: mean(closedloop.Twice),
			QueuedSeconds:       mean(closedloop.Queued),
			PrefillSeconds:      mean(closedloop.Prefill),
			DecodeSeconds:       mean(closedloop.Decode),
			DroppedPerSecond:    dropped,
		},
		Overloaded: p.Overloaded(),
	}
}

// overSeeds summarizes a figure over runs; nil where no run has it.
func overSeeds(runs []closedloop.Figures, field closedloop.Field) *api.SimulationFigure {
	out, n := api.SimulationFigure{Low: math.Inf(1), High: math.Inf(-1)}, 0.
	for i := range runs {
		v := *field.Of(&runs[i])
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		n++
		out.Mean += (v - out.Mean) / n
		out.Low = min(out.Low, v)
		out.High = max(out.High, v)
	}
	if n == 0 {
		return nil
	}
	out.Mean = min(max(out.Mean, out.Low), out.High) // rounding may have moved it outside
	return &out
}
