package proof

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
)

// The verdicts on a level of a capacity search.
const (
	meets  = "meets"
	misses = "misses"
	Open   = "open" // neither is certain
)

// level holds the measurements of one level for one question: the excess of each span over the limit, by figure, on the
// scale of differences. For the crossing, a positive excess means that the modes are in the opposite order to the
// lowest levels.
type level struct {
	at     api.Level
	spans  int // number of spans, or of pairs for the crossing; 0 if all were spoiled
	lost   bool
	excess [][]float64  // by figure, then by span
	late   [][2]float64 // by figure: largest own error of the load generator, upwards and downwards
	over   map[int]bool // spans that were overloaded, so that their excess is a convention that does not scatter
}

// measured returns the excess of a figure in the spans that were not overloaded.
func (l *level) measured(figure int) (all []float64) {
	for i, v := range l.excess[figure] {
		if !l.over[i] {
			all = append(all, v)
		}
	}
	return all
}

// row holds the levels tested for one question, in ascending order.
type row []level

// leastAtEnds is the minimum number of spans at the ends of an interval. With fewer, a level that one span put outside
// by chance would stay outside.
const leastAtEnds = 4

// chosen is a factor on the variance of an interval. It allows for two effects: earlier spans decide which level is
// measured next, and either of two figures may be missed first. The value was found by simulation.
const chosen = 1.7

// scatter returns the variance of a figure between the spans of a level, for each level of the row.
func (r row) scatter(figure int) (all []decide.Variance) {
	var levels []float64
	var own []decide.Variance
	for _, l := range r {
		levels = append(levels, l.at.Value)
		own = append(own, decide.Pooled([][]float64{l.measured(figure)}))
	}
	s := decide.NewScatter(levels, own)
	for i := range r {
		all = append(all, s.At(i))
	}
	return all
}

// certain returns for each level of the row 1 if it lies by itself above the limit of a figure, −1 if below, and 0 if
// neither is certain. The error probability is far smaller than that of an interval, since a level that misses ends the
// row.
func (r row) certain(figure int) []int {
	all := make([]int, len(r))
	for i, v := range r.scatter(figure) {
		if r[i].spans == 0 || v.DF == 0 {
			continue
		}
		mean := stat.Mean(r[i].excess[figure], nil)
		width := student(.2*alpha/float64(len(r)), v.DF) * math.Sqrt(v.Value/float64(r[i].spans))
		switch {
		case mean-r[i].late[figure][0] > width:
			all[i] = 1
		case mean+r[i].late[figure][1] < -width:
			all[i] = -1
		}
	}
	return all
}

// until returns the row up to the first level that certainly misses by itself.
func (r row) until() row {
	n := len(r)
	if n > 0 {
		for figure := range r[0].excess {
			if i := slices.Index(r.certain(figure), 1); i >= 0 {
				n = min(n, i+1)
			}
		}
	}
	return r[:n]
}

// answer is the estimated level at which a limit begins to be missed, with its 95 % interval. The upper end is infinite
// where no level is certain to miss.
type answer struct {
	decide.Sustained
	known bool // the interval is known: some level has two spans
}

// answer estimates the level by isotonic regression, for the figure that is missed first. In the interval, a level
// weighs less the more its spans scatter; in the estimate all spans weigh the same. The load generator's own error
// widens the interval. It returns false if no level was measured.
func (r row) answer() (a answer, ok bool) {
	a = answer{decide.Sustained{Level: math.Inf(1), Interval: [2]float64{math.Inf(1), math.Inf(1)}}, true}
	measured := slices.DeleteFunc(slices.Clone(r), func(l level) bool { return l.spans == 0 })
	if len(measured) == 0 {
		return a, false
	}
	below := measured.until()
	for figure := range below[0].excess {
		scatter := measured.scatter(figure)
		v := decide.Variance{Value: chosen, DF: scatter[0].DF}
		if a.known = v.DF > 0; !a.known {
			v = decide.Variance{Value: math.Inf(1), DF: 1}
		}
		excess := func(late int, sign float64, weighed bool) (all []decide.Excess) {
			for i, l := range below {
				mean := stat.Mean(l.excess[figure], nil) + sign*l.late[figure][late]
				e := decide.Excess{Level: l.at.Value, Mean: mean, Weight: float64(l.spans)}
				if weighed {
					e.Weight /= max(scatter[i].Value, rounding*rounding)
				}
				all = append(all, e)
			}
			return all
		}
		a.Level = min(a.Level, decide.Capacity(excess(0, 0, false), v).Level)
		a.Interval[0] = min(a.Interval[0], decide.Capacity(excess(1, 1, a.known), v).Interval[0])
		a.Interval[1] = min(a.Interval[1], decide.Capacity(excess(0, -1, a.known), v).Interval[1])
	}
	return a, true
}

