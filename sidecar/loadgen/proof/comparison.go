package proof

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// Question holds the parameters of a report on two results.
type Question struct {
	A, B   api.ReportSide   // B is compared with A
	Levels []api.LevelRange // levels to compare; empty for all
	SLO    api.SLO
	Inputs []api.Source // empty for the baselines themselves
	// OneSystem is true if the two are results of one system at different times, whose mode need not be known.
	OneSystem bool
}

// Comparison compares results level by level: two modes of any baselines, or all modes of a sweep. None of its numbers
// is NaN or infinite, since none of the results has such numbers: they are stored as JSON.
type Comparison struct {
	Title string `json:"title"`
	// Program is the name and the version of the load generator that wrote the report.
	Program string       `json:"program"`
	Words   []string     `json:"words"` // the findings, in sentences
	Sides   []Side       `json:"sides"`
	Pairs   []Pair       `json:"pairs"` // every two sides; empty for a trial, which compares spans, not rows
	SLO     api.SLO      `json:"slo"`
	Sweep   *Run         `json:"sweep,omitempty"` // nil for baselines
	Inputs  []api.Source `json:"inputs"`

	oneSystem bool // see [Question]
}

// Side is one of the compared results: a baseline or a sweep in one mode.
type Side struct {
	Name       string             `json:"name"`               // name in the report
	Baseline   string             `json:"baseline,omitempty"` // empty for a sweep
	Title      string             `json:"title"`
	Kind       string             `json:"kind"` // recorded, imported or measured
	Mode       api.ModeState      `json:"mode"`
	Target     *api.TargetID      `json:"target,omitempty"`
	Addresses  []string           `json:"addresses,omitempty"` // addresses to which the turns of its spans were sent
	Routers    []string           `json:"routers,omitempty"`   // the routers at these addresses, where known
	Deployment api.Deployment     `json:"deployment"`
	Workload   *api.WorkloadShape `json:"workload,omitempty"`
	Provenance api.Provenance     `json:"provenance,omitzero"`
	Notes      string             `json:"notes,omitempty"`
	Rows       []api.BaselineRow  `json:"rows"` // ascending
	Sustained  *api.Sustained     `json:"sustained,omitempty"`

	source api.Baseline   // with these rows only
	table  baseline.Table // with all rows, from which the scatter of recorded values is estimated
}

// Pair compares side B with side A; both are indexes of [Comparison.Sides].
type Pair struct {
	A           int                  `json:"a"`
	B           int                  `json:"b"`
	Differences []api.Difference     `json:"differences"`        // of deployment and workload; live is B, baseline is A
	Withheld    string               `json:"withheld,omitempty"` // why no advantage is reported
	Levels      []Level              `json:"levels"`             // levels of both sides
	OnlyA       []api.Level          `json:"only_a"`             // levels of A only
	OnlyB       []api.Level          `json:"only_b"`             // levels of B only
	Averages    map[Quantity]Average `json:"averages"`
}

// Figure is one quantity of a level on both sides. Times are in seconds, shares from 0 to 1; nil means not recorded.
// The advantage of B is positive where B is better: (A − B)/A for times, (B − A)/A for rates, and B − A for shares. All
// intervals have a confidence of 95 %.
type Figure struct {
	A         *float64    `json:"a,omitempty"`
	B         *float64    `json:"b,omitempty"`
	IntervalA *[2]float64 `json:"interval_a,omitempty"` // nil if it was not measured
	IntervalB *[2]float64 `json:"interval_b,omitempty"`
	Advantage *float64    `json:"advantage,omitempty"`
	Interval  *[2]float64 `json:"interval,omitempty"` // interval of the advantage
	// Estimated is true where Interval uses an estimate of the scatter of recorded values.
	Estimated bool `json:"estimated,omitempty"`
	// Outcome is the verdict by the rule of every comparison with a baseline. It is empty if Advantage is unknown.
	Outcome api.Outcome `json:"outcome,omitempty"`
	// UnlikeA and UnlikeB are true where the file of that side defines the quantity in another way.
	UnlikeA bool `json:"unlike_a,omitempty"`
	UnlikeB bool `json:"unlike_b,omitempty"`
	// AtLeastA and AtLeastB are true where the value is a lower bound, since it depends on turns that were cut.
	AtLeastA bool `json:"at_least_a,omitempty"`
	AtLeastB bool `json:"at_least_b,omitempty"`
}

