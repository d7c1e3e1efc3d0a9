package baseline

import "kvbooth/sidecar/api"

// Live is a lane's current step as a baseline is compared with it: of its
// counted turns of the last 60 s. Latencies are seconds; nil is not known.
type Live struct {
	Metrics               api.Metrics
	OutputTokensPerSecond *float64
	RequestsPerSecond     *float64
	KVHitRatio            *float64
	N                     int     // counted turns
	Settling              bool    // fewer than 60 s of counted turns exist
	SettlingFor           float64 // seconds of them still missing
	Deployment            api.Deployment
	Shape                 api.WorkloadShape
	Mode                  api.Mode
	Speculation           api.Speculation // empty: the deployment's
}

// Compare puts a live step beside a baseline at a concurrency: all columns of
// the baseline, the live run's own mode among them, and every difference of
// deployment and workload.
//
// An improvement is (baseline − live) / baseline for latencies and
// (live − baseline) / baseline for rates and the hit ratio, in per cent. It is
// shown where the baseline's value lies outside the live value's 95 % interval;
// a latency without an interval shows none. Rates and the hit ratio have no
// interval and are always shown. There is no improvement while settling, nor
// where either side has no value or the baseline's is 0.
func Compare(live Live, b api.Baseline, concurrency int) api.Comparison {
	c := api.Comparison{
		Name: b.Name, Title: b.Title, Concurrency: concurrency,
		Settling: live.Settling, SettlingFor: live.SettlingFor,
		N: live.N, Live: live.Metrics,
		LiveOutput: live.OutputTokensPerSecond, LiveRPS: live.RequestsPerSecond, LiveKV: live.KVHitRatio,
		Differences: differences(live, b),
		Columns:     Columns(b, concurrency),
	}
	if !live.Settling {
		for i := range c.Columns {
			improve(&c.Columns[i], live)
		}
	}
	return c
}

// improve fills the improvements of one column.
func improve(c *api.Column, live Live) {
	improveLatency(&c.TTFT, live.Metrics.TTFT)
	improveLatency(&c.TPOT, live.Metrics.TPOT)
	improveLatency(&c.ITL, live.Metrics.ITL)
	improveLatency(&c.Latency, live.Metrics.Latency)
	improveRate(&c.OutputTokensPerSecond, live.OutputTokensPerSecond)
	improveRate(&c.RequestsPerSecond, live.RequestsPerSecond)
	improveRate(&c.KVHitRatio, live.KVHitRatio)
}

func improveLatency(pair *api.LookedUpPair, live api.Quantiles) {
	improveQuantile(&pair.P50, live.P50, live.P50Interval)
	improveQuantile(&pair.P95, live.P95, live.P95Interval)
}

func improveQuantile(l *api.LookedUp, live *float64, interval *[2]float64) {
	if p := percentAbove(l.Value, live); p != nil {
		outside := interval != nil && (*l.Value < interval[0] || *l.Value > interval[1])
		l.Improvement = &api.Improvement{Percent: 0 - *p, Shown: outside} // 0 − p: no negative zero
	}
}

func improveRate(l *api.LookedUp, live *float64) {
	if p := percentAbove(l.Value, live); p != nil {
		l.Improvement = &api.Improvement{Percent: *p, Shown: true}
	}
}

// percentAbove says by how many per cent live lies above the baseline's value.
func percentAbove(recorded, live *float64) *float64 {
	if recorded == nil || live == nil || *recorded == 0 {
		return nil
	}
	return copyOf((*live - *recorded) / *recorded * 100)
}
