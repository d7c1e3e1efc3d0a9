package proof

import (
	"fmt"
	"math"

	"kvbooth/sidecar/api"
)

// Done is what a capacity search keeps of a span.
type Done struct {
	Span
	Elapsed float64              `json:"elapsed"`
	Counted float64              `json:"counted"` // seconds
	Latency float64              `json:"latency"` // median, in seconds
	Turns   int                  `json:"turns"`   // that had their first token while it counted
	Spoiled string               `json:"spoiled,omitempty"`
	Metrics map[Metric]Sectioned `json:"metrics,omitempty"`
}

func lastSpoiled(all []Done) string {
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].Spoiled
}

// done is what is kept of a span that has been run. Without one of the metrics that it is
// needed for, it is spoiled.
func (s Span) done(r *Result, slo api.SLO, needed ...Metric) Done {
	d := Done{Span: s, Elapsed: r.Elapsed, Spoiled: r.Spoiled}
	if r.Spoiled != "" {
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

// tooLarge is the share of a figure that may be the load generator's own error; a span with
// more is spoiled by who runs it.
const tooLarge = .5