// Level is a row of a report: the figures of one concurrency.
type Level struct {
	Level   api.Level           `json:"concurrency"`
	Figures map[Quantity]Figure `json:"figures"`
	// FailsMore is the side, an index of [Comparison.Sides], that certainly fails more turns; nil: neither.
	FailsMore *int `json:"fails_more,omitempty"`
	// Overloaded are the sides that did not keep up with the rate in some span.
	Overloaded []Overload `json:"overloaded,omitempty"`
	// Answers is the difference in the length of answers; nil unless it certainly exceeds [decide.GuardMargin].
	Answers *AnswerDifference `json:"answers,omitempty"`
}

// AnswerDifference is the difference in output tokens per answer of B against A, as a share, with a 95 % interval.
type AnswerDifference struct {
	Difference float64    `json:"difference"`
	Interval   [2]float64 `json:"interval"`
}

// Average summarizes a quantity over the levels at which both sides have it.
type Average struct {
	Levels      int         `json:"levels"`
	From        api.Level   `json:"from"`    // the lowest of these levels
	To          api.Level   `json:"to"`      // the highest
	A           float64     `json:"a"`       // mean
	B           float64     `json:"b"`       // mean
	RangeA      [2]float64  `json:"range_a"` // least and largest
	RangeB      [2]float64  `json:"range_b"`
	Advantage   float64     `json:"advantage"` // mean of the advantages at the levels
	Best        float64     `json:"best"`      // the largest advantage
	BestLevel   api.Level   `json:"best_level"`
	Worst       float64     `json:"worst"` // the smallest advantage
	WorstLevel  api.Level   `json:"worst_level"`
	Better      []api.Level `json:"better"` // levels at which B is better
	Worse       []api.Level `json:"worse"`
	NoneShown   []api.Level `json:"no_difference"`
	TooVariable []api.Level `json:"too_variable"`
	Withheld    []api.Level `json:"withheld"`  // for the load generator's own error
	TradeOff    []api.Level `json:"trade_off"` // [Level.FailsMore], Overloaded or Answers forbids it
}

// Quantity is a column of a report's tables.
type Quantity = *baseline.Quantity

// The quantities.
var (
	QuantityTTFT50     = baseline.QuantityOf("ttft_p50")
	QuantityTTFT95     = baseline.QuantityOf("ttft_p95")
	QuantityThroughput = baseline.QuantityOf("output_tokens_per_second")
	QuantityRequests   = baseline.QuantityOf("requests_per_second")
	QuantityHitRate    = baseline.QuantityOf("kv_hit_ratio")

	// The following quantities are optional; see [Comparison.Quantities].
	QuantityAcceptance = baseline.QuantityOf("acceptance_rate")
	QuantityPerStep    = baseline.QuantityOf("tokens_per_step")
	QuantityGPUMemory  = baseline.QuantityOf("gpu_memory_bytes")
	QuantityAchieved   = baseline.QuantityOf("achieved_share")
)

// QuantityMeanTTFT is compared between results of one system. It has no column in a report's tables.
var QuantityMeanTTFT = baseline.QuantityOf("ttft_mean")

// quantities lists all quantities, in the order of a report's tables.
var quantities = slices.Concat(baseline.Latencies, []Quantity{
	QuantityThroughput, QuantityRequests, QuantityHitRate, QuantityAchieved,
	QuantityAcceptance, QuantityPerStep, QuantityGPUMemory,
})

// Costs lists the costs of a row, which are compared by no interval of a difference.
var Costs = func() (all []Quantity) {
	for _, f := range api.Costs {
		all = append(all, baseline.QuantityOf(f.Key))
	}
	return all
}()

// averaged lists what [MeanRow] averages.
var averaged = slices.Concat(quantities, Costs, []Quantity{baseline.QuantityOf("gpu_power_watts")})

