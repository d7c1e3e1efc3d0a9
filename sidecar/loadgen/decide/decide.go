package decide

import (
	"math"
	"math/bits"
	"slices"
)

// Metric is a figure by which arms are compared.
type Metric struct {
	Name         string `json:"name"`
	Share        bool   `json:"share,omitempty"` // differences are in points; else relative, on the logarithmic scale
	LessIsBetter bool   `json:"less_is_better,omitempty"`
	// TwoSided means that late time stamps can make a value too small as well as too large, as for TPOT.
	TwoSided bool `json:"two_sided,omitempty"`
}

// scaled converts a value to the scale on which differences are taken.
func (m Metric) scaled(v float64) float64 {
	if m.Share {
		return v
	}
	return math.Log(v)
}

// Shown converts a difference on that scale to the displayed one: a share of a's value, or points.
func (m Metric) Shown(difference float64) float64 {
	if m.Share {
		return difference
	}
	return math.Expm1(difference)
}

// margin converts a displayed difference to the scale.
func (m Metric) margin(shown float64) float64 {
	if m.Share {
		return shown
	}
	return math.Log1p(shown)
}

// Plan describes a trial. It is fixed before the first block.
type Plan struct {
	Arms       int      `json:"arms"`
	Metrics    []Metric `json:"metrics"`                // the first one decides
	Alpha      float64  `json:"alpha"`                  // error of all looks and pairs of arms together
	Margin     float64  `json:"margin"`                 // the smallest difference of interest, as displayed
	MaxSeconds float64  `json:"max_seconds"`            // of all blocks; a block that would exceed it does not begin
	SideBySide bool     `json:"side_by_side,omitempty"` // two arms run as in [SideBySide], for [Detectable] and [Expected]
	// Prior is the estimate of the first metric's variance from earlier trials on this target; see [Moderate].
	Prior Variance `json:"prior"`
	// Known caches the boundaries between calls of [Decide]; nil computes them each time.
	Known *Boundaries `json:"-"`
}

// Span is a [Run] with its measurements.
type Span struct {
	Arm int     `json:"arm"`
	At  float64 `json:"at"` // of the run; for arms that run side by side, −½ or ½ for the lane
	// Values are those of the plan's metrics by name, in their own units. Missing values are unknown.
	Values map[string]float64 `json:"values"`
	// Late is the amount by which a value may be too large because of late time stamps of the load generator, on the scale
	// of differences.
	Late   map[string]float64 `json:"late,omitempty"`
	Failed int                `json:"failed"`
	Ended  int                `json:"ended"` // turns, including failed ones
}

// Block is a whole block: the runs of all arms that were left at its beginning.
type Block struct {
	Spans   []Span  `json:"spans"`
	Seconds float64 `json:"seconds"` // duration with switches and warm-up
}

// Verdict is the state of a trial.
type Verdict string

// The verdicts. All but the first are final.
const (
	Running      Verdict = "running"
	Better       Verdict = "better"        // the one arm left is better than all others
	TradeOff     Verdict = "trade_off"     // the better one of two arms fails more often
	NoDifference Verdict = "no_difference" // all arms left are within the margin
	TimeOver     Verdict = "time_over"     // undecided at the time limit
)

// Over reports whether a trial with this verdict has ended.
func (v Verdict) Over() bool { return v != Running }

// Comparison is the comparison of two arms by one metric. Differences are B minus A on the metric's scale.
type Comparison struct {
	Metric   Metric  `json:"metric"`
	A        int     `json:"a"`
	B        int     `json:"b"`
	Estimate float64 `json:"estimate"` // of the model
	SE       float64 `json:"se"`
	DF       float64 `json:"df"`
	// Repeated is the deciding interval, which holds over all looks. It includes the error of late time stamps, and is
	// infinite at a look without error to spend.
	Repeated [2]float64 `json:"repeated"`
	// Narrow is the interval of the two one-sided tests, at 5 % each over all looks.
	Narrow [2]float64 `json:"narrow"`
	Shown  int        `json:"shown"` // 1: B is larger, −1: B is smaller, 0: undecided

	key          [3]int // metric and arms
	lateA, lateB float64
	t            []float64 // critical values of Student's t at the looks
	deviation    []float64 // standard errors at the looks
}

