package cluster

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
)

// summarize computes a cluster from one reading whose counters have their growth.
// The caller sets Source and age. The result is incomplete once ctx has ended.
func summarize(ctx context.Context, samples []Sample, configured api.Speculation) api.Cluster {
	samples, notes := dedupe(samples)
	r := newReading(samples)
	workers := newRoster(ctx, r)
	c := api.Cluster{
		Available:    true,
		QueuedRouter: cmp.Or(r.sum(queued), r.sum(otherRouters.queued)),
		Inflight:     r.sum(inflight),
		BatchLimit:   r.max(batchLimit),
		CacheBlocks:  cmp.Or(r.max(workerBlocks), r.maxLabel("num_gpu_blocks", cacheConfig)),
		BlockTokens:  cmp.Or(r.max(blockTokens), r.maxLabel("block_size", cacheConfig)),
		KV:           kv(r),
		RoutesByKV:   routesByKV(r),
		Speculation:  speculation(r, configured),
		Workers:      workers.list(),
		OtherGPUs:    workers.otherGPUs,
		GPU:          cmp.Or(workers.gpuModel(), r.label("modelName", gpuMetrics)),
		Model:        modelName(r),
		Engine:       engineName(r),
		Router:       routerName(r),
		Decisions:    decisions(r),
		RouterMatch:  asRatio(r.ratio(otherRouters.matchSum, otherRouters.matchCount)),
		FirstToken:   firstToken(r, reading.increase).Means(),
	}
	if len(c.Workers) == 0 && len(notes) > 0 {
		c.Unread.Workers = strings.Join(notes, "; ")
	}
	c.Engines = engines(r, &c)
	c.Engines.GPUs = workers.energies()
	c.QueuedHasEngines = r.has(queued)
	addQueues(&c)
	balance(&c)
	c.Problem = strings.Join(slices.Concat(notReported(r, c), notes, workers.gpuNotes()), "; ")
	if len(c.Workers) > mostListed {
		condense(&c)
	}
	return c
}

const (
	mostListed = 256 // workers; a larger cluster is condensed
	eachEnd    = 8   // number of the busiest, and of the idlest, that a condensed cluster lists
)

