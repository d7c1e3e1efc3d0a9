package baseline

import (
	"cmp"
	"math"

	"kvbooth/sidecar/api"
)

// Live is a lane's current step as a baseline is compared with it: of its
// counted turns. Latencies are seconds; nil is not known.
type Live struct {
	Metrics               api.Metrics
	OutputTokensPerSecond *float64
	RequestsPerSecond     *float64
	KVHitRatio            *float64
	// The 95 % intervals of the three above.
	OutputInterval, RequestsInterval, HitInterval *[2]float64
	N                                             int     // counted turns
	Seconds                                       float64 // how far all that reaches back
	Settling                                      bool    // fewer than 60 s of counted turns exist
	SettlingFor                                   float64 // seconds of them still missing
	Withheld                                      string  // why no difference may be told; empty: they may
	Deployment                                    api.Deployment
	Shape                                         api.WorkloadShape
	Mode                                          api.Mode
	Speculation                                   api.Speculation // empty: the deployment's
}

// Compare puts a live step beside a baseline at a concurrency: all columns of
// the baseline, the live run's own mode among them, and every difference of
// deployment and workload.
//
// An improvement is (baseline − live) / baseline for latencies and
// (live − baseline) / baseline for rates and the hit ratio, in per cent. Its
// interval comes from the live value's and the baseline's, and decides its outcome;
// without either of them it is too variable to say. There is no improvement while
// settling or withheld, nor against openings of another length, nor where either side
// has no value or the baseline's is 0, nor where either side's routing mode is not
// known: nobody knows then what is compared with what.
func Compare(live Live, b api.Baseline, concurrency int) api.Comparison {
	c := api.Comparison{
		Name: b.Name, Title: b.Title, Concurrency: concurrency,
		Settling: live.Settling, SettlingFor: live.SettlingFor, Withheld: live.Withheld,
		N: live.N, Seconds: live.Seconds, Live: live.Metrics,
		LiveOutput: live.OutputTokensPerSecond, LiveRPS: live.RequestsPerSecond, LiveKV: live.KVHitRatio,
		LiveOutputInterval: live.OutputInterval, LiveRPSInterval: live.RequestsInterval, LiveKVInterval: live.HitInterval,
		Differences: differences(live, b),
		Columns:     Columns(b, concurrency),
	}
	if reason := incomparable(live.Shape, b.Workload); reason != "" {
		c.Withheld = reason
	}
	if live.Mode == api.ModeUnknown && !live.Settling && live.N > 0 {
		c.Withheld = cmp.Or(c.Withheld, modeNotKnown)
	}
	if !live.Settling && c.Withheld == "" {
		for i := range c.Columns {
			if c.Columns[i].Mode != api.ModeUnknown {
				improve(&c.Columns[i], live)
			}
		}
	}
	return c
}

// Against gives a column with the improvements of another one over it, by the rule that
// [Compare] has for a live step. Both are of [At], at one concurrency.
func Against(column, other api.Column) api.Column {
	quantiles := func(p api.LookedUpPair) api.Quantiles {
		return api.Quantiles{P50: p.P50.Value, P95: p.P95.Value, P50Interval: p.P50.Interval, P95Interval: p.P95.Interval}
	}
	improve(&column, Live{
		Metrics:               api.Metrics{TTFT: quantiles(other.TTFT), TPOT: quantiles(other.TPOT), ITL: quantiles(other.ITL), Latency: quantiles(other.Latency)},
		OutputTokensPerSecond: other.OutputTokensPerSecond.Value, OutputInterval: other.OutputTokensPerSecond.Interval,
		RequestsPerSecond: other.RequestsPerSecond.Value, RequestsInterval: other.RequestsPerSecond.Interval,
		KVHitRatio: other.KVHitRatio.Value, HitInterval: other.KVHitRatio.Interval,
	})
	return column
}

const modeNotKnown = "the routing mode of this server is unknown"

// improve fills the improvements of one column.
func improve(c *api.Column, live Live) {
	improveLatency(&c.TTFT, live.Metrics.TTFT, 0)
	improveLatency(&c.TPOT, live.Metrics.TPOT, pace)
	improveLatency(&c.ITL, live.Metrics.ITL, 0)
	improveLatency(&c.Latency, live.Metrics.Latency, 0)
	improveValue(&c.OutputTokensPerSecond, live.OutputTokensPerSecond, live.OutputInterval, 1, 0)
	improveValue(&c.RequestsPerSecond, live.RequestsPerSecond, live.RequestsInterval, 1, 0)
	improveValue(&c.KVHitRatio, live.KVHitRatio, live.HitInterval, 1, 0)
}

// pace is what TPOT may differ by, in per cent, beyond what the intervals of two windows
// tell: workers are not equally fast, and which turns are on which changes more slowly
// than the batches that an interval is made of. An assumption, held against the
// simulated cluster, whose workers differ by 1.5 %, in sidecar/test/intervals: without it,
// one pair in eight of equal windows of a minute would differ at 180 conversations.
const pace = 1.

func improveLatency(pair *api.LookedUpPair, live api.Quantiles, margin float64) {
	improveValue(&pair.P50, live.P50, live.P50Interval, -1, margin)
	improveValue(&pair.P95, live.P95, live.P95Interval, -1, margin)
}

// smallest is the least improvement that is one, in per cent: with its one decimal,
// nobody sees less.
const smallest = .05

// improveValue compares one value; better is 1 where more is better, else −1. The
// interval of the difference is wider by a margin, in per cent, on either side.
func improveValue(l *api.LookedUp, live *float64, interval *[2]float64, better, margin float64) {
	if l.Value == nil || live == nil || *l.Value == 0 {
		return
	}
	percent := func(difference float64) float64 { return 0 + better*difference / *l.Value * 100 } // 0 +: no negative zero
	d := *live - *l.Value
	l.Improvement = &api.Improvement{Percent: percent(d), Outcome: api.OutcomeTooVariable}
	if interval == nil || l.Interval == nil {
		return
	}
	// What two independent intervals say of a difference: Zou and Donner,
	// "Construction of confidence limits about effect measures", Statistics in
	// Medicine 27 (2008). For symmetric ones that is the root of the sum of squares.
	low := percent(d - math.Hypot(*live-interval[0], l.Interval[1]-*l.Value))
	high := percent(d + math.Hypot(interval[1]-*live, *l.Value-l.Interval[0]))
	low, high = min(low, high)-margin, max(low, high)+margin
	l.Improvement.Interval = &[2]float64{low, high}
	l.Improvement.Outcome = outcome(l.Improvement.Percent, low, high)
}

func outcome(percent, low, high float64) api.Outcome {
	switch {
	case percent >= smallest && low > 0:
		return api.OutcomeBetter
	case percent <= -smallest && high < 0:
		return api.OutcomeWorse
	}
	return api.OutcomeNoDifference
}
