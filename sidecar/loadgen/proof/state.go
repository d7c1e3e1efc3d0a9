package proof

import (
	"math"
)

// Verdict is how a trial stands.
type Verdict string

// The verdicts. All but the first are final.
const (
	Running      Verdict = "running"
	BBetter      Verdict = "b_better"
	ABetter      Verdict = "a_better"
	NoDifference Verdict = "no_difference" // the smallest difference of interest is excluded, both ways
	TimeOver     Verdict = "time_over"     // undecided
)

// Over says whether a trial with this verdict has ended.
func (v Verdict) Over() bool { return v != Running }

// Basis is what the width of an interval rests on.
type Basis string

// The bases.
const (
	BasisSections Basis = "sections" // of the spans
	BasisPairs    Basis = "pairs"    // which scatter more than sections explain
)

// Difference is what is known of one metric. A and B are means over the spans, geometric ones of
// times and rates. The difference is (B − A)/A of times and rates, and B − A of shares.
type Difference struct {
	Metric     Metric     `json:"metric"`
	A          float64    `json:"a"`
	B          float64    `json:"b"`
	Difference float64    `json:"difference"`
	Interval   [2]float64 `json:"interval"` // 95 %, over all looks together
	Outcome    Verdict    `json:"outcome"`  // what the interval says; running: nothing yet
	Basis      Basis      `json:"basis"`
}

// Left is how much longer a trial takes, as likely less as more.
type Left struct {
	Seconds    float64 `json:"seconds"`
	Difference float64 `json:"difference"` // if that is the true one: the estimate, or before the first pair twice the smallest of interest
	Beyond     bool    `json:"beyond"`     // that is more than the trial has, which will end undecided if so
}

// State is what a trial shows at some moment.
type State struct {
	Verdict Verdict      `json:"verdict"`
	Pairs   int          `json:"pairs"`
	Spoiled int          `json:"spoiled"` // spans
	Used    float64      `json:"used"`    // seconds
	Left    *Left        `json:"left,omitempty"`
	Primary *Difference  `json:"primary,omitempty"`
	Others  []Difference `json:"others"` // with intervals that hold for all of them together
}

// State says what the spans so far show.
func (t *Trial) State() State {
	pairs := t.pairs()
	s := State{Verdict: t.verdict(), Pairs: len(pairs), Used: t.used(), Others: []Difference{}}
	for i := range t.Done {
		if t.Done[i].Spoiled != "" {
			s.Spoiled++
		}
	}
	s.Primary = t.difference(t.Plan.Primary, pairs, alpha)
	for _, m := range Metrics {
		if m == t.Plan.Primary {
			continue
		}
		if d := t.difference(m, pairs, alpha/float64(len(Metrics)-1)); d != nil {
			s.Others = append(s.Others, *d)
		}
	}
	if !s.Verdict.Over() {
		s.Left = t.left(pairs)
	}
	return s
}

// verdict is how the trial stands. It was running before the latest span, or there
// would not have been one.
func (t *Trial) verdict() Verdict {
	pairs := t.pairs()
	if d := t.difference(t.Plan.Primary, pairs, alpha); d != nil && d.Outcome.Over() {
		return d.Outcome
	}
	n := len(t.Done)
	if n == 0 || t.Done[n-1].Number%2 == 1 && (t.Plan.Together || t.Done[n-1].Spoiled == "") { // in the middle of a pair
		return Running
	}
	if t.used()+t.pairTime() > t.Plan.MaxTime {
		return TimeOver
	}
	return Running
}

// difference is what pairs say of a metric; nil where that is nothing.
func (t *Trial) difference(m Metric, pairs []pair, alpha float64) *Difference {
	l, ok := lookAt(m, pairs)
	if !ok || l.pairs == 0 {
		return nil
	}
	d, h := l.b-l.a, half(l.variance, l.df, l.pairs, alpha)
	low, high := d-h-l.errB, d+h+l.errA // what is measured of an arm may be too much
	return &Difference{
		Metric: m, A: m.unscaled(l.a), B: m.unscaled(l.b), Difference: m.relative(d),
		Interval: [2]float64{m.relative(low), m.relative(high)},
		Outcome:  m.outcome(low, high, t.Plan.Smallest), Basis: l.basis,
	}
}

// outcome is what an interval on the scale of differences says.
func (m Metric) outcome(low, high, smallest float64) Verdict {
	margin := m.margin(smallest)
	switch {
	case low > -margin && high < margin:
		return NoDifference
	case low > 0 && !m.LessIsBetter(), high < 0 && m.LessIsBetter():
		return BBetter
	case low > 0, high < 0:
		return ABetter
	}
	return Running
}

func (t *Trial) used() (seconds float64) {
	for i := range t.Done {
		seconds += t.Done[i].Elapsed
	}
	return seconds
}

// pairTime is what a pair takes: by the spans so far, or after the pilot by its median
// latency, with five of them for the warm-up.
func (t *Trial) pairTime() float64 {
	sum, n := 0.0, 0.0
	for i := range t.Done {
		if t.Done[i].Number > 0 {
			sum, n = sum+t.Done[i].Elapsed, n+1
		}
	}
	if n == 0 {
		return 2 * (Latencies*t.latency() + max(t.Plan.Seconds, planned*t.latency()))
	}
	return 2 * sum / n
}

// left forecasts by how many pairs the interval will be narrow enough; nil before the
// pilot.
func (t *Trial) left(pairs []pair) *Left {
	m := t.Plan.Primary
	l, ok := lookAt(m, pairs)
	difference := l.b - l.a
	if !ok || l.pairs == 0 {
		if l, ok = t.pilot(); !ok {
			return nil
		}
		difference = m.margin(2 * t.Plan.Smallest)
	}
	margin := m.margin(t.Plan.Smallest)
	enough := max(math.Abs(difference), margin-math.Abs(difference))
	k := l.pairs + 1
	perPair := l.df / float64(max(l.pairs, 1))
	for k < maxForecast && half(l.variance, perPair*float64(k), k, alpha) > enough {
		k++
	}
	seconds := float64(k-l.pairs) * t.pairTime()
	return &Left{
		Seconds: seconds, Difference: m.relative(difference),
		Beyond: k == maxForecast || t.used()+seconds > t.Plan.MaxTime,
	}
}

// maxForecast is how many pairs a forecast looks at.
const maxForecast = 1000

// pilot is what the first span says of pairs: two arms that scatter as it does.
func (t *Trial) pilot() (look, bool) {
	if len(t.Done) == 0 {
		return look{}, false
	}
	s, ok := t.Done[len(t.Done)-1].Metrics[t.Plan.Primary]
	v, df := within([]Sectioned{s})
	return look{variance: 2*v + 2*restart*restart, df: 2 * df}, ok
}