// condense keeps the busiest and the idlest workers in the list and sums up all of them.
func condense(c *api.Cluster) {
	all := api.AllWorkers{Count: len(c.Workers), Waiting: c.QueuedEngines}
	var inflight, cacheUse []float64
	for _, w := range c.Workers {
		all.GPUs += len(w.GPUs)
		all.Routed = addKnown(all.Routed, w.Routed)
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

// addKnown adds two numbers. nil means unknown and is left out of the sum.
func addKnown(a, b *float64) *float64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

// spread returns the percentiles of values, nil where there are none.
func spread(values []float64) *api.Spread {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	at := func(q float64) float64 { return values[int(q*float64(len(values)-1))] }
	return &api.Spread{Min: at(0), P10: at(0.1), P50: at(0.5), P90: at(0.9), Max: at(1)}
}

// addQueues sets the requests that wait at the workers, and at router and workers together. A Dynamo frontend counts
// each request until its first token, so that its count contains the workers'.
func addQueues(c *api.Cluster) {
	c.QueuedEngines = nil
	for _, w := range c.Workers {
		c.QueuedEngines = addKnown(c.QueuedEngines, w.Waiting)
	}
	c.Queued = c.QueuedRouter
	if !c.QueuedHasEngines {
		c.Queued = addKnown(c.QueuedRouter, c.QueuedEngines)
	}
}

// balance sets the figures that compare the workers' requests in flight: their least, their most, the spread between
// these, and the skew, which is the most over the mean and stays nil if all are 0. Where no frontend counts the
// cluster's requests in flight (c.Inflight is nil), it also sets them to the workers' sum. A worker without a count is
// left out. Without any count, nothing changes.
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
	c.InflightMin = least
	c.InflightMax = most
	c.Spread = new(*most - *least)
	if sum > 0 {
		c.Skew = new(*most * n / sum)
	}
	if c.Inflight == nil {
		c.Inflight, c.InflightOfWorkers = &sum, true
	}
}

// KeepWorkers removes the workers that are not named, and computes the figures of the others. It changes nothing if
// none is named, since the names may be of another kind, or if the list of workers is not complete.
func KeepWorkers(c *api.Cluster, named map[string]bool) {
	kept := slices.DeleteFunc(slices.Clone(c.Workers), func(w api.Worker) bool { return !named[w.ID] && !named[w.Name] })
	if len(kept) == 0 || len(kept) == len(c.Workers) || c.AllWorkers != nil {
		return
	}
	c.Workers = kept
	if c.Engines != nil { // the energy is that of all workers
		totals := *c.Engines
		totals.Energy, totals.GPUs = nil, nil
		c.Engines = &totals
	}
	c.InflightMin, c.InflightMax, c.Spread, c.Skew = nil, nil, nil, nil
	if c.InflightOfWorkers {
		c.Inflight = nil
	}
	addQueues(c)
	balance(c)
}

// kv computes the hit ratios over the window. The frontend counts a request's
// input tokens at its start and its cached tokens at its end, so its ratio is
// low while the load rises. While the load falls the quotient may exceed one; then
// it is left out. The frontend knows cached tokens only from the engines' reports.
// Where no engine reported any, as with SGLang's mock, its sum of zero means
// unknown. Then, and without a frontend, the engines' own counters are used.
func kv(r reading) api.KV {
	kv := api.KV{PredictedRatio: asRatio(r.ratio(predictedSum, predictedCount))}
	// A router looks for the best worker only where it chooses the worker by the caches, but it counts the tokens of all
	// requests. While the window contains requests of another mode, the quotient would be too low.
	if byKV := routesByKV(r); byKV != nil && *byKV && r.increase(bestTokens) > 0 {
		kv.AchievableRatio = asRatio(r.ratio(bestTokens, routedTokens))
	}
	if r.increase(cachedCount) > 0 {
		kv.HitRatio = asRatio(r.ratio(cachedTokens, inputTokens))
		kv.Source = "frontend"
	} else {
		kv.HitRatio = asRatio(r.ratio(prefixHits, prefixQueries))
		kv.Source = "engine"
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

// endsReported counts the requests whose cached tokens the engines reported to the frontend. While it is zero, the
// frontend's sum of zero means unknown.
const endsReported = "ends"

// routesByKV reports, by the router's own metrics, whether it chose workers by the
// contents of their KV caches; nil where the metrics do not show it. A KV router
// predicts the hit rate of every request that it starts. Under round-robin, random,
// least-loaded and direct the same router counts its requests and predicts nothing.
// Where only some requests have a prediction, several routers are read together.
func routesByKV(r reading) *bool {
	const (
		enough = 10 // requests, so that one request whose counting is in progress does not decide
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

// asRatio caps rounding errors above one, and returns nil for a larger value.
func asRatio(ratio *float64) *float64 {
	const rounding = 1e-9
	if ratio == nil || *ratio > 1+rounding {
		return nil
	}
	return new(min(*ratio, 1))
}

// speculation computes accepted over drafted tokens, and the tokens that one
// forward pass of the target model yields. SGLang counts neither: it reports both
// figures of its latest batch, and zero without speculation. Where nothing is
// drafted and the configured speculation is off, a pass yields one token.
func speculation(r reading, configured api.Speculation) api.SpeculativeUse {
	moving := r.increase(draftedTokens) > 0
	switch {
	case moving:
		return api.SpeculativeUse{
			AcceptanceRatio: asRatio(r.ratio(acceptedTokens, draftedTokens)),
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

// tokensPerStep returns the tokens that one forward pass yields, or nil if they are unknown. From vLLM's counters, they
// are 1 + accepted tokens / drafts over the window. TensorRT-LLM and SGLang report a gauge of their latest iteration,
// which is zero before the first one. The result is its mean over all workers.
func tokensPerStep(r reading) *float64 {
	if accepted := r.ratio(acceptedTokens, drafts); accepted != nil {
		return new(1 + *accepted)
	}
	if reported := r.mean(acceptanceLength); reported != nil && *reported >= 1 {
		return reported
	}
	return nil
}

// engines returns what one reading adds to the totals of the engines. A gauge of tokens per step counts if tokens were
// drafted since the previous reading, or if the engine reports no acceptance or no count of drafts. Otherwise its value
// is stale.
func engines(r reading, c *api.Cluster) *api.EngineTotals {
	t := &api.EngineTotals{
		Drafts: r.step(drafts), Drafted: r.step(draftedTokens), Accepted: r.step(acceptedTokens),
		FirstToken: firstToken(r, reading.step),
	}
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
				memory += *g.MemoryUsed
				n++
			}
		}
	}
	if n > 0 {
		t.GPUMemory = api.GaugeTotal{Sum: memory / n, Readings: 1}
	}
	return t
}

// firstToken sums the engines' times until the first token, over the time of growth.
func firstToken(r reading, growth func(reading, metric) float64) api.FirstTokenTotals {
	return api.FirstTokenTotals{
		Engine:  api.Sum{Seconds: growth(r, firstSum), Requests: growth(r, firstCount)},
		Queue:   api.Sum{Seconds: growth(r, queueSum), Requests: growth(r, queueCount)},
		Prefill: api.Sum{Seconds: growth(r, prefillSum), Requests: growth(r, prefillCount)},
	}
}

func modelName(r reading) string {
	if name := r.label("model", inflight, batchLimit, inputTokens); name != "" {
		return name
	}
	return r.label("model_name", running, waiting, cacheUse)
}

func engineName(r reading) string {
	for _, name := range wantedNames { // sorted by name
		if len(r[name]) > 0 && engineOf(name) != "" {
			return engineOf(name)
		}
	}
	return ""
}

const noWorkers = "no workers' metrics: load per worker is unknown"

// notReported names the metrics of a Dynamo that this cluster lacks.
func notReported(r reading, c api.Cluster) (missing []string) {
	if !r.hasFrontend() && c.Router == "" {
		missing = append(missing, "no Dynamo frontend: its queue and the router's hit ratios are not reported")
	}
	if c.InflightMin == nil {
		missing = append(missing, noWorkers)
	}
	return missing
}