// Final is the result at the stop: the median-unbiased estimate, and an interval by the stage-wise ordering.
type Final struct {
	Estimate float64    `json:"estimate"`
	Interval [2]float64 `json:"interval"`
}

// Decision is the result of the blocks so far.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	Looks   []Look  `json:"looks"`
	Left    []int   `json:"left"` // arms that are not eliminated, in order
	Best    int     `json:"best"` // the arm left with the best estimate; −1 before the first look
	// MayBeBest are the arms that no other is certainly better than, by Hsu's comparison with the best.
	MayBeBest []int `json:"may_be_best"`
	// Primary are the comparisons of the first metric for the pairs of arms that were left before the last look.
	Primary  []Comparison   `json:"primary"`
	Failures []FailureShare `json:"failures"` // of each arm
	// FailsMore are pairs of arms, the first of which fails more often than the second.
	FailsMore [][2]int `json:"fails_more"`
	// Others are the comparisons of the other metrics for the same pairs. Shown is by Holm's procedure over all of
	// them, at every look.
	Others []Comparison `json:"others"`
	// Final is the result of the first of Primary, set once the trial is over.
	Final    *Final   `json:"final,omitempty"`
	Variance Variance `json:"variance"` // of the first metric, from these blocks only, for [Moderate] and [Detectable]
}

// LeastBlocks is the number of whole blocks before the first look.
const LeastBlocks = 2

// equivalence is the error of the two one-sided tests together.
const equivalence = .10

// Decide computes the decision look by look. It ignores blocks after the one that ended the trial.
func Decide(p Plan, blocks []Block) Decision {
	d := Decision{Verdict: Running, Best: -1}
	for arm := range p.Arms {
		d.Left = append(d.Left, arm)
	}
	s := state{Plan: p, shown: map[[3]int]int{}, deviation: map[[3]int][]float64{}}
	for k := LeastBlocks; k <= len(blocks) && !d.Verdict.Over(); k++ {
		if due(k) || next(d.Left, blocks[:k]) > p.MaxSeconds {
			s.look(&d, blocks[:k])
		}
	}
	if len(d.Looks) == 0 && len(blocks) > 0 && next(d.Left, blocks) > p.MaxSeconds {
		d.Verdict = TimeOver
	}
	return d
}

// due reports whether there is a look after so many blocks: after each of the first 32, then after every second, and so
// on, 16 to an octave. More looks are expensive to compute and hardly decide sooner.
func due(blocks int) bool { return blocks%(1<<bits.Len(uint(blocks-1)/32)) == 0 }

// NextLook returns the number of blocks at the next look.
func NextLook(blocks int) int {
	n := max(LeastBlocks, blocks+1)
	for !due(n) {
		n++
	}
	return n
}

// next returns the time in seconds at which another block would end.
func next(left []int, blocks []Block) float64 {
	last := blocks[len(blocks)-1]
	arms := map[int]bool{}
	for _, s := range last.Spans {
		arms[s.Arm] = true
	}
	return used(blocks) + last.Seconds*float64(len(left))/float64(len(arms))
}

func used(blocks []Block) (seconds float64) {
	for i := range blocks {
		seconds += blocks[i].Seconds
	}
	return seconds
}

// state is the state that Decide carries from look to look.
type state struct {
	Plan
	blocks    []Block
	looks     []Look
	shown     map[[3]int]int       // of the other metrics: direction by metric and pair, once shown
	deviation map[[3]int][]float64 // standard errors by metric and pair, of every look
}

