package compare

import "kvbooth/sidecar/api"

// figure is a figure on which live and core must agree, and which the tables show.
type figure struct {
	name     string
	of       func(*result) float64 // NaN if not measured
	text     func(float64) string
	recorded func(*api.Column) api.LookedUp
	slo      float64 // default threshold that it must not exceed; 0: none
}

var figures = []figure{
	{
		name: hitRate, of: func(r *result) float64 { return r.hit }, text: percent,
		recorded: func(c *api.Column) api.LookedUp { return c.KVHitRatio },
	},
	{name: "same worker again", of: func(r *result) float64 { return r.stay }, text: percent, recorded: notRecorded},
	{
		name: "TTFT p50", of: func(r *result) float64 { return known(r.ttft.P50) }, text: milliseconds,
		recorded: func(c *api.Column) api.LookedUp { return c.TTFT.P50 },
	},
	{
		name: "TTFT p95", of: func(r *result) float64 { return known(r.ttft.P95) }, text: milliseconds,
		recorded: func(c *api.Column) api.LookedUp { return c.TTFT.P95 }, slo: .6,
	},
	{
		name: "TPOT p50", of: func(r *result) float64 { return known(r.tpot.P50) }, text: milliseconds,
		recorded: func(c *api.Column) api.LookedUp { return c.TPOT.P50 },
	},
	{
		name: "TPOT p95", of: func(r *result) float64 { return known(r.tpot.P95) }, text: milliseconds,
		recorded: func(c *api.Column) api.LookedUp { return c.TPOT.P95 }, slo: .06,
	},
	{
		name: "output tokens/s", of: func(r *result) float64 { return r.rate }, text: plain,
		recorded: func(c *api.Column) api.LookedUp { return c.OutputTokensPerSecond },
	},
	{name: "in-flight spread", of: func(r *result) float64 { return r.spread }, text: plain, recorded: notRecorded},
}

func notRecorded(*api.Column) api.LookedUp { return api.LookedUp{Lookup: api.LookupNotRecorded} }
