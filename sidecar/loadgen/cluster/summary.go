package cluster

import (
	"cmp"
	"strings"

	"kvbooth/sidecar/api"
)

// summarise computes what a cluster looks like from one reading and the history
// behind it. It leaves Source and age to the caller.
func summarise(samples []Sample, h history, configured api.Speculation) api.Cluster {
	r := newReading(samples, h)
	workers := newRoster(r)
	c := api.Cluster{
		Available:   true,
		Queued:      r.sum(queued),
		Inflight:    r.sum(inflight),
		BatchLimit:  r.max(batchLimit),
		KV:          kv(r),
		Speculation: speculation(r, configured),
		Workers:     workers.list(),
		GPU:         cmp.Or(workers.gpuModel(), r.label("modelName", gpuMetrics)),
		Model:       modelName(r),
		Engine:      engineName(r),
	}
	balance(&c)
	c.Problem = notReported(r, c)
	return c
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
// one, which is no ratio and not shown. Without a frontend vLLM's own counters
// serve.
func kv(r reading) api.KV {
	kv := api.KV{
		HitRatio:       share(r.ratio(cachedTokens, inputTokens)),
		Source:         "frontend",
		PredictedRatio: share(r.ratio(predictedSum, predictedCount)),
	}
	// A router that is told where to send a turn looks for no best worker.
	if r.increase(bestTokens) > 0 {
		kv.AchievableRatio = share(r.ratio(bestTokens, routedTokens))
	}
	if kv.HitRatio == nil && !r.has(inputTokens) {
		kv.HitRatio, kv.Source = share(r.ratio(prefixHits, prefixQueries)), "engine"
	}
	if kv.HitRatio == nil {
		kv.Source = ""
	}
	return kv
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
// forward pass of the target model yields. Where nothing is drafted and the
// configuration says that speculation is off, a pass yields one token.
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
		return api.SpeculativeUse{TokensPerStep: tokensPerStep(r)}
	}
	return api.SpeculativeUse{}
}

// tokensPerStep is 1 + accepted tokens / drafts by vLLM's counters, over the
// window; TensorRT-LLM tells the figure itself, of its latest iteration. Zero
// stands there before the first one.
func tokensPerStep(r reading) *float64 {
	if accepted := r.ratio(acceptedTokens, drafts); accepted != nil {
		return new(1 + *accepted)
	}
	if told := r.mean(acceptanceLength); told != nil && *told >= 1 {
		return told
	}
	return nil
}

func modelName(r reading) string {
	if name := r.label("model", inflight, batchLimit, inputTokens); name != "" {
		return name
	}
	return r.label("model_name", running, waiting, cacheUse)
}

func engineName(r reading) string {
	for _, name := range wanted {
		if len(r.samples[name]) > 0 && engineOf(name) != "" {
			return engineOf(name)
		}
	}
	return ""
}

// notReported names what this cluster does not tell, "" where it tells all that
// a Dynamo does.
func notReported(r reading, c api.Cluster) string {
	var missing []string
	if !r.has(inflight) && !r.has(inputTokens) {
		missing = append(missing, "no Dynamo frontend: its queue and the router's hit ratios are not reported")
	}
	if c.InflightMin == nil {
		missing = append(missing, "no workers' metrics: load per worker is not reported")
	}
	return strings.Join(missing, "; ")
}