// look makes one look, after the blocks so far.
func (s *state) look(d *Decision, blocks []Block) {
	s.blocks = blocks
	time := used(blocks)
	each := next(d.Left, blocks) - time
	share := time / (time + each*max(0, math.Floor((s.MaxSeconds-time)/each*(1+1e-9))))
	if n := len(d.Looks); n > 0 {
		share = max(share, d.Looks[n-1].Share)
	}
	runs := 0
	for i := range blocks {
		runs += len(blocks[i].Spans)
	}
	df, _ := degrees(runs, len(blocks), s.Arms)
	d.Looks = append(d.Looks, Look{len(blocks), share, float64(max(1, df))})
	s.looks = d.Looks
	left := d.Left
	d.Primary = nil
	model, ok := s.fit(0)
	if ok {
		d.Variance = model.own
		for i, a := range left {
			for _, b := range left[i+1:] {
				d.Primary = append(d.Primary, s.compare(model, 0, a, b, s.pairAlpha()))
			}
		}
	}
	d.Failures, d.FailsMore = s.failures(left)
	s.others(d, left)
	if ok {
		s.verdict(d, model)
	}
	if d.Verdict == Running && share == 1 {
		d.Verdict = TimeOver
	}
	if d.Verdict.Over() && len(d.Primary) > 0 {
		d.Final = s.final(&d.Primary[0])
	}
}

// pairAlpha returns the two-sided error of a pair: α / (K (K − 1)) on each side.
func (s *state) pairAlpha() float64 { return 2 * s.Alpha / float64(s.Arms*(s.Arms-1)) }

// fit fits a metric over all runs. ok is false where a run lacks the metric.
func (s *state) fit(metric int) (model, bool) {
	var all []observation
	for i := range s.blocks {
		for _, run := range s.blocks[i].Spans {
			v, known := run.Values[s.Metrics[metric].Name]
			y := s.Metrics[metric].scaled(v)
			if !known || math.IsNaN(y) || math.IsInf(y, 0) {
				return model{}, false
			}
			all = append(all, observation{run.Arm, i, run.At, y})
		}
	}
	return fit(all, s.Arms, s.prior(metric))
}

// prior returns the prior of a metric. Only the first one has any.
func (s *state) prior(metric int) Variance {
	if metric == 0 {
		return s.Prior
	}
	return Variance{}
}

// bounds returns the critical values of a metric at all looks so far.
func (s *state) bounds(alpha float64, metric int) []float64 {
	return s.Known.at(alpha, moderated(s.looks, s.prior(metric)))
}

// bound returns the critical value of Student's t at this look.
func (s *state) bound(alpha float64, metric int, df float64) float64 {
	all := s.bounds(alpha, metric)
	return toStudent(all[len(all)-1], df)
}

// compare compares two arms by a metric with a two-sided error over all looks.
func (s *state) compare(m model, metric, a, b int, alpha float64) Comparison {
	c := Comparison{Metric: s.Metrics[metric], A: a, B: b, DF: m.df, key: [3]int{metric, a, b}}
	c.Estimate, c.SE = m.difference(a, b)
	c.lateA = s.late(metric, a)
	c.lateB = s.late(metric, b)
	if c.Metric.TwoSided {
		c.lateA += c.lateB
		c.lateB = c.lateA
	}
	for len(s.deviation[c.key]) < len(s.looks) { // at earlier looks the metric may have been unknown
		s.deviation[c.key] = append(s.deviation[c.key], c.SE)
	}
	c.deviation = s.deviation[c.key]
	for _, z := range s.bounds(alpha, metric) {
		c.t = append(c.t, toStudent(z, m.df))
	}
	c.Repeated = c.interval(c.t[len(c.t)-1])
	c.Narrow = c.interval(s.bound(equivalence, metric, m.df))
	switch {
	case c.Repeated[0] > 0:
		c.Shown = 1
	case c.Repeated[1] < 0:
		c.Shown = -1
	}
	return c
}

// interval extends t standard errors on either side of the estimate, plus the lateness of the arm that it favors.
func (c *Comparison) interval(t float64) [2]float64 {
	return [2]float64{c.Estimate - t*c.SE - c.lateB, c.Estimate + t*c.SE + c.lateA}
}

// within reports whether the difference is certainly smaller than a margin.
func (c *Comparison) within(margin float64) bool {
	return c.Narrow[0] > -margin && c.Narrow[1] < margin
}

// NotWorse reports whether B is certainly not worse than A by the displayed margin or more; ofB false asks for A.
func (c *Comparison) NotWorse(margin float64, ofB bool) bool {
	m := c.Metric.margin(margin)
	if ofB == c.Metric.LessIsBetter {
		return c.Narrow[1] < m
	}
	return c.Narrow[0] > -m
}

