package sweep

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/baseline"
	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/loadgen/proof"
)

// history holds earlier trials that show the scatter of spans: of the same arms, with the same workload on the same
// target and lanes, at the same level, with the same length of spans. The latest is the last.
type history []past

// past is the result of a trial that has the requested metric.
type past struct {
	id           string
	variances    map[string]decide.Variance
	blockSeconds float64
	elsewhere    bool // it ran on another machine
}

// history returns the trials that are similar to a request, the one on another machine first. The lock is held.
func (d *Desk) history(r api.SweepRequest) (all history) {
	if r.Like != nil {
		one := past{r.Like.ID, map[string]decide.Variance{}, r.Like.BlockSeconds, true}
		for metric, v := range r.Like.Variances {
			one.variances[metric] = decide.Variance{Value: v.Value, DF: v.DegreesOfFreedom}
		}
		all = append(all, one)
	}
	for _, s := range d.alike(r) {
		t, q := s.machine.(*proof.Trial), s.request()
		if q.Levels[0] != r.Levels[0] || *q.Seconds != *r.Seconds {
			continue
		}
		if variances := t.Variances(); variances[*r.Primary].DF > 0 {
			all = append(all, past{s.doc.Sweep.ID, variances, t.BlockSeconds(), false})
		}
	}
	return all
}

// alike returns the trials of the same arms with the same workload on the same target and lanes, at any level and with
// any length of spans. The lock is held.
func (d *Desk) alike(r api.SweepRequest) (all []*sweep) {
	shape, target, _ := d.opts.Lane.Describe(r.Levels[0])
	arms := armsOf(r.Modes, d.routes(r))
	for _, s := range d.all {
		v, q := &s.doc.Sweep, s.request()
		_, ok := s.machine.(*proof.Trial)
		if ok && v.Target == target && *q.Together == *r.Together && q.Warm() == r.Warm() &&
			reflect.DeepEqual(v.Workload, shape) && slices.Equal(armsOf(q.Modes, s.doc.Routes), arms) {
			all = append(all, s)
		}
	}
	return all
}

// soonest returns the level and the length of spans at which the latest trials of the same arms show that a trial is
// answered soonest; nil where none shows it. Only what was measured is compared: how scatter and difference depend on
// the level is not extrapolated. The lock is held.
func (d *Desk) soonest(r api.SweepRequest, p proof.Plan) (best *api.TrialSoonest) {
	type setting struct {
		level   api.Level
		seconds float64
	}
	latest := map[setting]*api.TrialSoonest{}
	for _, s := range d.alike(r) {
		t, at := s.machine.(*proof.Trial), setting{s.request().Levels[0], *s.request().Seconds}
		if t.Shown.Primary == nil {
			continue
		}
		plan := p
		if at != (setting{r.Levels[0], *r.Seconds}) {
			plan.Priors = nil
		}
		latest[at] = &api.TrialSoonest{
			Trial: s.doc.Sweep.ID, Level: at.level, Seconds: at.seconds, After: plan.Answer(t, t.BlockSeconds()),
		}
	}
	for _, one := range latest {
		if one.After > 0 && (best == nil || one.After < best.After || one.After == best.After && one.Trial > best.Trial) {
			best = one
		}
	}
	return best
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
			_, target, _ := d.opts.Twin.Describe(r.Levels[0])
			route += " " + target.URL + d.opts.Twin.Route(m)
		}
		all = append(all, route)
	}
	return all
}

// leastBefore returns the minimum time in seconds before a span of a trial counts, and the least median latency of its
// turns: what earlier trials of these arms measured on this target, with the same workload and level. Without any, the
// time is that of the openings at the start rate, or of the first conversations at a rate, and of the turns that each
// conversation has at least. The latency is then that of the workload in progress at this level, 0 where there is none.
// The lock is held.
func (d *Desk) leastBefore(r api.SweepRequest) (least, latency float64) {
	shape, target, _ := d.opts.Lane.Describe(r.Levels[0])
	least, latency = math.Inf(1), math.Inf(1)
	for _, s := range d.all {
		v := &s.doc.Sweep
		if !s.trial() || s.request().Warm() != r.Warm() || v.Target != target || !reflect.DeepEqual(v.Workload, shape) {
			continue
		}
		for _, span := range v.Spans {
			lanes := 1.
			if span.Lane != "" {
				lanes = 2 // which share the time
			}
			if span.Spoiled == "" && span.Level == r.Levels[0] && slices.Contains(r.Modes, span.Mode) {
				least = min(least, lanes*span.Elapsed-span.Until.Sub(span.CountedFrom).Seconds())
				if span.Row != nil && span.Row.Latency.P50 != nil {
					latency = min(latency, *span.Row.Latency.P50)
				}
			}
		}
	}
	if math.IsInf(latency, 1) {
		latency = d.opts.Lane.MedianLatency(r.Levels[0])
	}
	switch {
	case !math.IsInf(least, 1):
		return least, latency
	case r.Levels[0].Kind == api.Rate:
		return proof.OpenWarmUp / r.Levels[0].Value, latency
	}
	least = r.Levels[0].Value / d.opts.Lane.State().StartRate
	if latency > 0 && !r.Warm() { // which continues the run in progress
		least += float64(shape.Turns.Min) * latency
	}
	return least, latency
}

