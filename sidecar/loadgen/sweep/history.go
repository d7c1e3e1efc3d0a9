package sweep

import (
	"fmt"
	"reflect"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/decide"
	"kvbooth/sidecar/loadgen/proof"
)

// history are the trials that have shown how the spans of such a trial scatter: with the same workload on the same
// target and lanes, at the same level, with the same length of spans. The latest is the last one.
type history []past

// past is a trial by what it says of the metric that is asked for.
type past struct {
	id           string
	variance     decide.Variance
	blockSeconds float64
}

// history finds the trials that are like one that is asked for. The lock is held.
func (d *Desk) history(r api.SweepRequest) (all history) {
	if r.Kind != api.SweepTrial {
		return nil
	}
	shape, target, _ := d.opts.Lane.Describe()
	for _, s := range d.all {
		v, q := &s.doc.Sweep, s.request()
		t, ok := s.machine.(*proof.Trial)
		alike := ok && v.Target == target && q.Levels[0] == r.Levels[0] && *q.Seconds == *r.Seconds &&
			*q.Together == *r.Together && reflect.DeepEqual(v.Workload, shape)
		if !alike {
			continue
		}
		if variance := t.Variance(proof.Metric(*r.Primary)); variance.DF > 0 {
			all = append(all, past{v.ID, variance, v.Trial.BlockSeconds})
		}
	}
	return all
}

// prior is what they say of the variance.
func (h history) prior() decide.Variance {
	var all []decide.Variance
	for _, p := range h {
		all = append(all, p.variance)
	}
	return decide.Moderate(all)
}

// detectable is what a trial can find, by the last of them; nil where there is none.
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

// fits refuses a time that, by the last of them, is too short for the blocks before the first look.
func (h history) fits(p proof.Plan) error {
	if len(h) == 0 {
		return nil
	}
	each := h[len(h)-1].blockSeconds
	if least := decide.LeastBlocks * each; p.MaxTime < least {
		return api.Refuse("max_seconds", p.MaxTime, fmt.Sprintf(
			"at least %.0f: a trial decides after %d blocks, and one took %.0f s in the last such trial on this target",
			least, decide.LeastBlocks, each))
	}
	return nil
}
