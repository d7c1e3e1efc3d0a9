package proof

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
)

// The verdicts on a level. For the crossing, a level meets where the modes stand as they do
// at the lowest levels.
const (
	meets  = "meets"
	misses = "misses"
	open   = "open"
)

// level is what is known of one in a row.
type level struct {
	concurrency int
	spans       int     // of a crossing: pairs of them; 0: all were spoiled, nothing is known
	excess      float64 // on the scale of differences: above 0, it seems to fail
	verdict     string  // with the confidence asked for
	more        int     // spans that would settle it, as it scatters; 0: it is settled, or too close to call
	look        look    // of the figure that the excess is of
	spent       float64 // of the error on its verdict, as if of two sides
}

// seems says whether an SLO seems to be missed, or the order turned. Nothing is known
// of a level without spans.
func (l level) seems() bool { return l.spans > 0 && l.excess > 0 }

// row is the levels tested for one question, ascending.
type row []level

// first is the place of the first level that seems to fail, or the number of levels.
func (r row) first() int {
	if i := slices.IndexFunc(r, level.seems); i >= 0 {
		return i
	}
	return len(r)
}

// passing is how many levels from the lowest on are certain to pass.
func (r row) passing() int {
	if i := slices.IndexFunc(r, func(l level) bool { return l.verdict != meets }); i >= 0 {
		return i
	}
	return len(r)
}

// failing is the place of the first level that is certain to fail, or the number of levels.
func (r row) failing() int {
	if i := slices.IndexFunc(r, func(l level) bool { return l.verdict == misses }); i >= 0 {
		return i
	}
	return len(r)
}

// wish is a level to measure, and by how many spans each conversation costs that the
// interval would get narrower.
type wish struct {
	concurrency int
	cost        float64
}

// wishes are the levels of a question that may be measured next.
func (c *Capacity) wishes(r row) (all []wish) {
	first, passing, failing := r.first(), r.passing(), r.failing()
	ends, _ := r.interval()
	if failing == len(r) { // no end at all: that is worth a gap more
		ends[1] += r[len(r)-1].concurrency - r[len(r)-2].concurrency
	}
	for i := passing; i < first && (r[i].verdict == meets || r[i].more > 0); i++ {
		if r[i].more > 0 {
			all = append(all, wish{r[i].concurrency, float64(r[i].more) / float64(r[i].concurrency-ends[0])})
		}
	}
	for _, l := range r[first:failing] {
		if l.more > 0 && l.excess > 0 {
			all = append(all, wish{l.concurrency, float64(l.more) / float64(ends[1]-l.concurrency)})
		}
	}
	if first > 0 && first < len(r) {
		if middle, ok := c.middle(r[first-1], r[first], .5); ok {
			all = append(all, wish{middle, 2 / float64(r[first].concurrency-r[first-1].concurrency)})
		}
	}
	if passing > 0 && passing < len(r) {
		all = append(all, c.between(r[passing-1], r[passing], .25)...)
	}
	if failing > 0 && failing < len(r) {
		all = append(all, c.between(r[failing-1], r[failing], .75)...)
	}
	return all
}

// middle is a level in a gap, at a share of it; false where it is narrow enough, or no level more
// may be tested.
func (c *Capacity) middle(low, high level, share float64) (concurrency int, ok bool) {
	gap := float64(high.concurrency - low.concurrency)
	concurrency = low.concurrency + int(math.Round(share*gap))
	tested := c.tested()
	return concurrency, 2*min(share, 1-share)*gap > float64(c.Plan.Resolution) &&
		(slices.Contains(tested, concurrency) || len(tested) < c.Plan.family())
}

// between is a level in a gap that can be settled, as far as its neighbours tell: the middle
// one, or that at a quarter of the gap.
func (c *Capacity) between(low, high level, quarter float64) []wish {
	for _, share := range []float64{.5, quarter} {
		if concurrency, ok := c.middle(low, high, share); ok {
			if cost := forecast(low, high, share); cost <= maxRepeats {
				return []wish{{concurrency, float64(cost) / float64(max(concurrency-low.concurrency, high.concurrency-concurrency))}}
			}
		}
	}
	return nil
}

// forecast is how many spans would settle a level between two: by what is known of
// them, interpolated.
func forecast(low, high level, share float64) int {
	if low.spans == 0 || high.spans == 0 {
		return 1
	}
	excess := (1-share)*low.excess + share*high.excess
	l := look{
		pairs: 1, variance: (1-share)*low.look.variance + share*high.look.variance,
		df: min(low.look.df/float64(low.spans), high.look.df/float64(high.spans)),
	}
	return l.takes(math.Abs(excess), min(low.spent, high.spent))
}

