package report

import (
	"fmt"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/proof"
	"kvbooth/sidecar/loadgen/report/chart"
)

// armValue is the deciding metric of an arm, with the interval that decides: that of its difference from the reference,
// at the reference's value. Before the first look it is the interval of the arm by itself. difference is empty for the
// reference, and where none is known.
type armValue struct {
	name       string
	value      float64
	interval   *[2]float64
	difference string
}

// armValues returns the deciding metric of every arm so far. decides reports whether the first one is the reference
// that the intervals compare with.
func (r *Results) armValues() (all []armValue, decides bool) {
	t, m := r.Sweep.Trial, r.primary()
	switch k := r.ranking(); {
	case t.Primary == nil:
		return r.armsSoFar(m), false
	case k == nil:
		a, b := r.trialNames()
		return []armValue{{name: a, value: t.Primary.A}, comparedWith(t.Primary.A, b, t.Primary, m)}, true
	case k.Places[0].Mean != nil:
		best := k.Places[0]
		all = append(all, armValue{name: r.armName(best.Arm), value: *best.Mean})
		for _, place := range k.Places[1:] {
			i := slices.IndexFunc(k.Pairs, func(p api.TrialPair) bool { return p.B == best.Arm && p.A == place.Arm })
			if i >= 0 {
				d := turned(&k.Pairs[i].Primary, m)
				v := comparedWith(*best.Mean, r.armName(place.Arm), &d, m)
				if place.Mean != nil {
					v.value = *place.Mean // over all blocks, as in the table
				}
				all = append(all, v)
			}
		}
	}
	return all, true
}

// comparedWith returns the value of an arm whose difference from the reference is d.
func comparedWith(reference float64, name string, d *api.TrialDifference, m proof.Metric) armValue {
	apart := func(by float64) float64 {
		if m.Share() {
			return reference + by
		}
		return reference * (1 + by)
	}
	v := armValue{name: name, value: apart(d.Difference), difference: signed(d.Difference, m.Share())}
	if in := d.Interval; in != nil {
		v.interval = &[2]float64{apart(in[0]), apart(in[1])}
	}
	return v
}

// armsSoFar returns what the spans of each arm measured before the first look.
func (r *Results) armsSoFar(m proof.Metric) (all []armValue) {
	q := baseline.QuantityOf(string(m))
	if q == nil {
		return nil
	}
	for i := range r.Sides {
		for j := range r.Sides[i].Rows {
			if row := &r.Sides[i].Rows[j]; *q.In(row) != nil {
				all = append(all, armValue{name: r.Sides[i].Name, value: **q.In(row), interval: q.IntervalOf(row)})
			}
		}
	}
	return all
}

// primary returns the metric that decides the trial.
func (r *Results) primary() proof.Metric {
	if p := r.Sweep.Request.Primary; p != nil {
		return proof.Metric(*p)
	}
	return proof.MeanTTFT
}

// armsSection draws the deciding metric of every arm so far. It returns nothing for other reports, and before the first
// span.
func (r *Results) armsSection() Section {
	if !r.OfTrial() || r.Sweep.Trial == nil {
		return Section{}
	}
	all, decides := r.armValues()
	if len(all) == 0 {
		return Section{}
	}
	m := r.primary()
	scale, unit := plotted(m)
	var rows []chart.Row
	for _, v := range all {
		text := v.name + ": " + trialValue(m, v.value)
		if v.difference != "" {
			text += ", " + v.difference
		}
		row := chart.Row{Name: text, Value: scale * v.value, Title: text}
		if v.interval != nil {
			row.Band = &[2]float64{scale * v.interval[0], scale * v.interval[1]}
		}
		rows = append(rows, row)
	}
	var against *chart.Reference
	how := "A line is the 95 % interval of the arm by itself. Whether the arms differ is not known before the first look."
	if decides {
		limits := r.Sweep.Trial.Boundaries
		low := comparedWith(all[0].value, "", &api.TrialDifference{Interval: &limits}, m).interval
		against = &chart.Reference{At: scale * all[0].value, Within: [2]float64{scale * low[0], scale * low[1]}}
		how = fmt.Sprintf("A line is the 95 %% interval of the difference from %s, which is certain where the line does not "+
			"reach the upright one. A difference within the gray area is of no interest.", all[0].name)
	}
	drawn := chart.Rows(sentenceCase(m.Name())+", which decides", unit, against, rows)
	drawn.Note = how
	return Section{Charts: []chart.Chart{drawn}}
}

// plotted returns the factor from the unit of a deciding metric to that of its chart, with that unit.
func plotted(m proof.Metric) (scale float64, unit string) {
	switch {
	case m.Share():
		return 100, "%"
	case m.Time():
		return 1000, "ms"
	}
	return 1, "tokens/s"
}

// soFarWords says what the spans before the first look measured of each arm, where every arm has some.
func (r *Results) soFarWords() string {
	var each []string
	for _, v := range r.armsSoFar(r.primary()) {
		each = append(each, trialValue(r.primary(), v.value)+" under "+v.name)
	}
	if len(each) < len(r.Sweep.Request.Modes) {
		return ""
	}
	return r.primary().Name() + " is " + join(each) + " so far"
}