// Quantities returns the quantities of the report. A quantity that only some servers report is included if any row has
// it. Tokens per step are left out where all rows have 1, since no tokens were drafted.
func (c *Comparison) Quantities() []Quantity {
	return slices.DeleteFunc(slices.Clone(quantities), func(q Quantity) bool {
		optional := q == QuantityAcceptance || q == QuantityPerStep || q == QuantityGPUMemory ||
			q == QuantityAchieved
		return optional && !slices.ContainsFunc(c.Sides, func(s Side) bool {
			return slices.ContainsFunc(s.Rows, func(row api.BaselineRow) bool {
				v := *q.In(&row)
				return v != nil && (q != QuantityPerStep || *v != 1)
			})
		})
	})
}

// Compare compares a mode of baseline b with a mode of baseline a. Both may be the same baseline. The error is an
// *[api.FieldError] for an arm, mode, speculation or level that a baseline does not have. Its field is a parameter of
// the API: a_arm, a_mode, a_speculation, b_arm, b_mode, b_speculation or levels.
func Compare(a, b api.Baseline, q Question) (Comparison, error) {
	c := Comparison{SLO: q.SLO, Inputs: append([]api.Source{}, q.Inputs...), oneSystem: q.OneSystem}
	for i, input := range []struct {
		field string
		b     api.Baseline
		side  api.ReportSide
	}{{"a", a, q.A}, {"b", b, q.B}} {
		mode, err := modeOf(input.b, input.field, input.side)
		if err != nil {
			return Comparison{}, err
		}
		c.Sides = append(c.Sides, newSide(input.b, mode))
		if err := c.Sides[i].only(q.Levels); err != nil {
			return Comparison{}, err
		}
	}
	c.name()
	if len(c.Inputs) == 0 {
		c.Inputs = c.baselines()
	}
	c.compare()
	return c, nil
}

// baselines returns the default inputs: each baseline with the time of its latest row or run, followed by its runs.
func (c *Comparison) baselines() (all []api.Source) {
	for i := range c.Sides {
		s := &c.Sides[i]
		if i > 0 && s.Baseline == c.Sides[0].Baseline {
			continue
		}
		in := api.Source{File: "baseline " + s.Baseline}
		latest := func(t *time.Time) {
			if t != nil && (in.Date == nil || t.After(*in.Date)) {
				in.Date = t
			}
		}
		for j := range c.Sides {
			for _, row := range c.Sides[j].Rows {
				if c.Sides[j].Baseline == s.Baseline {
					latest(row.Measured)
				}
			}
		}
		for _, run := range s.Provenance.Runs {
			latest(run.Date)
		}
		all = append(append(all, in), s.Provenance.Runs...)
	}
	return all
}

// newSide returns the rows of a baseline in one mode, by ascending level.
func newSide(b api.Baseline, mode api.ModeState) Side {
	s := Side{
		Baseline: b.Name, Title: b.Title, Kind: b.Kind, Mode: mode, Target: b.Target, Deployment: b.Deployment,
		Workload: b.Workload, Provenance: b.Provenance, Notes: b.Notes, Rows: []api.BaselineRow{},
		source: b,
	}
	for _, row := range b.Rows {
		if row.InMode() == mode {
			s.Rows = append(s.Rows, row)
		}
	}
	slices.SortFunc(s.Rows, func(a, b api.BaselineRow) int { return a.Level.Compare(b.Level) })
	s.source.Rows = s.Rows
	s.table = baseline.NewTable(b)
	return s
}

// only removes the levels outside the ranges; no ranges keep all. It returns an *[api.FieldError] if a range of a
// single level has no row, or if no row is left.
func (s *Side) only(ranges []api.LevelRange) error {
	levels := strings.Fields(strings.Trim(fmt.Sprint(s.Levels()), "[]"))
	has := s.Title + " under " + s.Mode.Name() + " has " + strings.Join(levels, ", ")
	for _, r := range ranges {
		if r.From == r.To && s.Row(api.AtConversations(r.From)) == nil {
			return api.Refuse("levels", r.From, "one that both results have: "+has)
		}
	}
	s.Rows = slices.DeleteFunc(s.Rows, func(r api.BaselineRow) bool { return !api.Holds(ranges, r.Level) })
	if len(ranges) > 0 && len(s.Rows) == 0 {
		return api.Refuse("levels", fmt.Sprintf("%d to %d", ranges[0].From, ranges[0].To),
			"a range that holds levels of both results: "+has)
	}
	s.source.Rows = s.Rows
	return nil
}

