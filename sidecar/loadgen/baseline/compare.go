package baseline

import (
	"cmp"
	"math"

	"kvbooth/sidecar/api"
)

// Live is a lane's current step as a baseline is compared with it: of its
// counted turns. Latencies are seconds; nil is not known. Its intervals hold at all times together.
type Live struct {
	Metrics               api.Metrics
	OutputTokensPerSecond *float64
	RequestsPerSecond     *float64
	KVHitRatio            *float64
	// The intervals of the three above.
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
// without either of them nothing is certain yet. There is no improvement while
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
				improve(&c.Columns[i], live, true)
			}
		}
	}
	return c
}

// Against gives a column with the improvements of another one over it, by the rule that
// [Compare] has for a live step. Both are of [At], at one concurrency.
func Against(column, other api.Column) api.Column {
	quantiles := func(p api.LookedUpPair) api.Quantiles {
		return api.Quantiles{
			P50: p.P50.Value, P50Interval: p.P50.Interval, P50Error: p.P50.Error,
			P95: p.P95.Value, P95Interval: p.P95.Interval, P95Error: p.P95.Error,
		}
	}
	improve(&column, Live{
		Metrics: api.Metrics{
			TTFT: quantiles(other.TTFT), TPOT: quantiles(other.TPOT),
			ITL: quantiles(other.ITL), Latency: quantiles(other.Latency),
		},
		OutputTokensPerSecond: other.OutputTokensPerSecond.Value, OutputInterval: other.OutputTokensPerSecond.Interval,
		RequestsPerSecond: other.RequestsPerSecond.Value, RequestsInterval: other.RequestsPerSecond.Interval,
		KVHitRatio: other.KVHitRatio.Value, HitInterval: other.KVHitRatio.Interval,
	}, false)
	for _, v := range optional {
		better := 1.
		if v.name == memoryOfGPU {
			better = -1
		}
		l := v.of(&other)
		improveValue(v.of(&column), figure{value: l.Value, interval: l.Interval}, better, 0, false)
	}
	return column
}

const modeNotKnown = "the routing mode of this server is unknown"

// improve fills the improvements of one column. Live intervals may hold at all times: that of the hit ratio then has no
// allowance for a wander, as those of speeds have.
func improve(c *api.Column, live Live, atAllTimes bool) {
	of := func(value *float64, interval *[2]float64, err *float64) figure {
		return figure{value: value, interval: interval, error: err, seconds: live.Seconds}
	}
	for _, l := range latencies(c) {
		q := l.live(&live.Metrics)
		improveValue(&l.pair.P50, of(q.P50, q.P50Interval, q.P50Error), -1, l.margin, l.bothWays)
		improveValue(&l.pair.P95, of(q.P95, q.P95Interval, q.P95Error), -1, l.margin, l.bothWays)
	}
	output := of(live.OutputTokensPerSecond, live.OutputInterval, nil)
	requests := of(live.RequestsPerSecond, live.RequestsInterval, nil)
	hits := of(live.KVHitRatio, live.HitInterval, nil)
	hits.addsUp = atAllTimes
	improveValue(&c.OutputTokensPerSecond, output, 1, 0, false)
	improveValue(&c.RequestsPerSecond, requests, 1, 0, false)
	improveValue(&c.KVHitRatio, hits, 1, 0, false)
}

// pace is what TPOT may differ by, in per cent, beyond what the intervals of two windows
// tell: workers are not equally fast, and which turns are on which changes more slowly
// than the batches that an interval is made of. An assumption, held against the
// simulated cluster, whose workers differ by 1.5 %, in sidecar/test/intervals: without it,
// one pair in eight of equal windows of a minute would differ at 180 conversations.
const pace = 1.

// figure is a value with its interval, and the load generator's own error in that.
type figure struct {
	value    *float64
	interval *[2]float64
	error    *float64
	addsUp   bool    // with the other figure's: both intervals leave out the truth together or not at all
	seconds  float64 // that it was measured for, while it still is; else 0
}

// reach is how far the interval reaches without the error on either side, and how far the error.
func (f figure) reach(bothWays bool) (down, up, errorDown, errorUp float64) {
	if f.error != nil {
		errorDown = *f.error
	}
	if bothWays {
		errorUp = errorDown
	}
	return max(0, *f.value-f.interval[0]-errorDown), max(0, f.interval[1]-*f.value-errorUp), errorDown, errorUp
}

// smallest is the least improvement that is one, in per cent: with its one decimal,
// nobody sees less.
const smallest = .05

// improveValue compares one value; better is 1 where more is better, else −1. The
// interval of the difference is wider by a margin, in per cent, on either side. The errors of
// both sides, which are no chance, add up; an outcome that there would be without them is
// withheld.
func improveValue(l *api.LookedUp, live figure, better, margin float64, bothWays bool) {
	if l.Value == nil || live.value == nil || *l.Value == 0 {
		return
	}
	percent := func(difference float64) float64 { return 0 + better*difference / *l.Value * 100 } // 0 +: no negative zero
	d := *live.value - *l.Value
	l.Improvement = &api.Improvement{Percent: percent(d), Outcome: api.OutcomeTooVariable}
	if live.interval == nil || l.Interval == nil {
		return
	}
	down, up, errorDown, errorUp := live.reach(bothWays)
	was := figure{value: l.Value, interval: l.Interval, error: l.Error}
	wasDown, wasUp, wasErrorDown, wasErrorUp := was.reach(bothWays)
	between := func(low, high float64) (api.Outcome, *[2]float64) {
		low, high = percent(low), percent(high)
		low, high = min(low, high)-margin, max(low, high)+margin
		return outcome(l.Improvement.Percent, low, high), &[2]float64{low, high}
	}
	// What two independent intervals say of a difference: Zou and Donner,
	// "Construction of confidence limits about effect measures", Statistics in
	// Medicine 27 (2008). For symmetric ones that is the root of the sum of squares.
	low, high := d-math.Hypot(down, wasUp), d+math.Hypot(up, wasDown)
	if live.addsUp {
		low, high = d-down-wasUp, d+up+wasDown
	}
	without, _ := between(low, high)
	l.Improvement.Outcome, l.Improvement.Interval = between(low-errorDown-wasErrorUp, high+errorUp+wasErrorDown)
	if without != l.Improvement.Outcome {
		l.Improvement.Outcome = api.OutcomeWithheld
	}
	if l.Improvement.Outcome == api.OutcomeNoDifference && math.Abs(l.Improvement.Percent) >= smallest {
		margin *= math.Abs(*l.Value) / 100
		if d > 0 {
			l.Improvement.SecondsLeft = live.left(d-margin-errorDown-wasErrorUp, down, wasUp)
		} else {
			l.Improvement.SecondsLeft = live.left(-d-margin-errorUp-wasErrorDown, up, wasDown)
		}
	}
}

// left is about how many more seconds it takes until an interval, which gets shorter with the root of the time, leaves
// out a value at a distance; reach is how far it reaches there, and fixed how far that of the value, which stays. Nil:
// it never will, or the figure is not being measured.
func (f figure) left(distance, reach, fixed float64) *float64 {
	if f.seconds == 0 || reach == 0 || distance <= fixed {
		return nil
	}
	allowed := math.Sqrt(distance*distance - fixed*fixed)
	if f.addsUp {
		allowed = distance - fixed
	}
	more := reach / allowed
	return new(max(0, f.seconds*(more*more-1)))
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
