package calibrate

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/sim"
	"kvbooth/sidecar/sim/closedloop"
)

// Status classifies how a constant got its value.
type Status string

// The statuses of a constant. A constant that is not determined keeps the value of the start, unless other constants
// could only be fitted together with it. [Constant.Combination] is then the fitted sum.
const (
	Fitted        Status = "fitted"         // the data determine it to within [Tolerance]
	Derived       Status = "derived"        // not fitted; the value is that of the start
	NotDetermined Status = "not determined" // the data do not determine it
)

// Tolerance is the largest half-width of a determined constant's 95 % interval, as a share of its value.
const Tolerance = .05

// The largest mean absolute errors of a calibrated profile, in sample and out of sample.
const (
	MaxError = .04 // of TTFT p50, throughput and TPOT p50 together
	MaxTail  = .07 // of TTFT p95
)

// Constant is the result for one constant.
type Constant struct {
	Name         string
	Start, Value float64
	// Error is the standard error of the value, all other constants being free within their bounds; NaN if the
	// constant was not fitted.
	Error     float64
	Low, High float64 // bounds
	Why       string  // reason for the bounds
	Status    Status
	AtBound   bool // a better fit would lie beyond the bound

	// Combination is the sum that the data determine when they do not determine the constant itself, such as
	// "step.base + 29 × step.per_sequence".
	Combination      string
	CombinationValue float64
	CombinationError float64 // standard error
	// Remedy is a measurement that would determine the constant, found by simulation; "" if none was looked for.
	Remedy string
}

// Result is the result of a fit.
type Result struct {
	Profile   sim.Profile // fitted, complete and valid
	Constants []Constant
	Rows      []Row // all rows, the fitted ones first

	InSample, OutOfSample Errors
	Assumed               []string // assumptions where the baselines lack data
	Rounds, Runs          int      // rounds of the search; simulated runs in total
}

// result describes the point where the search has ended.
func (f *fit) result(ctx context.Context) (*Result, error) {
	r := &Result{Constants: f.describe(), Rounds: f.rounds}
	for _, s := range f.sources {
		r.Assumed = append(r.Assumed, s.assumed...)
	}
	// All rows are simulated again, because the held-out levels are part of the sweeps too.
	cells := slices.Concat(f.fitted, f.held)
	runs, err := f.runner.run(ctx, "errors", f.sources, cells, []sim.Profile{f.profile})
	if err != nil {
		return nil, err
	}
	r.Rows = rowsOf(f.sources, cells, runs[0])
	for i := range f.held {
		r.Rows[len(f.fitted)+i].Held = true
	}
	r.InSample, r.OutOfSample = ErrorsOf(r.Rows[:len(f.fitted)]), ErrorsOf(r.Rows[len(f.fitted):])
	r.Profile = f.write(r)
	r.Runs = f.runner.total
	return r, r.Profile.Validate()
}

func rowsOf(sources []source, cells []cell, runs samples) []Row {
	var rows []Row
	for i, c := range cells {
		rows = append(rows, Row{
			Baseline: sources[c.source].baseline.Name, Recorded: *c.row, Simulated: closedloop.Mean(runs[i]),
		})
	}
	return rows
}

