package lane

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/shadow"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/sim/traffic"
)

const (
	previewSeconds     = 600
	previewTrace       = 3600      // of a trace, which may end before that
	previewBlockTokens = 16        // that of vLLM
	previewBlocks      = 3_000_000 // of all prompts, so that a preview takes about a second
)

// PreviewTraffic computes what the traffic of the settings would be, with the changes of the request. It returns an
// [api.FieldError] for values that a start would refuse, and an [api.ErrConflict] while the workload runs, whose
// measurement it would disturb.
func (l *Lane) PreviewTraffic(ctx context.Context, req api.TrafficPreviewRequest) (p api.TrafficPreview, err error) {
	if err := api.CheckLimits(req); err != nil {
		return p, err
	}
	limit := l.catalog.Settings().MaxConcurrency
	l.mu.Lock()
	next, err := l.next(req.WorkloadPatch, limit)
	running := l.phase != api.PhaseStopped
	p.Arrivals = next.Shape(l.corpus, false).Arrivals
	l.mu.Unlock()
	seconds := previewSeconds
	if trace := l.opts.Plan; trace != nil {
		seconds, p.Arrivals, p.Trace = previewTrace, trace.Shape(next, false).Arrivals, trace.Name
	}
	if err != nil {
		return p, err
	}
	if running {
		return p, fmt.Errorf("%w: the workload runs, and a preview would disturb its measurement; stop it first",
			api.ErrConflict)
	}
	c := l.Cluster()
	number := func(own *int, read *float64, otherwise int) int {
		if own == nil && read != nil {
			return int(*read)
		}
		return *cmp.Or(own, &otherwise)
	}
	workers, blocks := number(req.Workers, nil, c.WorkerCount()), number(req.WorkerBlocks, c.CacheBlocks, 0)
	p.Level, p.Shape = next.Level, next.TrafficShape
	p.BlockTokens = number(req.BlockTokens, c.BlockTokens, previewBlockTokens)
	length := time.Duration(number(req.Seconds, nil, seconds)) * time.Second
	plan, err := workload.Options{
		Seed: l.opts.Seed, Plan: l.opts.Plan, ModelTokens: l.opts.Client.Recognized().ContextTokens,
	}.Planned(next,
		traffic.PlanOptions{
			BlockTokens: p.BlockTokens, Until: length, MostBlocks: previewBlocks,
			FirstToken: shadow.AssumedService.FirstToken, PerToken: shadow.AssumedService.PerToken,
		})
	if err != nil {
		return p, err
	}
	return p, shadow.Preview(ctx, &p, workers, blocks, func() shadow.Planned { return plan() })
}
