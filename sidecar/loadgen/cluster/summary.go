package cluster

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// summarise computes what a cluster looks like from one reading whose counters
// know their growth. It leaves Source and age to the caller. Once ctx has ended
// it stops, and what it gives is not the whole.
func summarise(ctx context.Context, samples []Sample, configured api.Speculation) api.Cluster {
	samples, notes := once(samples)
	r := newReading(samples)
	workers := newRoster(ctx, r)
	c := api.Cluster{
		Available:   true,
		Queued:      r.sum(queued),
		Inflight:    r.sum(inflight),
		BatchLimit:  r.max(batchLimit),
		CacheBlocks: r.max(workerBlocks),
		BlockTokens: r.max(blockTokens),
		KV:          kv(r),
		RoutesByKV:  routesByKV(r),
		Speculation: speculation(r, configured),
		Workers:     workers.list(),
		OtherGPUs:   workers.otherGPUs,
		GPU:         cmp.Or(workers.gpuModel(), r.label("modelName", gpuMetrics)),
		Model:       modelName(r),
		Engine:      engineName(r),
	}
	c.Engines = engines(r, &c)
	balance(&c)
	c.Problem = strings.Join(slices.Concat(notReported(r, c), notes, workers.aboutGPUs()), "; ")
	if len(c.Workers) > mostListed {
		condense(&c)
	}
	return c
}

const (
	mostListed = 256 // workers
	eachEnd    = 8   // of more, the busiest and the idlest
)

// condense lists those workers of many that are worth a look, and sums up all.
func condense(c *api.Cluster) {
	all := api.AllWorkers{Count: len(c.Workers)}
	var inflight, cacheUse []float64
	for _, w := range c.Workers {
		all.GPUs += len(w.GPUs)
		all.Waiting = plus(all.Waiting, w.Waiting)
		all.Routed = plus(all.Routed, w.Routed)
		if w.Inflight != nil {
			inflight = append(inflight, *w.Inflight)
		}
		if w.CacheUse != nil {
			cacheUse = append(cacheUse, *w.CacheUse)
		}
	}
	all.Inflight, all.CacheUse = spread(inflight), spread(cacheUse)
	load := func(w api.Worker) float64 {
		if w.Inflight == nil {
			return 0
		}
		return *w.Inflight
	}
	byLoad := slices.SortedFunc(slices.Values(c.Workers), func(a, b api.Worker) int {
		return cmp.Or(cmp.Compare(load(a), load(b)), cmp.Compare(a.ID, b.ID))
	})
	c.Workers = slices.Concat(byLoad[:eachEnd], byLoad[len(byLoad)-eachEnd:])
	slices.SortFunc(c.Workers, byName)
	c.OtherGPUs = nil // the problem names their hosts
	c.AllWorkers = &all
}

// plus adds what is known.
func plus(a, b *float64) *float64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

// spread is nil where nothing is known.
func spread(values []float64) *api.Spread {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	at := func(q float64) float64 { return values[int(q*float64(len(values)-1))] }
	return &api.Spread{Min: at(0), P10: at(0.1), P50: at(0.5), P90: at(0.9), Max: at(1)}
}

// balance compares the workers' requests in flight. Where no frontend counts
// them, their sum is the cluster's.
func balance(c *api.Cluster) {
	var sum, n float64
	var least, most *float64
	for _, w := range c.Workers {
		if w.Inflight == nil {
			continue
		}
		if least == nil || *w.Inflight < *least {
			least = w.Inflight
		}
		if most == nil || *w.Inflight > *most {
			most = w.Inflight
		}
		sum += *w.Inflight
		n++
	}
	if n == 0 {
		return
	}
	c.InflightMin, c.InflightMax, c.Spread = least, most, new(*most-*least)
	if sum > 0 {
		c.Skew = new(*most * n / sum)
	}
	if c.Inflight == nil {
		c.Inflight = &sum
	}
}

// kv gives the hit ratios over the window. The frontend counts a request's
// input tokens at its start and its cached tokens at its end, so its ratio is
// low while the load rises; while the load falls away the quotient may exceed
// one, which is no ratio and not shown. It knows of cached tokens only what the
// engines tell it: where none told of any request, as SGLang's mock does, its sum
// is zero because nobody knows, and the ratio is nil. Then, and without a
// frontend, the engines' own counters of tokens serve, where they have them.
func kv(r reading) api.KV {
	kv := api.KV{PredictedRatio: share(r.ratio(predictedSum, predictedCount))}
	// A router that is told where to send a turn looks for no best worker.
	if r.increase(bestTokens) > 0 {
		kv.AchievableRatio = share(r.ratio(bestTokens, routedTokens))
	}
	told := r.increase(cachedCount) > 0
	if told {
		kv.HitRatio, kv.Source = share(r.ratio(cachedTokens, inputTokens)), "frontend"
	} else {
		kv.HitRatio, kv.Source = share(r.ratio(prefixHits, prefixQueries)), "engine"
	}
	if kv.HitRatio == nil {
		kv.Source = ""
	}
	kv.Counted = map[string][2]float64{
		"engine":     {r.step(prefixHits), r.step(prefixQueries)},
		"frontend":   {r.step(cachedTokens), r.step(inputTokens)},
		"prediction": {r.step(predictedSum), r.step(predictedCount)},
		endsReported: {r.step(cachedCount)},
	}
	return kv
}

