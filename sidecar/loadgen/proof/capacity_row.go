package proof

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
)

// The verdicts on a level.
const (
	meets  = "meets"
	misses = "misses"
	Open   = "open" // neither is certain
)

// level is what is known of one for a question: of each figure, by how much its spans exceed the limit, on the scale of
// differences. For the crossing, that is by how much the order of the modes is not that of the lowest levels.
type level struct {
	concurrency int
	spans       int // of a crossing: pairs of them; 0: all were spoiled, nothing is known
	lost        bool
	excess      [][]float64 // by figure, then by span
	late        [][2]float64
}

// row is the levels tested for one question, ascending.
type row []level

// leastAtEnds is how many spans the ends of an interval get: else a level that chance has put outside once would stay
// there.
const leastAtEnds = 4

// chosen is by how much the variance is taken to be larger for an interval: what is measured next was chosen by the
// spans before, and each of two figures may be the one that is missed first. It was found by simulation.
const chosen = 1.5

// scatter is the variance of a span's figure, of all levels together.
func (r row) scatter(figure int) decide.Variance {
	var spans [][]float64
	for _, l := range r {
		spans = append(spans, l.excess[figure])
	}
	return decide.Pooled(spans)
}

// certain says whether a level by itself lies above the limit of a figure (1), below it (−1), or may be either (0). Its
// error is far below that of an interval, since a level that misses ends the row.
func (r row) certain(l level, figure int) int {
	v := r.scatter(figure)
	if l.spans == 0 || v.DF == 0 {
		return 0
	}
	mean := stat.Mean(l.excess[figure], nil)
	width := student(.2*alpha/float64(len(r)), v.DF) * math.Sqrt(v.Value/float64(l.spans))
	switch {
	case mean-l.late[figure][0] > width:
		return 1
	case mean+l.late[figure][1] < -width:
		return -1
	}
	return 0
}

// until is the row up to the first level that certainly misses by itself, and whatever lies above.
func (r row) until() (below, above row) {
	for i, l := range r {
		for figure := range l.excess {
			if r.certain(l, figure) > 0 {
				return r[:i+1], r[i+1:]
			}
		}
	}
	return r, nil
}

// answer is what a row says: where a limit begins to be missed, with an interval of 95 %, infinite above where no level
// is certain to miss. Without two spans of one level there is no interval.
type answer struct {
	decide.Sustained
	known bool
}

// answer is that of isotonic regression, by the figure that is missed first. The load generator's own error widens the
// interval. It is false where nothing is known.
func (r row) answer() (a answer, ok bool) {
	a = answer{decide.Sustained{Level: math.Inf(1), Interval: [2]float64{math.Inf(1), math.Inf(1)}}, true}
	measured := slices.DeleteFunc(slices.Clone(r), func(l level) bool { return l.spans == 0 })
	if len(measured) == 0 {
		return a, false
	}
	below, _ := measured.until()
	for figure := range below[0].excess {
		v := measured.scatter(figure)
		v.Value *= chosen
		excess := func(late int, sign float64) (all []decide.Excess) {
			for _, l := range below {
				mean := stat.Mean(l.excess[figure], nil) + sign*l.late[figure][late]
				all = append(all, decide.Excess{Level: float64(l.concurrency), Mean: mean, Spans: float64(l.spans)})
			}
			return all
		}
		if a.known = v.DF > 0; !a.known {
			v = decide.Variance{Value: math.Inf(1), DF: 1}
		}
		a.Level = min(a.Level, decide.Capacity(excess(0, 0), v).Level)
		a.Interval[0] = min(a.Interval[0], decide.Capacity(excess(1, 1), v).Interval[0])
		a.Interval[1] = min(a.Interval[1], decide.Capacity(excess(0, -1), v).Interval[1])
	}
	return a, true
}

// seems says whether a limit seems to be missed.
func (l level) seems() bool {
	return slices.ContainsFunc(l.excess, func(spans []float64) bool { return stat.Mean(spans, nil) > 0 })
}

// open says whether a level lies within the interval, at an end of it with few spans, or seems to be on the wrong
// side of the estimate.
func (a answer) open(l level) bool {
	at := float64(l.concurrency)
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
func (c *Capacity) wish(r row) (concurrency, spans int, ok bool) {
	a, known := r.answer()
	if !known {
		return 0, 0, false
	}
	inside := func(l level) bool { return l.spans > 0 && !l.lost && l.spans < maxRepeats && a.open(l) }
	r, _ = r.until()
	distance := math.Inf(1)
	for _, l := range r {
		by := math.Abs(float64(l.concurrency) - a.Level)
		if inside(l) && (!ok || l.spans < spans || l.spans == spans && by < distance) {
			concurrency, spans, distance, ok = l.concurrency, l.spans, by, true
		}
	}
	high := slices.IndexFunc(r, func(l level) bool { return float64(l.concurrency) > a.Level })
	if high <= 0 {
		return concurrency, spans, ok
	}
	low, up := r[high-1], r[high]
	wide := up.concurrency-low.concurrency > c.Plan.Resolution
	if wide && (!inside(low) || low.spans > 1) && (!inside(up) || up.spans > 1) {
		return (low.concurrency + up.concurrency) / 2, 0, true
	}
	return concurrency, spans, ok
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
			if l := order(concurrency, of[0], of[1]); l.spans > 0 || l.lost {
				all[2] = append(all[2], l)
			}
		}
	}
	if len(all) == 3 {
		below = all[2].turn()
	}
	return all, below
}

