package baseline

import (
	"cmp"
	"math"
	"slices"

	"kvbooth/sidecar/api"
)

// Live is a lane's current step for a comparison with a baseline. Its values are those of the counted turns. Latencies
// are in seconds; nil is unknown. Its intervals hold at all times together.
type Live struct {
	Metrics               api.Metrics
	OutputTokensPerSecond *float64
	RequestsPerSecond     *float64
	KVHitRatio            *float64
	// The intervals of the three above.
	OutputInterval, RequestsInterval, HitInterval *[2]float64
	N                                             int     // counted turns
	Seconds                                       float64 // of measurement
	Settling                                      bool    // whether fewer than 60 s of counted turns exist
	SettlingFor                                   float64 // seconds that are still missing
	Withheld                                      string  // why no difference is reported; empty: differences are reported
	Deployment                                    api.Deployment
	Shape                                         api.WorkloadShape
	Mode                                          api.ModeState // an empty speculation is the deployment's
}

// Compare puts a live step beside a baseline at a level. The result has all columns of the baseline, the live
// run's own mode included, and every difference of deployment and workload.
//
// An improvement is (baseline − live) / baseline for latencies and (live − baseline) / baseline for rates and the hit
// ratio, in per cent. Its interval comes from the intervals of both values, and decides its outcome; without either
// interval the outcome is not certain. There is no improvement while settling or withheld, against openings of another
// length, where a value is missing or the baseline's is 0, and where a routing mode is unknown, because the compared
// modes are then undefined.
func Compare(live Live, b api.Baseline, level api.Level) api.Comparison {
	c := api.Comparison{
		Name: b.Name, Title: b.Title, Level: level,
		Settling: live.Settling, SettlingFor: live.SettlingFor, Withheld: live.Withheld,
		N: live.N, Seconds: live.Seconds, Live: live.Metrics,
		LiveOutput: live.OutputTokensPerSecond, LiveRPS: live.RequestsPerSecond, LiveKV: live.KVHitRatio,
		LiveOutputInterval: live.OutputInterval, LiveRPSInterval: live.RequestsInterval, LiveKVInterval: live.HitInterval,
		Differences: differences(live, b),
		Columns:     Columns(b, level),
	}
	if reason := incomparable(live.Shape, b.Workload); reason != "" {
		c.Withheld = reason
	}
	if live.Mode.Mode == api.ModeUnknown && !live.Settling && live.N > 0 {
		c.Withheld = cmp.Or(c.Withheld, ModeNotKnown)
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

// Against returns a column with the improvements of another one over it, by the rule of [Compare]. Both columns come
// from [At], at one concurrency.
func Against(column, other api.Column) api.Column {
	improve(&column, &other, 0, false)
	return column
}

// ModeNotKnown is why nothing is compared while the routing mode is unknown.
const ModeNotKnown = "the routing mode of this server is unknown"

// column converts the live step into the form of a recorded column.
func (l *Live) column() api.Column {
	c := api.Column{
		OutputTokensPerSecond: api.LookedUp{Value: l.OutputTokensPerSecond, Interval: l.OutputInterval},
		RequestsPerSecond:     api.LookedUp{Value: l.RequestsPerSecond, Interval: l.RequestsInterval},
		KVHitRatio:            api.LookedUp{Value: l.KVHitRatio, Interval: l.HitInterval},
	}
	for _, f := range api.Times {
		q := f.Quantiles(&l.Metrics)
		*f.Column(&c) = api.LookedUpPair{
			P50: api.LookedUp{Value: q.P50, Interval: q.P50Interval, Error: q.P50Error},
			P95: api.LookedUp{Value: q.P95, Interval: q.P95Interval, Error: q.P95Error},
		}
	}
	return c
}

// improve fills the improvements of one column. The live values were measured for this number of seconds. Where the
// intervals of the column hold at all times, that of the hit ratio has no allowance for drift, unlike those of speeds.
func improve(c, live *api.Column, seconds float64, atAllTimes bool) {
	for _, q := range values {
		l := q.LookedUpIn(live)
		q.improve(q.LookedUpIn(c), figure{
			value: l.Value, interval: l.Interval, error: l.Error, seconds: seconds,
			addsUp: atAllTimes && q.Kind == Share,
		})
	}
}

// figure is a value with its interval, and the load generator's own error in it.
type figure struct {
	value    *float64
	interval *[2]float64
	error    *float64
	addsUp   bool    // whether its error adds to the other figure's: both intervals miss the truth together or not at all
	seconds  float64 // of a measurement in progress; else 0
}

// reach returns how far the interval extends without the error on either side, and how far the error extends.
func (f figure) reach(bothWays bool) (down, up, errorDown, errorUp float64) {
	if f.error != nil {
		errorDown = *f.error
	}
	if bothWays {
		errorUp = errorDown
	}
	return max(0, *f.value-f.interval[0]-errorDown), max(0, f.interval[1]-*f.value-errorUp), errorDown, errorUp
}

// smallest is the least improvement that counts, in per cent. A smaller one would be displayed as 0.0.
const smallest = .05

// LeastOwnError is the share of a difference from which the load generator's own error withholds its outcome. A smaller
// error only widens the interval.
const LeastOwnError = .1

// improve compares one value. The margin widens the interval of the difference on either side. The errors of both sides
// are systematic and add up. An outcome that they could change is withheld.
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
	// The interval of a difference of two independent values: Zou and Donner,
	// "Construction of confidence limits about effect measures", Statistics in
	// Medicine 27 (2008). For symmetric ones that is the root of the sum of squares.
	low, high := d-math.Hypot(down, wasUp), d+math.Hypot(up, wasDown)
	if live.addsUp {
		low, high = d-down-wasUp, d+up+wasDown
	}
	without, _ := between(low, high)
	l.Improvement.Outcome, l.Improvement.Interval = between(low-errorDown-wasErrorUp, high+errorUp+wasErrorDown)
	if errors := max(errorDown+wasErrorUp, errorUp+wasErrorDown); without != l.Improvement.Outcome &&
		errors >= LeastOwnError*math.Abs(d) {
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

// left estimates the seconds until an interval that narrows with the root of the time excludes a value at a distance.
// reach is its present extent in that direction, and fixed that of the other value, which is constant. nil: it never
// will, or the figure is not being measured.
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

// Advantages returns by how much KV-aware routing is better than round-robin at the levels of a baseline that have
// both, by the rule of [Compare]. Levels ascend. Values that one of the two lacks are omitted. Of several rows of one
// level the latest is used.
func Advantages(b api.Baseline) []api.Advantage {
	all := []api.Advantage{}
	t := NewTable(b)
	for i, m := range t.modes {
		before := slices.Index(t.modes, api.ModeState{Mode: api.ModeRoundRobin, Speculation: m.Speculation})
		if m.Mode != api.ModeKV || before < 0 {
			continue
		}
		roundRobin, kv := latest(t.rows[before]), latest(t.rows[i])
		for j := range t.rows[i] {
			level := t.rows[i][j].Level
			if roundRobin[level] != nil && kv[level] == &t.rows[i][j] {
				all = append(all, advantage(t.exactly(roundRobin[level]), t.exactly(kv[level])))
				all[len(all)-1].Level = level
			}
		}
	}
	return all
}

// latest returns the latest row of each level.
func latest(rows []api.BaselineRow) map[api.Level]*api.BaselineRow {
	found := map[api.Level]*api.BaselineRow{}
	for i := range rows {
		r := &rows[i]
		was := found[r.Level]
		if was == nil || r.Measured != nil && (was.Measured == nil || !r.Measured.Before(*was.Measured)) {
			found[r.Level] = r
		}
	}
	return found
}

func advantage(before, after api.Column) api.Advantage {
	column := Against(before, after)
	a := api.Advantage{Speculation: after.Speculation, Of: map[string]api.Improvement{}}
	for _, q := range values {
		if l := q.LookedUpIn(&column); l.Improvement != nil {
			a.Of[q.Name] = *l.Improvement
		}
	}
	return a
}
