package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"
)

// Outcome is how a condition ended.
type Outcome string

// The outcomes of a condition.
const (
	Passed     Outcome = "passed"
	Failed     Outcome = "failed"      // it is met
	NotCertain Outcome = "not_certain" // of a relative condition: neither met nor excluded
	Unknown    Outcome = "unknown"     // the figure was not measured, or its value decides nothing
)

// gated returns the quantity of a measure that a relative condition may name; nil: it may not.
func (q *measure) gated() proof.Quantity {
	name := q.name
	if name == "kv_hit" {
		name = proof.QuantityHitRate.Name
	}
	if i := slices.IndexFunc(proof.Gated, func(q proof.Quantity) bool { return q.Name == name }); i >= 0 {
		return proof.Gated[i]
	}
	return nil
}

// allowedRelative describes the syntax of a relative condition.
func allowedRelative() string {
	var names []string
	for i := range measures {
		if measures[i].gated() != nil {
			names = append(names, measures[i].name)
		}
	}
	return "a change against the result of --against: one of " + strings.Join(names, ", ") + " with >+ or <- and a " +
		"percentage (ttft_p95>+5%, kv_hit<-3%), in points for kv_hit"
}

// readRelative parses the limit of a relative condition, such as +5%.
func (q *measure) readRelative(c *Condition, value string) error {
	number, percent := strings.CutSuffix(value[1:], "%")
	limit, err := strconv.ParseFloat(number, 64)
	signed := c.Op + value[:1]
	if err != nil || !percent || !(limit >= 0) || limit > 1e6 || signed != ">+" && signed != "<-" || q.gated() == nil {
		return Hint(allowedRelative())
	}
	c.Limit, c.Relative = limit/100, true
	return nil
}

// judgeRelative compares the run with what was accepted. The condition is met where the difference is certain, which is
// where its interval excludes 0, and larger than the limit. It has passed where the interval excludes a difference
// beyond the limit. Anything else is not certain.
func (c Condition) judgeRelative(r *Run, q *measure) Result {
	out := Result{Condition: c.Text, Against: r.against.Name, Value: q.value(r), Outcome: Unknown}
	change, ok := r.changes[q.gated()]
	if !ok {
		if out.Withheld = r.noChanges; out.Value != nil {
			out.valueText = q.text(*out.Value)
		}
		return out
	}
	out.Before, out.Difference, out.Interval = &change.Before, &change.Difference, change.Interval
	out.Withheld = change.Withheld
	out.valueText = q.changeText(out.Value, &change)
	if out.Withheld != "" {
		return out
	}
	out.Known, out.Outcome = true, NotCertain
	if change.Interval == nil {
		out.needs = "too few independent turns for an interval; a longer run may decide"
		return out
	}
	worse, low, high := change.Difference, change.Interval[0], change.Interval[1]
	if c.Op == "<" {
		worse, low, high = -worse, -high, -low
	}
	switch {
	case worse > c.Limit && low > 0:
		out.Hit, out.Outcome = true, Failed
	case high <= c.Limit:
		out.Outcome = Passed
	default:
		out.need(r.Seconds, c.Limit, worse, low, high, change.Scatters)
	}
	return out
}

// need estimates the length of runs that would decide, if the difference does not change: the interval narrows with the
// root of the time. Scatter between runs does not narrow within one.
func (c *Result) need(seconds, limit, worse, low, high float64, scatters bool) {
	half, needed := high-worse, limit-worse
	if worse > limit {
		half, needed = worse-low, worse
	}
	factor := half / needed
	switch {
	case scatters:
		c.needs = "runs scatter more than the interval within one: more accepted runs decide, not longer ones"
	case !(needed > 0) || math.IsInf(factor, 0):
		c.needs = "the difference is just the limit: no time decides"
	default:
		c.SecondsNeeded = new(seconds * factor * factor)
		c.needs = fmt.Sprintf("needs about %s of measurement in place of %s, on both sides", about(*c.SecondsNeeded),
			about(seconds))
	}
}

// about formats seconds to a precision for planning.
func about(seconds float64) string {
	switch {
	case seconds < 90:
		return whole(seconds) + " s"
	case seconds < 90*60:
		return whole(seconds/60) + " min"
	}
	return whole(seconds/3600) + " h"
}