// better returns the arm that is shown to be better and the other one; ok is false where neither is.
func (c *Comparison) better() (winner, loser int, ok bool) {
	if (c.Shown < 0) == c.Metric.LessIsBetter {
		return c.B, c.A, c.Shown != 0
	}
	return c.A, c.B, c.Shown != 0
}

// late returns the mean lateness of an arm's runs.
func (s *state) late(metric, arm int) float64 {
	sum, n := 0.0, 0.0
	for i := range s.blocks {
		for _, run := range s.blocks[i].Spans {
			if run.Arm == arm {
				n++
				sum += run.Late[s.Metrics[metric].Name]
			}
		}
	}
	return sum / n
}

// verdict eliminates arms and sets the state of the trial.
func (s *state) verdict(d *Decision, m model) {
	within := true
	for i := range d.Primary {
		within = within && d.Primary[i].within(s.Metrics[0].margin(s.Margin))
	}
	if within {
		d.Verdict = NoDifference
	}
	for i := range d.Primary {
		winner, loser, ok := d.Primary[i].better()
		switch {
		case !ok || within:
		case !slices.Contains(d.FailsMore, [2]int{winner, loser}):
			d.Left = slices.DeleteFunc(slices.Clone(d.Left), func(arm int) bool { return arm == loser })
		case s.Arms == 2:
			d.Verdict = TradeOff
		}
	}
	s.best(d, m)
	if d.Verdict == Running && len(d.Left) == 1 {
		d.Verdict = Better
	}
	if d.Verdict == Running && len(d.Left) > 1 && len(d.Left) < s.Arms && s.allWithin(d) {
		d.Verdict = NoDifference
	}
}

// allWithin reports whether the arms left are within the margin.
func (s *state) allWithin(d *Decision) bool {
	for i := range d.Primary {
		c := &d.Primary[i]
		if slices.Contains(d.Left, c.A) && slices.Contains(d.Left, c.B) && !c.within(s.Metrics[0].margin(s.Margin)) {
			return false
		}
	}
	return true
}

// best finds the arm with the best estimate, and the arms that may be the best: those that no other is better than at
// α / (K − 1) on one side. Hsu, "Simultaneous confidence intervals for all distances from the 'best'", Annals of
// Statistics 9 (1981), with Bonferroni's inequality.
func (s *state) best(d *Decision, m model) {
	sign := 1.0
	if s.Metrics[0].LessIsBetter {
		sign = -1
	}
	bound := s.bound(2*s.Alpha/float64(s.Arms-1), 0, m.df)
	d.Best = d.Left[0]
	d.MayBeBest = nil
	for _, a := range d.Left {
		may := true
		for _, b := range d.Left {
			estimate, deviation := m.difference(a, b)
			may = may && sign*estimate < bound*deviation || a == b
		}
		if may {
			d.MayBeBest = append(d.MayBeBest, a)
		}
		if sign*m.effect[a] > sign*m.effect[d.Best] {
			d.Best = a
		}
	}
}

// others compares the arms by the other metrics: Holm's procedure at every look, including the results of earlier
// looks. Holm, Scandinavian Journal of Statistics 6 (1979); over looks: Maurer and Bretz, "Multiple testing in group
// sequential trials using graphical approaches", Statistics in Biopharmaceutical Research 5 (2013).
func (s *state) others(d *Decision, left []int) {
	d.Others = nil
	n := (len(s.Metrics) - 1) * s.Arms * (s.Arms - 1) / 2
	for metric := 1; metric < len(s.Metrics); metric++ {
		m, ok := s.fit(metric)
		if !ok {
			continue
		}
		for i, a := range left {
			for _, b := range left[i+1:] {
				d.Others = append(d.Others, s.compare(m, metric, a, b, s.Alpha/float64(n)))
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range d.Others {
			c := &d.Others[i]
			if s.shown[c.key] != 0 {
				continue
			}
			in := c.interval(s.bound(s.Alpha/float64(max(1, n-len(s.shown))), c.key[0], c.DF))
			if in[0] > 0 || in[1] < 0 {
				s.shown[c.key] = int(math.Copysign(1, c.Estimate))
				changed = true
			}
		}
	}
	for i := range d.Others {
		d.Others[i].Shown = s.shown[d.Others[i].key]
	}
}
