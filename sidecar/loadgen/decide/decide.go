package decide

import (
	"cmp"
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

// Margin converts a displayed difference to the scale. A relative one is taken upwards, which gives the smaller of the
// two margins.
func (m Metric) Margin(shown float64) float64 {
	if m.Share {
		return shown
	}
	return math.Log1p(shown)
}

// Plan describes a trial. It is fixed before the first block.
type Plan struct {
	Arms    int      `json:"arms"`
	Metrics []Metric `json:"metrics"` // the first one decides
	// Guards are metrics that describe the answers, such as their length. An arm is not better than another if the two
	// certainly differ in one by more than [GuardMargin].
	Guards []Metric `json:"guards,omitempty"`
	// Secondary are metrics in which a better arm may be worse. It is not better than another if it certainly is by more
	// than the margin; see [Decision.Worse].
	Secondary  []Metric `json:"secondary,omitempty"`
	Alpha      float64  `json:"alpha"`                  // error of all looks and pairs of arms together
	Margin     float64  `json:"margin"`                 // the smallest difference of interest, as displayed
	MaxSeconds float64  `json:"max_time"`               // of all blocks; a block that would exceed it does not begin
	SideBySide bool     `json:"side_by_side,omitempty"` // two arms run as in [SideBySide], for [Detectable] and [Expected]
	Switchback bool     `json:"switchback,omitempty"`   // two arms run as in [Pair]
	EachOnce   bool     `json:"each_once,omitempty"`    // arms run as in [EachOnce], also two of them
	// WholeOrder asks how all arms compare, and an arm leaves the trial once each of its pairs is decided. Otherwise the
	// question is which arm is the best, and an arm leaves once another is better.
	WholeOrder bool `json:"whole_order,omitempty"`
	// Priors are the estimates of the variances from earlier trials of the same arms, by the names of metrics and guards;
	// see [Moderate]. With one of the first metric, a trial of two arms has its first look after its first block.
	Priors map[string]Variance `json:"priors,omitempty"`
	// Known caches the boundaries between calls of [Decide]; nil computes them each time.
	Known *Boundaries `json:"-"`
}

// Span is a [Run] with its measurements.
type Span struct {
	Arm int     `json:"arm"`
	At  float64 `json:"at"` // of the run; for arms that run side by side, −½ or ½ for the lane
	// Values are those of the plan's metrics by name, in their own units. Missing values are unknown.
	Values map[string]float64 `json:"values"`
	// Succeeded are the means of times over successful turns only, of runs in which turns failed. They replace Values
	// where [Decision.Succeeded] holds.
	Succeeded map[string]float64 `json:"succeeded,omitempty"`
	// Late is the amount by which a value may be too large because of late time stamps of the load generator, on the scale
	// of differences.
	Late   map[string]float64 `json:"late,omitempty"`
	Failed int                `json:"failed"`
	Ended  int                `json:"ended"` // turns, including failed ones
}

// Value returns the value of a metric by name; succeeded is [Decision.Succeeded].
func (s *Span) Value(metric string, succeeded bool) (v float64, known bool) {
	if succeeded {
		if v, known = s.Succeeded[metric]; known {
			return v, true
		}
	}
	v, known = s.Values[metric]
	return v, known
}

// Block is a whole block: the runs of all arms that were left at its beginning, without those that are gone.
type Block struct {
	Spans []Span `json:"spans"`
	// Gone are the arms that left the trial in this block, since they did not serve. From then on they are compared with
	// none, and their runs count in nothing.
	Gone    []int   `json:"gone,omitempty"`
	Seconds float64 `json:"seconds"` // duration with switches and warm-up
}

// Verdict is the state of a trial.
type Verdict string

// The verdicts. All but the first are final.
const (
	Running      Verdict = "running"
	Better       Verdict = "better"        // the one arm left is better than all others
	Ordered      Verdict = "ordered"       // every pair is decided, by a plan that asks for the whole order
	TradeOff     Verdict = "trade_off"     // every pair left is decided, and one trades off: [Decision.TradesOff]
	NoDifference Verdict = "no_difference" // all arms left are within the margin
	TimeOver     Verdict = "time_over"     // undecided at the time limit
	// FailuresDiffer replaces the two before where an arm left certainly fails more turns than another.
	FailuresDiffer Verdict = "failures_differ"
)

// Over reports whether a trial with this verdict has ended.
func (v Verdict) Over() bool { return v != Running }

// Comparison is the comparison of two arms by one metric. Differences are B minus A on the metric's scale.
type Comparison struct {
	Metric Metric `json:"metric"`
	A      int    `json:"a"`
	B      int    `json:"b"`
	// MeanA and MeanB are the arms' means on the metric's scale, adjusted for blocks and for the places of runs. They
	// differ by Estimate.
	MeanA    float64 `json:"mean_a"`
	MeanB    float64 `json:"mean_b"`
	Estimate float64 `json:"estimate"` // of the model
	SE       float64 `json:"se"`
	DF       float64 `json:"df"`
	// Repeated is the deciding interval, which holds over all looks. It includes the error of late time stamps, and is
	// infinite at a look without error to spend.
	Repeated [2]float64 `json:"repeated"`
	// Narrow is the interval of the two one-sided tests. Those of the first metric have 5 % each over all looks; of the
	// others it is Repeated, so that one interval shows a difference and excludes one.
	Narrow [2]float64 `json:"narrow"`
	Shown  int        `json:"shown"` // 1: B is larger, −1: B is smaller, 0: undecided
	// Blocks is the number of blocks at the pair's last look. The comparison stays as it was there once an arm has left.
	Blocks int `json:"blocks"`

	key          [3]int // metric and arms
	lateA, lateB float64
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
	Left    []int   `json:"left"` // arms that the next block runs, in order
	// LeftAfter is the number of blocks after which each arm left the trial; 0 where it has not.
	LeftAfter []int     `json:"left_after"`
	Means     []float64 `json:"means"`     // of the arms on the first metric's scale, adjusted as in [Comparison]
	Best      int       `json:"best"`      // the arm not eliminated with the best estimate; −1 before the first look
	RunnerUp  int       `json:"runner_up"` // the arm with the best estimate of the others; −1 before the first look
	// MayBeBest are the arms that no other is shown to be better than, by the pairs' intervals.
	MayBeBest []int `json:"may_be_best"`
	// Primary are the comparisons of the first metric, of every pair of arms.
	Primary []Comparison `json:"primary"`
	// Failures are the comparisons of the shares of failed turns, of every pair. Repeated has an error of its own, as
	// large as that of the first metric, over all looks and pairs. Narrow is that of two one-sided tests at 5 % at this
	// look alone: an arm that fails more by it is not called better before more blocks. See [Decision.Suspects].
	Failures []Comparison `json:"failures"`
	// Succeeded means that means of times are those of successful turns. It holds where turns failed and the shares of no
	// two arms certainly differ and are more than 1 point apart. Otherwise a failed turn counts as in [Sample].
	Succeeded bool `json:"succeeded,omitempty"`
	// Guards are the comparisons of the guards, of every pair. Their intervals hold at 95 % for this look alone, since a
	// guard prevents a verdict and favors no arm. Shown says that the difference certainly exceeds [GuardMargin].
	Guards []Comparison `json:"guards"`
	// Secondary are the comparisons of the secondary metrics, of every pair. Their intervals hold over all looks,
	// metrics and pairs together (Bonferroni), with an error of their own as large as that of the first metric. Shown
	// says that the difference certainly exceeds the margin.
	Secondary []Comparison `json:"secondary"`
	// Others are the comparisons of the other metrics, of every pair. Their intervals hold for all of them together.
	Others []Comparison `json:"others"`
	// Final is the result of a trial of two arms, set once it is over. Of more arms, the best and the runner-up are
	// chosen by their estimates, which leaves none of them unbiased.
	Final *Final `json:"final,omitempty"`
}

// LeastBlocks returns the number of whole blocks before the first look: one where the variance is known from before.
// More than two arms, whose order one block does not balance, have two in any case. Pairs of runs, each of which leaves
// one degree of freedom, have two, or three without such knowledge.
func (p Plan) LeastBlocks() int {
	known := p.Arms == 2 && p.Priors[p.Metrics[0].Name].DF > 0
	switch {
	case p.inPairs() && !known:
		return 3
	case known && !p.inPairs():
		return 1
	}
	return 2
}

// inPairs reports whether a block is a pair of runs.
func (p Plan) inPairs() bool { return p.Switchback || p.EachOnce && p.Arms == 2 }

// equivalence is the error of the two one-sided tests together.
const equivalence = .10

// Decide computes the decision look by look. It ignores blocks after the one that ended the trial.
func Decide(p Plan, blocks []Block) Decision {
	s := state{Plan: p, deviation: map[[3]int][]float64{}}
	d := Decision{Verdict: Running, Left: s.all(), LeftAfter: make([]int, p.Arms), Best: -1, RunnerUp: -1}
	for k := 1; k <= len(blocks) && !d.Verdict.Over(); k++ {
		d.Left = without(d.Left, blocks[k-1].Gone)
		if k >= p.LeastBlocks() && (due(k) || p.next(d.Left, blocks[:k]) > p.MaxSeconds) {
			s.look(&d, blocks[:k])
		}
	}
	if len(d.Looks) == 0 && len(blocks) > 0 && p.next(d.Left, blocks) > p.MaxSeconds {
		d.Verdict = TimeOver
	}
	return d
}

// due reports whether there is a look after so many blocks: after each of the first 32, then after every second, and so
// on, 16 to an octave. More looks are expensive to compute and hardly decide sooner.
func due(blocks int) bool { return blocks%(1<<bits.Len(uint(blocks-1)/32)) == 0 }

// NextLook returns the number of blocks at the next look.
func (p Plan) NextLook(blocks int) int {
	n := max(p.LeastBlocks(), blocks+1)
	for !due(n) {
		n++
	}
	return n
}

// next returns the time in seconds at which another block would end.
func (p Plan) next(left []int, blocks []Block) float64 {
	return used(blocks) + p.NextBlock(left, blocks[len(blocks)-1:])
}

// NextBlock returns the seconds that a block of the arms left takes, by earlier blocks.
func (p Plan) NextBlock(left []int, blocks []Block) float64 {
	lengths := 0
	for i := range blocks {
		arms := map[int]bool{}
		for _, s := range blocks[i].Spans {
			arms[s.Arm] = true
		}
		lengths += p.lengthOf(len(arms))
	}
	return used(blocks) * float64(p.lengthOf(len(left))) / float64(lengths)
}

// lengthOf returns the spans of a block of so many arms, with its run-in: see [Order].
func (p Plan) lengthOf(arms int) int {
	if arms == 2 && !p.EachOnce {
		return 5
	}
	return arms
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
	succeeded bool                 // [Decision.Succeeded]
	deviation map[[3]int][]float64 // standard errors by metric and pair, of every look
}

// look makes one look, after the blocks so far.
func (s *state) look(d *Decision, blocks []Block) {
	s.blocks = blocks
	time := used(blocks)
	each := s.next(d.Left, blocks) - time
	share := time / (time + each*max(0, math.Floor((s.MaxSeconds-time)/each*(1+1e-9))))
	if n := len(d.Looks); n > 0 {
		share = max(share, d.Looks[n-1].Share)
	}
	runs := 0
	for i := range blocks {
		runs += len(blocks[i].Spans)
	}
	df, _ := degrees(runs, len(blocks), s.Arms, !s.Switchback)
	d.Looks = append(d.Looks, Look{len(blocks), share, float64(max(1, df))})
	s.looks = d.Looks
	d.Failures = s.failures(d.Failures, d.Left)
	d.Succeeded = alike(d.Failures)
	s.succeeded = d.Succeeded
	model, ok := s.fit(s.Metrics[0])
	if ok {
		d.Means = model.means
		d.Primary = s.pairs(d.Primary, d.Left, model, 0, s.pairAlpha())
	}
	d.Guards = s.guards()
	d.Secondary = s.secondary()
	s.others(d)
	if ok {
		s.verdict(d, model)
	}
	if d.Verdict == Running && share == 1 {
		d.Verdict = TimeOver
	}
	arms := d.Left
	if s.WholeOrder {
		arms = s.all()
	}
	if (d.Verdict == TimeOver || d.Verdict == NoDifference) && d.failuresDiffer(arms) {
		d.Verdict = FailuresDiffer
	}
	if d.Verdict.Over() && ok && s.Arms == 2 {
		d.Final = s.final(&d.Primary[0])
	}
}

// pairAlpha returns the two-sided error of a pair: α / (K (K − 1)) on each side.
func (s *state) pairAlpha() float64 { return 2 * s.Alpha / float64(s.Arms*(s.Arms-1)) }

// pairs returns the comparisons of every pair by a metric. A pair of which an arm has left keeps its earlier one, and
// so does one that is decided where the whole order is asked for: a decision of an earlier look stands.
func (s *state) pairs(earlier []Comparison, left []int, m model, metric int, alpha float64) (all []Comparison) {
	repeated := s.bound(alpha, metric, m.moderated.DF)
	narrow := repeated
	if metric == 0 {
		narrow = s.bound(equivalence, metric, m.moderated.DF)
	}
	arms := s.all()
	for n, a := range arms {
		for _, b := range arms[n+1:] {
			key := [3]int{metric, a, b}
			i := slices.IndexFunc(earlier, func(c Comparison) bool { return c.key == key })
			switch {
			case i >= 0 && metric == 0 && s.WholeOrder && s.decided(&earlier[i]):
				all = append(all, earlier[i])
			case slices.Contains(left, a) && slices.Contains(left, b):
				all = append(all, s.compare(m, key, repeated, narrow))
			case i >= 0:
				all = append(all, earlier[i])
			}
		}
	}
	return all
}

// fit fits a metric over all runs. ok is false where a run lacks the metric.
func (s *state) fit(metric Metric) (model, bool) {
	all, with := s.observations(metric)
	switch {
	case len(with) < len(s.all()):
		return model{}, false
	case len(with) < s.Arms:
		return fitSome(all, with, s.Arms, !s.Switchback, s.Priors[metric.Name])
	}
	return fit(all, s.Arms, !s.Switchback, s.Priors[metric.Name])
}

// observations returns the values of a metric in all runs of the arms that serve and of which no run lacks it, and
// these arms, ascending.
func (s *state) observations(metric Metric) (all []observation, with []int) {
	lacking := map[int]bool{}
	for i := range s.blocks {
		for _, run := range s.blocks[i].Spans {
			v, known := run.Value(metric.Name, s.succeeded)
			y := metric.scaled(v)
			if !known || math.IsNaN(y) || math.IsInf(y, 0) {
				lacking[run.Arm] = true
			}
			all = append(all, observation{run.Arm, i, run.At, y})
		}
	}
	with = slices.DeleteFunc(s.all(), func(arm int) bool { return lacking[arm] })
	return slices.DeleteFunc(all, func(o observation) bool { return !slices.Contains(with, o.arm) }), with
}

// prior returns the prior of a metric.
func (s *state) prior(metric int) Variance { return s.Priors[s.Metrics[metric].Name] }

// bounds returns the critical values of a metric at all looks so far.
func (s *state) bounds(alpha float64, metric int) []float64 {
	return s.Known.at(alpha, moderated(s.looks, s.prior(metric)))
}

// bound returns the critical value of Student's t at this look.
func (s *state) bound(alpha float64, metric int, df float64) float64 {
	all := s.bounds(alpha, metric)
	return toStudent(all[len(all)-1], df)
}

// compare compares two arms by a metric, with the critical values of Student's t for both intervals.
func (s *state) compare(m model, key [3]int, repeated, narrow float64) Comparison {
	metric, a, b := key[0], key[1], key[2]
	c := Comparison{Metric: s.Metrics[metric], A: a, B: b, DF: m.moderated.DF, Blocks: len(s.blocks), key: key}
	c.MeanA, c.MeanB = m.means[a], m.means[b]
	c.Estimate, c.SE = m.difference(a, b)
	c.lateA, c.lateB = s.lateness(c.Metric, a, b)
	for len(s.deviation[c.key]) < len(s.looks) { // at earlier looks the metric may have been unknown
		s.deviation[c.key] = append(s.deviation[c.key], c.SE)
	}
	c.deviation = s.deviation[c.key]
	c.Repeated, c.Narrow = c.interval(repeated), c.interval(narrow)
	c.Shown = side(c.Repeated)
	return c
}

// side returns the sign of the differences in an interval, 0 where they have both.
func side(interval [2]float64) int {
	switch {
	case interval[0] > 0:
		return 1
	case interval[1] < 0:
		return -1
	}
	return 0
}

// interval extends t standard errors on either side of the estimate, plus the lateness of the arm that it favors.
func (c *Comparison) interval(t float64) [2]float64 {
	return [2]float64{c.Estimate - t*c.SE - c.lateB, c.Estimate + t*c.SE + c.lateA}
}

// Within reports whether the difference is certainly smaller than a displayed margin.
func (c *Comparison) Within(margin float64) bool {
	m := c.Metric.Margin(margin)
	return c.Narrow[0] > -m && c.Narrow[1] < m
}

// Reversed returns the comparison of A with B.
func (c *Comparison) Reversed() Comparison {
	r := *c
	r.A, r.B = c.B, c.A
	r.MeanA, r.MeanB = c.MeanB, c.MeanA
	r.Estimate = -c.Estimate
	r.Repeated = [2]float64{-c.Repeated[1], -c.Repeated[0]}
	r.Narrow = [2]float64{-c.Narrow[1], -c.Narrow[0]}
	r.Shown = -c.Shown
	r.lateA, r.lateB = c.lateB, c.lateA
	return r
}

// NotWorse reports whether B is certainly not worse than A by the displayed margin or more; ofB false asks for A.
func (c *Comparison) NotWorse(margin float64, ofB bool) bool {
	m := c.Metric.Margin(margin)
	if ofB == c.Metric.LessIsBetter {
		return c.Narrow[1] < m
	}
	return c.Narrow[0] > -m
}

// Better returns the arm that is shown to be better and the other one; ok is false where neither is.
func (c *Comparison) Better() (winner, loser int, ok bool) {
	if (c.Shown < 0) == c.Metric.LessIsBetter {
		return c.B, c.A, c.Shown != 0
	}
	return c.A, c.B, c.Shown != 0
}

// lateness returns by how much late time stamps may favor each of two arms.
func (s *state) lateness(metric Metric, a, b int) (lateA, lateB float64) {
	lateA, lateB = s.late(metric, a), s.late(metric, b)
	if metric.TwoSided {
		return lateA + lateB, lateA + lateB
	}
	return lateA, lateB
}

// late returns the mean lateness of an arm's runs.
func (s *state) late(metric Metric, arm int) float64 {
	sum, n := 0.0, 0.0
	for i := range s.blocks {
		for _, run := range s.blocks[i].Spans {
			if run.Arm == arm {
				n++
				sum += run.Late[metric.Name]
			}
		}
	}
	return sum / n
}

// verdict removes arms from the trial and sets its state.
func (s *state) verdict(d *Decision, m model) {
	settled := func(c *Comparison) bool { return s.decided(c) && !d.Suspects(c) }
	arms := s.all()
	if s.WholeOrder {
		d.Left = slices.DeleteFunc(s.all(), func(arm int) bool {
			return every(d.Primary, func(c *Comparison) bool { return c.A != arm && c.B != arm || settled(c) })
		})
	} else {
		if !every(among(d.Primary, d.Left), s.within) {
			d.Left = s.unbeaten(d, d.Left)
		}
		arms = d.Left
	}
	s.best(d, m)
	for arm := range d.LeftAfter {
		if d.LeftAfter[arm] == 0 && !slices.Contains(d.Left, arm) {
			d.LeftAfter[arm] = len(s.blocks)
		}
	}
	pairs := among(d.Primary, arms)
	switch {
	case len(arms) == 1:
		d.Verdict = Better
	case !every(pairs, settled): // more blocks
	case every(pairs, s.within):
		d.Verdict = NoDifference
	case every(pairs, func(c *Comparison) bool { return !d.TradesOff(c) }):
		d.Verdict = Ordered
	default:
		d.Verdict = TradeOff
	}
}

// within reports whether a difference is certainly of no interest.
func (s *state) within(c *Comparison) bool { return c.Within(s.Margin) }

// decided reports whether a difference is shown, or is of no interest.
func (s *state) decided(c *Comparison) bool { return c.Shown != 0 || s.within(c) }

// all returns the arms that serve.
func (s *state) all() (arms []int) {
	for arm := range s.Arms {
		arms = append(arms, arm)
	}
	for i := range s.blocks {
		arms = without(arms, s.blocks[i].Gone)
	}
	return arms
}

func without(arms, gone []int) []int {
	return slices.DeleteFunc(arms, func(arm int) bool { return slices.Contains(gone, arm) })
}

// among returns the comparisons of arms with each other.
func among(all []Comparison, arms []int) (found []Comparison) {
	for i := range all {
		if slices.Contains(arms, all[i].A) && slices.Contains(arms, all[i].B) {
			found = append(found, all[i])
		}
	}
	return found
}

// every reports whether all comparisons have a property.
func every(all []Comparison, has func(*Comparison) bool) bool {
	for i := range all {
		if !has(&all[i]) {
			return false
		}
	}
	return true
}

// unbeaten returns the arms that none of the others is better than. An arm that fails more often, or seems to, is not
// better.
func (s *state) unbeaten(d *Decision, arms []int) []int {
	arms = slices.Clone(arms)
	for _, c := range among(d.Primary, arms) {
		if _, loser, ok := c.Better(); ok && !d.TradesOff(&c) && !d.Suspects(&c) {
			arms = slices.DeleteFunc(arms, func(arm int) bool { return arm == loser })
		}
	}
	return arms
}

// TradesOff reports whether the better arm of a comparison certainly fails more often than the other, or the two differ
// in a guard, or the better arm by the first metric is worse in a secondary one.
func (d *Decision) TradesOff(c *Comparison) bool {
	winner, loser, ok := c.Better()
	return ok && (d.MoreFailures(loser, winner) > 0 || c.key[0] == 0 && len(d.Worse(c)) > 0 ||
		slices.ContainsFunc(d.Guards, func(g Comparison) bool {
			return g.Shown != 0 && g.A == min(winner, loser) && g.B == max(winner, loser)
		}))
}

// best finds the arms with the best estimates, and the arms that may be the best: those that no pair's interval shows
// to be worse than another. For the whole order, every pair counts, also of arms that have left.
func (s *state) best(d *Decision, m model) {
	sign := 1.0
	if s.Metrics[0].LessIsBetter {
		sign = -1
	}
	candidates := d.Left
	if s.WholeOrder {
		candidates = s.all()
	}
	d.MayBeBest = s.unbeaten(d, candidates)
	first := func(arms []int) int {
		return slices.MaxFunc(arms, func(a, b int) int { return cmp.Compare(sign*m.means[a], sign*m.means[b]) })
	}
	if len(d.MayBeBest) == 0 { // results of different looks can form a circle
		d.MayBeBest = slices.Clone(candidates)
	}
	d.Best = first(d.MayBeBest)
	d.RunnerUp = first(slices.DeleteFunc(s.all(), func(arm int) bool { return arm == d.Best }))
}

// others compares the arms by the other metrics. All metrics and pairs share the error of all looks (Bonferroni), so
// that a difference is shown exactly where its interval leaves out 0.
func (s *state) others(d *Decision) {
	earlier := d.Others
	d.Others = nil
	n := (len(s.Metrics) - 1) * s.Arms * (s.Arms - 1) / 2
	for metric := 1; metric < len(s.Metrics); metric++ {
		all, with := s.observations(s.Metrics[metric])
		m, ok := s.fit(s.Metrics[metric])
		if !ok {
			m, ok = fitSome(all, with, s.Arms, !s.Switchback, Variance{})
		}
		if !ok {
			continue
		}
		lacks := func(arm int) bool { return !slices.Contains(with, arm) }
		known := slices.DeleteFunc(slices.Clone(earlier), func(c Comparison) bool { return lacks(c.A) || lacks(c.B) })
		left := slices.DeleteFunc(slices.Clone(d.Left), lacks)
		d.Others = append(d.Others, s.pairs(known, left, m, metric, s.Alpha/float64(n))...)
	}
}