// changeText formats a value with its change, such as "654 ms, +3.1 % (95 %: −0.4 to +6.6 %) on 634 ms".
func (q *measure) changeText(value *float64, c *proof.Change) string {
	text, unit := "value", "%"
	if q.unit == ratio {
		unit = "points"
	}
	if value != nil {
		text = q.text(*value)
	}
	text += fmt.Sprintf(", %+.1f %s", 100*c.Difference, unit)
	if in := c.Interval; in != nil {
		text += fmt.Sprintf(" (95 %%: %+.1f to %+.1f)", 100*in[0], 100*in[1])
	}
	return strings.ReplaceAll(text, "-", "−") + " on " + q.text(c.Before)
}

// text formats a value of the measure.
func (q *measure) text(v float64) string {
	switch q.unit {
	case duration:
		return api.Milliseconds(v)
	case ratio:
		return api.Percent(v)
	}
	if q.name == "requests_per_second" || q.name == "tokens_per_step" {
		return hundredths(v)
	}
	return whole(v)
}

// compare compares the run with what was accepted, for relative conditions.
func (r *Run) compare(a *proof.Accepted) {
	if r.against = cmp.Or(a, &proof.Accepted{}); a == nil {
		return
	}
	b, err := r.AsBaseline("run")
	if err == nil {
		var differences []api.Difference
		r.changes, differences, err = a.Changes(b)
		var unlike []string
		for _, d := range differences {
			unlike = append(unlike, fmt.Sprintf("%s %s here, %s there", strings.ReplaceAll(d.Field, "_", " "), d.Live,
				d.Baseline))
		}
		if t := a.Result.Target; t != nil && t.URL != r.Target.URL {
			unlike = append(unlike, fmt.Sprintf("target %s here, %s there", r.Target.URL, t.URL))
		}
		if len(unlike) > 0 {
			r.Notes = append(r.Notes, "Differs from what it is held against: "+api.Printable(strings.Join(unlike, "; "))+".")
		}
	}
	if err != nil {
		r.noChanges = err.Error()
	}
}

// Uncertain reports whether a relative condition is not certain.
func (r *Run) Uncertain() bool {
	return slices.ContainsFunc(r.Conditions, func(c Result) bool { return c.Outcome == NotCertain })
}

// Worse names each figure that is certainly worse in the second of two results, and levels at which it fails more
// turns. All figures and levels together have an error of 5 %: each interval is widened as Bonferroni's correction
// widens that of a normal distribution.
func (r *Results) Worse() (all []string) {
	for _, f := range r.gateFigures() {
		if f.worse {
			all = append(all, f.name+": "+f.text)
		}
	}
	return all
}

// Judged reports whether any figure of two results was compared.
func (r *Results) Judged() bool {
	return slices.ContainsFunc(r.gateFigures(), func(f gateFigure) bool { return !f.unknown })
}

// gateFigure is a judged figure of a comparison of two results.
type gateFigure struct {
	name, text string
	worse      bool
	unknown    bool // there is no interval, or its value decides nothing
}

func (r *Results) gateFigures() (all []gateFigure) {
	p := &r.Pairs[0]
	n := 0
	for _, l := range p.Levels {
		for _, f := range l.Figures {
			if f.Interval != nil {
				n++
			}
		}
	}
	for _, l := range p.Levels {
		for _, q := range r.Quantities() {
			f := l.Figures[q]
			if f.A == nil && f.B == nil {
				continue
			}
			g := gateFigure{name: q.Name + " at " + l.Level.InWords(), text: "not compared", unknown: true}
			if in := f.Interval; in != nil && f.Advantage != nil {
				unit := "%"
				if q.Kind == baseline.Share {
					unit = "points"
				}
				low, high := in[0], in[1]
				if *f.Advantage < 0 {
					low, high = -high, -low
				}
				g.text = fmt.Sprintf("%s %s %s (95 %%: %s to %s)", tenths(100*math.Abs(*f.Advantage)), unit,
					betterOrWorse(*f.Advantage), tenths(100*low), tenths(100*high))
				g.unknown = f.Outcome == api.OutcomeWithheld
				g.worse = !g.unknown && *f.Advantage+proof.Simultaneous(n)*(in[1]-*f.Advantage) < 0
			}
			all = append(all, g)
		}
		more := l.FailsMore != nil && *l.FailsMore == p.B
		if l.FailsMore != nil {
			all = append(all, gateFigure{
				name: "failed turns at " + l.Level.InWords(), worse: more, text: r.Sides[*l.FailsMore].Name + " fails more turns",
			})
		}
	}
	return all
}

func betterOrWorse(advantage float64) string {
	if advantage < 0 {
		return "worse"
	}
	return "better"
}