// tested are all levels of the scan and those that a span was begun at, ascending.
func (c *Capacity) tested() []int {
	all := slices.Clone(c.Plan.Levels)
	for i := range c.Done {
		all = append(all, c.Done[i].Concurrency)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// rows are the levels tested for each question: of the modes, in their order, and of the
// crossing, where there are two; below is the mode that is better below that.
func (c *Capacity) rows() (all []row, below string) {
	all = make([]row, 2*len(c.Plan.Modes)-1)
	for _, concurrency := range c.tested() {
		var of []held
		for mode := range c.Plan.Modes {
			h := c.at(task{concurrency, mode})
			of = append(of, h)
			if h.begun > 0 {
				all[mode] = append(all[mode], c.judge(concurrency, h))
			}
		}
		if len(of) == 2 {
			l := c.order(concurrency, of[0], of[1])
			if l.spans > 0 || of[0].lost || of[1].lost {
				all[2] = append(all[2], l)
			}
		}
	}
	if len(all) == 3 {
		below = all[2].turn()
	}
	return all, below
}

// judge holds the spans of a level in one mode against the SLOs, as baseline.Judge does: they
// are met at the threshold itself.
func (c *Capacity) judge(concurrency int, h held) level {
	l := level{concurrency: concurrency, spans: h.count, verdict: open}
	if h.count == 0 {
		return l
	}
	// One-sided, hence twice the error that [half] takes for two sides; to miss either
	// of two SLOs, half of that for each.
	each := 2 * alpha / float64(c.Plan.family())
	thresholds := map[Metric]float64{TTFT95: c.Plan.SLO.TTFT, TPOT95: c.Plan.SLO.TPOT}
	l.excess = math.Inf(-1)
	toMeet, toMiss := 0, maxRepeats+1 // spans that it takes, as it scatters
	for _, m := range capacityMetrics {
		known := m.arm(h.good)
		excess := known.a - m.scaled(thresholds[m])
		if math.Abs(excess) <= rounding {
			excess = 0
		}
		if excess > l.excess {
			l.excess, l.look, l.spent = excess, known, each
		}
		more := 0. // than was measured, of a TPOT, either end of which may be late
		if m == TPOT95 {
			more = known.errA
		}
		toMeet = max(toMeet, known.takes(-excess-more, each))
		toMiss = min(toMiss, known.takes(excess-known.errA, each/2))
	}
	l.settle(h.count, toMeet, toMiss)
	if h.lost {
		l.more = 0
	}
	return l
}

// order holds the TTFT p95 of a level in the second mode against that in the first: it passes
// where the second is the better one.
func (c *Capacity) order(concurrency int, a, b held) level {
	l := level{concurrency: concurrency, verdict: open}
	var pairs []pair
	for i := range min(len(a.good), len(b.good)) {
		if a.good[i] != nil && b.good[i] != nil {
			pairs = append(pairs, pair{a.good[i], b.good[i]})
		}
	}
	if len(pairs) == 0 {
		return l
	}
	known, _ := lookAt(TTFT95, pairs)
	each := 2 * alpha / float64(c.Plan.family())
	l.spans, l.excess, l.look, l.spent = len(pairs), known.b-known.a, known, each
	l.settle(len(pairs), known.takes(-l.excess-known.errA, each), known.takes(l.excess-known.errB, each))
	if a.lost || b.lost {
		l.more = 0
	}
	return l
}

// settle judges by how many spans it takes to say that a level passes, or that it fails.
func (l *level) settle(spans, toMeet, toMiss int) {
	takes := toMeet
	if l.excess > 0 {
		takes = toMiss
	}
	switch {
	case toMeet <= spans:
		l.verdict = meets
	case toMiss <= spans:
		l.verdict = misses
	case takes <= maxRepeats:
		l.more = takes - spans
	case spans == 1: // by which its scatter is hardly known
		l.more = 1
	}
}

// takes is after how many spans an interval is no wider than a distance, if they go on as
// they are: as many as there have been, or fewer, if it is so already.
func (l look) takes(distance, alpha float64) int {
	if !(distance > 0) {
		return maxRepeats + 1
	}
	perSpan := l.df / float64(l.pairs)
	k := l.pairs
	for k <= maxRepeats && half(l.variance, perSpan*float64(k), k, alpha) > distance {
		k++
	}
	return k
}

// arm is what the spans of one mode tell of a metric, as a: those that are not nil.
func (m Metric) arm(spans []*Done) (l look) {
	var all []Sectioned
	var values []float64
	for _, d := range spans {
		if d != nil {
			all = append(all, d.Metrics[m])
			values = append(values, d.Metrics[m].Whole)
			l.errA = max(l.errA, d.Metrics[m].Error)
		}
	}
	l.pairs, l.a = len(all), stat.Mean(values, nil)
	variance, df := within(all)
	l.scattering(values, variance+restart*restart, df)
	return l
}

// below is which mode is better below the crossing: the one that is at the lowest level
// where that is certain, else the one that seems to be at the lowest level. Empty:
// nothing is known. The row must be as [Capacity.order] gives it.
func (r row) below() (mode string, base int) {
	base = slices.IndexFunc(r, func(l level) bool { return l.verdict != open })
	if base < 0 {
		base = slices.IndexFunc(r, func(l level) bool { return l.spans > 0 })
	}
	switch {
	case base < 0:
		return "", 0
	case r[base].excess > 0:
		return "a", base
	}
	return "b", base
}

// turn makes levels of the crossing pass where the modes stand as they do at the base. What is
// open below that is no crossing.
func (r row) turn() (below string) {
	below, base := r.below()
	for i := range r {
		l := &r[i]
		if below == "a" {
			l.excess = -l.excess
			l.verdict = map[string]string{meets: misses, misses: meets, open: open}[l.verdict]
		}
		if i < base {
			l.excess = min(l.excess, 0)
		}
	}
	return below
}

// interval is that of 95 %: 0 as its lower end, where no level is certain to pass; above says
// that none is certain to fail, so that its upper end is the highest tested, or more.
func (r row) interval() (in [2]int, above bool) {
	if n := r.passing(); n > 0 {
		in[0] = r[n-1].concurrency
	}
	i := r.failing()
	if above = i == len(r); above {
		i--
	}
	in[1] = r[i].concurrency
	return in, above
}

// estimate is where the row goes over from passing to failing, by what seems so: interpolated
// linearly in the logarithm of p95, of the SLO that is closer to being missed. It is
// 0 where the lowest level fails, and the highest one known where none does; false where
// nothing is known below the first that fails.
func (r row) estimate() (concurrency float64, ok bool) {
	first := r.first()
	if first == 0 {
		return 0, true
	}
	for i := first - 1; i >= 0; i-- {
		if r[i].spans == 0 {
			continue
		}
		low := float64(r[i].concurrency)
		if first == len(r) {
			return low, true
		}
		share := -r[i].excess / (r[first].excess - r[i].excess)
		return low + share*(float64(r[first].concurrency)-low), true
	}
	return 0, false
}

// State says what the spans so far show.
func (c *Capacity) State() api.Capacity {
	rows, below := c.rows()
	s := api.Capacity{Modes: []api.ModeCapacity{}}
	for i, m := range c.Plan.Modes {
		s.Modes = append(s.Modes, c.capacity(m, rows[i]))
	}
	if len(rows) == 3 {
		s.Crossing = c.crossing(rows[2], below)
	}
	return s
}

// scanned says whether a row has all levels of the scan, and anything is known of one.
func (c *Capacity) scanned(r row) bool {
	for _, concurrency := range c.Plan.Levels {
		if !slices.ContainsFunc(r, func(l level) bool { return l.concurrency == concurrency }) {
			return false
		}
	}
	return slices.ContainsFunc(r, func(l level) bool { return l.spans > 0 })
}

func (c *Capacity) capacity(m api.ModeState, r row) api.ModeCapacity {
	s := api.ModeCapacity{Mode: m, Isolated: []int{}, Tested: []api.LevelTest{}}
	for i, l := range r {
		s.Tested = append(s.Tested, api.LevelTest{Concurrency: l.concurrency, Spans: l.spans, Verdict: l.verdict})
		if i > r.first() && l.verdict == meets {
			s.Isolated = append(s.Isolated, l.concurrency)
		}
	}
	if !c.scanned(r) {
		return s
	}
	if estimate, ok := r.estimate(); ok {
		whole := int(estimate)
		s.Level = &whole
	}
	in, above := r.interval()
	s.Interval, s.Above = &in, above
	return s
}

func (c *Capacity) crossing(r row, below string) *api.Crossing {
	if !c.scanned(r) {
		return nil
	}
	in, above := r.interval()
	s := &api.Crossing{Below: below, Interval: &in, Above: above}
	if estimate, ok := r.estimate(); ok && r.first() < len(r) {
		whole := int(math.Round(estimate))
		s.Level = &whole
	}
	return s
}

// SecondsLeft is an estimate of how much longer the search takes, by the spans so far, and at
// most what is left of its time; false before the first.
func (c *Capacity) SecondsLeft() (seconds float64, known bool) {
	if len(c.Done) == 0 {
		return 0, false
	}
	if c.Over() != CapacityRunning {
		return 0, true
	}
	rows, _ := c.rows()
	for i, r := range rows {
		modes := 1.
		if i == len(c.Plan.Modes) { // of the crossing, whose scan is that of the modes
			modes = 2
		}
		for _, concurrency := range c.Plan.Levels {
			if modes == 1 && c.at(task{concurrency, i}).begun == 0 {
				each, _ := c.expected(concurrency)
				seconds += each
			}
		}
		seconds += modes * c.toCome(r)
	}
	return min(seconds, c.Plan.MaxTime-c.used()), true
}

// spansPerLevel is about how many a level takes that a bisection adds.
const spansPerLevel = 1

// toCome is what a question takes in each mode after the scan: to halve the gap below the
// first failure, and to settle what decides.
func (c *Capacity) toCome(r row) (seconds float64) {
	first, steps, at := r.first(), 0, slices.Max(c.Plan.Levels)
	switch {
	case first == len(r) && !c.scanned(r): // it may lie anywhere above
		steps = c.Plan.steps()
	case first > 0 && first < len(r):
		at = r[first].concurrency
		steps = halvings(at-r[first-1].concurrency, c.Plan.Resolution)
	}
	each, _ := c.expected(at)
	seconds = float64(steps*spansPerLevel) * each
	for _, l := range r[:min(first+1, len(r))] {
		each, _ := c.expected(l.concurrency)
		seconds += float64(l.more) * each
	}
	return seconds
}