// Row returns the row of a level, or nil.
func (s *Side) Row(level api.Level) *api.BaselineRow {
	i := slices.IndexFunc(s.Rows, func(r api.BaselineRow) bool { return r.Level == level })
	if i < 0 {
		return nil
	}
	return &s.Rows[i]
}

// Levels returns the levels of the side's rows.
func (s *Side) Levels() (all []api.Level) {
	for i := range s.Rows {
		all = append(all, s.Rows[i].Level)
	}
	return all
}

// modeOf returns the one mode of a baseline that matches a side. It returns an *[api.FieldError] if none matches, or
// several do.
func modeOf(b api.Baseline, field string, side api.ReportSide) (api.ModeState, error) {
	var all, found []api.ModeState
	for i := range b.Rows {
		m := b.Rows[i].InMode()
		if slices.Contains(all, m) {
			continue
		}
		all = append(all, m)
		if (side.Arm == "" || side.Arm == m.Arm) && (side.Mode == "" || side.Mode == m.Mode) &&
			(side.Speculation == "" || side.Speculation == m.Speculation) {
			found = append(found, m)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	has := make([]string, len(all))
	for i, m := range all {
		if has[i] = fmt.Sprintf("arm %q", m.Arm); m.Arm == "" {
			has[i] = string(m.Mode) + " with speculation " + string(m.Speculation)
		}
	}
	allowed := "what " + b.Name + " has: " + strings.Join(has, "; ")
	if len(all) == 0 {
		allowed = "none: " + b.Name + " has no rows"
	}
	if side.Arm != "" || slices.ContainsFunc(found, func(m api.ModeState) bool { return m.Arm != "" }) {
		return api.ModeState{}, api.Refuse(field+"_arm", orNone(side.Arm), allowed)
	}
	inMode := slices.ContainsFunc(all, func(m api.ModeState) bool { return m.Mode == side.Mode })
	if inMode || side.Mode == "" && side.Speculation != "" {
		return api.ModeState{}, api.Refuse(field+"_speculation", orNone(string(side.Speculation)), allowed)
	}
	return api.ModeState{}, api.Refuse(field+"_mode", orNone(string(side.Mode)), allowed)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// name sets the sides' names: the short names of their modes, or the names of their baselines where sides have the same
// mode. If two sides are the same result, "(A)" and "(B)" make their names distinct. The modes of a sweep, of which
// there may be more than two and which have no baseline, differ.
func (c *Comparison) name() {
	modes := make([]api.ModeState, len(c.Sides))
	for i := range c.Sides {
		modes[i] = c.Sides[i].Mode
	}
	names := ModeNames(modes)
	for i := range c.Sides {
		if c.Sides[i].Name = names[i]; count(names, names[i]) > 1 {
			c.Sides[i].Name = c.Sides[i].Baseline
		}
	}
	if len(c.Sides) == 2 && c.Sides[0].Name == c.Sides[1].Name { // the same result twice
		c.Sides[0].Name, c.Sides[1].Name = c.Sides[0].Name+" (A)", c.Sides[1].Name+" (B)"
	}
}

// ModeNames returns the names of modes. They include the speculation where modes differ only in that.
func ModeNames(modes []api.ModeState) []string {
	names, full := make([]string, len(modes)), make([]string, len(modes))
	for i, m := range modes {
		names[i] = m.Short()
		full[i] = m.Mode.Name() + " with speculation " + m.Speculation.Name()
	}
	for i, m := range modes {
		if slices.ContainsFunc(modes, func(o api.ModeState) bool { return o.Short() == m.Short() && o != m }) {
			names[i] = full[i]
		}
	}
	return names
}

func count(all []string, text string) (n int) {
	for _, s := range all {
		if s == text {
			n++
		}
	}
	return n
}

// OfTrial reports whether the comparison is of a trial.
func (c *Comparison) OfTrial() bool { return c.Sweep != nil && c.Sweep.Request.Kind == api.SweepTrial }

// compare computes the sustained level of each side, and all pairs.
func (c *Comparison) compare() {
	c.Pairs = []Pair{}
	for i := range c.Sides {
		if all := baseline.Sustained(c.Sides[i].source, c.SLO); len(all) == 1 && c.SLO != (api.SLO{}) {
			c.Sides[i].Sustained = &all[0]
			if c.open(&c.Sides[i]) {
				all[0].Level = nil
			}
		}
		for j := range i {
			if c.OfTrial() {
				continue // its figures are compared pair by pair of spans
			}
			c.Pairs = append(c.Pairs, c.pair(j, i))
		}
	}
	if c.Sweep != nil && c.Sweep.Request.Kind == api.SweepLevels {
		c.judgeLevels()
	}
	for i := range c.Pairs {
		c.guard(&c.Pairs[i])
		for _, q := range quantities {
			if average, ok := c.Pairs[i].average(q); ok {
				c.Pairs[i].Averages[q] = average
			}
		}
	}
}

// open reports whether spans of an unfinished sweep that have not run could change what a side sustains: those of a
// level up to the lowest one that misses the SLOs.
func (c *Comparison) open(s *Side) bool {
	level := s.Sustained.Level
	if level == nil || c.Sweep == nil {
		return false
	}
	if c.Sweep.Request.Kind != api.SweepLevels {
		return c.Sweep.State != api.SweepDone
	}
	highest, measured := level.Value, s.Levels()
	for _, l := range measured {
		if l.Value > level.Value && !slices.Contains(s.Sustained.Untested, l) { // the lowest one that misses
			highest = l.Value
			break
		}
	}
	return slices.ContainsFunc(c.Sweep.Request.Levels, func(l api.Level) bool {
		return l.Value <= highest && (!slices.Contains(measured, l) || c.Sweep.State != api.SweepDone && !c.ended(s, l))
	})
}

// ended reports whether all repeats of a side at a level have run.
func (c *Comparison) ended(s *Side, level api.Level) bool {
	n := 0
	for _, span := range c.Sweep.Spans {
		if span.Mode == s.Mode && span.Level == level && (span.Spoiled == "" || span.Attempt > 1) {
			n++
		}
	}
	return c.Sweep.Request.Repeats == nil || n >= *c.Sweep.Request.Repeats
}

// Reasons why no advantage is reported.
const (
	otherOpenings = "the opening texts of the two differ in length, or one of them does not record it, so every " +
		"prompt differs"
	modeUnknown = "the routing mode of one of them is unknown"
)

// pair compares side j with side i.
func (c *Comparison) pair(i, j int) Pair {
	a, b := &c.Sides[i], &c.Sides[j]
	p := Pair{
		A: i, B: j, Differences: []api.Difference{}, Levels: []Level{}, OnlyA: []api.Level{}, OnlyB: []api.Level{},
		Averages: map[Quantity]Average{},
	}
	if a.Baseline != b.Baseline {
		var incomparable string
		if p.Differences, incomparable = baseline.Unlike(b.source, a.source, b.Mode, a.Mode); incomparable != "" {
			p.Withheld = otherOpenings
		}
	}
	if (!a.Mode.Known() || !b.Mode.Known()) && !(c.oneSystem && a.Mode == b.Mode) {
		p.Withheld = modeUnknown
	}
	all := c.Quantities()
	if c.oneSystem {
		all = append(all, QuantityMeanTTFT)
	}
	for _, level := range a.Levels() {
		if b.Row(level) == nil {
			p.OnlyA = append(p.OnlyA, level)
			continue
		}
		p.Levels = append(p.Levels, compareAt(level, a, b, p.Withheld == "", all))
	}
	for _, level := range b.Levels() {
		if a.Row(level) == nil {
			p.OnlyB = append(p.OnlyB, level)
		}
	}
	return p
}

// compareAt returns the figures of a level on both sides. Advantages are computed only if judged is true.
func compareAt(level api.Level, a, b *Side, judged bool, wanted []Quantity) Level {
	column, _ := a.table.At(a.Mode, level)
	other, _ := b.table.At(b.Mode, level)
	column = baseline.Against(column, other)
	row, otherRow := a.Row(level), b.Row(level)
	l := Level{Level: level, Figures: map[Quantity]Figure{}}
	for _, q := range wanted {
		f := Figure{
			A: *q.In(row), IntervalA: q.IntervalOf(row), UnlikeA: q.UnlikeIn(row),
			B: *q.In(otherRow), IntervalB: q.IntervalOf(otherRow), UnlikeB: q.UnlikeIn(otherRow),
			AtLeastA: q.AtLeastIn(row), AtLeastB: q.AtLeastIn(otherRow),
		}
		if f.A != nil && f.B != nil && judged {
			f.judge(q, q.LookedUpIn(&column), q.LookedUpIn(&other))
		}
		l.Figures[q] = f
	}
	return l
}

// judge sets the advantage of B over A. The column a holds the interval, in per cent of A.
func (f *Figure) judge(q Quantity, a, b *api.LookedUp) {
	v := advantage(q.Kind, *f.A, *f.B)
	if !finite(v) {
		return
	}
	f.Advantage = &v
	if a.Improvement == nil {
		return
	}
	f.Outcome = a.Improvement.Outcome
	if in := a.Improvement.Interval; in != nil {
		scale := .01
		if q.Kind == baseline.Share {
			scale *= *f.A
		}
		f.Interval = &[2]float64{in[0] * scale, in[1] * scale}
		f.Estimated = a.Estimated || b.Estimated
	}
	if f.AtLeastA && v < 0 || f.AtLeastB && v > 0 { // the better side may be worse
		f.Outcome, f.Interval = api.OutcomeTooVariable, nil
	}
}

// advantage returns the advantage of b over a; see [Figure].
func advantage(k baseline.Kind, a, b float64) float64 {
	switch k {
	case baseline.Time, baseline.Amount:
		return (a - b) / a
	case baseline.Rate:
		return (b - a) / a
	}
	return b - a
}

// average summarizes a quantity. It returns false if no level has an advantage.
func (p *Pair) average(name Quantity) (s Average, ok bool) {
	s = Average{
		RangeA: [2]float64{math.Inf(1), math.Inf(-1)}, RangeB: [2]float64{math.Inf(1), math.Inf(-1)},
		Best: math.Inf(-1), Worst: math.Inf(1), Better: []api.Level{}, Worse: []api.Level{}, NoneShown: []api.Level{},
		TooVariable: []api.Level{}, Withheld: []api.Level{}, TradeOff: []api.Level{},
	}
	lists := map[api.Outcome]*[]api.Level{
		api.OutcomeBetter: &s.Better, api.OutcomeWorse: &s.Worse, api.OutcomeNoDifference: &s.NoneShown,
		api.OutcomeTooVariable: &s.TooVariable, api.OutcomeWithheld: &s.Withheld, api.OutcomeTradeOff: &s.TradeOff,
	}
	for i := range p.Levels {
		f, level := p.Levels[i].Figures[name], p.Levels[i].Level
		if f.Advantage == nil {
			continue
		}
		if s.Levels++; s.Levels == 1 {
			s.From = level
		}
		s.To = level
		s.A, s.B, s.Advantage = s.A+*f.A, s.B+*f.B, s.Advantage+*f.Advantage
		s.RangeA = [2]float64{min(s.RangeA[0], *f.A), max(s.RangeA[1], *f.A)}
		s.RangeB = [2]float64{min(s.RangeB[0], *f.B), max(s.RangeB[1], *f.B)}
		if *f.Advantage > s.Best {
			s.Best, s.BestLevel = *f.Advantage, level
		}
		if *f.Advantage < s.Worst {
			s.Worst, s.WorstLevel = *f.Advantage, level
		}
		if list := lists[f.Outcome]; list != nil {
			*list = append(*list, level)
		}
	}
	n := float64(s.Levels)
	s.A, s.B, s.Advantage = s.A/n, s.B/n, s.Advantage/n
	return s, s.Levels > 0
}