// checkLike returns an error for a trial on another machine that is not like the requested one. The lock is held.
func (d *Desk) checkLike(r api.SweepRequest) error {
	like := r.Like
	if like == nil {
		return nil
	}
	if was, is := armNames(like.Modes), armNames(r.Modes); !slices.Equal(slices.Sorted(slices.Values(was)),
		slices.Sorted(slices.Values(is))) {
		return api.Refuse("like.modes", join(was), join(is)+", the arms of this trial")
	}
	if !slices.Equal(like.Levels, r.Levels) {
		return api.Refuse("like.levels", like.Levels, fmt.Sprint(r.Levels, ", the concurrency of this trial"))
	}
	if like.Seconds != *r.Seconds {
		return api.Refuse("like.span", like.Seconds, fmt.Sprintf("%g, as in this trial", *r.Seconds))
	}
	if like.Together != *r.Together {
		return api.Refuse("like.together", like.Together, fmt.Sprintf("%t, as in this trial", *r.Together))
	}
	shape, _, _ := d.opts.Lane.Describe(r.Levels[0])
	unlike, _ := baseline.Unlike(api.Baseline{Workload: &shape}, api.Baseline{Workload: &like.Workload},
		api.ModeState{}, api.ModeState{})
	if len(unlike) > 0 {
		return api.Refuse("like.workload."+unlike[0].Field, unlike[0].Baseline, unlike[0].Live+", as in this trial")
	}
	if v := like.Variances[*r.Primary]; !(v.Value > 0 && v.DegreesOfFreedom > 0) {
		return api.Refuse("like.variances", join(slices.Sorted(maps.Keys(like.Variances))),
			*r.Primary+", the metric that decides this trial")
	}
	return nil
}

// armNames returns the names of modes with their speculation.
func armNames(modes []api.ModeState) (names []string) {
	for _, m := range modes {
		names = append(names, m.Text())
	}
	return names
}

// priors returns the estimates of the variances. A trial on another machine counts alone where there are too few.
func (h history) priors() map[string]decide.Variance {
	all := map[string][]decide.Variance{}
	for _, p := range h {
		for metric, v := range p.variances {
			all[metric] = append(all[metric], v)
		}
	}
	priors := map[string]decide.Variance{}
	for metric, variances := range all {
		prior := decide.Moderate(variances)
		if prior.DF == 0 && h[0].elsewhere {
			prior = h[0].variances[metric]
		}
		if prior.DF > 0 {
			priors[metric] = prior
		}
	}
	return priors
}

// outlook sets what a trial can find, by the last earlier one, and what the prior brings.
func (h history) outlook(p proof.Plan, s *api.TrialState) {
	if len(h) == 0 {
		return
	}
	last := h[len(h)-1]
	find := func(p proof.Plan) *api.TrialDetectable {
		return p.Detectable(last.variances[string(p.Primary)].Value, last.blockSeconds)
	}
	s.Detectable = find(p)
	if s.Detectable != nil {
		s.Detectable.Trial = last.id
	}
	prior, ok := p.Priors[string(p.Primary)]
	if !ok {
		return
	}
	s.Prior = &api.TrialPrior{
		TrialVariance: api.TrialVariance{Value: prior.Value, DegreesOfFreedom: prior.DF}, Trials: len(h),
	}
	p.Priors = nil
	if without := find(p); without != nil {
		s.Prior.Without = &without.Difference
	}
}

// fits gives an error for a time that, by the last earlier trial on this machine, is too short for the blocks before
// the first look.
func (h history) fits(p proof.Plan) error {
	if len(h) == 0 || h[len(h)-1].elsewhere {
		return nil
	}
	blocks, each := p.LeastBlocks(), h[len(h)-1].blockSeconds
	if least := float64(blocks) * each; p.MaxTime < least {
		return api.Refuse("max_time", p.MaxTime, fmt.Sprintf(
			"at least %.0f: a trial decides after block %d at the earliest, and one took %.0f s in the last such trial of "+
				"these arms, so that %d fit; raise max_time, or shorten span or warm_up", math.Ceil(least), blocks, each,
			int(p.MaxTime/each)))
	}
	return nil
}