// seems reports whether the mean of any figure exceeds its limit.
func (l level) seems() bool {
	return slices.ContainsFunc(l.excess, func(spans []float64) bool { return stat.Mean(spans, nil) > 0 })
}

// open reports whether a level needs more spans. A level is open within the interval, at an end of the interval with
// few spans, where its mean is on the wrong side of the estimate, and where there is no interval yet.
func (a answer) open(l level) bool {
	at := l.at.Value
	switch {
	case !a.known || l.seems() != (at > a.Level):
		return true
	case at == a.Interval[0] || at == a.Interval[1]:
		return l.spans < leastAtEnds
	}
	return a.Interval[0] < at && at < a.Interval[1]
}

// wish returns the level to measure next for a question: an open one that was measured least often, or the
// middle of the gap around the estimate. It returns false if no further level would add information.
func (c *Capacity) wish(r row) (at api.Level, spans int, ok bool) {
	a, known := r.answer()
	if !known {
		return at, 0, false
	}
	inside := func(l level) bool { return l.spans > 0 && !l.lost && l.spans < maxRepeats && a.open(l) }
	r = r.until()
	distance := math.Inf(1)
	for _, l := range r {
		toEstimate := math.Abs(l.at.Value - a.Level)
		if inside(l) && (!ok || l.spans < spans || l.spans == spans && toEstimate < distance) {
			at, spans, distance, ok = l.at, l.spans, toEstimate, true
		}
	}
	high := slices.IndexFunc(r, func(l level) bool { return l.at.Value > a.Level })
	if high <= 0 {
		return at, spans, ok
	}
	low, up := r[high-1], r[high]
	wide := up.at.Value-low.at.Value > c.Plan.Resolution*(1+rounding)
	if wide && (!inside(low) || low.spans > 1) && (!inside(up) || up.spans > 1) {
		return low.at.With((low.at.Value + up.at.Value) / 2), 0, true
	}
	return at, spans, ok
}

// tested returns the levels of the scan and of all spans, in ascending order.
func (c *Capacity) tested() []api.Level {
	all := slices.Clone(c.Plan.Levels)
	for i := range c.Done {
		all = append(all, c.Done[i].Level)
	}
	slices.SortFunc(all, api.Level.Compare)
	return slices.Compact(all)
}

// rows returns a row for each mode of the plan, in its order. For two modes, the last row is that of the crossing, and
// below is the arm that is better at lower levels.
func (c *Capacity) rows() (all []row, below string) {
	all = make([]row, 2*len(c.Plan.Modes)-1)
	for _, at := range c.tested() {
		var measured []held
		for mode := range c.Plan.Modes {
			h := c.at(task{at, mode})
			measured = append(measured, h)
			if len(h) > 0 {
				all[mode] = append(all[mode], c.judge(at, h))
			}
		}
		if len(measured) == 2 {
			if l := order(at, measured[0], measured[1]); l.spans > 0 || l.lost {
				all[2] = append(all[2], l)
			}
		}
	}
	if len(all) == 3 {
		below = all[2].turn()
	}
	return all, below
}

// overloadedBy is the factor over an SLO that the times of a span count as which did not keep up with its rate. They
// grow for as long as it runs.
const overloadedBy = 4