// ErrorsOf returns the errors of some rows.
func ErrorsOf(rows []Row) Errors {
	e := Errors{Rows: len(rows)}
	mean := func(difference func(*Row) float64) float64 {
		sum, n := 0.0, 0.0
		for i := range rows {
			if v := difference(&rows[i]); !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		return sum / n
	}
	for i, field := range []*float64{&e.TTFT50, &e.TTFT95, &e.Throughput, &e.TPOT} {
		s := statistics[i]
		*field = mean(func(r *Row) float64 {
			if v := s.recorded(&r.Recorded); v != nil {
				return math.Abs(*s.simulated.Of(&r.Simulated) / *v - 1)
			}
			return math.NaN()
		})
	}
	e.Hit = mean(func(r *Row) float64 {
		if v := r.Recorded.KVHitRatio; v != nil {
			return math.Abs(r.Simulated.Hit - *v)
		}
		return math.NaN()
	})
	for _, r := range rows {
		e.Levels = append(e.Levels, r.Recorded.Level.Conversations())
	}
	slices.Sort(e.Levels)
	e.Levels = slices.Compact(e.Levels)
	return e
}

// middle returns the mean error over those of TTFT p50, throughput and TPOT p50 that were recorded.
func (e Errors) middle() float64 {
	sum, n := 0.0, 0.0
	for _, v := range []float64{e.TTFT50, e.Throughput, e.TPOT} {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / n
}

// good reports whether the errors are within the bounds of a calibrated profile.
func (e Errors) good() bool {
	const roundingError = 1e-9
	return e.middle() <= MaxError*(1+roundingError) && !(e.TTFT95 > MaxTail*(1+roundingError))
}

// Calibrated reports whether the fitted profile is calibrated: its errors, in sample and at held-out levels, are
// within the bounds.
func (r *Result) Calibrated() bool {
	return r.InSample.good() && r.OutOfSample.Rows > 0 && r.OutOfSample.good()
}

// describe returns the result for each constant of the profile.
func (f *fit) describe() []Constant {
	k := &f.knowledge
	inflated := k.inflation(len(f.moved))
	alone := k.errors(inflated)
	together, coupling := k.held(f.moved, inflated)
	start := f.sources[0].start
	var list []Constant
	for _, c := range f.profile.Constants() {
		d := Constant{
			Name: c.Name, Start: c.Get(&start), Value: c.Get(&f.profile), Low: c.Low, High: c.High, Why: c.Why,
			Error: math.NaN(), Status: Derived,
		}
		if i := f.index(c.Name); i >= 0 {
			unit := scale(c, &f.profile)
			d.Error, d.Status = alone[i]*unit, NotDetermined
			if normal*alone[i] <= Tolerance {
				d.Status = Fitted
			} else if m := slices.Index(f.moved, i); m >= 0 {
				f.combine(&d, c, together[m], coupling[m])
			}
			d.AtBound = slices.Contains(f.moved, i) && (d.Value <= c.Low || d.Value >= c.High)
		}
		list = append(list, d)
	}
	return list
}

// index returns the index of a constant in f.constants, or -1 if the fit does not move it.
func (f *fit) index(name string) int {
	return slices.IndexFunc(f.constants, func(c sim.Constant) bool { return c.Name == name })
}

// combine sets the determined sum of a constant: the constant plus those constants that were not moved but could
// change it by more than its standard error.
func (f *fit) combine(d *Constant, c sim.Constant, together float64, coupling []float64) {
	unit := scale(c, &f.profile)
	text, value := c.Name, d.Value
	for h, other := range f.constants {
		if slices.Contains(f.moved, h) {
			continue
		}
		// A change of the other constant by 1 changes this one by slope.
		otherUnit := scale(other, &f.profile)
		slope := coupling[h] * unit / otherUnit
		if math.Abs(coupling[h])*f.knowledge.prior[h] < max(normal*together, .01) {
			continue
		}
		sign := "+"
		if slope > 0 {
			sign = "-"
		}
		text += fmt.Sprintf(" %s %.3g × %s", sign, math.Abs(slope), other.Name)
		value -= slope * other.Get(&f.profile)
	}
	d.Combination, d.CombinationValue, d.CombinationError = text, value, together*unit
}

// withSpeculation returns the profile with s as the deployment as recorded.
func withSpeculation(p sim.Profile, s sim.Speculation) sim.Profile {
	p.Speculation = maps.Clone(p.Speculation)
	p.Speculation[api.SpeculationNotRecorded] = s
	return p
}

var invalidInNames = regexp.MustCompile(`[^a-z0-9._-]+`)

// profileName makes a valid profile name of a text.
func profileName(text string) string {
	text = strings.Trim(invalidInNames.ReplaceAllString(strings.ToLower(text), "-"), "-._")
	return text[:min(len(text), 64)]
}

// write returns the fitted profile with its description.
func (f *fit) write(r *Result) sim.Profile {
	p, names := f.profile, []string{}
	for _, s := range f.sources {
		names = append(names, s.baseline.Name)
	}
	if p.Name = profileName(f.options.Name); p.Name == "" {
		p.Name = profileName(names[0])
	}
	if p.Name == "" || p.Name == f.options.Start.Name {
		p.Name = "twin"
	}
	p.Baseline, p.Calibrated = names[0], r.Calibrated()
	if model := f.sources[0].baseline.Deployment.Model; model != "" {
		p.Model = model
	}
	p.Basis = fmt.Sprintf("Fitted by booth calibrate on %s to %s, from %s. In sample: %s. Held out: %s.",
		f.options.Now.UTC().Format("2006-01-02"), strings.Join(names, " and "), f.options.Start.Name,
		r.InSample, r.OutOfSample)
	p.Speculation = maps.Clone(p.Speculation)
	for kind, s := range p.Speculation {
		s.Calibrated = p.Calibrated && (kind == api.SpeculationNotRecorded || kind == rowKind(f.sources[0].baseline))
		p.Speculation[kind] = s
	}
	p.Speculation[api.SpeculationNotRecorded] = fittedSpeculation(p, rowKind(f.sources[0].baseline))
	if kind := rowKind(f.sources[0].baseline); kind != api.SpeculationNotRecorded {
		p.Speculation[kind] = p.Speculation[api.SpeculationNotRecorded]
	}
	p.Sources = f.origins(r)
	return p
}

func fittedSpeculation(p sim.Profile, kind api.Speculation) sim.Speculation {
	s := p.Speculation[api.SpeculationNotRecorded]
	s.Basis = fmt.Sprintf("As it was recorded (speculation: %s): the times above were fitted with %.2f tokens a step.",
		kind, s.TokensPerStep())
	return s
}

// origins returns the source of each constant of the fitted profile.
func (f *fit) origins(r *Result) map[string]sim.Source {
	out := map[string]sim.Source{}
	for _, c := range r.Constants {
		old := f.options.Start.Sources[c.Name]
		s := sim.Source{Origin: old.Origin, From: old.From}
		if s.Origin == sim.Fitted { // to the baseline of the start
			s.Origin = sim.Derived
		}
		s.From = strings.TrimSuffix(s.From, ".")
		switch {
		case c.Status == Fitted:
			s = sim.Source{
				Origin: sim.Fitted,
				From:   fmt.Sprintf("the baseline: %s ± %s (95 %%)", number(c.Value), number(normal*c.Error)),
			}
		case c.Combination == c.Name:
			s = sim.Source{
				Origin: sim.Fitted,
				From:   fmt.Sprintf("the baseline, but only to ± %s (95 %%)", number(normal*c.CombinationError)),
			}
		case c.Combination != "":
			s = sim.Source{
				Origin: sim.Fitted,
				From: fmt.Sprintf("the baseline, which determines %s = %s ± %s alone",
					c.Combination, number(c.CombinationValue), number(normal*c.CombinationError)),
			}
		case c.Value == c.Start:
			s.From = fmt.Sprintf("as in %s (%s)", f.options.Start.Name, s.From)
		default:
			s.From = fmt.Sprintf("from %s in %s, within its bounds; the baseline does not determine it",
				number(c.Start), f.options.Start.Name)
		}
		out[c.Name] = s
	}
	return out
}

// number formats a value with four significant digits.
func number(v float64) string { return fmt.Sprintf("%.4g", v) }

// String formats the errors in one line.
func (e Errors) String() string {
	if e.Rows == 0 {
		return "nothing"
	}
	var parts []string
	for _, part := range []struct {
		name  string
		value float64
		unit  string
	}{
		{"TTFT p50", e.TTFT50, "%"},
		{"p95", e.TTFT95, "%"},
		{"throughput", e.Throughput, "%"},
		{"TPOT p50", e.TPOT, "%"},
		{"hit rate", e.Hit, "points"},
	} {
		if !math.IsNaN(part.value) {
			parts = append(parts, fmt.Sprintf("%s %.1f %s", part.name, 100*part.value, part.unit))
		}
	}
	return fmt.Sprintf("mean absolute error %s at %s", strings.Join(parts, ", "), join(e.Levels))
}
