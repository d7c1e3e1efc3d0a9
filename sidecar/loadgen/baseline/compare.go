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
	Withheld                                      string  // why no difference is reported; empty: they are
	Deployment                                    api.Deployment
	Shape                                         api.WorkloadShape
	Mode                                          api.ModeState // an empty speculation is the deployment's
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
// has no value or the baseline's is 0, nor where either side's routing mode is
// unknown, since the compared modes are then undefined.
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
	if live.Mode.Mode == api.ModeUnknown && !live.Settling && live.N > 0 {
		c.Withheld = cmp.Or(c.Withheld, modeNotKnown)
	}
	if !live.Settling && c.Withheld == "" {
		now := live.column()
		for i := range c.Columns {
			if c.Columns[i].Mode != api.ModeUnknown {
				improve(&c.Columns[i], &now, live.Seconds, true)
			}
		}
	}
	return c
}

// Against gives a column with the improvements of another one over it, by the rule that
// [Compare] has for a live step. Both are of [At], at one concurrency.
func Against(column, other api.Column) api.Column {
	improve(&column, &other, 0, false)
	return column
}

const modeNotKnown = "the routing mode of this server is unknown"

// column is the live step as a comparison looks a recorded one up.
func (l *Live) column() api.Column {
	pair := func(q *api.Quantiles) api.LookedUpPair {
		return api.LookedUpPair{
			P50: api.LookedUp{Value: q.P50, Interval: q.P50Interval, Error: q.P50Error},
			P95: api.LookedUp{Value: q.P95, Interval: q.P95Interval, Error: q.P95Error},
		}
	}
	m := &l.Metrics
	return api.Column{
		TTFT: pair(&m.TTFT), TPOT: pair(&m.TPOT), ITL: pair(&m.ITL), Latency: pair(&m.Latency),
		OutputTokensPerSecond: api.LookedUp{Value: l.OutputTokensPerSecond, Interval: l.OutputInterval},
		RequestsPerSecond:     api.LookedUp{Value: l.RequestsPerSecond, Interval: l.RequestsInterval},
		KVHitRatio:            api.LookedUp{Value: l.KVHitRatio, Interval: l.HitInterval},
	}
}

// improve fills the improvements of one column. The intervals of what it is compared with, which was measured for so
// many seconds, may hold at all times: that of the hit ratio then has no allowance for a wander, as those of speeds
// have.
func improve(c, live *api.Column, seconds float64, atAllTimes bool) {
	for _, q := range values {
		l := q.LookedUpIn(live)
		q.improve(q.LookedUpIn(c), figure{
			value: l.Value, interval: l.Interval, error: l.Error, seconds: seconds,
			addsUp: atAllTimes && q.Kind == Share,
		})
	}
}

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

// smallest is the least improvement that counts, in per cent. A smaller one is rounded
// to 0.0 on display.
const smallest = .05

// improve compares one value. The interval of the difference is wider by the margin on either side. The errors of
// both sides, which are no chance, add up; an outcome that there would be without them is
// withheld.
func (q *Quantity) improve(l *api.LookedUp, live figure) {
	if l.Value == nil || live.value == nil || *l.Value == 0 {
		return
	}
	better, margin := 1., q.margin
	if q.Kind.LessIsBetter() {
		better = -1
	}
	percent := func(difference float64) float64 { return 0 + better*difference / *l.Value * 100 } // 0 +: no negative zero
	d := *live.value - *l.Value
	l.Improvement = &api.Improvement{Percent: percent(d), Outcome: api.OutcomeTooVariable}
	if live.interval == nil || l.Interval == nil {
		return
	}
	down, up, errorDown, errorUp := live.reach(q.BothWays)
	was := figure{value: l.Value, interval: l.Interval, error: l.Error}
	wasDown, wasUp, wasErrorDown, wasErrorUp := was.reach(q.BothWays)
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