// judge compares the spans of a level in one mode with the SLOs.
func (c *Capacity) judge(at api.Level, h held) level {
	l := level{at: at, lost: h.lost()}
	for _, m := range capacityMetrics {
		threshold := c.Plan.SLO.TTFT
		if m == TPOT95 {
			threshold = c.Plan.SLO.TPOT
		}
		var excess []float64
		late := 0.
		for _, d := range h {
			if d != nil {
				v := d.Metrics[m].Whole - m.scaled(threshold)
				if d.Overloaded {
					v = math.Log(overloadedBy)
				}
				if math.Abs(v) <= rounding {
					v = 0
				}
				excess, late = append(excess, v), max(late, d.Metrics[m].Error)
			}
		}
		l.excess, l.late = append(l.excess, excess), append(l.late, [2]float64{late, 0})
		if m == TPOT95 { // the stamps at both ends may be late
			l.late[len(l.late)-1][1] = late
		}
	}
	l.over = map[int]bool{}
	for i, d := range slices.DeleteFunc(slices.Clone(h), func(d *Done) bool { return d == nil }) {
		l.over[i] = d.Overloaded
	}
	l.spans = len(l.excess[0])
	return l
}

// order compares TTFT p95 of the second mode with the first at one level, by pairs of spans with the same draws. The
// excess is negative where the second mode is better.
func order(at api.Level, a, b held) level {
	l := level{at: at, lost: a.lost() || b.lost(), excess: [][]float64{nil}, late: [][2]float64{{}}, over: map[int]bool{}}
	for i := range min(len(a), len(b)) {
		if a[i] != nil && b[i] != nil {
			first, second := a[i].Metrics[TTFT95], b[i].Metrics[TTFT95]
			difference := second.Whole - first.Whole
			switch { // latencies of an overloaded span are no figures
			case a[i].Overloaded && b[i].Overloaded:
				continue
			case a[i].Overloaded:
				difference = -math.Log(overloadedBy)
			case b[i].Overloaded:
				difference = math.Log(overloadedBy)
			}
			l.excess[0] = append(l.excess[0], difference)
			l.over[len(l.excess[0])-1] = a[i].Overloaded || b[i].Overloaded
			l.late[0] = [2]float64{max(l.late[0][0], second.Error), max(l.late[0][1], first.Error)}
		}
	}
	l.spans = len(l.excess[0])
	return l
}

// turn sets the sign of the excess at all levels of the crossing, so that it is negative where the modes are in the
// same order as at the lowest level. Where the order there is not certain, the mean of the lowest two levels decides.
// turn returns the arm that is better there, or "" if no level was measured.
func (r row) turn() (below string) {
	var lowest []float64
	levels := 0
	for _, l := range r {
		if l.spans > 0 && levels < 2 && (levels == 0 || r.certain(0)[0] == 0) {
			lowest, levels = append(lowest, stat.Mean(l.excess[0], nil)), levels+1
		}
	}
	switch {
	case levels == 0:
		return ""
	case stat.Mean(lowest, nil) <= 0:
		return string(ArmB)
	}
	for i := range r {
		for j := range r[i].excess[0] {
			r[i].excess[0][j] *= -1
		}
		r[i].late[0][0], r[i].late[0][1] = r[i].late[0][1], r[i].late[0][0]
	}
	return string(ArmA)
}

// State returns the result of the spans so far.
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

// scanned reports whether a row has all levels of the scan, and at least one span that counts.
func (c *Capacity) scanned(r row) bool {
	for _, at := range c.Plan.Levels {
		if !slices.ContainsFunc(r, func(l level) bool { return l.at == at }) {
			return false
		}
	}
	return slices.ContainsFunc(r, func(l level) bool { return l.spans > 0 })
}

