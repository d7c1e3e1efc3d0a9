package proof

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
)

// Accepted is the result that runs of the same system are compared with, such as that of the last release.
type Accepted struct {
	Name   string // in messages: as the user names it
	Result api.Baseline
	Runs   int // number of runs whose mean Result is; 0 stands for 1
	// Between returns the scatter of a figure between runs of one system, by the name of its [Quantity]: the standard
	// deviation, as a share of the figure, or of shares in points, and the number of runs it was estimated from. With
	// fewer than two runs it is not used, and with fewer than [EnoughRuns] only where it is wider than the interval within
	// a run. nil: the scatter between runs is not known.
	Between func(figure string) (deviation float64, runs int)
}

// AcceptedOf returns several results of one system as what is accepted: mean is their mean. They also give the scatter
// between runs, unless there is only one.
func AcceptedOf(name string, mean api.Baseline, results []api.Baseline) *Accepted {
	a := &Accepted{Name: name, Result: mean, Runs: len(results)}
	if len(results) < 2 {
		return a
	}
	a.Between = func(figure string) (float64, int) {
		q, deviation := baseline.QuantityOf(figure), 0.0
		for _, row := range results[0].Rows { // the level that scatters most
			var values []float64
			for i := range results {
				j := slices.IndexFunc(results[i].Rows, func(r api.BaselineRow) bool {
					return r.Level == row.Level && r.InMode() == row.InMode()
				})
				if j >= 0 && *q.In(&results[i].Rows[j]) != nil {
					values = append(values, scaled(q.Kind, **q.In(&results[i].Rows[j])))
				}
			}
			if len(values) == len(results) {
				deviation = max(deviation, stat.StdDev(values, nil))
			}
		}
		return deviation, len(results)
	}
	return a
}

// Gated are the quantities of a run with an interval, which can be compared with what is accepted.
var Gated = slices.Concat(baseline.Latencies, []Quantity{
	QuantityMeanTTFT, QuantityThroughput, QuantityRequests, QuantityHitRate,
})

// Change is the difference of a figure of a run from the accepted one.
type Change struct {
	Before     float64
	Difference float64     // relative to Before; of shares in points
	Interval   *[2]float64 // 95 % interval of Difference; nil: not known
	Scatters   bool        // scatter between runs, not the length of a run, makes the interval as wide as it is
	Withheld   string      // why Difference decides nothing; empty: it decides
}

// Changes compares the only row of a run's result with the accepted row of the same level and mode. Each interval is
// that of two results (Zou and Donner), of which each is first widened to the scatter between runs, by Student's t. The
// second result lists what else the two differ in. The error is an *[api.FieldError] if what is accepted has no such
// row, or if the two cannot be compared.
func (a *Accepted) Changes(run api.Baseline) (map[Quantity]Change, []api.Difference, error) {
	row := &run.Rows[0]
	mode := row.InMode()
	name := func(r *api.BaselineRow) string { return r.Level.InWords() + " under " + r.InMode().Text() }
	var has []string
	for i := range a.Result.Rows {
		has = append(has, name(&a.Result.Rows[i]))
	}
	if !slices.Contains(has, name(row)) {
		wanted, hint := name(row), ""
		if mode.Arm == "" && mode.Mode == api.ModeUnknown {
			wanted = row.Level.InWords() + " in an unknown mode"
			if slices.ContainsFunc(a.Result.Rows, func(r api.BaselineRow) bool { return r.Level == row.Level }) {
				hint = "; name the mode of this run with --mode-mode"
			}
		}
		return nil, nil, api.Refuse("against", a.Name, fmt.Sprintf("a result with %s, as this run has it; it has %s%s",
			wanted, strings.Join(has, ", "), hint))
	}
	before, scattersBefore := a.widened(a.Result, max(1, a.Runs))
	now, scatters := a.widened(run, 1)
	if now.Name == before.Name {
		now.Name += " now" // results of one name count as one result
	}
	side := api.ReportSide{Arm: mode.Arm, Mode: mode.Mode, Speculation: mode.Speculation}
	c, err := Compare(before, now, Question{A: side, B: side, OneSystem: true})
	if err != nil {
		return nil, nil, err
	}
	p := &c.Pairs[0]
	if p.Withheld != "" {
		return nil, nil, api.Refuse("against", a.Name, "a result that can be compared: "+p.Withheld)
	}
	all := map[Quantity]Change{}
	for _, l := range p.Levels {
		for q, f := range l.Figures {
			if l.Level == row.Level && f.Advantage != nil {
				all[q] = f.change(q, scatters[q] || scattersBefore[q])
			}
		}
	}
	return all, p.Differences, nil
}

// change converts an advantage to a difference.
func (f *Figure) change(q Quantity, scatters bool) Change {
	c := Change{Before: *f.A, Difference: *f.Advantage, Interval: f.Interval, Scatters: scatters}
	if q.Kind.LessIsBetter() {
		if c.Difference = 0 - c.Difference; f.Interval != nil {
			c.Interval = &[2]float64{0 - f.Interval[1], 0 - f.Interval[0]} // no negative zero
		}
	}
	switch {
	case f.AtLeastA || f.AtLeastB:
		c.Withheld = "turns cut at the end may have been slower"
	case f.Outcome == api.OutcomeWithheld:
		c.Withheld = "the load generator's own error may explain it"
	}
	return c
}

// EnoughRuns is the number of runs whose scatter alone says how far a run may be off. It includes the scatter within a
// run, of which the intervals from four batches are wide for their few degrees of freedom.
const EnoughRuns = 6

// widened returns a copy of a result, the mean of a number of runs, with the intervals that the scatter between runs
// gives, and which of them that made wider. With few runs, it makes none narrower.
func (a *Accepted) widened(b api.Baseline, runs int) (api.Baseline, map[Quantity]bool) {
	b = baseline.WithIntervals(b)
	b.Rows = slices.Clone(b.Rows)
	wider := map[Quantity]bool{}
	for i := range b.Rows {
		row := &b.Rows[i]
		in := api.RowIntervals{}
		if row.Intervals != nil {
			in = *row.Intervals
		}
		row.Intervals = &in
		for _, q := range Gated {
			value, own := *q.In(row), q.IntervalIn(&in)
			if a.Between == nil || value == nil {
				continue
			}
			deviation, of := a.Between(q.Name)
			if of < 2 {
				continue
			}
			half := student(alpha, float64(of-1)) * deviation / math.Sqrt(float64(runs))
			if q.Kind != baseline.Share {
				half *= *value
			}
			wide := [2]float64{*value - half, *value + half}
			if *own != nil && of < EnoughRuns {
				wide = [2]float64{min(wide[0], (**own)[0]), max(wide[1], (**own)[1])}
			}
			wider[q] = wider[q] || *own == nil || wide[1]-wide[0] > (**own)[1]-(**own)[0]
			*own = &wide
		}
	}
	return b, wider
}
