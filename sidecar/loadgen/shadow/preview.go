package shadow

import (
	"context"
	"maps"
	"math/bits"
	"slices"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/trace"
)

// AssumedService holds the times of a request that are assumed where none are known.
var AssumedService = Service{FirstToken: 500 * time.Millisecond, PerToken: 25 * time.Millisecond}

// previewed are the policies of a preview.
var previewed = []Kind{RoundRobin, LeastLoaded, KV, BestPlacement, Best}

const previewBins = 60

// Planned is a stream of requests that are planned, in the order of time. It may end early.
type Planned interface {
	trace.Stream
	End() (at time.Duration, cut bool)
}

// Preview fills a preview from a plan, which begins anew with each call of plan. workers and blocks are the number of
// caches and their size; 0 means unknown. An error is the context's.
func Preview(ctx context.Context, p *api.TrafficPreview, workers, blocks int, plan func() Planned) error {
	planned := plan()
	t := tally{ctx: ctx, stream: planned, turns: map[uint64]int{}}
	c, err := trace.Describe(&t, trace.CacheSize{Blocks: workers * blocks})
	if err != nil {
		return err
	}
	p.FirstToken, p.PerToken = AssumedService.FirstToken.Seconds(), AssumedService.PerToken.Seconds()
	length, cut := planned.End()
	p.Seconds, p.Cut = length.Seconds(), cut
	p.Requests, p.Conversations, p.Bins = int(c.Requests), len(t.turns), make(api.List[int], previewBins)
	for _, at := range t.requests {
		p.Bins[min(int(previewBins*at/max(length, 1)), previewBins-1)]++
	}
	turns := slices.Collect(maps.Values(t.turns))
	p.Turns, p.Input, p.Output = counts(c.Turns, turns), counts(c.Input, t.input), counts(c.Output, t.output)
	if c.Hits != nil {
		p.HitRatio, p.DistinctBlocks, p.ReusedBlocks = &c.Hits.Rate, c.Hits.Distinct, c.Hits.Reused
	}
	if workers == 0 || blocks == 0 || c.LimitedHits == nil {
		return nil
	}
	p.Caches = &api.PreviewedCaches{Workers: workers, WorkerBlocks: blocks, HitRatio: &c.LimitedHits.Rate}
	o := DefaultOptions(p.BlockTokens)
	o.Workers, o.Capacity, o.Answers = SyntheticWorkers(workers), blocks, AnswersFound
	o.Policies = slices.DeleteFunc(o.Policies, func(p Policy) bool { return !slices.Contains(previewed, Kind(p.Name)) })
	figures, err := Replay(ctx, plan(), AssumedService, []Options{o}, nil)
	if err != nil {
		return err
	}
	for _, f := range figures[0].Policies[1:] {
		p.Caches.Policies = append(p.Caches.Policies, api.ShadowPolicy{
			Policy: f.Policy.Name, Title: f.Policy.Title(), Figures: f.Total.Shown(f.Policy),
		})
	}
	return nil
}

// counts returns a distribution with the numbers of its values in bins.
func counts(d *trace.Distribution, values []int) (c api.TokenCounts) {
	if d == nil {
		return c
	}
	c = api.TokenCounts{Mean: d.Mean, P50: d.P50, P95: d.P95, Max: d.Max}
	c.Bins = make(api.List[api.TokenBin], bits.Len(uint(max(d.Max, 1)-1))+1)
	for i := range c.Bins {
		c.Bins[i].UpTo = 1 << i
	}
	for _, v := range values {
		c.Bins[bits.Len(uint(max(v, 1)-1))].N++
	}
	return c
}

// tally counts the records of a stream on their way.
type tally struct {
	ctx           context.Context
	stream        trace.Stream
	requests      []time.Duration
	turns         map[uint64]int
	input, output []int
}

// Next implements [trace.Stream].
func (t *tally) Next() (*trace.Record, error) {
	r, err := t.stream.Next()
	if err == nil {
		err = t.ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	t.requests = append(t.requests, r.At)
	t.turns[r.Session]++
	t.input, t.output = append(t.input, r.PromptTokens), append(t.output, r.OutputTokens)
	return r, nil
}
