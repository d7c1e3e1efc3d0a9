package sweep

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/loadgen/proof"
)

// history holds earlier trials that show the scatter of spans: of the same arms, with the same workload on the same
// target and lanes, at the same level, with the same length of spans. The latest is the last.
type history []past

// past is the result of a trial for the requested metric.
type past struct {
	id           string
	variance     decide.Variance
	blockSeconds float64
}

// history returns the trials that are similar to a request. The lock is held.
func (d *Desk) history(r api.SweepRequest) (all history) {
	if r.Kind != api.SweepTrial {
		return nil
	}
	shape, target, _ := d.opts.Lane.Describe()
	arms := armsOf(r.Modes, d.routes(r))
	for _, s := range d.all {
		v, q := &s.doc.Sweep, s.request()
		t, ok := s.machine.(*proof.Trial)
		similar := ok && v.Target == target && q.Levels[0] == r.Levels[0] && *q.Seconds == *r.Seconds &&
			*q.Together == *r.Together && reflect.DeepEqual(v.Workload, shape) &&
			slices.Equal(armsOf(q.Modes, s.doc.Routes), arms)
		if !similar {
			continue
		}
		if variance := t.Variance(proof.Metric(*r.Primary)); variance.DF > 0 {
			all = append(all, past{v.ID, variance, t.BlockSeconds()})
		}
	}
	return all
}

// armsOf returns what identifies the arms of a trial, in an order that does not depend on that of the request.
func armsOf(modes []api.ModeState, routes []string) (all []string) {
	for i, m := range modes {
		arm := fmt.Sprintf("%q %q %q", m.Arm, m.Mode, m.Speculation)
		if i < len(routes) { // earlier versions stored none
			arm += routes[i]
		}
		all = append(all, arm)
	}
	slices.Sort(all)
	return all
}

// routes returns where the turns of each mode of a request go.
func (d *Desk) routes(r api.SweepRequest) (all []string) {
	for _, m := range r.Modes {
		route := d.opts.Lane.Route(m)
		if *r.Together {
			_, target, _ := d.opts.Twin.Describe()
			route += " " + target.URL + d.opts.Twin.Route(m)
		}
		all = append(all, route)
	}
	return all
}

// leastBefore returns the minimum time in seconds before a span of a trial counts: what it took in earlier trials of
// these arms on this target, with the same workload and level, else the openings at the start rate. The lock is held.
func (d *Desk) leastBefore(r api.SweepRequest) float64 {
	shape, target, _ := d.opts.Lane.Describe()
	least := math.Inf(1)
	for _, s := range d.all {
		v := &s.doc.Sweep
		if !s.trial() || v.Target != target || !reflect.DeepEqual(v.Workload, shape) {
			continue
		}
		for _, span := range v.Spans {
			lanes := 1.
			if span.Lane != "" {
				lanes = 2 // which share the time
			}
			if span.Spoiled == "" && span.Concurrency == r.Levels[0] && slices.Contains(r.Modes, span.Mode) {
				least = min(least, lanes*span.Elapsed-span.Until.Sub(span.CountedFrom).Seconds())
			}
		}
	}
	if math.IsInf(least, 1) {
		return float64(r.Levels[0]) / d.opts.Lane.State().StartRate
	}
	return least
}

// prior returns the estimate of the variance.
func (h history) prior() decide.Variance {
	var all []decide.Variance
	for _, p := range h {
		all = append(all, p.variance)
	}
	return decide.Moderate(all)
}

// detectable returns what a trial can find, by the last earlier one; nil without any.
func (h history) detectable(p proof.Plan) *api.TrialDetectable {
	if len(h) == 0 {
		return nil
	}
	last := h[len(h)-1]
	d := p.Detectable(last.variance.Value, last.blockSeconds)
	if d != nil {
		d.Trial = last.id
	}
	return d
}

// fits gives an error for a time that, by the last earlier trial, is too short for the blocks before the first look.
func (h history) fits(p proof.Plan) error {
	if len(h) == 0 {
		return nil
	}
	each := h[len(h)-1].blockSeconds
	if least := decide.LeastBlocks * each; p.MaxTime < least {
		return api.Refuse("max_seconds", p.MaxTime, fmt.Sprintf(
			"at least %.0f: a trial decides after %d blocks, and one took %.0f s in the last such trial of these arms",
			least, decide.LeastBlocks, each))
	}
	return nil
}