// judge holds the spans of a level in one mode against the SLOs.
func (c *Capacity) judge(concurrency int, h held) level {
	l := level{concurrency: concurrency, spans: h.count, lost: h.lost}
	for _, m := range capacityMetrics {
		threshold := c.Plan.SLO.TTFT
		if m == TPOT95 {
			threshold = c.Plan.SLO.TPOT
		}
		var excess []float64
		late := 0.
		for _, d := range h.good {
			if d != nil {
				v := d.Metrics[m].Whole - m.scaled(threshold)
				if math.Abs(v) <= rounding {
					v = 0
				}
				excess, late = append(excess, v), max(late, d.Metrics[m].Error)
			}
		}
		l.excess, l.late = append(l.excess, excess), append(l.late, [2]float64{late, 0})
		if m == TPOT95 { // either end of which may be late
			l.late[len(l.late)-1][1] = late
		}
	}
	return l
}

// order holds the TTFT p95 of a level in the second mode against that in the first, by pairs of spans with the same
// draws: it passes where the second is the better one.
func order(concurrency int, a, b held) level {
	l := level{concurrency: concurrency, lost: a.lost || b.lost, excess: [][]float64{nil}, late: [][2]float64{{}}}
	for i := range min(len(a.good), len(b.good)) {
		if a.good[i] != nil && b.good[i] != nil {
			of, other := a.good[i].Metrics[TTFT95], b.good[i].Metrics[TTFT95]
			l.excess[0] = append(l.excess[0], other.Whole-of.Whole)
			l.late[0] = [2]float64{max(l.late[0][0], other.Error), max(l.late[0][1], of.Error)}
		}
	}
	l.spans = len(l.excess[0])
	return l
}

// turn makes levels of the crossing pass where the modes stand as they do at the lowest level, if that is certain,
// else as they seem to at the lowest two. It returns which mode is better there; empty: nothing is known.
func (r row) turn() (below string) {
	var lowest []float64
	levels := 0
	for _, l := range r {
		if l.spans > 0 && levels < 2 && (levels == 0 || r.certain(r[0], 0) == 0) {
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
	a, known := r.answer()
	for _, l := range r {
		verdict := Open
		if at := float64(l.concurrency); l.spans > 0 && known && a.known {
			switch {
			case at <= a.Interval[0]:
				verdict = meets
			case at >= a.Interval[1]:
				verdict = misses
			}
		}
		s.Tested = append(s.Tested, api.LevelTest{Concurrency: l.concurrency, Spans: l.spans, Verdict: verdict})
	}
	_, above := r.until()
	for _, l := range above {
		if r.certain(l, 0) < 0 && r.certain(l, 1) < 0 {
			s.Isolated = append(s.Isolated, l.concurrency)
		}
	}
	if known && c.scanned(r) {
		s.Level = new(int(a.Level))
		s.Interval, s.Above = r.interval(a)
	}
	return s
}

// interval is that of an answer in whole conversations, up to the highest level where it is open above; nil where there
// is none yet.
func (r row) interval(a answer) (in *[2]int, above bool) {
	if !a.known {
		return nil, false
	}
	high := float64(r[len(r)-1].concurrency)
	return &[2]int{int(a.Interval[0]), int(min(a.Interval[1], high))}, a.Interval[1] > high
}

func (c *Capacity) crossing(r row, below string) *api.Crossing {
	a, known := r.answer()
	if !known || !c.scanned(r) {
		return nil
	}
	s := &api.Crossing{Below: below}
	s.Interval, s.Above = r.interval(a)
	if a.Level < float64(r[len(r)-1].concurrency) {
		s.Level = new(int(math.Round(a.Level)))
	}
	return s
}

// Left is an estimate by the spans so far, which there is none of before the first, and at most what is left of the
// time.
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
		for _, concurrency := range c.Plan.Levels {
			if c.at(task{concurrency, mode}).begun == 0 {
				each, _ := c.expected(concurrency)
				seconds += each
			}
		}
		concurrency, spans, ok := c.wish(r)
		if ok || len(r) == 0 { // the ends of the interval and what lies between
			each, _ := c.expected(concurrency)
			seconds += float64(max(1, 3*leastAtEnds-spans)) * each
		}
	}
	return Left{Seconds: new(min(seconds, most)), Most: &most}
}
