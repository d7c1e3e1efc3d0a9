package proof

import (
	"fmt"
	"math"

	"kvbooth/sidecar/api"
)

// Done is the part of a span's result that a capacity search keeps.
type Done struct {
	Span
	Elapsed float64              `json:"elapsed"` // seconds, with switch and warm-up
	Counted float64              `json:"counted"` // seconds
	Latency float64              `json:"latency"` // median in seconds
	Turns   int                  `json:"turns"`   // turns whose first token arrived in the counted time
	Spoiled string               `json:"spoiled,omitempty"`
	Metrics map[Metric]Sectioned `json:"metrics,omitempty"`
}

// done returns the kept part of a span's result. The span is spoiled if a needed metric is unknown in any section.
func (s Span) done(r *Result, slo api.SLO, needed ...Metric) Done {
	d := Done{Span: s, Elapsed: r.Elapsed, Spoiled: r.reason()}
	if d.Spoiled != "" {
		return d
	}
	d.Counted, d.Latency = r.Until-r.CountedFrom, r.medianLatency()
	d.Metrics = r.section(r.sections(), slo, Metrics...)
	for m, e := range r.Errors {
		if s, ok := d.Metrics[m]; ok {
			s.Error = -math.Log1p(-min(e/m.unscaled(s.Whole), tooLarge))
			d.Metrics[m] = s
		}
	}
	whole, _ := r.cut(1, slo)
	d.Turns = len(whole.ttft)
	for _, m := range needed {
		if _, ok := d.Metrics[m]; !ok && d.Spoiled == "" {
			d.Spoiled = fmt.Sprintf("%s is not known in every section of it", m)
		}
	}
	return d
}

// tooLarge limits the share of a figure that is attributed to the load generator's own error. The caller spoils a span
// with a larger share.
const tooLarge = .5