// endsReported are the requests whose cached tokens the engines reported to the frontend. Without them, its sum of zero
// is no count.
const endsReported = "ends"

// routesByKV tells by the router's own metrics whether it chose workers by what their
// KV caches hold, nil where they do not tell. A KV router predicts the hit rate of
// every request that it starts; under round-robin, random, least-loaded and direct
// the same router counts its requests, and predicts nothing. Where some requests have
// a prediction and some have none, several routers are read together.
func routesByKV(r reading) *bool {
	const (
		enough = 10 // requests, so that none that is just being counted decides
		all    = 0.9
	)
	started, predicted := r.increase(startedCount), r.increase(predictedCount)
	switch {
	case predicted > 0 && predicted >= all*started:
		return new(true)
	case predicted == 0 && started >= enough && r.has(predictedCount):
		return new(false)
	}
	return nil
}

// share bounds what sums of floats leave above one, and drops what is no ratio.
func share(ratio *float64) *float64 {
	const rounding = 1e-9
	if ratio == nil || *ratio > 1+rounding {
		return nil
	}
	return new(min(*ratio, 1))
}

// speculation gives accepted over drafted tokens, and the tokens that one
// forward pass of the target model yields. SGLang counts neither; it tells both
// figures itself, of its latest batch, and zero without speculation. Where nothing
// is drafted and the configuration says that speculation is off, a pass yields one
// token.
func speculation(r reading, configured api.Speculation) api.SpeculativeUse {
	moving := r.increase(draftedTokens) > 0
	switch {
	case moving:
		return api.SpeculativeUse{
			AcceptanceRatio: share(r.ratio(acceptedTokens, draftedTokens)),
			TokensPerStep:   tokensPerStep(r),
		}
	case configured == api.SpeculationOff:
		return api.SpeculativeUse{TokensPerStep: new(1.0)}
	case !r.has(draftedTokens):
		use := api.SpeculativeUse{TokensPerStep: tokensPerStep(r)}
		if use.TokensPerStep != nil {
			use.AcceptanceRatio = r.mean(acceptanceRate)
		}
		return use
	}
	return api.SpeculativeUse{}
}

// tokensPerStep is 1 + accepted tokens / drafts by vLLM's counters, over the
// window; TensorRT-LLM and SGLang tell the figure themselves, of their latest
// iteration. Zero stands there before the first one.
func tokensPerStep(r reading) *float64 {
	if accepted := r.ratio(acceptedTokens, drafts); accepted != nil {
		return new(1 + *accepted)
	}
	if told := r.mean(acceptanceLength); told != nil && *told >= 1 {
		return told
	}
	return nil
}

// engines are what one reading adds to the totals of all. A gauge of the tokens per step counts where it is not left
// over: something was drafted since the reading before, or nothing is.
func engines(r reading, c *api.Cluster) *api.EngineTotals {
	t := &api.EngineTotals{Drafts: r.step(drafts), Drafted: r.step(draftedTokens), Accepted: r.step(acceptedTokens)}
	use := c.Speculation
	if use.TokensPerStep != nil && (use.AcceptanceRatio == nil || t.Drafted > 0 || !r.has(draftedTokens)) {
		t.TokensPerStep = api.GaugeTotal{Sum: *use.TokensPerStep, Readings: 1}
	}
	if use.AcceptanceRatio != nil && !r.has(draftedTokens) {
		t.Acceptance = api.GaugeTotal{Sum: *use.AcceptanceRatio, Readings: 1}
	}
	memory, n := 0., 0.
	for _, w := range c.Workers {
		for _, g := range w.GPUs {
			if g.MemoryUsed != nil {
				memory, n = memory+*g.MemoryUsed, n+1
			}
		}
	}
	if n > 0 {
		t.GPUMemory = api.GaugeTotal{Sum: memory / n, Readings: 1}
	}
	return t
}

func modelName(r reading) string {
	if name := r.label("model", inflight, batchLimit, inputTokens); name != "" {
		return name
	}
	return r.label("model_name", running, waiting, cacheUse)
}

func engineName(r reading) string {
	for _, name := range wantedNames { // in the order of the alphabet
		if len(r[name]) > 0 && engineOf(name) != "" {
			return engineOf(name)
		}
	}
	return ""
}

const noWorkers = "no workers' metrics: load per worker is unknown"

// notReported names what this cluster does not tell, nothing where it tells all
// that a Dynamo does.
func notReported(r reading, c api.Cluster) (missing []string) {
	if !r.hasFrontend() {
		missing = append(missing, "no Dynamo frontend: its queue and the router's hit ratios are not reported")
	}
	if c.InflightMin == nil {
		missing = append(missing, noWorkers)
	}
	return missing
}