// capacity returns the verdicts on all tested levels of a mode. It sets the estimate once the scan is complete.
func (c *Capacity) capacity(m api.ModeState, r row) api.ModeCapacity {
	s := api.ModeCapacity{Mode: m, Isolated: []api.Level{}, Tested: []api.LevelTest{}}
	a, known := r.answer()
	for _, l := range r {
		verdict := Open
		if at := l.at.Value; l.spans > 0 && known && a.known {
			switch {
			case at <= a.Interval[0]:
				verdict = meets
			case at >= a.Interval[1]:
				verdict = misses
			}
		}
		test := api.LevelTest{Level: l.at, Spans: l.spans, Verdict: verdict}
		c.addGood(&test, m)
		s.Tested = append(s.Tested, test)
	}
	ttft, tpot := r.certain(0), r.certain(1)
	for i := len(r.until()); i < len(r); i++ {
		if ttft[i] < 0 && tpot[i] < 0 {
			s.Isolated = append(s.Isolated, r[i].at)
		}
	}
	if known && c.scanned(r) {
		s.Level = new(c.shown(r[0].at.With(a.Level)))
		s.Interval, s.Above = r.interval(a)
	}
	return s
}

// shown rounds a rate that is interpolated to a tenth of the resolution.
func (c *Capacity) shown(at api.Level) api.Level {
	if at.Kind == api.Conversations {
		return at
	}
	tens := math.Pow(10, 1-math.Floor(math.Log10(c.Plan.Resolution)))
	return at.With(math.Round(at.Value*tens) / tens)
}

// addGood sets the turns of a level that met every SLO in a second, with an interval by Student's t over its spans, and
// the number of spans that did not keep up.
func (c *Capacity) addGood(test *api.LevelTest, m api.ModeState) {
	var all []float64
	for _, d := range c.at(task{test.Level, slices.Index(c.Plan.Modes, m)}) {
		if d == nil {
			continue
		}
		all = append(all, d.Good)
		if d.Overloaded {
			test.Overloaded++
		}
	}
	if len(all) == 0 {
		return
	}
	mean, deviation := stat.MeanStdDev(all, nil)
	test.GoodPerSecond = &mean
	if n := float64(len(all)); n > 1 {
		h := student(alpha, n-1) * stat.StdErr(deviation, n)
		test.GoodInterval = &[2]float64{max(0, mean-h), mean + h}
	}
}

// interval returns the interval of an answer in levels, or nil if it is unknown. An interval without upper
// end is cut at the highest level of the row, and above is true.
func (r row) interval(a answer) (in *[2]api.Level, above bool) {
	if !a.known {
		return nil, false
	}
	high := r[len(r)-1].at
	return &[2]api.Level{high.With(a.Interval[0]), high.With(min(a.Interval[1], high.Value))}, a.Interval[1] > high.Value
}

// crossing returns the level at which the order of two modes changes, or nil before the scan is complete.
func (c *Capacity) crossing(r row, below string) *api.Crossing {
	a, known := r.answer()
	if !known || !c.scanned(r) {
		return nil
	}
	s := &api.Crossing{Below: below}
	s.Interval, s.Above = r.interval(a)
	half := 0. // the number of conversations is rounded
	if r[0].at.Kind == api.Conversations {
		half = .5
	}
	if a.Level < r[len(r)-1].at.Value {
		s.Level = new(c.shown(r[0].at.With(a.Level + half)))
	}
	return s
}

// Left estimates the remaining time from the spans so far. Before the first span only the upper limit is known: the
// remaining part of [CapacityPlan.MaxTime].
func (c *Capacity) Left() Left {
	most := max(0, c.Plan.MaxTime-c.used())
	if c.Over() != CapacityRunning {
		return Left{Seconds: new(0.), Most: new(0.)}
	}
	if len(c.Done) == 0 {
		return Left{Most: &most}
	}
	seconds := 0.
	rows, _ := c.rows()
	for mode, r := range rows[:len(c.Plan.Modes)] {
		for _, at := range c.Plan.Levels {
			if len(c.at(task{at, mode})) == 0 {
				each, _ := c.expected(at)
				seconds += each
			}
		}
		at, spans, ok := c.wish(r)
		if ok || len(r) == 0 { // the ends of the interval and what lies between
			each, _ := c.expected(at)
			seconds += float64(max(1, 3*leastAtEnds-spans)) * each
		}
	}
	return Left{Seconds: new(min(seconds, most)), Most: &most}
}
