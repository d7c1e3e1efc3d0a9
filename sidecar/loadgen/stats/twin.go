package stats

import (
	"github.com/prometheus/client_golang/prometheus"

	"kvbooth/sidecar/api"
)

var (
	descTwinPairs = desc("loadgen_twin_pairs",
		"Turns that succeeded on both lanes since the current settings took effect, at most the last hour.")
	descTwinDifference = desc("loadgen_twin_difference_seconds",
		"Lane twin less lane main over these turns (the mode of twin less that of main, of both halves, where the evidence "+
			"is swapped): of the mean TTFT, TPOT or latency, or of TTFT's 95th percentile. The bounds are those of the 95 % "+
			"interval.", "metric", "bound")
	descTwinHit = desc("loadgen_twin_kv_hit_ratio_difference",
		"Lane twin less lane main over these turns: cached tokens over prompt tokens. The bounds are those of the 95 % "+
			"interval.", "bound")
	descTwinVariance = desc("loadgen_twin_variance_ratio",
		"Variance of the paired difference divided by the variance without pairing.", "metric")
	descTwinInfo = desc("loadgen_twin_info",
		"1, labeled with the current arrangement and the strength of the evidence.", "arranged", "evidence")
	descTwinShowcase = desc("loadgen_showcase_running",
		"1 while a showcase is in progress, whose turns are in no other metric.")
)

type twinCollector func() (api.Twin, error)

// NewTwinCollector returns the metrics of two lanes that run the same conversations. A metric
// without a value is absent. It calls twin once a scrape, from any goroutine.
func NewTwinCollector(twin func() (api.Twin, error)) prometheus.Collector {
	return twinCollector(twin)
}

// Describe implements [prometheus.Collector].
func (c twinCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descTwinPairs, descTwinDifference, descTwinHit, descTwinVariance, descTwinInfo,
		descTwinShowcase,
	} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c twinCollector) Collect(ch chan<- prometheus.Metric) {
	t, err := c()
	if err != nil {
		return
	}
	e := emitter(ch)
	e.gauge(descTwinPairs, float64(t.Pairs))
	e.gauge(descTwinInfo, 1, string(t.Arranged), string(t.Evidence))
	showcase := 0.0
	if t.Showcase != nil && t.Showcase.State == api.ShowcaseRunning {
		showcase = 1
	}
	e.gauge(descTwinShowcase, showcase)
	for _, m := range t.Metrics {
		difference, labels := descTwinDifference, []string{m.Metric}
		if m.Metric == "kv_hit_ratio" {
			difference, labels = descTwinHit, nil
		}
		bounds := map[string]*float64{"estimate": m.Difference}
		if m.Interval != nil {
			bounds["lower"] = &m.Interval[0]
			bounds["upper"] = &m.Interval[1]
		}
		for bound, value := range bounds {
			if value != nil {
				e.gauge(difference, *value, append(labels, bound)...)
			}
		}
		if m.VarianceRatio != nil {
			e.gauge(descTwinVariance, *m.VarianceRatio, m.Metric)
		}
	}
}
